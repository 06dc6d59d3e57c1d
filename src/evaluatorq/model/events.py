"""What happened in a conversation: the closed set of lines that a journal holds for it.

Past tense: an event is a fact. Every answer carries when it came, how long it took, what it cost (``usage`` is ``None``
when nobody knows) and its ``loss_mask`` (only an agent's own words are trainable). ``digest`` identifies the request
that was answered, so that a replay can tell a changed question from a changed answer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import Field, JsonValue, TypeAdapter

from evaluatorq.errors import Component
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.base import Record
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.usage import Usage

TerminatedByName = Literal["judge", "max_turns", "error", "timeout"]
EndedBy = Literal["judge", "violation", "user", "agent", "max_turns", "repetition", "error", "timeout", "tool_cap"]
LineSource = Literal["first_message", "scripted", "simulated"]

FaultCode = Literal[
    "rate_limit", "quota", "auth", "bad_request", "not_found", "content_filter", "context_length", "server_error",
    "network_error", "timeout", "malformed_response", "truncated_response", "empty_reply", "refusal", "bad_verdict",
    "simulator_contract", "target_error", "target_protocol", "tool_error", "tool_cap", "file_handles", "cancelled",
    "internal_error",
]  # fmt: skip
"""Every way a call can fail. ``internal_error`` is a fault of the harness itself."""
FAULT_CODES: frozenset[str] = frozenset(get_args(FaultCode))
REFUSALS: frozenset[str] = frozenset({
    "rate_limit", "quota", "auth", "bad_request", "not_found", "content_filter", "context_length", "server_error",
    "tool_error", "file_handles", "cancelled",
})  # fmt: skip
"""Failures that are an answer of their own, and free; after any other a server may have charged for what was lost."""


class _Event(Record):
    at: datetime


class _Answer(_Event):
    latency_ms: float | None = None
    usage: Usage | None = None
    usage_known: bool = True
    model: str | None = None
    digest: str = ""
    loss_mask: bool = True


class Started(_Event):
    """A conversation begins. ``state`` is what the environment held, ``tools`` says of each which may be repeated."""

    kind: Literal["started"] = "started"
    attempt: int = 1
    state: JsonValue = None
    has_environment: bool = False
    tools: dict[str, bool] = Field(default_factory=dict)


class UserSpoke(_Answer):
    """The simulated user's turn: words, a wish to stop, or both."""

    kind: Literal["user_spoke"] = "user_spoke"
    text: str = ""
    stop: bool = False
    source: LineSource = "simulated"
    reasoning: str | None = None


class TargetReplied(_Answer):
    """The agent's answer: rows of the transcript, ending in what it said unless calls are still open."""

    kind: Literal["target_replied"] = "target_replied"
    messages: tuple[Message, ...]
    response_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    state: JsonValue = None
    state_changed: bool = False
    effects: dict[str, bool] | None = None
    report: TurnReport | None = None
    assessment: Assessment | None = None
    reports_tools: bool = False
    loss_mask: bool = False


class ToolsReturned(_Answer):
    """The environment answered every open call. ``effects`` says whether calls that may change the state did so."""

    kind: Literal["tools_returned"] = "tools_returned"
    messages: tuple[Message, ...]
    state: JsonValue = None
    state_changed: bool = False
    effects: dict[str, bool] | None = None


class WorldChanged(_Event):
    """Somebody else changed the environment before the agent's turn; ``number`` counts the scenario's events from 0."""

    kind: Literal["world_changed"] = "world_changed"
    number: int
    state: JsonValue = None


class Observed(_Event):
    """What the store behind the agent says about the turn that just ended."""

    kind: Literal["observed"] = "observed"
    turn: int
    report: TurnReport


class TurnJudged(_Answer):
    """A judge's verdict. ``refused`` maps criterion ids to why their verdict was not accepted, ``unknown_scores`` the
    names of scores to why the number could not be taken.
    """

    kind: Literal["turn_judged"] = "turn_judged"
    judgment: Judgment
    final: bool = False
    strict: bool = True
    goal_known: bool = True
    refused: dict[str, str] = Field(default_factory=dict)
    unknown_scores: dict[str, str] = Field(default_factory=dict)


class CallFailed(_Event):
    """A call failed; not ``final`` means that the same question is asked again after ``retry_in_s``."""

    kind: Literal["call_failed"] = "call_failed"
    component: Component
    code: FaultCode
    message: str
    final: bool
    attempt: int = 1
    retry_in_s: float | None = None
    latency_ms: float | None = None
    usage: Usage | None = None
    usage_known: bool = True
    model: str | None = None
    raw: str | None = None
    digest: str = ""


PAUSED = "paused"
"""What is noted of a conversation that was put aside between two calls, to be gone on with later."""
BELIEFS = "beliefs"
"""What is noted of values that somebody put forward: ``BeliefUpdate``, one or a list. They are kept in the record."""
MODELS = "models"
"""What is noted of all models that were asked so far, once a conversation learned more of them: ``Learned``."""
CLAIMS = "claims"
"""What is noted of statements about deeds that a model found in the agent's words: ``FoundClaim``, a list of them."""
REDACTED = "redacted"
"""What is noted of a conversation before the first line that is not as it happened."""
RECORDED = "recorded"
"""Such a conversation's record, written when it ended; the lines before it no longer tell it."""


class Noted(_Event):
    """Something worth keeping that changes nothing that is asked next. ``usage`` is what learning it cost."""

    kind: Literal["noted"] = "noted"
    what: str
    data: JsonValue = None
    usage: Usage | None = None
    usage_known: bool = True
    model: str | None = None


class Ended(_Event):
    """The conversation is over, and why. ``state`` is the environment's, read once at the end; ``called`` are calls of
    served tools, with their answers, that no answer of the agent came after.

    ``time_limit_s`` is the time that a conversation was given and that was up.
    """

    kind: Literal["ended"] = "ended"
    terminated_by: TerminatedByName
    ended_by: EndedBy
    reason: str
    failed_component: Component | None = None
    error_type: str | None = None
    lost: Component | None = None
    time_limit_s: float | None = None
    state: JsonValue = None
    state_changed: bool = False
    state_error: str | None = None
    called: tuple[Message, ...] = ()


class Scored(_Event):
    """An evaluator's score, or why there is none."""

    kind: Literal["scored"] = "scored"
    evaluator: str
    score: float | None = None
    error: str | None = None
    details: dict[str, JsonValue] | None = None


class Resumed(_Event):
    """A later process took the conversation up; ``restart`` means from its first line, keeping only what was spent.

    ``lost`` names the component whose paid answer was on its way when the earlier process stopped.
    """

    kind: Literal["resumed"] = "resumed"
    attempt: int
    restart: bool = False
    lost: Component | None = None
    state: JsonValue = None
    has_environment: bool = False


Event = Annotated[
    Started
    | UserSpoke
    | TargetReplied
    | ToolsReturned
    | TurnJudged
    | CallFailed
    | Noted
    | Ended
    | Scored
    | Resumed
    | WorldChanged
    | Observed,
    Field(discriminator="kind"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
KINDS: frozenset[str] = frozenset(event.model_fields["kind"].default for event in get_args(get_args(Event)[0]))
"""The kinds of event that this version knows."""
