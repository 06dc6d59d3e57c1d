"""Finds the one object that a model was asked for, in a tool call or in prose around it, or says why there is none.

Models dress JSON up: code fences, comments, trailing commas, raw line breaks in strings, a sentence before and after.
All of that is read, with a mark. What is never done is to choose: where the text holds two different objects, or one
that can be read beside something that looks like a broken one, nobody can say which is the answer (the first might be
the agent's own words, quoted), and the model is asked again.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from evaluatorq.errors import CallError
from evaluatorq.llm.encode import mend
from evaluatorq.llm.errors import RAW_LENGTH
from evaluatorq.llm.tags import beginning
from evaluatorq.ports import AnswerSpec, ChatReply

_STRING = r'"(?:[^"\\]|\\.)*(?:"|\Z)'
_COMMENT = r"/\*.*?(?:\*/|\Z)|//[^\n]*"  # one without an end takes the rest, so no text is searched twice
_TOKEN = re.compile(rf"{_STRING}|{_COMMENT}|[{{}}]", re.DOTALL)
_DRESSING = re.compile(rf"({_STRING})|{_COMMENT}|,(?=\s*[}}\]])", re.DOTALL)
_BEGINS_LIKE_OBJECT = re.compile(r"\{\s*[\"'}]")


class Found(NamedTuple):
    """The object, whether it had to be read leniently, and the text it was read from."""

    value: dict[str, JsonValue]
    lenient: bool
    raw: str


class Unreadable(ValueError):  # noqa: N818  says what the text is, and is caught where it is raised
    """The text holds no object, or more than one."""


def read_answer(reply: ChatReply, spec: AnswerSpec) -> Found:
    """The object that ``spec`` asked for. Raises ``CallError`` with ``reask`` where the answer cannot be used."""
    calls = [call.function.arguments for call in reply.tool_calls if call.function.name == spec.name]
    raw = "\n".join(calls) or reply.text or "\n".join(c.function.arguments for c in reply.tool_calls)
    if reply.refusal:
        raise _unusable("refusal", "the model refused to answer", reply, reply.refusal)
    if reply.finish_reason == "length":
        raise _unusable("truncated_response", "the answer was cut at the token limit", reply, raw)
    if reply.finish_reason == "content_filter":
        told = "the answer was withheld by a content filter"
        raise CallError("content_filter", told, usage=reply.usage, model=reply.model, raw=raw)
    if not raw.strip():
        raise _unusable("empty_reply", "the model answered with nothing", reply, raw)
    try:
        if not calls and not reply.text:
            raise Unreadable(f"the model called {reply.tool_calls[0].function.name!r} instead of {spec.name!r}")
        found = [read_object(text) for text in calls or [reply.text]]
        if any(other.value != found[0].value for other in found):
            raise Unreadable("the model gave several answers that differ")
    except Unreadable as exc:
        raise _unusable("malformed_response", str(exc), reply, raw) from exc
    return found[0]


def read_object(text: str) -> Found:
    """The one JSON object in ``text``. Raises ``Unreadable`` for none, for a broken one, and for two that differ."""
    try:
        value: JsonValue = from_json(text)
    except ValueError:
        return Found(_only_object(text), lenient=True, raw=text)
    if isinstance(value, dict):
        return Found(value, lenient=False, raw=text)
    if isinstance(value, str):
        return Found(_only_object(value), lenient=True, raw=text)
    raise Unreadable(f"the answer is a JSON {_KINDS.get(type(value), 'value')}, not an object")


_KINDS: dict[type, str] = {list: "array", bool: "boolean", int: "number", float: "number", type(None): "null"}


def _only_object(text: str) -> dict[str, JsonValue]:
    objects: list[dict[str, JsonValue]] = []
    for piece in _pieces(text):
        bare = _DRESSING.sub(lambda match: match.group(1) or "", piece)
        value = _parsed(bare)
        if isinstance(value, dict):
            objects.append(value)
        elif _BEGINS_LIKE_OBJECT.match(bare):
            raise Unreadable("the answer holds an object that is not JSON")
    if not objects:
        raise Unreadable("the answer holds no JSON object")
    if any(other != objects[0] for other in objects):
        raise Unreadable("the answer holds several objects that differ, so none of them can be taken")
    return objects[0]


def _pieces(text: str) -> list[str]:
    """Each stretch from an outermost ``{`` to its ``}`` (or to the end), braces in strings and comments apart."""
    pieces: list[str] = []
    at = text.find("{")
    while at >= 0:
        depth, end = 0, len(text)
        for token in _TOKEN.finditer(text, at):
            depth += {"{": 1, "}": -1}.get(token.group(), 0)
            if depth == 0 and token.group() == "}":
                end = token.end()
                break
        pieces.append(text[at:end])
        at = text.find("{", end)
    return pieces


def _parsed(bare: str) -> JsonValue:
    """The text as JSON, control characters in strings included; ``None`` for anything else."""
    try:
        return mend(json.loads(bare, strict=False))
    except (ValueError, RecursionError):
        return None


def _unusable(code: str, why: str, reply: ChatReply, raw: str) -> CallError:
    return CallError(code, why, reask=True, usage=reply.usage, model=reply.model, raw=beginning(raw, RAW_LENGTH))
