"""Answers that come as server-sent events, put together: chat-completion chunks, JSON by path, or plain text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.llm.encode import decode_json
from evaluatorq.llm.errors import clean_message
from evaluatorq.llm.reply import read_events
from evaluatorq.model.usage import Usage
from evaluatorq.ports import TargetReply
from evaluatorq.targets.bodies import (
    Places,
    plain,
    read_calls,
    refuse_error,
    reply_from_json,
    rows_of,
    usage_at,
    value_at,
)
from evaluatorq.targets.parts import assessment_of, empty, report_of, unfit
from evaluatorq.targets.paths import PathMissing

DELTA_KEYS = ("delta", "text", "content", "token", "response", "output", "message", "answer", "reply")
END = "[DONE]"
_LINE_ENDS = (("\r\n", "\n"), ("\r", "\n"))


class SentEvent(NamedTuple):
    """One server-sent event: its name (``message`` where not given) and its data."""

    name: str
    data: str


def events_of(body: str) -> Iterator[SentEvent]:
    """The events of a stream that has ended; one without data is none."""
    for old, new in _LINE_ENDS:
        body = body.replace(old, new)
    name, data = "message", list[str]()
    for line in (*body.removeprefix("\ufeff").split("\n"), ""):
        field_name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield SentEvent(name, "\n".join(data))
            name, data = "message", []
        elif field_name == "data":
            data.append(value)
        elif field_name == "event":
            name = value


def document_of(data: str) -> JsonValue:
    """The JSON object or string of an event; ``None`` for plain text."""
    try:
        value = decode_json(data.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | str) else None


def cut(where: str, usage: Usage | None = None) -> CallError:
    """The error for a stream that broke off before its end."""
    message = f"{where} broke off in the middle of its stream"
    return CallError("truncated_response", message, retryable=True, usage=usage, component="target")


@dataclass(slots=True)
class _Stream:
    """What a stream said so far."""

    where: str
    places: Places
    said: list[str] = field(default_factory=list)
    key: str | None = None
    missing: str | None = None
    documents: list[dict[str, JsonValue]] = field(default_factory=list)

    def add(self, event: SentEvent, *, as_json: bool) -> None:
        document = document_of(event.data) if as_json else None
        if event.name == "error":
            wrapped: JsonValue = {"error": document or event.data}
            has_own = isinstance(document, dict) and document.get("error")
            refuse_error(document if has_own else wrapped, self.where)
        if isinstance(document, dict):
            self.documents.append(document)
            refuse_error(_as_error(document), self.where)
            self.said.append(self._delta(document) or "")
        else:
            self.said.append(document if isinstance(document, str) else event.data)

    def _delta(self, document: dict[str, JsonValue]) -> str | None:
        if self.places.text is not None:
            try:
                return plain(self.places.text.find(document))
            except PathMissing as missing:
                self.missing = str(missing)
                return None
        for key in DELTA_KEYS if self.key is None else (self.key,):
            text = plain(document.get(key))
            if text:
                self.key = key
                return text
        return None


def _as_error(document: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if document.get("type") == "error" and not document.get("error"):
        return {"error": document.get("message") or document.get("errorText") or "the stream reported an error"}
    return document


def reply_from_events(body: str, places: Places, where: str) -> tuple[TargetReply, list[dict[str, JsonValue]]]:
    """The reply that a stream makes up, and the JSON objects in it."""
    events = list(events_of(body))
    first = document_of(events[0].data) if events else None
    if isinstance(first, dict) and isinstance(first.get("choices"), list) and places.text is None:
        return _completion(body, places, where)
    stream = _Stream(where, places)
    for event in events:
        if event.data.strip() == END:
            break
        stream.add(event, as_json=first is not None or event.name == "error")
    usage = next((u for doc in reversed(stream.documents) if (u := usage_at(doc, places.usage)) is not None), None)
    calls = [
        call for doc in stream.documents if places.tool_calls for call in read_calls(doc, places.tool_calls, where)
    ]
    text = "".join(stream.said)
    if not text.strip() and not calls:
        if stream.missing:
            raise unfit(f"{where}: no event of the stream holds a reply: {stream.missing}.", usage=usage)
        raise empty(f"{where} streamed no words.", usage=usage)
    reply = TargetReply(
        rows_of(text, calls),
        usage=usage,
        usage_known=usage is not None or places.usage is None,
        reports_tools=places.tool_calls is not None,
        report=report_of(value_at(stream.documents, places.report)),
        assessment=assessment_of(value_at(stream.documents, places.assessment)),
    )
    return reply, stream.documents


def _completion(body: str, places: Places, where: str) -> tuple[TargetReply, list[dict[str, JsonValue]]]:
    try:
        document, ended = read_events(body.encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise unfit(clean_message(f"{where} streamed an event that is not JSON: {error}")) from None
    if not ended:
        raise cut(where, Usage.extract(document) if "usage" in document else None)
    return reply_from_json(document, places, where), [document]
