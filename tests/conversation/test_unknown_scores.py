"""A number that a judge did not give is unknown in all that is made of the conversation: neither zero nor one."""

from __future__ import annotations

from dataclasses import replace

from evaluatorq.conversation.machine import fold
from evaluatorq.model.cases import Criterion
from evaluatorq.model.events import EVENT, Event
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits
from evaluatorq.ports import JudgeReply
from evaluatorq.records.result import result_of
from evaluatorq.records.trace import trace_of
from evaluatorq.records.trace_events import events_of
from evaluatorq.records.verdicts import verdict_of
from evaluatorq.replay import replay
from evaluatorq.reports.document import Document
from evaluatorq.reports.sections import build_report_sections
from evaluatorq.reports.terminal import About
from evaluatorq.reports.transcript import conversation_view
from evaluatorq.testing import a_datapoint, a_plan, a_scenario, converse, crew_of, verdict

WHY = "it must be a number from 0 to 1, not 73.6"
QUOTE = "I have refunded it"
REFUND = Criterion(description="refunds", type="must_happen")
CASE = a_datapoint(a_scenario(criteria=[REFUND]))


def unrated(*, goal: bool = False, stop: bool = True, score: str = "goal_completion_score") -> JudgeReply:
    """A verdict with a quote that holds, and one number that does not."""
    return replace(verdict({0: QUOTE}, stop=stop, goal=goal), unknown_scores={score: WHY})


async def judged(*replies: JudgeReply, events: list[Event] | None = None) -> SimulationResult:
    return await converse(CASE, crew_of(target=[f"{QUOTE}."], judge=[*replies]), events=events)


async def test_the_quote_counts_and_the_number_is_unknown_with_its_reason() -> None:
    result = await judged(unrated(goal=False))
    assert (result.completion_known, result.completion, result.goal_completion_score) == (False, None, 0.0)
    assert (result.goal_known, result.goal_achieved, verdict_of(result)) == (True, False, "failed")
    assert result.criteria_audit[0].evidence_verified
    assert result.turn_metrics[0].unknown_scores == {"goal_completion_score": WHY}


async def test_another_score_that_is_unknown_leaves_the_goals_alone() -> None:
    result = await judged(unrated(goal=True, score="response_quality"))
    assert (result.completion, result.turn_metrics[0].response_quality) == (1.0, None)


async def test_the_last_verdict_decides_what_is_known() -> None:
    assert (await judged(unrated(stop=False), verdict({0: QUOTE}, stop=True, goal=True))).completion == 1.0
    assert (await judged(verdict(goal=True), unrated())).completion is None


async def test_reports_count_it_with_neither_the_low_nor_the_high() -> None:
    known = await judged(verdict({0: QUOTE}, stop=True, goal=True))
    unknown = await judged(unrated())
    assert Document.of([known, unknown], About("run")).score_bins == {9: 1}
    summary = next(part for part in build_report_sections([known, unknown]) if part.kind == "summary")
    assert summary.data["avg_goal_completion_score"] == 1.0
    assert conversation_view(unknown, 0).completion is None


async def test_journals_and_traces_keep_it_and_a_replay_agrees() -> None:
    events: list[Event] = []
    result = await judged(unrated(), events=events)
    again = [EVENT.validate_json(EVENT.dump_json(event)) for event in events]
    plan = a_plan(CASE)
    state = fold(CASE, plan.limits, again)
    assert result_of(state, thread_id=plan.thread_id(0), row=0) == result
    trace = trace_of(plan, 0, again)
    assert trace.verdicts is not None
    assert trace.verdicts.goal_completion_score is None
    back = fold(CASE, Limits(), events_of(trace))
    assert result_of(back, thread_id=plan.thread_id(0), row=0).completion is None
    assert not (await replay(trace)).drifted
