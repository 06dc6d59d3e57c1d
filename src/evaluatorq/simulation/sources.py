"""The store that observations are read from, as the options give it: one for all conversations, or made for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from evaluatorq.errors import ConfigError
from evaluatorq.plugins import import_attribute
from evaluatorq.ports import ObservationSource, Seat, SourceFactory


def source_of(given: object) -> SourceFactory | None:
    """A factory from an object with ``collect`` and ``page``, from what makes one (of the seat, if it takes one), or
    from the name of either.
    """
    store = import_attribute(given) if isinstance(given, str) else given
    if store is None:
        return None
    if isinstance(store, ObservationSource) and not isinstance(store, type):
        return lambda _seat: store
    if not callable(store):
        raise ConfigError(f"observation_source {given!r} is no store; give an object with collect() and page()")
    takes_seat = _takes_one(store)
    return _each(lambda seat: store(seat) if takes_seat else store())


def _takes_one(make: object) -> bool:
    """Whether it can be called with one argument; what does not say so is taken to."""
    try:
        return not callable(make) or inspect.signature(make).bind(None) is not None
    except TypeError:
        return False
    except ValueError:
        return True


def _each(make: Callable[[Seat], object]) -> SourceFactory:
    def made(seat: Seat) -> ObservationSource:
        source = make(seat)
        if not isinstance(source, ObservationSource):
            raise ConfigError(f"observation_source made {source!r}, which has no collect() and page()")
        return source

    return made
