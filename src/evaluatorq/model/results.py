"""The record of one simulated conversation, in the published shape with our additions beside it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from evaluatorq.errors import Component
from evaluatorq.model.base import Published, Record
from evaluatorq.model.cognition import CognitionRecord
from evaluatorq.model.events import EndedBy
from evaluatorq.model.findings import ClaimFinding, ExpectationReport, ProseClaim
from evaluatorq.model.judgments import CriterionAudit
from evaluatorq.model.messages import Message
from evaluatorq.model.observation import Observation
from evaluatorq.model.usage import Usage


class TerminatedBy(StrEnum):
    """Why a conversation stopped."""

    JUDGE = "judge"
    MAX_TURNS = "max_turns"
    ERROR = "error"
    TIMEOUT = "timeout"


class TurnMetrics(Published):
    """One begun turn: the judge's scores (0 to 1, ``None`` when not scored), its reason, and what the turn cost.

    ``unknown_scores`` (ours) says of scores, the goal's included, why the judge's number could not be taken.
    """

    turn_number: int
    token_usage: Usage
    response_quality: float | None = None
    hallucination_risk: float | None = None
    tone_appropriateness: float | None = None
    factual_accuracy: float | None = None
    judge_reason: str = ""
    unknown_scores: dict[str, str] = Field(default_factory=dict)


class ResponseTrace(Record):
    """Ids that a target's reply carried, to find it in a tracing product."""

    trace_id: str | None = None
    span_id: str | None = None
    response_id: str | None = None


class Origin(Record):
    """What a result, or a run, was made from without having the whole conversation again.

    ``fork``: the first turns are those of another conversation, ``turn`` is the first whose answer is new. ``rejudge``:
    user and agent are another conversation's, the judge is new. ``rescore``: only the evaluators are new. ``run`` is
    the id of that run (or its file name), ``thread_id`` that conversation.
    """

    kind: Literal["fork", "rejudge", "rescore"]
    run: str
    thread_id: str | None = None
    turn: int | None = None


class SimulationResult(Published):
    """One conversation: transcript, verdict, per-turn scores, tokens.

    Read ``metadata["criteria_meta"]`` for the verdicts. Ours, ignored by other readers: ``ended_by``,
    ``failed_component``, ``goal_known`` (``False`` when nobody could decide the goal), ``completion_known`` (``False``
    when nobody said in a number how far the goal was reached), ``judge_goal_achieved`` (the judge's opinion where code
    decided), ``fully_audited``, ``criteria_audit``, ``usage_by_role``, ``usage_by_model``, ``row``,
    ``attempts``, ``final_state``, ``observations`` (one for each turn of the agent), ``expectations`` (``None`` where
    the scenario has none), ``claims`` and ``prose_claims`` (what the agent said that it did, as the
    case's patterns and as a model found it), ``cognition`` (what it believed and why),
    ``origin`` (what it was made from, where the conversation was not had anew).
    """

    messages: list[Message]
    terminated_by: TerminatedBy
    reason: str
    goal_achieved: bool
    goal_completion_score: float
    rules_broken: list[str]
    turn_count: int
    token_usage: Usage
    token_usage_known: bool = True
    turn_metrics: list[TurnMetrics]
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    criteria_results: dict[str, bool] | None = None
    criteria_verified: bool | None = None
    evaluator_details: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    total_turns: int | None = None
    thread_id: str | None = None
    response_traces: list[ResponseTrace] = Field(default_factory=list)

    ended_by: EndedBy | None = None
    failed_component: Component | None = None
    goal_known: bool | None = None
    completion_known: bool | None = None
    judge_goal_achieved: bool | None = None
    fully_audited: bool | None = None
    criteria_audit: list[CriterionAudit] = Field(default_factory=list)
    usage_by_role: dict[str, Usage] = Field(default_factory=dict)
    usage_by_model: dict[str, Usage] = Field(default_factory=dict)
    unread_answers: list[str] = Field(default_factory=list)
    row: int | None = None
    attempts: int = 1
    final_state: JsonValue = None
    observations: list[Observation] = Field(default_factory=list)
    expectations: ExpectationReport | None = None
    claims: list[ClaimFinding] | None = None
    prose_claims: list[ProseClaim] | None = None
    cognition: CognitionRecord | None = None
    origin: Origin | None = None

    @property
    def last_trace_id(self) -> str | None:
        """The last trace id that a reply carried."""
        return next((trace.trace_id for trace in reversed(self.response_traces) if trace.trace_id), None)

    @property
    def completion(self) -> float | None:
        """How far the goal was reached, from 0 to 1; ``None`` when nobody could say."""
        return None if self.completion_known is False else self.goal_completion_score

    @property
    def errored(self) -> bool:
        """The conversation was cut short by an error or a timeout."""
        return self.terminated_by in (TerminatedBy.ERROR, TerminatedBy.TIMEOUT)


__all__ = ["Origin", "ResponseTrace", "SimulationResult", "TerminatedBy", "TurnMetrics"]
