"""What a conversation came to, for its trace: labels that code computes, verdicts apart from them, caveats, totals.

Labels. ``workflow_completed``: the judge or the user ended it, and no fault, limit or guard did. ``fallback_taken``:
some call failed and was asked again or given up, the conversation was started over, or a guard, a limit or a fault
ended it. ``errors``: failed calls. ``goal_state_reached``, ``checks_held``, ``expectations_met``, ``claims_backed``:
what the case states as facts; each is absent where it states none or they could not be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluatorq.conversation.checks import state_holds
from evaluatorq.conversation.machine import Conversation, apply
from evaluatorq.model.events import (
    RECORDED,
    REDACTED,
    CallFailed,
    Ended,
    Event,
    Noted,
    Resumed,
    Scored,
    TargetReplied,
    TurnJudged,
    UserSpoke,
)
from evaluatorq.model.judgments import CriterionAudit
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.trace import Caveat, Criterion, Decision, Labels, Outcome, Step, Totals, Verdicts
from evaluatorq.records.result import result_of
from evaluatorq.records.trace_rules import decision_of
from evaluatorq.records.verdicts import CriterionView, criteria_of, goal_of, verdict_from

OWN_ENDINGS = frozenset({"judge", "user", "agent"})


@dataclass(frozen=True, slots=True)
class Reached:
    """A conversation at the end of its events, with the result that they make.

    The events of a redacted conversation no longer tell its result; then it is the one that was recorded.
    """

    state: Conversation
    events: Sequence[Event]
    result: SimulationResult
    damaged: int = 0
    recorded: bool = False

    @classmethod
    def of(cls, state: Conversation, events: Sequence[Event], thread_id: str, row: int, damaged: int) -> Reached:
        """A conversation that did not end is read as one cut short by us."""
        closed = state
        if state.ended is None and events:
            cut = Ended(
                at=events[-1].at,
                terminated_by="error",
                ended_by="error",
                reason="not finished",
                failed_component="infrastructure",
                error_type="cancelled",
            )
            closed = apply(state, cut)
        record = next((event for event in reversed(events) if _is_noted(event, RECORDED)), None)
        if isinstance(record, Noted) and state.ended is not None:
            result = SimulationResult.model_validate(record.data)
            return cls(state, events, result, damaged, recorded=True)
        scores = {event.evaluator: event for event in events if isinstance(event, Scored)}
        result = result_of(closed, thread_id=thread_id, row=row, scores=scores.values())
        return cls(state, events, result, damaged)

    @property
    def failures(self) -> list[CallFailed]:
        """Every call that failed."""
        return [event for event in self.events if isinstance(event, CallFailed)]

    @property
    def redacted(self) -> bool:
        """Something was taken out of what was written."""
        return any(_is_noted(event, REDACTED) for event in self.events)

    @property
    def decision(self) -> Decision | None:
        """Whether the goal was reached and who decided it."""
        made = decision_of(self.state)
        if not self.recorded or self.state.ended is None:
            return made
        goal = goal_of(self.result)
        if goal is None:
            return None
        by = made.by if made is not None else "state" if self.state.scenario.goal_state else "judge"
        return Decision(by=by, goal_reached=goal)

    @property
    def restarted(self) -> bool:
        """The conversation was started over."""
        return any(isinstance(event, Resumed) and event.restart for event in self.events)

    @property
    def criteria(self) -> list[CriterionView]:
        """The criteria's standing."""
        return criteria_of(self.result)


def _is_noted(event: Event, what: str) -> bool:
    return isinstance(event, Noted) and event.what == what


# ---------------------------------------------------------------- outcome and verdicts


def outcome_of(reached: Reached) -> Outcome:
    """How it ended, with its labels."""
    ended, decision = reached.state.ended, reached.decision
    if ended is None:
        return Outcome(labels=_labels(reached))
    return Outcome(
        labels=_labels(reached),
        terminal=ended.terminated_by,
        ended_by=ended.ended_by,
        ended_at=ended.at,
        reason=ended.reason,
        failed_component=ended.failed_component,
        error_type=ended.error_type,
        lost=ended.lost,
        time_limit_s=ended.time_limit_s,
        state_error=ended.state_error,
        goal_reached=None if decision is None else decision.goal_reached,
        decision=decision,
    )


def _labels(reached: Reached) -> Labels:
    ended, result = reached.state.ended, reached.result
    completed = ended is not None and ended.ended_by in OWN_ENDINGS
    claims = result.claims
    return Labels(
        workflow_completed=completed,
        fallback_taken=bool(reached.failures) or reached.restarted or not completed,
        errors=len(reached.failures),
        goal_state_reached=_goal_state(reached),
        checks_held=_checks(reached.criteria),
        expectations_met=None if result.expectations is None else result.expectations.met,
        claims_backed=None if claims is None else all(claim.backed for claim in claims),
    )


def _goal_state(reached: Reached) -> bool | None:
    state = reached.state
    wanted, world = state.scenario.goal_state, state.environment
    if not wanted or state.ended is None or not world.present or world.error is not None:
        return None
    if reached.recorded:
        known = reached.decision is not None and reached.result.failed_component != "target"
        return reached.result.goal_achieved if known else None
    return all(state_holds(check, world.state) is not None for check in wanted)


def _checks(criteria: Sequence[CriterionView]) -> bool | None:
    states = {view.state for view in criteria if view.by_check}
    if "fail" in states:
        return False
    return True if states == {"pass"} else None


def verdicts_of(reached: Reached) -> Verdicts:
    """What was judged, and what evaluators scored."""
    result, criteria = reached.result, reached.criteria
    state, judged = reached.state, reached.state.judgment
    rated = judged.goal_completion_score if judged and state.goal_known and state.completion_known else None
    scores = {event.evaluator: event.score for event in reached.events if isinstance(event, Scored)}
    return Verdicts(
        verdict=verdict_from(result, criteria),
        criteria=tuple(_criterion(view, result) for view in criteria) or None,
        goal_achieved=judged.goal_achieved if judged and reached.state.goal_known else None,
        goal_completion_score=rated,
        scores={name: score for name, score in scores.items() if score is not None} or None,
    )


def _criterion(view: CriterionView, result: SimulationResult) -> Criterion:
    occurred = view.state != "unknown" and (view.state == "pass") == (view.type == "must_happen")
    known = (audit for audit in result.criteria_audit if audit.id == view.id)
    audit = next(known, CriterionAudit(id=view.id, occurred=occurred))
    return Criterion(
        id=view.id,
        description=view.description,
        type=view.type,
        state=view.state,
        decided_by=audit.source,
        occurred=audit.occurred,
        evidence=view.evidence or None,
        message=audit.message_index,
        evidence_verified=audit.evidence_verified,
        refused=audit.refused,
    )


# ---------------------------------------------------------------- caveats


def caveats_of(reached: Reached) -> tuple[Caveat, ...]:
    """Everything that keeps the trace from meaning what a trace without caveats means."""
    return tuple(Caveat(code=code, detail=detail or None) for code, detail in _caveats(reached))


def _caveats(reached: Reached) -> Iterator[tuple[str, str]]:
    yield from _about_the_recording(reached)
    yield from _about_the_verdicts(reached)
    yield from _about_the_facts(reached)


def _about_the_recording(reached: Reached) -> Iterator[tuple[str, str]]:
    state = reached.state
    if state.ended is None:
        yield "interrupted", "the conversation has no ending"
    if reached.restarted:
        yield "restarted", "steps before the restart are abandoned"
    if reached.damaged:
        yield "journal_damaged", f"{reached.damaged} events do not fit and were left out"
    if reached.redacted:
        yield "redacted", "steps show what was written; rules over it may not see what was taken out"
    if state.unread:
        yield "usage_unknown", f"{len(state.unread)} answers did not say what they cost or were lost"


def _about_the_verdicts(reached: Reached) -> Iterator[tuple[str, str]]:
    state = reached.state
    unknown = [view.id for view in reached.criteria if view.state == "unknown"]
    by_check = {f"criteria_{i}" for i, c in enumerate(state.scenario.criterion_list) if c.check is not None}
    unverified = [view.id for view in reached.criteria if view.unverified]
    if unjudged := [id_ for id_ in unknown if id_ not in by_check]:
        yield "unaudited", ", ".join(unjudged)
    if unread := [id_ for id_ in unknown if id_ in by_check]:
        yield "checks_skipped", ", ".join(unread)
    if unverified:
        yield "evidence_unverified", ", ".join(unverified)
    if state.ended is not None and reached.decision is None:
        yield "goal_unknown", ""
    if turns := [str(turn.number) for turn in state.turns if turn.judgment is None]:
        yield "turns_not_judged", ", ".join(turns)


def _about_the_facts(reached: Reached) -> Iterator[tuple[str, str]]:
    state, result = reached.state, reached.result
    if state.environment.error is not None:
        yield "state_unreadable", state.environment.error
    if any(seen.events_truncated for seen in result.observations):
        yield "events_truncated", ""
    if any(seen.read_error is not None for seen in result.observations):
        yield "facts_unreadable", ""


# ---------------------------------------------------------------- totals


def totals_of(reached: Reached, steps: Sequence[Step]) -> Totals:
    """Sums over the conversation."""
    state, events = reached.state, reached.events
    calls: Counter[str] = Counter()
    for event in events:
        match event:
            case UserSpoke(source="simulated"):
                calls["user_simulator"] += 1
            case TargetReplied():
                calls["target"] += 1
            case TurnJudged():
                calls["judge"] += 1
            case CallFailed():
                calls[event.component] += 1
    times = [event.at for event in events if not isinstance(event, Scored)]
    masks = [step.loss_mask or bool(step.abandoned) for step in steps if getattr(step, "row", None) is not None]
    return Totals(
        turns=state.turn_count,
        calls=dict(sorted(calls.items())),
        retries=sum(not failure.final for failure in reached.failures),
        usage=state.usage,
        usage_by_role=dict(sorted(state.usage_by_role.items())) or None,
        usage_unknown=True if state.unread else None,
        duration_ms=round((times[-1] - times[0]).total_seconds() * 1000, 3) if times else None,
        cost_usd=state.usage.total_cost,
        trainable_rows=sum(not masked for masked in masks),
        masked_rows=sum(masks),
    )
