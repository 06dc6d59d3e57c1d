"""An agent behind an AI SDK route (``useChat``): both stream protocols, and plain JSON or text.

Version 4 sends lines ``code:json``, version 5 server-sent events with typed parts. Which one an answer speaks is read
from the answer. An error part is an error, and a text block that never ends is a cut stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import JsonValue

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.llm.credentials import basic, header_credentials, query_credentials
from evaluatorq.llm.encode import encode_json
from evaluatorq.llm.endpoint import bare_url, is_http_url
from evaluatorq.llm.errors import clean_message, status_error
from evaluatorq.llm.exchange import Answer, Call
from evaluatorq.llm.reading import MOST_BYTES
from evaluatorq.llm.tags import beginning
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.responses import AgentResponse, OutputFunctionCall, OutputItem, OutputReasoning, OutputText
from evaluatorq.model.runs import TargetKind
from evaluatorq.model.usage import Usage
from evaluatorq.ports import TargetReply
from evaluatorq.targets.bodies import ANYWHERE, parsed, reply_from_json
from evaluatorq.targets.parts import call_of, empty, unfit
from evaluatorq.targets.published import AgentTarget
from evaluatorq.targets.streams import END, cut, document_of, events_of, reply_from_events
from evaluatorq.targets.wire import SharedWire

MessageFormat = Literal["v5", "v4"]
Json = dict[str, JsonValue]
CONNECTIONS = 1000
_FRAME = re.compile(r"([0-9a-k]):([\"\[{].*)")


class VercelAISdkTarget(AgentTarget):
    """An AI SDK chat route. ``message_format`` is how requests write tool traffic; ``timeout`` is in seconds."""

    stateful = False
    target_kind: TargetKind = "vercel"

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, JsonValue] | None = None,
        timeout: float = 120.0,
        agent_context: object = None,
        message_format: MessageFormat = "v5",
    ) -> None:
        if not is_http_url(url):
            raise ConfigError(
                f"an AI SDK route starts with http:// or https:// and names a host, not {bare_url(url)!r}"
            )
        parts = urlsplit(url)
        self.url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        self.name = bare_url(url)
        self.agent_context = agent_context
        self.message_format: MessageFormat = message_format
        self._headers = {"content-type": "application/json", **{k.lower(): v for k, v in (headers or {}).items()}}
        if parts.username:
            account = basic(unquote(parts.username), unquote(parts.password or ""))
            self._headers.setdefault("authorization", f"Basic {account}")
        self._extra = dict(extra_body or {})
        self._timeout = timeout
        self._wire = SharedWire(CONNECTIONS, timeout)

    def new(self) -> Self:
        """The same route; connections are shared."""
        clone = type(self)(
            self.url,
            headers=self._headers,
            extra_body=self._extra,
            timeout=self._timeout,
            agent_context=self.agent_context,
            message_format=self.message_format,
        )
        clone._wire = self._wire  # noqa: SLF001  its own class
        return clone

    async def respond(self, messages: Sequence[Message]) -> AgentResponse:
        """The route's answer. Raises ``CallError``."""
        rows: list[JsonValue] = [_row(message, self.message_format) for message in messages]
        body = encode_json({"messages": rows, **self._extra})
        answer = await self._wire.send(Call(self.url, self._headers, body, self.name))
        if not 200 <= answer.status < 300:
            raise status_error(answer, self.name, self.secrets)
        if not answer.whole:
            raise unfit(f"{self.name} answered more than {MOST_BYTES:,} bytes; that is not read.")
        if not answer.body.strip():
            raise empty(f"{self.name} answered {answer.status} with an empty body.")
        return _read(answer, self.name)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The credentials in its URL and its headers: what must not be written anywhere."""
        told = (text for name, value in self._headers.items() for text in header_credentials(name, value))
        return (*told, *query_credentials(urlsplit(self.url).query))

    async def aclose_shared(self) -> None:
        """Closes the connections that all clones share; a later request opens them again."""
        await self._wire.aclose()


# ---------------------------------------------------------------- requests


def _row(message: Message, form: MessageFormat) -> Json:
    if message.role == "tool":
        output: JsonValue = {"type": "text", "value": message.text}
        shown: Json = {"output": output} if form == "v5" else {"result": message.text}
        call: Json = {"type": "tool-result", "toolCallId": message.tool_call_id, "toolName": message.name or "tool"}
        return {"role": "tool", "content": [{**call, **shown}]}
    if not message.tool_calls:
        return {"role": message.role, "content": message.text}
    parts: list[JsonValue] = [{"type": "text", "text": message.text}] if message.text else []
    parts += [_call_part(call, form) for call in message.tool_calls]
    return {"role": message.role, "content": parts}


def _call_part(call: ToolCall, form: MessageFormat) -> Json:
    arguments = call.parsed_arguments() or {}
    key = "input" if form == "v5" else "args"
    return {"type": "tool-call", "toolCallId": call.id, "toolName": call.function.name, key: arguments}


# ---------------------------------------------------------------- answers


def _read(answer: Answer, where: str) -> AgentResponse:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.endswith(("/json", "+json")):
        return _from_reply(reply_from_json(parsed(answer.body, where), ANYWHERE, where))
    text = answer.body.decode("utf-8", "replace")
    if kind == "text/event-stream" or text.lstrip().startswith(("data:", "event:")):
        return _read_parts(text, where)
    frames = _frames(text, where)
    if frames is None and kind == "text/html":
        raise unfit(f"{where} answered an HTML page, not an AI SDK stream.")
    return AgentResponse.of(text) if frames is None else _read_frames(frames, where)


def _from_reply(reply: TargetReply) -> AgentResponse:
    results = {row.tool_call_id: row.text for row in reply.messages if row.role == "tool"}
    said = "".join(row.text for row in reply.messages if row.role == "assistant")
    calls = [
        OutputFunctionCall(
            id=call.id, name=call.function.name, arguments=call.function.arguments, result=results.get(call.id)
        )
        for row in reply.messages
        for call in row.tool_calls or ()
    ]
    output: list[OutputItem] = [*calls, *([OutputText(text=said)] if said else [])]
    return AgentResponse(output=output, usage=reply.usage, model=reply.model, response_id=reply.response_id)


@dataclass(slots=True)
class _Answer:
    """What a stream of parts made up so far."""

    where: str
    blocks: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    usage: Usage | None = None
    response_id: str | None = None
    finish_reason: str | None = None

    def say(self, text: JsonValue) -> None:
        if not self.blocks:
            self.blocks.append("")
        self.blocks[-1] += text if isinstance(text, str) else ""

    def call(self, part: Json) -> None:
        self.calls.append(call_of(part, len(self.calls)))

    def result(self, part: Json, value: JsonValue) -> None:
        call_id = part.get("toolCallId")
        if not isinstance(call_id, str) or call_id not in {call.id for call in self.calls}:
            raise unfit(f"{self.where} sent a result for {call_id!r}, a tool call that it did not make.")
        self.results[call_id] = value if isinstance(value, str) else encode_json(value).decode()

    def finish(self, part: Json, usage: JsonValue) -> None:
        reason = part.get("finishReason")
        self.finish_reason = reason if isinstance(reason, str) else self.finish_reason
        self.usage = Usage.extract(usage) or self.usage

    def fail(self, text: JsonValue) -> CallError:
        told = text if isinstance(text, str) else encode_json(text).decode()
        message = clean_message(f"{self.where} answered with an error: {told or 'it does not say which'}")
        return CallError("target_error", message, retryable=True, usage=self.usage, component="target")

    def response(self) -> AgentResponse:
        if self.finish_reason == "error":
            raise self.fail("the stream finished with an error")
        said = "\n\n".join(block for block in self.blocks if block)
        output: list[OutputItem] = [OutputReasoning(text="".join(self.thoughts))] if self.thoughts else []
        output += [
            OutputFunctionCall(
                id=call.id,
                name=call.function.name,
                arguments=call.function.arguments,
                result=self.results.get(call.id),
            )
            for call in self.calls
        ]
        output += [OutputText(text=said)] if said else []
        return AgentResponse(
            output=output, usage=self.usage, response_id=self.response_id, finish_reason=self.finish_reason
        )


# ---------------------------------------------------------------- version 4: lines


def _frames(text: str, where: str) -> list[tuple[str, JsonValue]] | None:
    """The lines of a data stream; ``None`` when the first line shows that the text is something else."""
    frames: list[tuple[str, JsonValue]] = []
    for line in filter(str.strip, text.replace("\r\n", "\n").split("\n")):
        match = _FRAME.fullmatch(line)
        if match is None and not frames:
            return None
        if match is None:
            start = beginning(clean_message(line[:400]), 80)
            raise unfit(f"{where} sent a line that is no part of a data stream: {start!r}.")
        frames.append((match[1], parsed(match[2].encode(), f"{where} (line {len(frames) + 1} of its data stream)")))
    return frames


def _read_frames(frames: list[tuple[str, JsonValue]], where: str) -> AgentResponse:
    answer = _Answer(where)
    for code, value in frames:
        part: Json = value if isinstance(value, dict) else {}
        match code:
            case "0":
                answer.say(value)
            case "3":
                raise answer.fail(value)
            case "9":
                answer.call(part)
            case "a":
                answer.result(part, part.get("result"))
            case "g":
                answer.thoughts.append(value if isinstance(value, str) else "")
            case "f":
                answer.response_id = _text(part.get("messageId"))
            case "e" | "d":
                answer.finish(part, part.get("usage"))
                if code == "e" and answer.blocks:
                    answer.blocks.append("")
    return answer.response()


# ---------------------------------------------------------------- version 5: server-sent events


def _read_parts(text: str, where: str) -> AgentResponse:
    events = [event.data for event in events_of(text)]
    parts = [part for data in events if isinstance(part := document_of(data), dict)]
    if not any(isinstance(part.get("type"), str) for part in parts):
        return _from_reply(reply_from_events(text, ANYWHERE, where)[0])
    answer = _Answer(where)
    open_blocks: set[str] = set()
    for part in parts:
        _add_part(answer, part, open_blocks)
    if open_blocks and answer.finish_reason is None and END not in (data.strip() for data in events):
        raise cut(where, answer.usage)
    return answer.response()


def _add_part(answer: _Answer, part: Json, open_blocks: set[str]) -> None:
    match part.get("type"):
        case "text-start":
            open_blocks.add(str(part.get("id")))
            answer.blocks.append("")
        case "text-delta":
            answer.say(part.get("delta", part.get("text")))
        case "text-end":
            open_blocks.discard(str(part.get("id")))
        case "reasoning-delta":
            answer.thoughts.append(_text(part.get("delta")) or "")
        case "tool-input-available" | "tool-input-error":
            answer.call(part)
        case "tool-output-available":
            answer.result(part, part.get("output"))
        case "tool-output-error":
            answer.result(part, {"error": part.get("errorText")})
        case "start":
            answer.response_id = _text(part.get("messageId"))
        case "finish":
            metadata = part.get("messageMetadata")
            told = metadata if isinstance(metadata, dict) else {}
            answer.finish(
                {"finishReason": part.get("finishReason") or "stop"}, told.get("usage", told.get("totalUsage"))
            )
        case "error":
            raise answer.fail(part.get("errorText"))
        case "abort":
            raise cut(answer.where, answer.usage)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
