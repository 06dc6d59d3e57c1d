"""Where a scenario names tools, as it is written: in checks, claims, expectations, outside events and redaction."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from evaluatorq.store.located import Keys

Named = Iterator[tuple[Keys, str]]
_LISTS = ("exact", "in_order", "subset", "any_of")


def tool_names(scenario: JsonValue) -> Named:
    """Every tool name with its place. ``scenario`` is one that the rules find right, in short or full form."""
    yield from _of_check(_at(scenario, "goal_check"), ("goal_check",))
    for place, criterion in _items(scenario, "criteria"):
        yield from _of_check(_at(criterion, "check"), (*place, "check"))
    for place, claim in _items(scenario, "claims"):
        yield from _of_check(_at(claim, "requires"), (*place, "requires"))
    expect = _at(scenario, "expect")
    yield from _of_claims(expect, ("expect",))
    for place, turn in _items(expect, "turns"):
        yield from _of_claims(turn, ("expect", *place))
    for place, event in _items(scenario, "events"):
        yield from _tools(_at(event, "call"), (*place, "call"))
    for place, scope in _items(scenario, "redact"):
        if isinstance(scope, str) and scope.startswith("tool:"):
            yield place, scope.removeprefix("tool:")


def _of_check(check: JsonValue, keys: Keys) -> Named:
    yield from _tools(_at(check, "tool_called"), (*keys, "tool_called"))


def _of_claims(claims: JsonValue, keys: Keys) -> Named:
    yield from _tools(_at(claims, "tools"), (*keys, "tools"))
    counted = _at(claims, "calls")
    yield from (((*keys, "calls", name), name) for name in (counted if isinstance(counted, dict) else ()))
    yield from _tools(_at(_at(claims, "forbid"), "tools"), (*keys, "forbid", "tools"))


def _tools(value: JsonValue, keys: Keys) -> Named:
    """The names in a tool, a list of tools, or a claim about several lists."""
    match value:
        case str():
            yield keys, value
        case list():
            for position, item in enumerate(value):
                yield from _tools(item, (*keys, position))
        case {"name": str(name)}:
            yield (*keys, "name"), name
        case dict():
            for kind in _LISTS:
                yield from _tools(value.get(kind), (*keys, kind))


def _at(value: JsonValue, key: str) -> JsonValue:
    return value.get(key) if isinstance(value, dict) else None


def _items(value: JsonValue, key: str) -> Iterator[tuple[Keys, JsonValue]]:
    listed = _at(value, key)
    yield from (((key, position), item) for position, item in enumerate(listed if isinstance(listed, list) else ()))
