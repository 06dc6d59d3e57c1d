"""How a model is asked: one question, one request, one reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from evaluatorq.model.messages import ToolCall
from evaluatorq.model.usage import Usage
from evaluatorq.ports.participants import ToolSpec


@dataclass(frozen=True, slots=True)
class AnswerSpec:
    """A structured answer: the name and description of the object wanted, and its JSON schema (no ``$ref``)."""

    name: str
    description: str
    schema: dict[str, JsonValue]


def closed_object(properties: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The schema of an object with just these properties, all of them: the form that strict endpoints insist on."""
    required: list[JsonValue] = [*properties]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@dataclass(frozen=True, eq=False)
class ChatPrefix:
    """What stays the same for all calls of one conversation; encoded once, so keep one instance and reuse it."""

    system: str
    tools: tuple[ToolSpec, ...] = ()
    answer: AnswerSpec | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model: prefix, transcript lines, and the one volatile instruction at the end.

    ``lines`` are chat-completions messages already encoded as JSON (``evaluatorq.llm.encode``): each is encoded once
    and a request is a join. Append only: a later request of the same conversation starts with the same lines.
    """

    prefix: ChatPrefix
    lines: Sequence[bytes]
    tail: str | None = None


@dataclass(frozen=True)
class ChatReply:
    """A model's answer. ``answer`` is the object asked for by ``AnswerSpec``; ``text`` has no reasoning in it.

    ``lenient`` says that the object had to be dug out of ``raw``: fences, comments, prose around it.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    answer: dict[str, JsonValue] | None = None
    reasoning: str | None = None
    refusal: str | None = None
    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None
    finish_reason: str | None = None
    raw: str = ""
    lenient: bool = False


class ChatModel(Protocol):
    """One model at one endpoint. One request per call: whoever asks decides whether to ask again."""

    name: str

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The answer, or ``CallError`` with its kind, what it cost, and whether asking again may help."""
        ...
