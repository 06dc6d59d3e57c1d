"""Rules that a strict model states already, told with the place of each fault in what a person wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from evaluatorq.store.rules import Keys, Problem, Rule, shown

T = TypeVar("T")


def model_rule(kind: TypeAdapter[T], noun: str, *parts: type[BaseModel]) -> Rule:
    """Holds a value to a type; ``parts`` are the models that hold what an unknown key may have been meant for."""
    known = sorted({name for part in parts for name in part.model_fields})

    def rule(value: JsonValue) -> Iterator[Problem]:
        try:
            kind.validate_python(value)
        except ValidationError as error:
            yield from _problems(error.errors(include_url=False), value, noun, known)

    return rule


def _problems(errors: Iterable[ErrorDetails], value: JsonValue, noun: str, known: list[str]) -> Iterator[Problem]:
    """One problem for each place: of alternatives that all fail, the first says enough."""
    told: set[Keys] = set()
    for detail in errors:
        keys = _place(detail["loc"], value, missing=detail["type"] == "missing")
        if keys not in told:
            told.add(keys)
            yield Problem(_reason(detail, keys, noun, known), keys)


def _place(loc: tuple[str | int, ...], value: JsonValue, *, missing: bool) -> Keys:
    """The path in what was written; steps that only the types know (alternatives, short forms) are left out."""
    keys: list[str | int] = []
    at = value
    for step in loc:
        if isinstance(at, dict) and step in at:
            at = at[str(step)]
        elif isinstance(at, list) and isinstance(step, int) and step < len(at):
            at = at[step]
        else:
            continue
        keys.append(step)
    return (*keys, loc[-1]) if missing else tuple(keys)


def _reason(detail: ErrorDetails, keys: Keys, noun: str, known: list[str]) -> str:
    match detail["type"]:
        case "extra_forbidden":
            near = get_close_matches(str(keys[-1]), known, n=1)
            return f"is no key here in {noun}" + (f"; did you mean {near[0]}?" if near else "")
        case "missing":
            return f"is missing; {noun} needs it here"
        case "value_error":
            return str(detail.get("ctx", {}).get("error", detail["msg"]))
        case "string_pattern_mismatch":
            return f"is {shown(detail['input'])}; a JSON pointer is empty or starts with '/', such as /orders/A1/status"
    said = detail["msg"]
    return f"is {shown(detail['input'])}; {said[:1].lower()}{said[1:]}"
