"""What was said: one message of a transcript, in the published shape, and tool calls."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from evaluatorq.model.base import Record

Role = Literal["user", "assistant", "tool", "system", "developer"]


class FunctionCall(Record):
    """The function of a tool call. ``arguments`` is the JSON text as the model wrote it."""

    name: str
    arguments: str


class ToolCall(Record):
    """One call of a tool. ``incomplete`` marks a call that never got a result."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall
    item_id: str | None = None
    incomplete: bool = False

    def parsed_arguments(self) -> dict[str, JsonValue] | None:
        """The arguments as an object, ``None`` when the text is not a JSON object."""
        try:
            value: JsonValue = json.loads(self.function.arguments or "{}")
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


class _Part(Record):
    @model_serializer(mode="wrap")
    def _omit_none(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        dumped: dict[str, JsonValue] = handler(self)
        return {key: value for key, value in dumped.items() if value is not None}


class InputText(_Part):
    """Text in a message made of parts."""

    type: Literal["input_text"] = "input_text"
    text: str


class InputImage(_Part):
    """An image by URL or file id."""

    type: Literal["input_image"] = "input_image"
    image_url: str | None = None
    file_id: str | None = None
    detail: Literal["auto", "low", "high"] = "auto"


class InputFile(_Part):
    """A file by id, data or URL."""

    type: Literal["input_file"] = "input_file"
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None
    mime_type: str | None = None


Part = Annotated[InputText | InputImage | InputFile, Field(discriminator="type")]


class Message(Record):
    """One row of a transcript. ``content`` is ``None`` for a row that only calls tools."""

    role: Role
    content: str | list[Part] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        """The spoken text, ``""`` where there is none; parts are joined by a line break."""
        if self.content is None:
            return ""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, InputText))

    @property
    def is_spoken(self) -> bool:
        """The user or the agent said something a person could read."""
        return self.role in ("user", "assistant") and bool(self.text.strip())

    def to_chat_completion(self) -> dict[str, JsonValue]:
        """The row as a chat-completions message; calls whose arguments are no JSON object become ``{}``."""
        row: dict[str, JsonValue] = {"role": self.role}
        if isinstance(self.content, list):
            row["content"] = [_chat_part(part) for part in self.content]
        else:
            row["content"] = self.content
        if self.tool_calls:
            row["tool_calls"] = [_chat_call(call) for call in self.tool_calls]
        if self.tool_call_id is not None:
            row["tool_call_id"] = self.tool_call_id
        if self.name is not None:
            row["name"] = self.name
        return row


def _chat_call(call: ToolCall) -> dict[str, JsonValue]:
    arguments = call.function.arguments if call.parsed_arguments() is not None else "{}"
    return {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": arguments}}


def _chat_part(part: InputText | InputImage | InputFile) -> JsonValue:
    match part:
        case InputText():
            return {"type": "text", "text": part.text}
        case InputImage():
            return {
                "type": "image_url",
                "image_url": {"url": part.image_url or part.file_id or "", "detail": part.detail},
            }
        case InputFile():
            file = part.model_dump(include={"file_id", "file_data", "filename"})
            return {"type": "file", "file": file}


def user(text: str) -> Message:
    """A user row."""
    return Message(role="user", content=text)


def assistant(text: str | None, calls: list[ToolCall] | None = None) -> Message:
    """An agent row."""
    return Message(role="assistant", content=text, tool_calls=calls)


def tool_call(call_id: str, name: str, arguments: dict[str, JsonValue]) -> ToolCall:
    """A tool call with its arguments encoded."""
    return ToolCall(id=call_id, function=FunctionCall(name=name, arguments=json.dumps(arguments, ensure_ascii=False)))


def tool_result(call_id: str, content: str, name: str | None = None) -> Message:
    """The row that answers a tool call."""
    return Message(role="tool", content=content, tool_call_id=call_id, name=name)


def open_calls(messages: tuple[Message, ...]) -> tuple[ToolCall, ...]:
    """Calls without a result, in order."""
    answered = {message.tool_call_id for message in messages if message.role == "tool"}
    return tuple(call for message in messages for call in message.tool_calls or () if call.id not in answered)
