"""The store that observations are read from, as the options give it: one for all conversations, or made for each."""

from __future__ import annotations

from collections.abc import Callable

from evaluatorq.errors import ConfigError
from evaluatorq.plugins import import_attribute
from evaluatorq.ports import ObservationSource, Seat, SourceFactory


def source_of(given: object) -> SourceFactory | None:
    """A factory from an object with ``collect`` and ``page``, a function of the seat that makes one, or their name."""
    store = import_attribute(given) if isinstance(given, str) else given
    if store is None:
        return None
    if isinstance(store, ObservationSource) and not isinstance(store, type):
        return lambda _seat: store
    if callable(store):
        return _each(store)
    raise ConfigError(f"observation_source {given!r} is no store; give an object with collect() and page()")


def _each(make: Callable[[Seat], object]) -> SourceFactory:
    def made(seat: Seat) -> ObservationSource:
        source = make(seat)
        if not isinstance(source, ObservationSource):
            raise ConfigError(f"observation_source made {source!r}, which has no collect() and page()")
        return source

    return made
