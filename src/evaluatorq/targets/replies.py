"""What an agent gave back, as a reply that fits a transcript, or one sentence about why it does not.

Nothing is invented and nothing is dropped in silence: an empty answer is a fault, a result without its call is a
fault. Only three things are repaired: half surrogate pairs become U+FFFD, calls without an id get one, and an id that
the transcript already holds is replaced, call and result alike.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from pydantic import JsonValue, ValidationError
from pydantic_core import to_jsonable_python

from evaluatorq.errors import CallError
from evaluatorq.llm.errors import clean_message
from evaluatorq.model.events import FaultCode
from evaluatorq.model.messages import InputText, Message, ToolCall, open_calls
from evaluatorq.model.responses import AgentResponse, AgentResponseError, OutputReasoning
from evaluatorq.model.usage import Usage
from evaluatorq.ports import TargetReply
from evaluatorq.targets.bodies import Places, reply_from_json
from evaluatorq.targets.parts import assessment_of, empty, unfit
from evaluatorq.targets.paths import JsonPath

MOST_TEXT = 2_000_000
"""Characters that one row of a reply may hold."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_PLACES = Places(report=JsonPath.parse("report"), assessment=JsonPath.parse("assessment"))
WANTED = "return the agent's words as str, or an AgentResponse"


def reply_of(
    value: object, messages: Sequence[Message], *, recorded: Sequence[Message] = (), reports_tools: bool = False
) -> TargetReply:
    """``value`` as a reply to ``messages``. Rows ``recorded`` by a toolset come first, each call once.

    Raises ``CallError``: ``empty_reply``, ``target_protocol``, or what an ``AgentResponse`` says went wrong.
    """
    reply = _shaped(value)
    rows = tuple(_clean(row, index, reply.usage) for index, row in enumerate(reply.messages))
    numbered = _unrecorded(rows, recorded)
    if any(row.tool_calls or row.role == "tool" for row in numbered):
        numbered = _Ids.after((*messages, *recorded), reply.usage).renumber(numbered)
    if not open_calls(numbered) and not (numbered and numbered[-1].role == "assistant" and numbered[-1].is_spoken):
        raise empty("The agent answered without words.", usage=reply.usage)
    return replace(reply, messages=(*recorded, *numbered), reports_tools=reports_tools or reply.reports_tools)


# ---------------------------------------------------------------- shapes


def _shaped(value: object) -> TargetReply:
    match value:
        case None:
            raise empty(f"The agent returned None; {WANTED}.")
        case str():
            return TargetReply((Message(role="assistant", content=value),))
        case TargetReply():
            return value
        case AgentResponse():
            return _from_response(value)
        case Message():
            return TargetReply((value,))
        case Mapping():
            return _from_mapping(value)
        case list() | tuple() if value and all(isinstance(row, Message) for row in value):
            return TargetReply(tuple(value))
    raise unfit(f"The agent returned {_described(value)}; {WANTED}.")


def _described(value: object) -> str:
    kind = type(value).__name__
    if hasattr(value, "choices"):
        return f"a {kind}, of which choices[0].message.content would be the words"
    if isinstance(value, list | tuple):
        inner = sorted({type(item).__name__ for item in value})
        return f"a {kind} of {', '.join(inner[:5])}" if inner else f"an empty {kind}"
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    return f"{article} {kind}"


def _from_mapping(value: Mapping[str, object]) -> TargetReply:
    """A dict as the same JSON of an endpoint would be read; only parts of a message that are no text are kept, too."""
    role = value.get("role", "assistant")
    if role != "assistant":
        raise unfit(f"The agent returned a {role} row; it answers in its own, with role 'assistant' or none.")
    given = value.get("content")
    content = _parts(given) if isinstance(given, list) else None
    try:
        document: JsonValue = to_jsonable_python({**value, **({} if content is None else {"content": content.text})})
    except (ValueError, RecursionError):
        raise unfit(f"The agent returned a dict that is no JSON; {WANTED}.") from None
    reply = reply_from_json(document, _PLACES, "The agent", f"{WANTED}, or a dict with 'content'")
    if content is None:
        return reply
    rows = (row if row.role == "tool" or not row.content else _with(row, content) for row in reply.messages)
    return replace(reply, messages=tuple(rows))


def _with(row: Message, content: Message) -> Message:
    return row.model_copy(update={"content": content.content})


def _parts(parts: list[object]) -> Message:
    try:
        return Message.model_validate({"role": "assistant", "content": [_part(part) for part in parts]})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise unfit(f"The agent's message does not fit: {place}: {first['msg']}.") from None


def _from_response(response: AgentResponse) -> TargetReply:
    if response.error is not None:
        raise declared(response.error, response.usage)
    thoughts = "\n".join(item.text for item in response.output if isinstance(item, OutputReasoning) and item.text)
    return TargetReply(
        response.to_messages(),
        usage=response.usage,
        model=response.model,
        response_id=response.response_id,
        trace_id=response.trace_id,
        span_id=response.span_id,
        finish_reason=response.finish_reason,
        reasoning=thoughts or None,
        report=response.report,
        assessment=assessment_of(response.assessment),
    )


_CODES = frozenset(get_args(FaultCode))
_DETERMINISTIC = {"auth", "quota", "bad_request", "not_found", "content_filter", "context_length", "refusal"}


def declared(error: AgentResponseError, usage: Usage | None = None) -> CallError:
    """The failure that an agent names itself; a code that is not on the list is a ``target_error``."""
    code = next((name for name in (error.code, error.error_type) if name in _CODES), None) or "target_error"
    return CallError(
        code,
        clean_message(error.message),
        retryable=code not in _DETERMINISTIC,
        usage=usage,
        component="target",
    )


def _part(part: object) -> object:
    """Text parts of any dialect as ours."""
    if isinstance(part, Mapping) and part.get("type") in ("text", "output_text") and isinstance(part.get("text"), str):
        return {"type": "input_text", "text": part["text"]}
    return part


# ---------------------------------------------------------------- rows


def _cleaned(text: str) -> str:
    """The text with each half surrogate pair replaced by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _clean(row: Message, index: int, usage: Usage | None) -> Message:
    if row.role not in ("assistant", "tool"):
        raise unfit(f"Row {index} of the reply is a {row.role} row; an agent answers in its own and its tools'.")
    content: str | list[object] | None
    if isinstance(row.content, list):
        content = [
            part.model_copy(update={"text": _cleaned(part.text)}) if isinstance(part, InputText) else part
            for part in row.content
        ]
    else:
        content = None if row.content is None else _cleaned(row.content)
    calls = row.tool_calls and [_clean_call(call) for call in row.tool_calls]
    longest = max(len(row.text), *(len(call.function.arguments) for call in calls or ()), 0)
    if longest > MOST_TEXT:
        raise unfit(
            f"Row {index} of the reply holds {longest:,} characters; at most {MOST_TEXT:,} are read.", usage=usage
        )
    return row.model_copy(update={"content": content, "tool_calls": calls or None})


def _clean_call(call: ToolCall) -> ToolCall:
    function = call.function.model_copy(
        update={"name": _cleaned(call.function.name), "arguments": _cleaned(call.function.arguments)}
    )
    return call.model_copy(update={"id": _cleaned(call.id), "function": function})


def _key(call: ToolCall) -> tuple[str, str]:
    arguments = call.parsed_arguments()
    text = call.function.arguments if arguments is None else json.dumps(arguments, sort_keys=True)
    return call.function.name, text


def _unrecorded(rows: tuple[Message, ...], recorded: Sequence[Message]) -> tuple[Message, ...]:
    """The rows without calls that the toolset saw too: a framework that lists its calls would count them twice."""
    seen = Counter(_key(call) for row in recorded for call in row.tool_calls or ())
    if not seen:
        return rows
    kept: list[Message] = []
    twice: set[str] = set()
    for row in rows:
        calls = []
        for call in row.tool_calls or ():
            if seen[_key(call)]:
                seen[_key(call)] -= 1
                twice.add(call.id)
            else:
                calls.append(call)
        if row.role == "tool" and row.tool_call_id in twice:
            continue
        if row.tool_calls and not calls and not row.text:
            continue
        kept.append(row.model_copy(update={"tool_calls": calls or None}))
    return tuple(kept) if open_calls(tuple(kept)) else _words_last(kept)


def _words_last(rows: list[Message]) -> tuple[Message, ...]:
    """Words that stood beside a call which seemed to wait come after the results, now that nothing waits."""
    at = next((i for i in range(len(rows) - 1, -1, -1) if rows[i].role == "assistant"), None)
    if at is None or at == len(rows) - 1 or not rows[at].text:
        return tuple(rows)
    silent = rows[at].model_copy(update={"content": None})
    return (*rows[:at], silent, *rows[at + 1 :], rows[at].model_copy(update={"tool_calls": None}))


@dataclass(slots=True)
class _Ids:
    """Ids of tool calls: unique over the conversation, and every result belongs to a call of the same reply."""

    taken: set[str]
    count: int
    usage: Usage | None
    new: dict[str, str] = field(default_factory=dict)
    waiting: list[ToolCall] = field(default_factory=list)

    @classmethod
    def after(cls, messages: Sequence[Message], usage: Usage | None) -> _Ids:
        calls = [call.id for message in messages for call in message.tool_calls or ()]
        return cls(set(calls), len(calls), usage)

    def renumber(self, rows: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(
            self._result(index, row) if row.role == "tool" else self._calls(index, row)
            for index, row in enumerate(rows)
        )

    def _calls(self, index: int, row: Message) -> Message:
        calls: list[ToolCall] = []
        for call in row.tool_calls or ():
            if call.id and call.id in self.new:
                raise unfit(f"Row {index} of the reply repeats the tool call id {call.id!r}.", usage=self.usage)
            named = call if call.id and call.id not in self.taken else call.model_copy(update={"id": self._fresh()})
            self.new[call.id or named.id] = named.id
            self.taken.add(named.id)
            calls.append(named)
        self.waiting += calls
        return row.model_copy(update={"tool_calls": calls or None})

    def _fresh(self) -> str:
        self.count += 1
        while f"call_{self.count}" in self.taken:
            self.count += 1
        return f"call_{self.count}"

    def _result(self, index: int, row: Message) -> Message:
        given = row.tool_call_id
        wanted = self.new.get(given) if given else None
        fitting = (
            call for call in self.waiting if (call.id == wanted if given else row.name in (None, call.function.name))
        )
        answered = next(fitting, None)
        if answered is None:
            fault = "a second result for" if wanted else "a result for"
            unknown = "" if wanted else ", which the reply does not call"
            raise unfit(f"Row {index} of the reply is {fault} {given!r}{unknown}.", usage=self.usage)
        self.waiting.remove(answered)
        return row.model_copy(update={"tool_call_id": answered.id})
