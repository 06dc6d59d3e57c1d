"""The store that observations are read from, as the options give it: one for all conversations, or made for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from evaluatorq.errors import ConfigError
from evaluatorq.plugins import import_attribute
from evaluatorq.ports import ObservationSource, Seat, SourceFactory


def source_of(given: object) -> SourceFactory | None:
    """A factory from an object with ``collect`` and ``page``, from what makes one (of the seat, if it takes one), or from
    the name of either.
    """
    store = import_attribute(given) if isinstance(given, str) else given
    if store is None:
        return None
    if isinstance(store, ObservationSource) and not isinstance(store, type):
        return lambda _seat: store
    if callable(store):
        return _each(store, takes_seat=_takes_seat(store))
    raise ConfigError(f"observation_source {given!r} is no store; give an object with collect() and page()")


def _takes_seat(make: Callable[..., object]) -> bool:
    try:
        inspect.signature(make).bind(None)
    except TypeError:
        return False
    except ValueError:
        pass  # some builtins do not say what they take
    return True


def _each(make: Callable[..., object], *, takes_seat: bool) -> SourceFactory:
    def made(seat: Seat) -> ObservationSource:
        source = make(seat) if takes_seat else make()
        if not isinstance(source, ObservationSource):
            raise ConfigError(f"observation_source made {source!r}, which has no collect() and page()")
        return source

    return made
