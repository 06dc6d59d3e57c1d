"""Who takes part in a conversation, and the plain replies they give; one fresh instance per conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from evaluatorq.model.assessments import Assessment
from evaluatorq.model.events import CallFailed
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.usage import Usage
from evaluatorq.model.worlds import OutsideEvent

# ---------------------------------------------------------------- replies


@dataclass(frozen=True, slots=True)
class UserReply:
    """One turn of the simulated user: words, a wish to stop, or both. ``usage`` of ``None`` means unknown."""

    text: str
    stop: bool = False
    usage: Usage | None = None
    model: str | None = None
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class TargetReply:
    """One answer of the agent: transcript rows. Calls without a result are run by the environment, if there is one.

    ``reports_tools`` says that the agent shows every tool call it makes, so that their absence is a fact. ``report`` is
    what the agent tells of the turn besides: how it understood the message, the blocks of its reply, cards, its phase.
    ``usage_known`` is ``False`` for a metered agent whose answer did not say what it cost. ``assessment`` is what the
    agent holds as it gives this answer, returned beside its words or calls.
    """

    messages: tuple[Message, ...]
    usage: Usage | None = None
    usage_known: bool = True
    model: str | None = None
    response_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reports_tools: bool = False
    report: TurnReport | None = None
    assessment: Assessment | None = None


@dataclass(frozen=True, slots=True)
class ToolsReply:
    """One result row for each call, in order. A tool that fails answers with ``{"error": ...}``; it does not raise.

    ``effects`` says of calls (by id) that may change the state whether they did; calls that only read are left out,
    and ``None`` means that this environment does not tell.
    """

    messages: tuple[Message, ...]
    effects: Mapping[str, bool] | None = None


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """A verdict. ``strict`` holds occurrences to their quotes; ``refused`` names criteria whose verdict did not hold.

    ``goal_known`` is ``False`` when this judge could not decide the goal (an offline judge without a goal check).
    ``unknown_scores`` says of numbers in the judgment that they stand for nothing, and why.
    """

    judgment: Judgment
    usage: Usage | None = None
    model: str | None = None
    strict: bool = True
    goal_known: bool = True
    refused: dict[str, str] = field(default_factory=dict)
    unknown_scores: dict[str, str] = field(default_factory=dict)


# ---------------------------------------------------------------- participants


class Target(Protocol):
    """The agent under test. ``stateful`` keeps its own memory, so it is restarted instead of resumed mid-way.

    A target may also have ``manages_own_timeout = True``; then the driver sets no time limit on its calls.
    """

    stateful: bool

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
        """Answers the transcript so far; ``messages`` is empty when the agent opens."""
        ...


class UserSimulator(Protocol):
    """The simulated user."""

    async def speak(self, messages: Sequence[Message]) -> UserReply:
        """The next user turn, given what both sides said."""
        ...


class Judge(Protocol):
    """The auditor of a conversation."""

    async def judge(self, messages: Sequence[Message], open_criteria: Sequence[str], *, final: bool) -> JudgeReply:
        """A verdict on the transcript; ``open_criteria`` are the ids still to be audited."""
        ...


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it: name, description, JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    idempotent: bool = False


class Environment(Protocol):
    """Tools and the state behind them."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What can be called."""
        ...

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:
        """Carries the calls out in order, one result row each."""
        ...

    def snapshot(self) -> JsonValue:
        """The state as JSON."""
        ...

    def restore(self, state: JsonValue) -> None:
        """Puts a snapshot back."""
        ...


@runtime_checkable
class Attentive(Protocol):
    """An environment that counts calls: it is shown the transcript before each question to the agent."""

    def attend(self, messages: Sequence[Message]) -> None:
        """What was said and called so far."""
        ...


@runtime_checkable
class Changeable(Protocol):
    """An environment that carries out by itself what other people do to it."""

    async def apply(self, event: OutsideEvent) -> None:
        """Does it; ``CallError`` when it cannot be done."""
        ...


@runtime_checkable
class Forgetful(Protocol):
    """A participant that gives up after so many unusable answers to one question, and may begin in the middle of it."""

    def remind(self, failures: Sequence[CallFailed]) -> None:
        """The unusable answers that an earlier process already got to the question that is asked first, in order."""
        ...


@runtime_checkable
class Closeable(Protocol):
    """A participant that holds something to give back when its conversation ends."""

    async def aclose(self) -> None:
        """Gives it back."""
        ...
