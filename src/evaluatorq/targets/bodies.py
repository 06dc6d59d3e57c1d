"""A JSON answer of an endpoint or a command, read as a reply: words, tool calls, usage, each where it was said to be.

Without paths the usual places are tried; a report and an assessment are only read where a path says so. An ``error`` in
the document is an error, whatever stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.llm.encode import decode_json, encode_json
from evaluatorq.llm.errors import api_call_error, clean_message, read_api_error
from evaluatorq.llm.exchange import Answer
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.usage import Usage
from evaluatorq.ports import TargetReply
from evaluatorq.targets.parts import assessment_of, broken, call_of, empty, report_of, start_of, unfit
from evaluatorq.targets.paths import JsonPath, PathMissing, json_kind

USUAL_TEXT = tuple(
    JsonPath.parse(text)
    for text in (
        "message.content", "message", "text", "content", "response", "output", "reply", "answer",
        "choices[0].message.content", "choices[0].text",
    )
)  # fmt: skip
USUAL_CALLS = tuple(
    JsonPath.parse(text) for text in ("message.tool_calls", "tool_calls", "choices[0].message.tool_calls")
)
_TEXT_PARTS = ("text", "output_text", "input_text")
Call = tuple[ToolCall, str | None]
"""A tool call and its result, ``None`` where it still waits for one."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the parts of a reply are; ``None`` tries the usual places."""

    text: JsonPath | None = None
    tool_calls: JsonPath | None = None
    usage: JsonPath | None = None
    report: JsonPath | None = None
    assessment: JsonPath | None = None


ANYWHERE = Places()


def parsed(body: bytes, where: str) -> JsonValue:
    """The JSON in ``body``; ``CallError`` when it is none, or nested too deeply to be read."""
    try:
        return decode_json(body)
    except RecursionError:
        raise unfit(f"{where} answered JSON that is nested too deeply.") from None
    except ValueError:
        start = start_of(body)
        if body.lstrip()[:1] in (b"{", b"["):
            raise broken(f"{where} began to answer JSON and broke off: {start!r}.") from None
        raise unfit(f"{where} did not answer JSON but {start!r}.") from None


def reply_from_json(document: JsonValue, places: Places, where: str, right: str = "name the reply path") -> TargetReply:
    """The reply in ``document``, its rows not yet checked.

    ``where`` names who answered, ``right`` says what would be right where no words are in the usual places.
    """
    refuse_error(document, where)
    calls = read_calls(document, places.tool_calls, where)
    usage = usage_at(document, places.usage)
    try:
        text = _words(document, places.text, where, right, may_lack=bool(calls), usage=usage)
    except CallError as error:
        raise _beside_no_calls(error, document, places.tool_calls) from None
    return TargetReply(
        rows_of(text, calls),
        usage=usage,
        usage_known=usage is not None or places.usage is None,
        model=_text_at(document, "model"),
        response_id=_text_at(document, "id"),
        reports_tools=places.tool_calls is not None,
        report=report_of(value_at([document], places.report)),
        assessment=assessment_of(value_at([document], places.assessment)),
    )


def _beside_no_calls(error: CallError, document: JsonValue, path: JsonPath | None) -> CallError:
    """A reply without words may be one of calls that are not where they were said to be."""
    if path is None:
        return error
    try:
        path.find(document)
    except PathMissing as missing:
        told = f"{error.message.rstrip('.')}, and there are no tool calls at {path.text}: {missing}."
        return CallError(
            error.code, told, retryable=error.retryable, usage=error.usage, component=error.component, raw=error.raw
        )
    return error


def refuse_error(document: JsonValue, where: str, status: int = 200) -> None:
    """Raises the error that a document of any status carries under ``error``."""
    error = document.get("error") if isinstance(document, dict) else None
    if not error:
        return
    body = encode_json(document)
    told = read_api_error(Answer(status, {}, body))
    fault = api_call_error(told, where, body)
    named = fault.code not in ("bad_request", "server_error") or status >= 400
    message = told.message or (error if isinstance(error, str) else encode_json(error).decode())
    raise CallError(
        fault.code if named else "target_error",
        clean_message(f"{where} answered with an error: {message}"),
        retryable=fault.retryable if named else True,
        component="target",
        raw=fault.raw,
    )


def rows_of(text: str | None, calls: list[Call]) -> tuple[Message, ...]:
    """Calls with their results before the words; words beside calls that wait for a result stay with them."""
    if not calls:
        return (Message(role="assistant", content=text or ""),)
    waiting = any(result is None for _, result in calls)
    made = [call for call, _ in calls]
    rows = [Message(role="assistant", content=(text or None) if waiting else None, tool_calls=made)]
    rows += [
        Message(role="tool", content=result, tool_call_id=call.id or None, name=call.function.name)
        for call, result in calls
        if result is not None
    ]
    if not waiting:
        rows.append(Message(role="assistant", content=text or ""))
    return tuple(rows)


# ---------------------------------------------------------------- words


def _words(
    document: JsonValue, path: JsonPath | None, where: str, right: str, *, may_lack: bool, usage: Usage | None
) -> str | None:
    if path is None:
        name, value = _first(document, where, right, may_lack=may_lack)
    else:
        name = path.text or "the reply"
        try:
            value = path.find(document)
        except PathMissing as missing:
            if may_lack:
                return None
            raise unfit(f"{where}: {missing}.", usage=usage) from None
    if value is None and may_lack:
        return None
    if value is None:
        raise empty(f"{where}: {name} is null.", usage=usage)
    text = plain(value)
    if text is None:
        raise unfit(f"{where}: {name} is {json_kind(value)}, not a string.", usage=usage)
    if not text.strip() and not may_lack:
        raise empty(f"{where}: {name} is empty.", usage=usage)
    return text


def _first(document: JsonValue, where: str, right: str, *, may_lack: bool) -> tuple[str, JsonValue]:
    """The first of the usual places that holds words, else the first that is there at all."""
    if isinstance(document, str):
        return "the reply", document
    there: tuple[str, JsonValue] | None = None
    for path in USUAL_TEXT:
        try:
            value = path.find(document)
        except PathMissing:
            continue
        if plain(value) is not None:
            return path.text, value
        there = there or (path.text, value)
    if there is None and not may_lack:
        raise unfit(f"{where} answered {_outline(document)}, which holds no reply in the usual places; {right}.")
    return there or ("the reply", None)


def _outline(document: JsonValue) -> str:
    if isinstance(document, dict) and document:
        return f"an object with {', '.join(repr(key) for key in list(document)[:8])}"
    return "an empty object" if document == {} else json_kind(document)


def plain(value: JsonValue) -> str | None:
    """A string, or a list of text parts joined; ``None`` for anything else."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        return None
    parts = [part for part in value if isinstance(part, dict) and part.get("type") in _TEXT_PARTS]
    texts = [part.get("text") for part in parts]
    return "".join(text for text in texts if isinstance(text, str)) if texts else None


# ---------------------------------------------------------------- calls and usage


def read_calls(document: JsonValue, path: JsonPath | None, where: str) -> list[Call]:
    """The tool calls at ``path``, or in the first of the usual places that has some."""
    for place in (path,) if path is not None else USUAL_CALLS:
        try:
            value = place.find(document)
        except PathMissing:
            continue
        if value is None:
            continue
        if not isinstance(value, list):
            raise unfit(f"{where}: {place.text} is {json_kind(value)}, not a list of tool calls.")
        return [(call_of(item, index), _result(item)) for index, item in enumerate(value)]
    return []


def _result(item: JsonValue) -> str | None:
    if not isinstance(item, dict):
        return None
    value = next((item[key] for key in ("result", "output") if key in item), None)
    return value if value is None or isinstance(value, str) else encode_json(value).decode()


def usage_at(document: JsonValue, path: JsonPath | None) -> Usage | None:
    """The usage at ``path``, or under ``usage``; ``None`` where there is none that can be read."""
    if path is None:
        return Usage.extract(document) if isinstance(document, dict) and "usage" in document else None
    try:
        return Usage.extract({"usage": path.find(document)})
    except PathMissing:
        return None


def value_at(documents: Sequence[JsonValue], path: JsonPath | None) -> JsonValue:
    """The last value at ``path`` in the documents of an answer; ``None`` where there is none."""
    if path is None:
        return None
    found: JsonValue = None
    for document in documents:
        with suppress(PathMissing):
            found = path.find(document) or found
    return found


def _text_at(document: JsonValue, key: str) -> str | None:
    value = document.get(key) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None
