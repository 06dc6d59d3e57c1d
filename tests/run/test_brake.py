"""A run that must stop begins nothing new, ends the turns under way, and can go on from there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluatorq.errors import CallError, ConfigError, ReplayError
from evaluatorq.model.events import CallFailed, Noted, Resumed
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.model.spending import Spending
from evaluatorq.model.usage import Usage
from evaluatorq.pacing.budget import Budget
from evaluatorq.ports import UserReply
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, resume_plan, run_plan
from evaluatorq.run.rebuild import rebuild
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.paths import journals_dir
from evaluatorq.testing import a_datapoint, a_plan, crew_of, verdict

HUNDRED = Usage(input_tokens=100, total_tokens=100, calls=1)


def plan(n: int = 4) -> RunPlan:
    return a_plan(*(a_datapoint(id=f"dp_{i}") for i in range(n)), limits=Limits(max_turns=3))


def crew(usage: Usage = HUNDRED) -> Crew:
    said = [UserReply(text, usage=usage) for text in ("one", "two", "three")]
    basic = crew_of(user=said, target=["Hello there", "Yes of course", "Goodbye then"], judge=[verdict()])
    return replace(basic, metered=frozenset({"user_simulator"}))


def journal(folder: Path) -> list[object]:
    return [line.event for line in JournalReader(journals_dir(folder) / plan().run_id).lines()]


async def test_past_its_tokens_a_run_begins_nothing_new_and_ends_the_turn_that_is_under_way(tmp_path: Path) -> None:
    options = RunOptions(runs_dir=tmp_path, parallelism=2, budget=Budget(max_total_tokens=300))
    outcome = await run_plan(plan(), crew(), options)
    assert (outcome.interrupted, outcome.finished) == (True, 0)
    assert "300 tokens" in (outcome.stopped_by or "")
    assert "--max-total-tokens" in (outcome.stopped_by or "")
    spent = [event.usage for event in journal(tmp_path) if getattr(event, "usage", None) == HUNDRED]
    assert 3 <= len(spent) <= 4, "two conversations are under way; each may end one more turn"
    assert list(tmp_path.glob("*.json")) == []


async def test_with_more_tokens_the_run_goes_on_and_ends_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    whole = await run_plan(plan(), crew(), RunOptions(runs_dir=tmp_path / "whole", keep=True))
    options = RunOptions(runs_dir=tmp_path, parallelism=2, keep=True)
    await run_plan(plan(), crew(), replace(options, budget=Budget(max_total_tokens=300)))
    folder = journals_dir(tmp_path) / plan().run_id
    still = await resume_plan(folder, crew(), replace(options, budget=Budget(max_total_tokens=300)))
    assert still.interrupted, "what was spent before counts"
    outcome = await resume_plan(folder, crew(), replace(options, budget=Budget(max_total_tokens=10_000)))
    assert outcome.finished == 4
    assert [r.token_usage for r in outcome.results] == [r.token_usage for r in whole.results]
    assert [r.messages for r in outcome.results] == [r.messages for r in whole.results]
    assert all(result.token_usage_known for result in outcome.results), "nothing was on its way when it paused"
    resumed = [event for event in journal(tmp_path) if isinstance(event, Resumed)]
    assert resumed
    assert all(event.lost is None for event in resumed)


async def test_a_budget_of_money_is_held_by_what_the_calls_cost(tmp_path: Path) -> None:
    cent = Usage(input_tokens=1, total_tokens=1, total_cost=0.01, calls=1, priced_calls=1)
    options = RunOptions(runs_dir=tmp_path, parallelism=1, budget=Budget(max_cost=0.045))
    outcome = await run_plan(plan(), crew(cent), options)
    assert "budget of $0.045: $0.0500 are spent" in (outcome.stopped_by or "")
    assert outcome.finished == 1


async def test_a_budget_of_money_stops_at_the_first_call_whose_price_nobody_knows(tmp_path: Path) -> None:
    options = RunOptions(runs_dir=tmp_path, parallelism=1, budget=Budget(max_cost=100.0))
    outcome = await run_plan(plan(), crew(), options)
    assert "cannot be held" in (outcome.stopped_by or "")
    assert sum(getattr(event, "usage", None) == HUNDRED for event in journal(tmp_path)) == 1


@pytest.mark.parametrize("limit", [{"max_total_tokens": 0}, {"max_cost": -1.0}, {"max_cost": float("nan")}])
def test_a_budget_that_allows_nothing_is_refused(limit: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        Budget(**limit)  # type: ignore[arg-type]


@pytest.mark.parametrize(("role", "code"), [("user", "quota"), ("judge", "quota"), ("user", "auth"), ("judge", "auth")])
async def test_a_used_up_quota_stops_the_run_and_costs_no_conversation_its_place(
    tmp_path: Path, role: str, code: str
) -> None:
    refused = CallError(code, "model 'm' at host answered 429 (insufficient_quota)")
    broken = {"user": ["one", refused], "judge": [refused]}[role]
    basic = crew_of(target=["Hello there"], **{role: broken})
    options = RunOptions(runs_dir=tmp_path, parallelism=1, keep=True)
    outcome = await run_plan(plan(), basic, options)
    assert (outcome.interrupted, outcome.finished, outcome.dropped) == (True, 0, [])
    assert "insufficient_quota" in (outcome.stopped_by or "")
    failures = [event for event in journal(tmp_path) if isinstance(event, CallFailed)]
    assert [(failed.code, failed.final) for failed in failures] == [(code, False)]
    assert sum(isinstance(event, Noted) for event in journal(tmp_path)) == 1
    healthy = crew_of(user=["one", "two"], target=["Hello there"], judge=[verdict(stop=True)])
    resumed = await resume_plan(journals_dir(tmp_path) / plan().run_id, healthy, options)
    assert [result.terminated_by.value for result in resumed.results] == ["judge"] * 4


async def test_an_agent_that_lets_one_user_in_and_not_another_fails_those_conversations_alone(tmp_path: Path) -> None:
    basic = crew_of(target=[CallError("auth", "the agent answered 403")])
    outcome = await run_plan(plan(), basic, RunOptions(runs_dir=tmp_path))
    assert (outcome.interrupted, len(outcome.dropped)) == (False, 4)


async def test_faults_that_were_not_the_agents_are_run_again_on_request(tmp_path: Path) -> None:
    fault, agents_fault = CallError("server_error", "500"), CallError("target_error", "KeyError")
    flaky = replace(
        crew_of(user=[fault]),
        user=lambda seat: crew_of(user=[fault] if seat.datapoint.id == "dp_1" else ["one"]).user(seat),
        target=lambda seat: crew_of(target=[agents_fault] if seat.datapoint.id == "dp_2" else ["Hi there"]).target(
            seat
        ),
        judge=crew_of(judge=[verdict(stop=True)]).judge,
    )
    options = RunOptions(runs_dir=tmp_path, keep=True)
    first = await run_plan(plan(), flaky, options)
    assert [(dropped.row, dropped.component) for dropped in first.dropped] == [(1, "user_simulator"), (2, "target")]
    folder, healthy = journals_dir(tmp_path) / plan().run_id, crew_of(user=["one"], judge=[verdict(stop=True)])
    again = await resume_plan(folder, healthy, replace(options, retry_faults=True, replaces=first.path))
    assert [(dropped.row, dropped.component) for dropped in again.dropped] == [(2, "target")]
    assert [result.attempts for result in again.results] == [1, 2, 1, 1]
    assert again.path == first.path
    assert len(list(tmp_path.glob("*.json"))) == 1
    later = await resume_plan(folder, healthy, options)
    assert [result.attempts for result in later.results] == [1, 2, 1, 1], "the journal tells the second attempt"


async def test_an_attempt_that_was_stopped_while_a_fault_was_run_again_counts_and_no_attempt_counts_twice(
    tmp_path: Path,
) -> None:
    fault = CallError("server_error", "500", usage=HUNDRED)
    options = RunOptions(runs_dir=tmp_path, parallelism=1)
    await run_plan(plan(1), crew_of(user=[fault]), options)
    folder = journals_dir(tmp_path) / plan().run_id
    stops = Budget(max_total_tokens=250)
    again = replace(options, retry_faults=True, budget=stops)
    stopped = await resume_plan(folder, crew(), again)
    assert stopped.interrupted, "100 of the attempt that failed, two turns of the one that followed"
    still = await resume_plan(folder, crew(), replace(options, budget=Budget(max_total_tokens=300)))
    assert "300 are spent" in (still.stopped_by or "")
    assert (still.finished, still.path) == (0, None), "it was begun again, so what it came to first does not stand"
    with pytest.raises(ReplayError, match=r"1 of 1 conversations of run \w+ are not finished"):
        rebuild(plan().run_id, tmp_path)
    ended = await resume_plan(folder, crew(), replace(options, budget=Budget(max_total_tokens=100_000), keep=True))
    assert ended.results[0].token_usage.total_tokens == 400
    late = await resume_plan(folder, crew(), replace(options, budget=Budget(max_total_tokens=401)))
    assert late.stopped_by is None, "the journal's attempts add up to 400"


async def test_what_making_the_cases_cost_is_part_of_the_budget(tmp_path: Path) -> None:
    made = plan().model_copy(update={"spent": Spending(usage={"generation": HUNDRED + HUNDRED + HUNDRED})})
    outcome = await run_plan(made, crew(), RunOptions(runs_dir=tmp_path, budget=Budget(max_total_tokens=300)))
    assert (outcome.interrupted, outcome.finished) == (True, 0)
    assert [event for event in journal(tmp_path) if getattr(event, "usage", None) == HUNDRED] == []
