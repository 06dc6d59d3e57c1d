"""The parts that rules over plain JSON values are made of. A rule yields every problem it finds, with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Self

from pydantic import JsonValue

from evaluatorq.errors import ConfigError

Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where below the value that was looked at."""

    reason: str
    keys: Keys = ()

    def under(self, key: str | int) -> Problem:
        """The same problem, seen from one level further up."""
        return Problem(self.reason, (key, *self.keys))


class Misfit(ConfigError):  # noqa: N818  what is so, as ConfigError's other kin say it
    """Parts of what somebody wrote that do not fit what they name; ``problems`` has each with its place in it."""

    def __init__(self, message: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(message)

    @classmethod
    def at(cls, message: str, *keys: str | int) -> Self:
        """One thing that does not fit, at ``keys``."""
        return cls(message, (Problem(message, keys),))


Rule = Callable[[JsonValue], Iterable[Problem]]
Fields = Mapping[str, Rule]


Placed = Callable[[Keys], str]
"""Where an option is written, as what a message about it begins with; empty where nobody knows."""


def nowhere(_keys: Keys) -> str:
    """Options of no file."""
    return ""


def dotted(keys: Keys) -> str:
    """``("criteria", 0, "type")`` as ``criteria[0].type``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")


def shown(value: JsonValue) -> str:
    """A value as a message names it."""
    match value:
        case None:
            return "nothing"
        case bool() | int() | float():
            text = json.dumps(value)
            return text if len(text) < 40 else f"{text[:12]}... ({len(text)} digits)"
        case str():
            return repr(value if len(value) < 60 else f"{value[:57]}...")
        case list():
            return "a list"
        case _:
            return f"a mapping (of {', '.join(list(value)[:3])})" if value else "an empty mapping"


def near_or_known(word: str, known: Iterable[str]) -> str:
    """The name that was probably meant, else all of them."""
    names = list(known)
    near = get_close_matches(word, names, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"


def near_and_known(word: str, known: Iterable[str]) -> str:
    """The name that was probably meant, and all of them, in order."""
    names = sorted(known)
    near = get_close_matches(word, names, n=1)
    there = f"here is {', '.join(names) or 'none'}"
    return f"did you mean {near[0]}? T{there}" if near else f"t{there}"


# ---------------------------------------------------------------- rules for one value


def text(value: JsonValue) -> Iterator[Problem]:
    """Words that are not blank."""
    if isinstance(value, str):
        if not value.strip():
            yield Problem("is blank; write what it should say")
    elif isinstance(value, dict):
        yield Problem(f"is {shown(value)}, not text; in YAML, text with a colon in it needs quotes")
    elif isinstance(value, bool | int | float):
        yield Problem(f"is {shown(value)}, not text; put it in quotes")
    else:
        yield Problem(f"is {shown(value)}, not text")


def any_text(value: JsonValue) -> Iterator[Problem]:
    """Words, or none."""
    return iter(()) if value == "" else text(value)


def string(value: JsonValue) -> Iterator[Problem]:
    """Text of any kind, also blank."""
    return iter(()) if isinstance(value, str) else text(value)


def trait(value: JsonValue) -> Iterator[Problem]:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield Problem(f"is {shown(value)}; write a number from 0 to 1")
    elif not 0 <= value <= 1:
        yield Problem(f"is {shown(value)}; a trait runs from 0 to 1")


def boolean(value: JsonValue) -> Iterator[Problem]:
    """True or false."""
    if not isinstance(value, bool):
        yield Problem(f"is {shown(value)}; write true or false")


def count(value: JsonValue) -> Iterator[Problem]:
    """A whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        yield Problem(f"is {shown(value)}; write a whole number from 0")


def anything(_: JsonValue) -> Iterator[Problem]:
    """Any JSON value."""
    return iter(())


def pattern(value: JsonValue) -> Iterator[Problem]:
    """A regular expression."""
    if not isinstance(value, str) or not value.strip():
        yield from text(value)
        return
    try:
        if re.compile(value, re.IGNORECASE).match(""):
            yield Problem(f"{value!r} also finds nothing at all, so it always holds; take out what makes it optional")
    except (re.error, OverflowError, RecursionError) as error:
        yield Problem(f"is not a regular expression: {error}; a backslash before a sign takes it literally")


def pointer(value: JsonValue) -> Iterator[Problem]:
    """A JSON pointer."""
    if not isinstance(value, str):
        yield Problem(f"is {shown(value)}; write a JSON pointer such as /orders/A1/status")
    elif value and not value.startswith("/"):
        yield Problem(f"is {shown(value)}; a JSON pointer is empty or starts with '/', such as /orders/A1/status")
    elif re.search(r"~(?![01])", value):
        yield Problem(f"is {shown(value)}; in a JSON pointer '~' is written ~0 and a '/' inside a key ~1")


def registered(value: JsonValue) -> Iterator[Problem]:
    """The plain name of something that code registers; a case file cannot name code."""
    if not isinstance(value, str) or not value.strip():
        yield from text(value)
    elif not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
        yield Problem(
            f"is {shown(value)}; give the plain name of a registered environment, such as orders: a case file names "
            "no module and no path"
        )


def choice(options: Iterable[str]) -> Rule:
    """One of some words."""
    words = list(options)

    def rule(value: JsonValue) -> Iterator[Problem]:
        if value not in words:
            near = get_close_matches(value, words, n=1) if isinstance(value, str) else ()
            yield Problem(
                f"is {shown(value)}; allowed are {', '.join(words)}" + (f"; did you mean {near[0]}?" if near else "")
            )

    return rule


# ---------------------------------------------------------------- rules for what holds values


def list_of(item: Rule, what: str) -> Rule:
    """A list that holds at least one."""

    def rule(value: JsonValue) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield Problem(f"is {shown(value)}; write a list of {what}")
            return
        if not value:
            yield Problem(f"is empty; list at least one of {what}, or leave it out")
        for position, entry in enumerate(value):
            yield from (problem.under(position) for problem in item(entry))

    return rule


def mapping_of(item: Rule, what: str) -> Rule:
    """A mapping from names of one's own."""

    def rule(value: JsonValue) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield Problem(f"is {shown(value)}; write a mapping of {what}")
            return
        for key, entry in value.items():
            yield from (problem.under(key) for problem in item(entry))

    return rule


def record(noun: str, required: Fields, optional: Fields) -> Rule:
    """A mapping with known keys. A required one must be there; an optional one may be null."""
    known = {**required, **optional}

    def rule(value: JsonValue) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield Problem(f"is {shown(value)}, not {noun}; write a mapping with {', '.join(required or known)}")
            return
        for key in required:
            if value.get(key) is None:
                yield Problem(f"is missing; {noun} needs it", (key,))
        for key, entry in value.items():
            if key not in known:
                yield Problem(f"is no key of {noun}; {near_or_known(key, known)}", (key,))
            elif entry is not None:
                yield from (problem.under(key) for problem in known[key](entry))

    return rule


def all_of(*rules: Rule) -> Rule:
    """Several rules about one value; the later ones are asked only when the first finds nothing."""

    def rule(value: JsonValue) -> Iterator[Problem]:
        for each in rules:
            problems = list(each(value))
            yield from problems
            if problems:
                return

    return rule


def one_of_keys(*names: str) -> Rule:
    """Exactly one of these keys says something."""

    def rule(value: JsonValue) -> Iterator[Problem]:
        given = [name for name in names if isinstance(value, dict) and value.get(name) is not None]
        if len(given) != 1:
            yield Problem(f"gives {' and '.join(given) or 'nothing'}; give exactly one of {', '.join(names)}")

    return rule
