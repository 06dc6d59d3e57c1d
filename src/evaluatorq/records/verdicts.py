"""What a saved result of any age says about its conversation: its criteria, its goal, its verdict.

A conversation is *passed* only if everything about it was decided and held; what nobody decided is *unknown*, and an
error or timeout is *errored*, with whose fault it was. Only the agent's own faults count against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluatorq.conversation.quotes import find_quote
from evaluatorq.model.cases import CriterionType, criterion_id_for
from evaluatorq.model.judgments import CriterionAudit, parse_criteria_meta
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult

Verdict = Literal["passed", "failed", "unknown", "errored"]
State = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its denominator: how many are decided, and what the rest could do to it."""

    yes: int = 0
    no: int = 0
    unknown: int = 0

    @property
    def decided(self) -> int:
        """The denominator of ``share``."""
        return self.yes + self.no

    @property
    def total(self) -> int:
        """Everything, decided or not."""
        return self.decided + self.unknown

    @property
    def share(self) -> float | None:
        """The share among what was decided, ``None`` where nothing was."""
        return self.yes / self.decided if self.decided else None

    @property
    def worst(self) -> float | None:
        """The share of all if everything undecided went wrong."""
        return self.yes / self.total if self.total else None

    @property
    def best(self) -> float | None:
        """The share of all if everything undecided went well."""
        return (self.yes + self.unknown) / self.total if self.total else None

    def plus(self, outcome: bool | None) -> Rate:
        """The rate with one more outcome, ``None`` for one that nobody decided."""
        return Rate(self.yes + (outcome is True), self.no + (outcome is False), self.unknown + (outcome is None))


UNCOUNTED = Rate()


@dataclass(frozen=True, slots=True)
class CriterionView:
    """One criterion of one conversation: its state, the words that show it and the message they stand in."""

    id: str
    description: str
    type: CriterionType
    state: State
    evidence: str = ""
    message_index: int | None = None
    turn: int | None = None
    by_check: bool = False
    unverified: bool = False
    refused: str | None = None

    @property
    def rule(self) -> str:
        """Type and description in words."""
        return f"{self.type.replace('_', ' ')}: {self.description}"


def turn_of(messages: list[Message], index: int) -> int:
    """The exchange that message ``index`` belongs to, from 1; 0 for what an agent says before the user."""
    return sum(1 for message in messages[: index + 1] if message.role == "user")


def criteria_of(result: SimulationResult) -> list[CriterionView]:
    """The criteria of a result of any age; what cannot be read is unknown."""
    raw = result.metadata.get("criteria_meta")
    if raw is None:
        return _legacy_criteria(result)
    valid, invalid = parse_criteria_meta(raw)
    audits = {audit.id: audit for audit in result.criteria_audit}
    views = []
    for meta in valid:
        audit = audits.get(meta.id) or _audit_of_old(meta.id, meta.evidence, result)
        state: State = "unknown" if meta.passed and result.criteria_verified is False else meta.state
        views.append(
            CriterionView(
                id=meta.id,
                description=meta.description,
                type=meta.type,
                state=state,
                evidence=meta.evidence or "",
                message_index=audit.message_index,
                turn=None if audit.message_index is None else turn_of(result.messages, audit.message_index),
                by_check=audit.source == "check",
                unverified=audit.evidence_verified is False,
                refused=audit.refused,
            )
        )
    unreadable = "this criterion's record cannot be read"
    return views + [
        CriterionView(criterion_id_for(len(valid) + i), unreadable, "must_happen", "unknown")
        for i in range(len(invalid))
    ]


def _audit_of_old(identity: str, evidence: str | None, result: SimulationResult) -> CriterionAudit:
    """Files of other writers keep no place for a quote, so it is looked up."""
    at = find_quote(evidence, result.messages) if evidence else None
    return CriterionAudit(id=identity, occurred=bool(evidence), message_index=at)


def _legacy_criteria(result: SimulationResult) -> list[CriterionView]:
    unaudited = result.criteria_verified is False
    return [
        CriterionView(
            criterion_id_for(i),
            description,
            "must_happen",
            "fail" if not passed else "unknown" if unaudited else "pass",
        )
        for i, (description, passed) in enumerate((result.criteria_results or {}).items())
    ]


RESTS_ON_GOAL = frozenset({"goal_achieved", "turn_efficiency", "conversation_quality"})
"""Scores that the published formulas make 0, or less, where the goal was not achieved: also where nobody could tell."""


def goal_of(result: SimulationResult) -> bool | None:
    """Whether the goal was achieved, ``None`` when nobody could decide it or an error of unknown origin hid it."""
    if result.goal_known is None and result.errored:
        return None
    return None if result.goal_known is False else result.goal_achieved


def verdict_of(result: SimulationResult) -> Verdict:
    """The conversation's verdict; see the module's first lines for what the words mean."""
    return verdict_from(result, criteria_of(result))


def verdict_from(result: SimulationResult, criteria: Sequence[CriterionView]) -> Verdict:
    """The verdict of a conversation whose criteria were read already."""
    if result.errored:
        return "errored"
    states = {criterion.state for criterion in criteria}
    goal, expected = goal_of(result), met_expectations(result)
    lied = any(not claim.backed for claim in result.claims or ())
    if goal is False or expected is False or lied or "fail" in states:
        return "failed"
    undecided = goal is None or "unknown" in states or (result.expectations is not None and expected is None)
    return "unknown" if undecided else "passed"


def met_expectations(result: SimulationResult) -> bool | None:
    """Whether the scenario's expectations were met, ``None`` where it has none or they could not be measured."""
    return None if result.expectations is None else result.expectations.met


def outcome_of(verdict: Verdict, fault: str | None) -> bool | None:
    """What a verdict says about the agent: ``None`` for what nobody decided and for other parties' faults."""
    if verdict == "errored":
        return False if fault == "target" else None
    return {"passed": True, "failed": False, "unknown": None}[verdict]
