"""Models for tests that write cases, first messages, summaries and edits, as an answer spec asks them to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.model.usage import Usage
from evaluatorq.ports import ChatReply, ChatRequest

USAGE = Usage(input_tokens=100, output_tokens=20, total_tokens=120, calls=1)
Answer = dict[str, JsonValue] | ChatReply | CallError


class WritingModel:
    """Answers each request by a function of the request and how many came before; keeps all requests."""

    name = "writer"

    def __init__(self, answer: Callable[[ChatRequest, int], Answer]) -> None:
        self._answer = answer
        self.requests: list[ChatRequest] = []

    @property
    def tails(self) -> list[str]:
        return [request.tail or "" for request in self.requests]

    async def complete(self, request: ChatRequest) -> ChatReply:
        number = len(self.requests)
        self.requests.append(request)
        await checkpoint()
        answer = self._answer(request, number)
        if isinstance(answer, CallError):
            raise answer
        if isinstance(answer, ChatReply):
            return answer
        return ChatReply(answer=answer, raw=json.dumps(answer), usage=USAGE)


def scripted(*answers: Answer) -> WritingModel:
    """The answers in order, the last one for ever."""
    return WritingModel(lambda _request, number: answers[min(number, len(answers) - 1)])


def persona(name: str, **more: JsonValue) -> dict[str, JsonValue]:
    traits = dict.fromkeys(("patience", "assertiveness", "politeness", "technical_level"), 0.5)
    words = {"communication_style": "casual", "background": "A customer.", "emotional_arc": "stable"}
    return {"name": name, **traits, **words, "cultural_context": "neutral", **more}


def scenario(name: str, **more: JsonValue) -> dict[str, JsonValue]:
    criteria: list[JsonValue] = [
        {"type": "must_happen", "description": "The agent asks for the order number"},
        {"type": "must_not_happen", "description": "The agent promises a refund"},
    ]
    ways = {"starting_emotion": "neutral", "conversation_strategy": "cooperative", "input_format": "plain_text"}
    return {"name": name, "goal": "Get a refund", "context": "It broke.", **ways, "criteria": criteria, **more}


def wanted(request: ChatRequest) -> int:
    """How many items a request asks for."""
    found = re.match(r"Make (\d+) ", request.tail or "")
    assert found, request.tail
    return int(found[1])


def author() -> WritingModel:
    """Writes whatever is asked for, every case under a new name."""
    names = iter(range(10_000))

    def answer(request: ChatRequest, _number: int) -> Answer:
        spec = request.prefix.answer
        match spec.name if spec else "":
            case "personas":
                return {"personas": [persona(f"Person {next(names)}") for _ in range(wanted(request))]}
            case "scenarios":
                return {"scenarios": [scenario(f"Scene {next(names)}") for _ in range(wanted(request))]}
            case "user_message":
                return {"reply": '"My kettle is broken."', "end_conversation": False}
            case "verdict":
                return verdict()
            case "suggestions":
                return {"suggestions": ["Ask for the order number first."]}
            case "edits":
                return {"edits": [{"suggestion": 1, "find": "", "replace": "Ask for the order number first."}]}
        return ChatReply(text="Most of it went well.", usage=USAGE)

    return WritingModel(answer)


def verdict(**more: JsonValue) -> dict[str, JsonValue]:
    return {
        "reason": "It was read.", "criteria_verdicts": [
            {"criterion_id": f"criteria_{i}", "evidence": "", "occurred": False} for i in range(2)
        ],
        "response_quality": None, "hallucination_risk": None, "tone_appropriateness": None, "factual_accuracy": None,
        "goal_achieved": True, "goal_completion_score": 1.0, "should_terminate": True, **more,
    }  # fmt: skip


def names_of(items: Sequence[object]) -> list[str]:
    return [str(getattr(item, "name", "")) for item in items]
