"""Rules that a strict model states already, told with the place of each fault in what a person wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from evaluatorq.model.rules import Keys, Problem, Rule, near_or_known, shown

T = TypeVar("T")
_RIGHT = {
    "bool": "write true or false", "dict": "write a mapping", "float": "write a number", "int": "write a whole number",
    "list": "write a list", "string": "write text, in quotes where it looks like something else",
    "tuple": "write a list",
}  # fmt: skip
"""What would be right, by the first word of a fault's type."""


def model_rule(kind: TypeAdapter[T], noun: str, *parts: type[BaseModel]) -> Rule:
    """Holds a value to a type; ``parts`` are the models that hold what an unknown key may have been meant for."""
    known = sorted({name for part in parts for name in part.model_fields})

    def rule(value: JsonValue) -> Iterator[Problem]:
        try:
            kind.validate_python(value)
        except ValidationError as error:
            yield from type_problems(error, value, noun, known)

    return rule


def type_problems(
    error: ValidationError, value: object, noun: str, known: Sequence[str], *, flat: bool = False
) -> Iterator[Problem]:
    """What ``error`` found in ``value``, one problem for each place: of alternatives that all fail, the first says
    enough. An unknown key was meant for one of ``known``, which are all of its place where that is ``flat``.
    """
    told: set[Keys] = set()
    for detail in error.errors(include_url=False):
        keys = _place(detail["loc"], value, missing=detail["type"] == "missing")
        if keys not in told:
            told.add(keys)
            yield Problem(_reason(detail, keys, noun, known, flat=flat), keys)


def _place(loc: tuple[str | int, ...], value: object, *, missing: bool) -> Keys:
    """The path in what was written; steps that only the types know (alternatives, short forms) are left out."""
    keys: list[str | int] = []
    at = value
    for step in loc:
        inside = at if isinstance(at, dict) else dict(enumerate(at)) if isinstance(at, list) else {}
        if step in inside:
            at = inside[step]
            keys.append(step)
    return (*keys, loc[-1]) if missing else tuple(keys)


def _reason(detail: ErrorDetails, keys: Keys, noun: str, known: Sequence[str], *, flat: bool) -> str:
    match detail["type"]:
        case "extra_forbidden":
            near = get_close_matches(str(keys[-1]), known, n=1)
            tail = near_or_known(str(keys[-1]), known) if flat else f"did you mean {near[0]}?" if near else ""
            return f"is no key here in {noun}" + (f"; {tail}" if tail else "")
        case "missing":
            return f"is missing; {noun} needs it here"
        case "value_error":
            return str(detail.get("ctx", {}).get("error", detail["msg"]))
        case "too_short":
            return "is empty; give at least one"
    given: object = detail["input"]
    shape = shown(given) if given is None or isinstance(given, str | int | float | list | dict) else "something else"
    return f"is {shape}; {_right(detail)}"


def _right(detail: ErrorDetails) -> str:
    """What would be right instead."""
    kind, said = detail["type"], detail["msg"]
    if kind == "string_pattern_mismatch":
        return "a JSON pointer is empty or starts with '/', such as /orders/A1/status"
    if kind == "literal_error":
        words = re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", "")))
        near = get_close_matches(str(detail["input"]), words, n=1)
        return f"allowed are {', '.join(words)}" + (f"; did you mean {near[0]}?" if near else "")
    wanted = said.removeprefix("Input should be ")
    if kind.endswith(("_type", "_parsing")) and kind.partition("_")[0] in _RIGHT:
        return _RIGHT[kind.partition("_")[0]]
    return f"it must be {wanted}" if wanted != said else f"{said[:1].lower()}{said[1:]}"
