"""How the simulation's own side (simulated user, judge, generator, analyst) calls models; the agent is never meant."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from evaluatorq.model.base import Strict

DEFAULT_FAST_MODEL = "openai/gpt-6-luna"
DEFAULT_SMART_MODEL = "openai/gpt-6-sol"
DEFAULT_MODEL = DEFAULT_FAST_MODEL
STRUCTURE = frozenset(
    {"model", "messages", "input", "instructions", "tools", "tool_choice", "response_format", "text", "n", "stream"}
)
"""What a request is made of; no option may set it."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text.strip()


class LLMCallConfig(Strict):
    """How models are called. What was not set is not sent, and is looked for in the environment when a call is made.

    ``client`` is an ``AsyncOpenAI`` or another object with ``base_url`` and ``api_key``: its endpoint and key are used,
    its own transport is not. ``extra_kwargs`` and ``extra_body`` are further members of each request. ``api`` is kept
    for readers of other configurations: every request is a chat completion. Without ``model`` each role has its own.
    ``stream`` (ours) has answers sent in pieces, for endpoints that give no others; answers are read whole either way.
    """

    model: Annotated[str, AfterValidator(_not_blank)] | None = None
    api: Literal["chat_completions", "responses"] = "chat_completions"
    base_url: Annotated[str, AfterValidator(_not_blank)] | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, gt=0)
    timeout_ms: int = Field(90_000, gt=0)
    extra_kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    reasoning_effort: str | None = None
    stream: bool = False
    client: object = None
    retry_count: int = Field(2, ge=0)

    @model_validator(mode="after")
    def _no_structure(self) -> Self:
        for name in ("extra_kwargs", "extra_body"):
            structural = sorted(STRUCTURE & getattr(self, name).keys())
            if structural:
                raise ValueError(f"{name} cannot set {', '.join(structural)}: the request itself is made of it")
        return self
