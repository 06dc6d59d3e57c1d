"""Reads YAML as data only, from the parser's events: no tags, no code, one document; anchors and merges are allowed.

An unquoted ``yes``, ``012``, ``1_000`` or ``12E4`` means different things to different YAML readers, so it is refused
instead of guessed; ``12:30`` and dates are text. Text that a ``#`` cuts off is refused as well: what YAML reads without
complaint is what changes a test set in silence.
"""

from __future__ import annotations

import math
import re

import yaml
from pydantic import JsonValue
from yaml import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from evaluatorq.errors import CaseError
from evaluatorq.store.located import Builder, Document

PARSERS = tuple(getattr(yaml, name) for name in ("CSafeLoader", "SafeLoader") if hasattr(yaml, name))
"""What splits YAML into events, the fastest first; the second is always there."""

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_DISPUTED = re.compile(
    r"yes|no|on|off|[-+]?0(?:x[0-9a-f_]+|o?[0-7_]+|b[01_]+|[0-9]+)|[-+]?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?"
    r"|[-+]?\.inf|\.nan|[-+]?(?:[0-9]+e[-+]?[0-9]+|[0-9]*\.[0-9]*e[0-9]+)",
    re.IGNORECASE,
)
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # as the parser counts lines
_CUT_OFF = re.compile(r"\s+#\w")


def read_yaml(text: str, file: str, *, parser: type[yaml.CSafeLoader | yaml.SafeLoader] = PARSERS[0]) -> Document:
    """The one document of a YAML file; ``CaseError`` with its line for everything that is not plain data."""
    reader = _Reader(text, file)
    try:
        for event in yaml.parse(text, Loader=parser):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise reader.syntax_error(error.problem or "", *((mark.line, mark.column) if mark else (0, 0))) from None
    except yaml.YAMLError as error:
        raise CaseError(f"this is not YAML: {str(error).splitlines()[0]}", file=file) from None
    if not reader.documents:
        raise CaseError("there are only comments in this file; write at least one case", file=file)
    return reader.builder.document


class _Reader:
    """Feeds a builder from YAML events."""

    def __init__(self, text: str, file: str) -> None:
        self.builder = Builder(file)
        self.documents = 0
        self._text = _LINE_BREAK.split(text)
        self._anchors: dict[str, JsonValue] = {}
        self._opening: list[tuple[int, str | None]] = []

    def take(self, event: Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 1
        match event:
            case DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise self.builder.error("a second document begins; put several cases into one list", line)
            case AliasEvent():
                self._alias(event, line)
            case ScalarEvent():
                self._refuse_tag(event, line)
                self._scalar(event, line)
            case CollectionStartEvent():
                self._refuse_tag(event, line)
                if self.builder.awaits_key:
                    raise self.builder.error("a key is plain text, not a mapping or list", line)
                self.builder.open({} if isinstance(event, MappingStartEvent) else [], line)
                self._opening.append((line, event.anchor))
            case CollectionEndEvent():
                value = self.builder.close()
                self._put(value, *self._opening.pop())

    def syntax_error(self, problem: str, line: int, column: int) -> CaseError:
        """What the parser could not read, with the usual reason for it."""
        words = self._text[line] if line < len(self._text) else ""
        if "\t" in words[: len(words) - len(words.lstrip())]:
            reason = "the indentation has a tab in it; YAML allows spaces only"
        elif words[column : column + 1] == ":" and ":" in words[:column]:
            reason = "a second ':' on this line; put text with a colon in it in quotes"
        else:
            reason = f"this is not YAML ({problem}); check brackets and indentation, and quote text with other signs"
        return self.builder.error(reason, line + 1)

    def _refuse_tag(self, event: ScalarEvent | CollectionStartEvent, line: int) -> None:
        if event.tag is not None:
            self.builder.fault(f"the tag {event.tag!r} is not read; quotes make text, and no case needs more", line)

    def _put(self, value: JsonValue, line: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = value
        self.builder.put(value, line)

    def _alias(self, event: NodeEvent, line: int) -> None:
        if self.builder.awaits_key:
            raise self.builder.error("a key is plain text, not an alias", line)
        if event.anchor not in self._anchors:
            raise self.builder.error(f"nothing before this is anchored as &{event.anchor}", line)
        self.builder.put(self._anchors[event.anchor], line)

    def _scalar(self, event: ScalarEvent, line: int) -> None:
        plain = not event.style
        if self.builder.awaits_key:
            self.builder.key(event.value, line, merge=plain and event.value == "<<")
            return
        value = self._plain(event, line) if plain else event.value
        self._put(value, line, event.anchor)

    def _plain(self, event: ScalarEvent, line: int) -> JsonValue:
        words = event.value
        if words in _NULLS:
            return None
        if words in _BOOLS:
            return _BOOLS[words]
        if _DISPUTED.fullmatch(words):
            self.builder.fault(
                f"{words!r} is text to some YAML readers and not to others; quote it, or write true, false or a number",
                line,
            )
        elif _NUMBER.fullmatch(words):
            return self._number(words, line)
        end = event.end_mark
        if end and _CUT_OFF.match(self._text[end.line][end.column :]):
            self.builder.fault("YAML drops what comes after ' #'; put text with a '#' in it in quotes", line)
        return words

    def _number(self, words: str, line: int) -> JsonValue:
        try:
            number = int(words) if _INTEGER.fullmatch(words) else float(words)
        except ValueError:
            self.builder.fault(f"{words[:12]}... has {len(words)} digits; quote it if it is text", line)
            return None
        if isinstance(number, float) and not math.isfinite(number):
            self.builder.fault(f"{words} is too large a number", line)
        return number
