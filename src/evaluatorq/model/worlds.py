"""What a case may say about the world behind the tools: limits, mocks, and what other people do meanwhile."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from evaluatorq.model.base import Strict

Number = Annotated[int, Field(ge=1)]


class OutsideCall(Strict):
    """A tool that somebody else uses."""

    name: Annotated[str, Field(min_length=1)]
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class OutsideEvent(Strict):
    """A change by somebody else, before the agent answers turn ``before_turn`` (from 1): a tool call, or a JSON merge
    patch over the state (RFC 7386).
    """

    before_turn: Number
    call: OutsideCall | None = None
    patch: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _one_change(self) -> Self:
        if (self.call is None) == (self.patch is None):
            raise ValueError("give exactly one of call, patch")
        return self


class MockFault(Strict):
    """An error as a tool answers it."""

    code: Annotated[str, Field(min_length=1)] = "unavailable"
    message: str = "the tool is not available at the moment"


def _coded(value: object) -> object:
    return {"code": value} if isinstance(value, str) else value


class MockAnswer(Strict):
    """An answer that a tool gives: to calls whose arguments hold ``when``, to call number ``on_call`` (from 1) of the
    conversation, with a ``chance`` (drawn from the conversation's seed), or to any.
    """

    when: dict[str, JsonValue] = Field(default_factory=dict)
    on_call: Number | None = None
    chance: Annotated[float, Field(gt=0, le=1)] | None = None
    returns: JsonValue = None
    fails: Annotated[MockFault, BeforeValidator(_coded)] | None = None

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        if self.fails is not None and self.returns is not None:
            raise ValueError("give exactly one of returns, fails")
        if self.fails is None and "returns" not in self.model_fields_set:
            raise ValueError("gives no answer; give returns or fails")
        return self


class ToolRules(Strict):
    """How often a tool may be called, and mocked answers; the first that fits is given, else the tool runs.

    A tool that the environment does not have exists by its mocks; ``description`` and ``parameters`` are then shown.
    """

    max_calls: Annotated[int, Field(ge=0)] | None = None
    max_calls_per_turn: Annotated[int, Field(ge=0)] | None = None
    mocks: tuple[MockAnswer, ...] = ()
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
