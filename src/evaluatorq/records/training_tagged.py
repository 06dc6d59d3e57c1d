"""Traces as tagged text: ``<perceive>``, ``<reason>``, ``<act>`` with ``<observe>`` in it, ``<narrate>``.

The tags are data (a template), never part of a trace. Content that looks like one of them is escaped by a backslash
after the bracket, and what looks escaped gets one more, so that reading the text gives the pieces back exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Self

from pydantic import Field, JsonValue, model_validator

from evaluatorq.model.base import Strict
from evaluatorq.model.trace import Trace
from evaluatorq.records.redaction import PLACEHOLDER
from evaluatorq.records.training import PieceKind, Row, is_redacted, pieces_of, source_of

_NAME = r"^[a-z][a-z0-9_-]*$"


class Template(Strict):
    """The words around the pieces. ``train_tags`` also trains on the tags around trainable content."""

    name: str
    tags: dict[PieceKind, str]
    separator: str = "\n"
    train_tags: bool = False
    description: str = Field("", exclude=True)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        kinds = ("user", "reasoning", "said", "call", "result")
        missing = [kind for kind in kinds if kind not in self.tags]
        if missing or len(set(self.tags.values())) != len(kinds):
            raise ValueError(f"tags: give each of {', '.join(kinds)} a tag of its own")
        if any(not re.match(_NAME, tag) for tag in self.tags.values()):
            raise ValueError("tags: a tag is a lower-case word")
        return self

    @property
    def tag(self) -> str:
        """A regular expression with one group, for every tag."""
        return rf"(</?(?:{'|'.join(map(re.escape, self.tags.values()))})>)"

    @property
    def look(self) -> str:
        """A regular expression for what looks like a tag, plain or escaped."""
        return rf"<(\\*)(/?(?:{'|'.join(map(re.escape, self.tags.values()))})>)"

    def escaped(self, text: str) -> str:
        """Content in which nothing looks like a tag."""
        return re.sub(self.look, r"<\1\\\2", text)

    def unescaped(self, text: str) -> str:
        """The content that was escaped."""
        return re.sub(self.look, lambda found: f"<{found.group(1)[1:]}{found.group(2)}", text)


class _Text:
    """A text that grows, with its segments by character."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.segments: list[JsonValue] = []
        self.length = 0

    def add(self, text: str, *, masked: bool, **more: JsonValue) -> None:
        if text:
            end = self.length + len(text)
            self.segments.append({"start": self.length, "end": end, "loss_mask": masked, **more})
            self.parts.append(text)
            self.length = end


def tagged_row(trace: Trace, template: Template) -> Row:
    """One row: the text, its segments by character with their masks, and where it comes from.

    Every character belongs to one segment. Those without a ``tag`` are the tags themselves.
    """
    text, redacted = _Text(), is_redacted(trace)
    pieces = list(pieces_of(trace))
    for number, piece in enumerate(pieces):
        tag = template.tags[piece.kind]
        inside = piece.kind == "result" and number > 0 and pieces[number - 1].kind in ("call", "result")
        holds_more = (
            piece.kind in ("call", "result") and number + 1 < len(pieces) and pieces[number + 1].kind == "result"
        )
        masked = not (template.train_tags and piece.trainable)
        if not inside and number:
            text.add(template.separator, masked=True)
        text.add(f"<{tag}>", masked=masked)
        for part, hidden in _parts(template.escaped(piece.text), redacted=redacted):
            text.add(part, masked=hidden or not piece.trainable, tag=tag, step=piece.step)
        if piece.kind == "call" and holds_more:
            continue
        text.add(f"</{tag}>", masked=masked)
        if inside and not holds_more:
            text.add(f"</{template.tags['call']}>", masked=True)
    return {"text": "".join(text.parts), "segments": text.segments, **source_of(trace)}


def _parts(text: str, *, redacted: bool) -> Iterator[tuple[str, bool]]:
    """The text cut at what stands for something that was taken out, which is never trained on."""
    at = 0
    for found in PLACEHOLDER.finditer(text) if redacted else ():
        yield text[at : found.start()], False
        yield found.group(), True
        at = found.end()
    yield text[at:], False


def parse_tagged(text: str, template: Template) -> Iterator[tuple[PieceKind, str]]:
    """The kinds and contents of the pieces that a text was made of. ``ValueError`` where its tags do not pair up."""
    kinds = {tag: kind for kind, tag in template.tags.items()}
    open_tags: list[str] = []
    content = ""
    for number, token in enumerate(re.split(template.tag, text)):
        if number % 2 == 0:
            content += token
            continue
        tag = token.strip("</>")
        if token.startswith("</"):
            if not open_tags or open_tags.pop() != tag:
                raise ValueError(f"{token} closes nothing")
            if content or kinds[tag] != "call":
                yield kinds[tag], template.unescaped(content)
        else:
            if open_tags and content:
                yield kinds[open_tags[-1]], template.unescaped(content)
            open_tags.append(tag)
        content = ""
    if open_tags:
        raise ValueError(f"<{open_tags[-1]}> is not closed")


def same_pieces(row: Row, trace: Trace, template: Template) -> bool:
    """Whether a row's text reads back as the trace's pieces."""
    wanted = [(piece.kind, piece.text) for piece in pieces_of(trace)]
    text = row["text"]
    return isinstance(text, str) and list(parse_tagged(text, template)) == wanted


__all__ = ["Template", "parse_tagged", "same_pieces", "tagged_row"]
