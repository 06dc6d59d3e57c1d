"""Where a value is in a JSON document: ``choices[0].message.content``, or ``/choices/0/message/content`` as a pointer.

A negative index counts from the end: ``messages[-1].content``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import JsonValue

from evaluatorq.errors import ConfigError

_STEP = re.compile(r"([^.\[\]]+)|\[(-?\d+)\]")
_DOTTED = re.compile(r"(?:[^.\[\]]+|\[-?\d+\])(?:\.[^.\[\]]+|\[-?\d+\])*")
_INDEX = re.compile(r"-?\d+")


class PathMissing(LookupError):  # noqa: N818  what is so, as KeyError's kin say it
    """A path leads nowhere; the message says where it stops and what is there."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """One path, parsed. ``text`` is how it was written."""

    text: str
    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """The path that ``text`` writes; ``ConfigError`` when it writes none."""
        if text == "":
            return cls(text, ())
        if text.startswith("/"):
            return cls(text, tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]))
        if not _DOTTED.fullmatch(text):
            raise ConfigError(f"{text!r} is no path; write one such as choices[0].message.content or /reply/text")
        return cls(text, tuple(match[1] or match[2] for match in _STEP.finditer(text)))

    def find(self, document: JsonValue) -> JsonValue:
        """The value at the path. Raises ``PathMissing``."""
        value = document
        for done, step in enumerate(self.steps):
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and _INDEX.fullmatch(step) and -len(value) <= int(step) < len(value):
                value = value[int(step)]
            else:
                where = ".".join(self.steps[:done]) or "the reply"
                raise PathMissing(f"{where} has no {step!r} ({_contents(value)})")
        return value


def _contents(value: JsonValue) -> str:
    match value:
        case dict():
            return "it has " + ", ".join(repr(key) for key in list(value)[:8]) if value else "it is empty"
        case list():
            return f"it is a list of {len(value)}"
    return f"it is {json_kind(value)}"


def json_kind(value: JsonValue) -> str:
    """What a JSON value is, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
    return "an object"
