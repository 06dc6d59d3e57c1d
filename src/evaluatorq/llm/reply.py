"""Reads a chat completion, whole or as server-sent events, into a ``ChatReply``; the many shapes of content end here.

Reasoning is kept apart from what was said, wherever an endpoint puts it. A tool call without an id of its own gets one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

from pydantic import JsonValue

from evaluatorq.llm.encode import decode_json, encode_json
from evaluatorq.model.messages import FunctionCall, ToolCall
from evaluatorq.model.usage import Usage
from evaluatorq.ports import ChatReply

_THOUGHT = re.compile(r"<think(?:ing)?>(.*?)</think(?:ing)?>", re.DOTALL)
_OPENED_BY_PROMPT = re.compile(r"\A(?!.*<think)(.*)</think(?:ing)?>", re.DOTALL)
_NEVER_CLOSED = re.compile(r"\A\s*<think(?:ing)?>(.*)\Z", re.DOTALL)
_REASONING_KEYS = ("reasoning_content", "reasoning")

Json = dict[str, JsonValue]


def read_reply(doc: Json) -> ChatReply | None:
    """The first choice of a chat completion, or ``None`` when it holds no message."""
    choices = doc.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return None
    text, thoughts = _read_content(message.get("content"))
    if "<think" in text or "</think" in text:
        text, thought = _split_thoughts(text)
        thoughts += thought
    thoughts += [said for key in _REASONING_KEYS if isinstance(said := message.get(key), str) and said][:1]
    raw_calls = message.get("tool_calls")
    return ChatReply(
        text=text,
        tool_calls=_read_calls(raw_calls) if raw_calls and isinstance(raw_calls, list) else (),
        reasoning="\n".join(thoughts) or None,
        refusal=_string(message.get("refusal")),
        usage=Usage.extract(doc),
        model=_string(doc.get("model")),
        response_id=_string(doc.get("id")),
        finish_reason=_string(choice.get("finish_reason")),
        raw=text,
    )


def _read_content(content: JsonValue) -> tuple[str, list[str]]:
    """Text and thoughts of a content: a string, nothing, or a list of parts."""
    if isinstance(content, str):
        return content, []
    said: list[str] = []
    thoughts: list[str] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            said.append(part)
        elif isinstance(part, dict):
            kind = part.get("type")
            words = part.get("thinking", part.get("text")) if kind in ("thinking", "reasoning") else part.get("text")
            text = words if isinstance(words, str) else _read_content(words)[0]
            if text:
                (thoughts if kind in ("thinking", "reasoning") else said).append(text)
    return "".join(said), thoughts


def _split_thoughts(text: str) -> tuple[str, list[str]]:
    """Takes ``<think>`` blocks out of a text, and a block at its start that lacks its first or its last mark."""
    thoughts: list[str] = []

    def keep(match: re.Match[str]) -> str:
        thoughts.append(match.group(1).strip())
        return ""

    for pattern in (_OPENED_BY_PROMPT, _THOUGHT, _NEVER_CLOSED):
        text = pattern.sub(keep, text)
    return text.strip() if thoughts else text, [thought for thought in thoughts if thought]


def _read_calls(items: list[JsonValue]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    seen: set[str] = set()
    for item in items:
        function = item.get("function") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(function, dict):
            continue
        name, arguments = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or not name:
            continue
        if not isinstance(arguments, str):
            arguments = _as_text(arguments)
        call_id = _string(item.get("id")) or ""
        if not call_id or call_id in seen:
            call_id = fresh_call_id()
        seen.add(call_id)
        calls.append(ToolCall(id=call_id, function=FunctionCall(name=name, arguments=arguments)))
    return tuple(calls)


def fresh_call_id() -> str:
    """An id for a tool call whose model gave none, or one that is taken."""
    return f"call_{uuid4().hex[:24]}"


def _as_text(arguments: JsonValue) -> str:
    """Arguments that came as an object instead of JSON text; nothing is an empty object."""
    return "{}" if arguments is None else encode_json(arguments).decode()


def _string(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


# ---------------------------------------------------------------- server-sent events


def is_event_stream(body: bytes) -> bool:
    """Whether a body is server-sent events rather than JSON."""
    return body[:64].lstrip().startswith((b"data:", b"event:", b":", b"id:", b"retry:"))


def read_events(body: bytes) -> tuple[Json, bool]:
    """Puts the chunks of a streamed completion together: the same document as without streaming.

    The second value says whether the stream reached its end. A chunk with an ``error`` is returned as it is. Raises
    ``ValueError`` for a chunk that is not JSON.
    """
    doc: Json = {}
    message: Json = {"role": "assistant", "content": None}
    choice: Json = {"message": message, "finish_reason": None}
    calls: dict[str, Json] = {}
    ended = False
    for data in _event_data(body):
        if data.strip() == b"[DONE]":
            ended = True
            break
        chunk = decode_json(data)
        if not isinstance(chunk, dict):
            raise ValueError("a chunk is not a JSON object")  # noqa: TRY004  what came is at fault, not a type of ours
        if chunk.get("error"):
            return chunk, True
        doc.update({key: chunk[key] for key in ("id", "model", "usage") if chunk.get(key)})
        choices = chunk.get("choices")
        delta = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(delta, dict):
            _add_delta(message, calls, delta.get("delta"))
            choice["finish_reason"] = delta.get("finish_reason") or choice["finish_reason"]
    if calls:
        message["tool_calls"] = list(calls.values())
    doc["choices"] = [choice]
    return doc, ended or choice["finish_reason"] is not None


def _event_data(body: bytes) -> Iterator[bytes]:
    """The data of each event; its lines are joined by a line break."""
    lines: list[bytes] = []
    for line in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if line.startswith(b"data:"):
            lines.append(line[5:].removeprefix(b" "))
        elif not line and lines:
            yield b"\n".join(lines)
            lines = []
    if lines:
        yield b"\n".join(lines)


def _add_delta(message: Json, calls: dict[str, Json], delta: JsonValue) -> None:
    if not isinstance(delta, dict):
        return
    text, thoughts = _read_content(delta.get("content"))
    pieces = {"content": text, "refusal": delta.get("refusal"), "reasoning_content": "".join(thoughts)}
    for key in _REASONING_KEYS:
        if delta.get(key):
            pieces["reasoning_content"] = delta[key]
            break
    for key, piece in pieces.items():
        if isinstance(piece, str) and piece:
            message[key] = f"{message.get(key) or ''}{piece}"
    fragments = delta.get("tool_calls")
    for fragment in fragments if isinstance(fragments, list) else ():
        if isinstance(fragment, dict):
            _add_fragment(calls, fragment)


def _add_fragment(calls: dict[str, Json], fragment: Json) -> None:
    """Fragments of one call share an index; endpoints that send none send each call whole, or begin it with its id."""
    index, call_id = fragment.get("index"), fragment.get("id")
    if index is not None:
        key = f"index {index}"
    elif call_id or not calls:
        key = f"id {call_id or len(calls)}"
    else:
        key = next(reversed(calls))
    call = calls.setdefault(key, {"id": None, "function": {"name": "", "arguments": ""}})
    call["id"] = call["id"] or call_id
    known, new = call["function"], fragment.get("function")
    if isinstance(known, dict) and isinstance(new, dict):
        for part in ("name", "arguments"):
            piece = new.get(part)
            if isinstance(piece, str) and piece:
                known[part] = f"{known[part]}{piece}"
            elif isinstance(piece, dict):
                known[part] = _as_text(piece)
