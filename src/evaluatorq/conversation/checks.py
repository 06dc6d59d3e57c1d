"""Facts that code reads: words by pattern, tool calls by name and arguments, final state by JSON pointer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue

from evaluatorq.model.cases import Check, StateCheck, ToolCheck
from evaluatorq.model.messages import Message, ToolCall


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Where a checked behaviour was seen, and the words, call or pointer that show it."""

    evidence: str
    message_index: int | None = None


@lru_cache(maxsize=1024)
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


def occurrence(check: Check, index: int, message: Message, messages: tuple[Message, ...]) -> Occurrence | None:
    """Whether ``message``, at ``index`` of ``messages``, shows the checked behaviour. State is not read here."""
    if check.agent_says is not None and message.role == "assistant":
        return _said(check.agent_says, index, message)
    if check.user_says is not None and message.role == "user":
        return _said(check.user_says, index, message)
    if check.tool_called is not None:
        return _called(check.tool_called, index, message, messages)
    return None


def _said(source: str, index: int, message: Message) -> Occurrence | None:
    found = _pattern(source).search(message.text)
    return Occurrence(found.group() or message.text, index) if found else None


def _called(wanted: ToolCheck, index: int, message: Message, messages: tuple[Message, ...]) -> Occurrence | None:
    if wanted.outcome is None:
        candidates = message.tool_calls or []
    elif message.role == "tool" and was_rejected(message) == (wanted.outcome == "rejected"):
        candidates = [
            call for row in messages[:index] for call in row.tool_calls or () if call.id == message.tool_call_id
        ]
    else:
        return None
    for call in candidates:
        if call.function.name == wanted.name and _includes(call.parsed_arguments(), wanted.arguments):
            return Occurrence(render_call(call), index)
    return None


def render_call(call: ToolCall) -> str:
    """A call as evidence: ``name({"argument": "value"})``."""
    return f"{call.function.name}({call.function.arguments or '{}'})"


def was_rejected(result: Message) -> bool:
    """A tool row that reports an error instead of a result: a JSON object with the key ``error``."""
    text = result.text
    if not text.lstrip().startswith("{"):
        return False
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value.get("error"))


def _includes(actual: dict[str, JsonValue] | None, wanted: dict[str, JsonValue]) -> bool:
    return actual is not None and all(key in actual and same_json(actual[key], value) for key, value in wanted.items())


def same_json(a: JsonValue, b: JsonValue) -> bool:
    """Equality of JSON values: ``true`` is not ``1``, but ``1`` is ``1.0``."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same_json(x, y) for x, y in zip(a, b, strict=True))
    return a == b


_MISSING = object()


def resolve_pointer(state: JsonValue, pointer: str) -> JsonValue | object:
    """The value at a JSON pointer (RFC 6901); a private marker where the path leads nowhere."""
    value: JsonValue = state
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch(r"0|[1-9]\d*", key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return _MISSING
    return value


def value_at(state: JsonValue, pointer: str) -> JsonValue:
    """The value at a JSON pointer, ``None`` where the path leads nowhere."""
    value = resolve_pointer(state, pointer)
    return None if value is _MISSING else _as_json(value)


def state_holds(check: StateCheck, state: JsonValue) -> Occurrence | None:
    """Whether the claim about the state is true; the evidence names the pointer and what was found."""
    value = resolve_pointer(state, check.pointer)
    if check.absent:
        holds = value is _MISSING or value is None
    elif value is _MISSING:
        holds = False
    elif check.one_of is not None:
        holds = any(same_json(_as_json(value), option) for option in check.one_of)
    else:
        holds = same_json(_as_json(value), check.equals)
    shown = "absent" if value is _MISSING else json.dumps(value, ensure_ascii=False)
    return Occurrence(f"{check.pointer or '/'} = {shown}") if holds else None


def _as_json(value: JsonValue | object) -> JsonValue:
    return value  # type: ignore[return-value]  # the marker was ruled out by the caller
