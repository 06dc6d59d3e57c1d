"""A conversation's events read as a ``SimulationResult``; also of one that timed out, broke off or was killed.

Code derives pass and fail from occurrence. What nobody audited is ``passed: true, audited: false`` (shown as unknown)
for both types of criteria, however the conversation ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from evaluatorq.conversation.checks import Occurrence, state_holds
from evaluatorq.conversation.ledger import Entry
from evaluatorq.conversation.machine import Conversation, Turn
from evaluatorq.errors import ProtocolError
from evaluatorq.model.cases import Check, Criterion, criterion_id_for
from evaluatorq.model.events import Ended, Scored
from evaluatorq.model.judgments import CriteriaMeta, CriterionAudit
from evaluatorq.model.replacing import replace
from evaluatorq.model.results import SimulationResult, TerminatedBy, TurnMetrics
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.records.claims import claims_of
from evaluatorq.records.cognition import cognition_of
from evaluatorq.records.expectations import check_expectations
from evaluatorq.records.observation import observations_of
from evaluatorq.records.prose_claims import prose_claims_of

EXCHANGES_LOST = "environment", "infrastructure"


@dataclass(frozen=True, slots=True)
class Goal:
    """Whether the goal was achieved, whether anybody could tell, and the judge's opinion where code decided.

    ``score`` is how far it was reached, ``None`` where nobody said so in a number.
    """

    achieved: bool
    known: bool
    score: float | None
    judge: bool | None = None


def result_of(
    conversation: Conversation, *, thread_id: str, row: int, scores: Iterable[Scored] = ()
) -> SimulationResult:
    """The record of an ended conversation. ``scores`` are what evaluators said of it, later ones winning."""
    ended = conversation.ended
    if ended is None:
        raise ProtocolError("a result is made of a conversation that has ended")
    audits = [_audit(conversation, i, c) for i, c in enumerate(conversation.scenario.criterion_list)]
    metas = [meta for meta, _ in audits]
    goal = goal_of(conversation, ended)
    verified = not metas or conversation.ledger.any_audit or any(meta.audited for meta in metas)
    turns = _turns(conversation)
    result = SimulationResult(
        messages=list(conversation.messages),
        terminated_by=TerminatedBy(ended.terminated_by),
        reason=ended.reason,
        goal_achieved=goal.achieved,
        goal_completion_score=goal.score or 0.0,
        rules_broken=_rules_broken(conversation, metas, verified=verified),
        turn_count=conversation.turn_count,
        token_usage=sum((turn.token_usage for turn in turns), NO_USAGE),
        token_usage_known=not conversation.unread,
        turn_metrics=turns,
        metadata=_metadata(conversation, ended, metas),
        criteria_results={meta.description: meta.passed for meta in metas} if metas else None,
        criteria_verified=verified,
        thread_id=thread_id,
        response_traces=list(conversation.traces),
        ended_by=ended.ended_by,
        failed_component=ended.failed_component,
        goal_known=goal.known,
        completion_known=goal.score is not None,
        judge_goal_achieved=goal.judge,
        fully_audited=all(meta.audited for meta in metas),
        criteria_audit=[audit for _, audit in audits],
        usage_by_role=dict(conversation.usage_by_role),
        usage_by_model=dict(conversation.usage_by_model),
        unread_answers=list(conversation.unread),
        row=row,
        attempts=conversation.attempts,
        final_state=conversation.environment.state,
        observations=observations_of(conversation),
        cognition=cognition_of(conversation),
    )
    _hold_to_facts(result, conversation)
    return with_scores(result, scores)


def _hold_to_facts(result: SimulationResult, conversation: Conversation) -> None:
    """Adds what the case expects, and what the agent says that it did, against what was seen."""
    scenario = conversation.scenario
    if scenario.expect is not None:
        result.expectations = check_expectations(scenario.expect, result)
    if scenario.claims is not None:
        result.claims = claims_of(scenario.claims, result)
    if conversation.claims is not None:
        result.prose_claims = prose_claims_of(conversation.claims, result)


def with_scores(result: SimulationResult, scores: Iterable[Scored]) -> SimulationResult:
    """The result with evaluator scores, errors and details put where readers look for them."""
    values: dict[str, JsonValue] = {}
    errors: dict[str, JsonValue] = {}
    for scored in scores:
        if scored.score is None:
            errors[scored.evaluator] = scored.error or "no score"
        else:
            values[scored.evaluator] = scored.score
        if scored.details is not None:
            result.evaluator_details[scored.evaluator] = scored.details
    if values:
        result.metadata["evaluator_scores"] = values
    if errors:
        result.metadata["evaluator_errors"] = errors
    return result


def is_cut_short(conversation: Conversation) -> bool:
    """The conversation did not reach an ending of its own, so what had not happened might still have."""
    ended = conversation.ended
    if ended is None or ended.terminated_by not in ("error", "timeout"):
        return ended is None
    return not (ended.failed_component == "user_simulator" and conversation.final_verdict)


# ---------------------------------------------------------------- criteria


def _audit(conversation: Conversation, index: int, criterion: Criterion) -> tuple[CriteriaMeta, CriterionAudit]:
    entry = conversation.ledger.entries[index]
    if criterion.check is not None:
        entry = _read_check(conversation, criterion.check, entry)
    audited = entry.audited
    if is_cut_short(conversation) and criterion.type == "must_happen" and not entry.occurred:
        audited = False
    passed = not audited or entry.occurred == (criterion.type == "must_happen")
    source: Literal["check", "judge"] = "check" if criterion.check is not None else "judge"
    identity = criterion_id_for(index)
    meta = CriteriaMeta(
        id=identity,
        description=criterion.description,
        type=criterion.type,
        passed=passed,
        audited=audited,
        evidence=entry.evidence if entry.occurred else "",
    )
    audit = CriterionAudit(
        id=identity,
        occurred=entry.occurred,
        source=source if audited else None,
        message_index=entry.message_index,
        evidence_verified=entry.verified,
        refused=entry.refused,
    )
    return meta, audit


def _read_check(conversation: Conversation, check: Check, entry: Entry) -> Entry:
    """A check's final standing: whether the fact could be read at all, and the state read once at the end."""
    if check.state is not None:
        seen = state_holds(check.state, conversation.environment.state) if _state_readable(conversation) else None
        return _seen(entry, seen, audited=_state_readable(conversation))
    if check.tool_called is not None and not entry.occurred:
        return _seen(entry, None, audited=conversation.environment.present or conversation.reports_tools)
    return entry if entry.occurred else _seen(entry, None, audited=True)


def _seen(entry: Entry, seen: Occurrence | None, *, audited: bool) -> Entry:
    if seen is None:
        return Entry(audited=audited, by_check=True)
    return Entry(
        occurred=True,
        audited=True,
        by_check=True,
        evidence=seen.evidence,
        message_index=seen.message_index,
        verified=True,
        refused=entry.refused,
    )


def _state_readable(conversation: Conversation) -> bool:
    return conversation.environment.present and conversation.environment.error is None


def _rules_broken(conversation: Conversation, metas: list[CriteriaMeta], *, verified: bool) -> list[str]:
    if verified:
        return [meta.id for meta in metas if not meta.passed]
    return list(conversation.judgment.rules_broken) if conversation.judgment else []


# ---------------------------------------------------------------- goal


def goal_of(conversation: Conversation, ended: Ended) -> Goal:
    """The goal's standing: decided by code where the scenario says how, else the judge's last word, else unknown."""
    judged = conversation.judgment if conversation.goal_known else None
    opinion = judged.goal_achieved if judged else None
    rated = judged.goal_completion_score if judged and conversation.completion_known else None
    if ended.failed_component == "target":
        return Goal(achieved=False, known=True, score=0.0, judge=opinion)
    fact = _goal_fact(conversation)
    if ended.failed_component in EXCHANGES_LOST or (not fact and _broken_off(conversation, ended)):
        fact = None
    if fact is not None:
        partial = 0.0 if judged is None or judged.goal_achieved else rated
        return Goal(achieved=fact, known=True, score=1.0 if fact else partial, judge=opinion)
    trusted = ended.terminated_by != "error" or (
        ended.failed_component == "user_simulator" and conversation.final_verdict
    )
    if judged is None or not trusted or _decided_by_code(conversation):
        return Goal(achieved=False, known=False, score=rated, judge=opinion)
    return Goal(achieved=judged.goal_achieved, known=True, score=rated)


def _broken_off(conversation: Conversation, ended: Ended) -> bool:
    """The simulated user failed and no last verdict came: a goal that was not reached yet might still have been."""
    return ended.failed_component == "user_simulator" and ended.terminated_by == "error" and is_cut_short(conversation)


def _decided_by_code(conversation: Conversation) -> bool:
    return conversation.scenario.goal_check is not None or bool(conversation.scenario.goal_state)


def _goal_fact(conversation: Conversation) -> bool | None:
    """What code says about the goal; ``None`` where the scenario gives no check or it could not be read."""
    scenario = conversation.scenario
    if scenario.goal_state:
        if not _state_readable(conversation):
            return None
        return all(state_holds(check, conversation.environment.state) for check in scenario.goal_state)
    if scenario.goal_check is None:
        return None
    entry = _read_check(conversation, scenario.goal_check, conversation.ledger.goal)
    return entry.occurred if entry.audited else None


# ---------------------------------------------------------------- turns and metadata


def _turns(conversation: Conversation) -> list[TurnMetrics]:
    turns = list(conversation.turns)
    left = conversation.carried
    if left != NO_USAGE:
        if turns:
            last = turns[-1]
            turns[-1] = replace(last, usage=last.usage + left)
        else:
            turns.append(Turn(1, left, note=conversation.ended.reason if conversation.ended else ""))
    return [turn_metrics(turn, conversation) for turn in turns]


def turn_metrics(turn: Turn, conversation: Conversation) -> TurnMetrics:
    """One turn of the conversation as a result lists it."""
    judgment = turn.judgment
    if judgment is None:
        ended = conversation.ended
        return TurnMetrics(
            turn_number=turn.number,
            token_usage=turn.usage,
            judge_reason=turn.note or (ended.reason if ended else "not judged"),
        )
    return TurnMetrics(
        turn_number=turn.number,
        token_usage=turn.usage,
        response_quality=judgment.response_quality,
        hallucination_risk=judgment.hallucination_risk,
        tone_appropriateness=judgment.tone_appropriateness,
        factual_accuracy=judgment.factual_accuracy,
        judge_reason=judgment.reason,
        unknown_scores=dict(turn.unknown_scores),
    )


def _metadata(conversation: Conversation, ended: Ended, metas: list[CriteriaMeta]) -> dict[str, JsonValue]:
    datapoint = conversation.datapoint
    persona, scenario = datapoint.persona, datapoint.scenario
    traits = ("patience", "assertiveness", "politeness", "technical_level", "communication_style", "background")
    metadata: dict[str, JsonValue] = {
        "persona": persona.name,
        "scenario": scenario.name,
        "criteria_meta": [meta.model_dump(mode="json") for meta in metas],
        "persona_traits": persona.model_dump(mode="json", include=set(traits)),
        "scenario_goal": scenario.goal,
        "scenario_context": scenario.context,
        "datapoint_id": datapoint.id,
    }
    if conversation.target_model is not None:
        metadata["target_model"] = conversation.target_model
    if ended.terminated_by in ("error", "timeout"):
        metadata["error"] = ended.reason
        metadata["error_type"] = ended.error_type or ended.ended_by
    if ended.time_limit_s is not None:
        metadata["timeout"] = ended.time_limit_s
    if conversation.unread:
        metadata["token_usage_unknown"] = True
    return metadata


def total_usage(results: Iterable[SimulationResult]) -> Usage:
    """Everything that conversations spent."""
    return sum((result.token_usage for result in results), NO_USAGE)
