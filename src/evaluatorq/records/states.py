"""States as resources: what changed between two snapshots, and the state of any turn from the last one backwards.

A resource is a member of a top-level object (``/orders/A1``) or a top-level value (``/today``). Only changes are kept;
the state after a turn is the final state with the later changes taken back. A resource that is ``null`` is absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from evaluatorq.conversation.checks import same_json
from evaluatorq.model.observation import Change, Observation


def resources(state: JsonValue) -> dict[str, JsonValue]:
    """The resources of a state by pointer; a state that is no object is one resource, under ``""``."""
    return {f"/{'/'.join(map(_escaped, path))}" if path else "": value for path, value in _resources(state)}


def _resources(state: JsonValue) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    if not isinstance(state, dict):
        if state is not None:
            yield (), state
        return
    for key, value in state.items():
        if isinstance(value, dict) and value:
            yield from (((key, inner), item) for inner, item in value.items())
        elif not isinstance(value, dict):
            yield (key,), value


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def changes_between(before: JsonValue, after: JsonValue) -> dict[str, Change]:
    """The resources that differ, in the order in which the states name them."""
    if before is after:
        return {}
    old, new = resources(before), resources(after)
    names = dict.fromkeys((*old, *new))
    pairs = ((name, old.get(name), new.get(name)) for name in names)
    return {name: Change(before=a, after=b) for name, a, b in pairs if not same_json(a, b)}


def appended_events(before: JsonValue, after: JsonValue) -> tuple[str, ...] | None:
    """What was appended to the state's list of events; ``None`` for a state without one, or that rewrote it."""
    old, new = _events(before), _events(after)
    if old is None or new is None or new[: len(old)] != old:
        return None
    return new[len(old) :]


def _events(state: JsonValue) -> tuple[str, ...] | None:
    found = state.get("events") if isinstance(state, dict) else None
    if not isinstance(found, list):
        return None
    texts = tuple(event for event in found if isinstance(event, str))
    return texts if len(texts) == len(found) else None


def revisions_in(state: JsonValue) -> dict[str, int]:
    """The revision of each resource that carries one, as an integer under the key ``revision``."""
    found = {name: value.get("revision") for name, value in resources(state).items() if isinstance(value, dict)}
    return {name: value for name, value in found.items() if isinstance(value, int) and not isinstance(value, bool)}


def state_after(final: JsonValue, observations: Sequence[Observation], position: int) -> JsonValue:
    """The state after the turn at ``position`` (from 0), from the conversation's final one; -1 is before any turn."""
    state = final
    for seen in reversed(observations[position + 1 :]):
        state = taken_back(taken_back(state, seen.states), seen.outside)
    return state


def taken_back(state: JsonValue, changes: Mapping[str, Change] | None) -> JsonValue:
    """The state before ``changes``; the one given stays as it is."""
    own = ((name, change.before) for name, change in (changes or {}).items() if name.startswith("/") or not name)
    for name, before in sorted(own, key=lambda item: item[1] is not None):  # removed first: a value may stand there
        state = _put(state, [_plain(token) for token in name.split("/")[1:]], before)
    return state


def _plain(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")


def _put(state: JsonValue, path: list[str], value: JsonValue) -> JsonValue:
    if not path:
        return value
    members = dict(state) if isinstance(state, dict) else {}
    if len(path) == 1 and value is None:
        members.pop(path[0], None)
    else:
        members[path[0]] = _put(members.get(path[0]), path[1:], value)
    return members
