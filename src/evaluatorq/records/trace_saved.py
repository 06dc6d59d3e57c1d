"""A trace made of a saved result alone, for a run whose journal was not kept or never written.

The transcript, how it ended, what was judged and what it cost in all are there. When each thing happened, what was
asked, which rules fired, which calls failed on the way, what each answer cost and what the world behind the tools was
are not: they are absent, and the caveat ``without_journal`` says so. Every time in such a trace is the run's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from evaluatorq.conversation.checks import state_holds
from evaluatorq.conversation.machine import begin
from evaluatorq.model.cases import Scenario, SimulationDatapoint
from evaluatorq.model.events import Ended, Event, LineSource, Noted, Started, TargetReplied, UserSpoke
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.model.trace import Caveat, Outcome, RuleStep, Totals, Trace, Verdicts
from evaluatorq.records.redaction import PLACEHOLDER
from evaluatorq.records.trace import Walk, document_of, run_ref
from evaluatorq.records.verdicts import goal_of

WITHOUT_JOURNAL = "without_journal"
"""The caveat of a trace that was made of a saved result."""
_DETAIL = (
    "made of the run file: times of steps, questions, rules, failed calls, who ran a tool, costs of answers, states "
    "and options that the file does not name are not known"
)
_NOT_RECORDED = ("turns_not_judged", "usage_unknown", "goal_unknown")
"""Caveats about events, which say nothing where there are none."""
_ANY = 1_000_000
_NEVER_JUDGED = Limits(max_turns=_ANY, judge_every=_ANY, repetition_limit=_ANY)


def trace_of_result(plan: RunPlan, row: int, result: SimulationResult) -> Trace:
    """The trace of the conversation of datapoint ``row``, made of the result that a run file holds."""
    walk = Walk(begin(plan.datapoints[row], _NEVER_JUDGED))
    for event in _events(plan.datapoints[row], result, plan.created_at):
        walk.take(event)
    thread_id = result.thread_id or plan.thread_id(row)
    trace = document_of(walk, run_ref(plan), thread_id, row, saved=result)
    return trace.model_copy(
        update={
            "caveats": tuple(_caveats(trace, result)),
            "steps": tuple(step for step in trace.steps if not isinstance(step, RuleStep)),
            "outcome": _outcome(trace.outcome, result, plan.datapoints[row].scenario),
            "verdicts": _verdicts(trace.verdicts, result),
            "totals": _totals(trace.totals, result),
        }
    )


# ---------------------------------------------------------------- what happened


def _events(datapoint: SimulationDatapoint, result: SimulationResult, at: datetime) -> Iterator[Event]:
    yield Started(at=at, attempt=result.attempts)
    answer: list[Message] = []
    for message in result.messages:
        if message.role in ("assistant", "tool"):
            answer.append(message)
        elif message.role == "user":
            yield from _answered(answer, result, at)
            answer = []
            yield UserSpoke(at=at, text=message.text, usage_known=False, source=_source(datapoint, message.text))
    yield from _answered(answer, result, at)
    yield Ended(
        at=at,
        terminated_by=result.terminated_by.value,
        ended_by=result.ended_by or result.terminated_by.value,
        reason=result.reason,
        failed_component=result.failed_component,
    )


def _answered(rows: Sequence[Message], result: SimulationResult, at: datetime) -> Iterator[Event]:
    """What stands between two user rows is one answer, but for a row in which a writer put an error in its place."""
    fault = rows[-1].text if rows and result.errored and rows[-1].text == result.reason else None
    said = tuple(rows if fault is None else rows[:-1])
    if said:
        calls = any(row.tool_calls for row in said)
        yield TargetReplied(at=at, messages=said, usage_known=False, reports_tools=calls)
    if fault is not None:
        yield Noted(at=at, what="error", data=fault)


def _source(datapoint: SimulationDatapoint, text: str) -> LineSource:
    if text == datapoint.first_message:
        return "first_message"
    return "scripted" if text in (datapoint.scenario.script or ()) else "simulated"


# ---------------------------------------------------------------- what it came to


def _caveats(trace: Trace, result: SimulationResult) -> Iterator[Caveat]:
    yield Caveat(code=WITHOUT_JOURNAL, detail=_DETAIL)
    yield from (caveat for caveat in trace.caveats or () if caveat.code not in _NOT_RECORDED)
    if PLACEHOLDER.search(result.model_dump_json(include={"messages", "reason"})):
        yield Caveat(code="redacted")
    if not result.token_usage_known:
        yield Caveat(code="usage_unknown")
    if goal_of(result) is None:
        yield Caveat(code="goal_unknown")


def _outcome(found: Outcome, result: SimulationResult, scenario: Scenario) -> Outcome:
    """Without what only a journal tells: failed calls, when it ended, and who ended it where the file is silent."""
    done, wanted = found.labels.workflow_completed, scenario.goal_state
    reached: bool | None = None
    if wanted and result.final_state is not None:
        reached = all(state_holds(check, result.final_state) is not None for check in wanted)
    labels = found.labels.model_copy(
        update={"errors": None, "fallback_taken": None if done else True, "goal_state_reached": reached}
    )
    fault = result.metadata.get("error_type")
    return found.model_copy(
        update={
            "labels": labels,
            "ended_at": None,
            "ended_by": result.ended_by,
            "error_type": fault if isinstance(fault, str) else None,
        }
    )


def _verdicts(found: Verdicts, result: SimulationResult) -> Verdicts:
    scores = result.metadata.get("evaluator_scores")
    numbers = scores.items() if isinstance(scores, dict) else ()
    judged = result.judge_goal_achieved if result.judge_goal_achieved is not None else goal_of(result)
    return found.model_copy(
        update={
            "scores": {name: float(one) for name, one in numbers if isinstance(one, int | float)} or None,
            "goal_achieved": judged,
            "goal_completion_score": None if judged is None else result.goal_completion_score,
        }
    )


def _totals(found: Totals, result: SimulationResult) -> Totals:
    return found.model_copy(
        update={
            "turns": result.turn_count,
            "calls": None,
            "retries": None,
            "usage": result.token_usage,
            "usage_by_role": dict(sorted(result.usage_by_role.items())) or None,
            "usage_unknown": None if result.token_usage_known else True,
            "duration_ms": None,
            "cost_usd": result.token_usage.total_cost,
        }
    )
