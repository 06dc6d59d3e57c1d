"""The shipped scenarios' facts: the good agent holds them, bad ones do not, and no judge's praise changes that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evaluatorq.environments.registry import environment_for
from evaluatorq.evaluators.registry import resolve_evaluators
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.judgments import CriterionVerdict, Judgment
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import JudgeReply, Seat, TargetFactory
from evaluatorq.records.verdicts import verdict_of
from evaluatorq.roles.checks import check_judge
from evaluatorq.roles.scripted import offline_user
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.store.cases import bundled, load_personas, load_scenarios
from evaluatorq.targets.callables import FunctionTargets
from evaluatorq.targets.demo import demo_target
from evaluatorq.testing import a_plan

CASES = tuple(
    SimulationDatapoint(id=f"{persona.name} / {scenario.name}", persona=persona, scenario=scenario)
    for persona in load_personas(bundled("personas"))
    for scenario in load_scenarios(bundled("scenarios"))
)


class Charmed:
    """A judge that believes every word: the goal is reached, and every criterion is as it should be."""

    def __init__(self, seat: Seat) -> None:
        self._criteria = seat.datapoint.scenario.criterion_list

    async def judge(self, messages: Sequence[Message], open_criteria: Sequence[str], *, final: bool) -> JudgeReply:
        verdicts = [
            CriterionVerdict(
                criterion_id=identity,
                occurred=self._criteria[int(identity.removeprefix("criteria_"))].type == "must_happen",
                evidence=messages[-1].text,
            )
            for identity in open_criteria
        ]
        praise = Judgment(
            should_terminate=True,
            reason="Wonderful.",
            goal_achieved=True,
            goal_completion_score=1.0,
            criteria_verdicts=verdicts,
        )
        return JudgeReply(praise, usage=NO_USAGE)


async def played(target: TargetFactory, folder: Path, **crew: object) -> list[SimulationResult]:
    made = Crew(
        target=target,
        user=offline_user,
        judge=check_judge,
        environment=environment_for,
        evaluators=resolve_evaluators(["expectations_met", "operational_claims"]),
    )
    options = RunOptions(save=False, journal=False, keep=True, runs_dir=folder)
    outcome = await run_plan(a_plan(*CASES, seed=7), replace(made, **crew), options)  # type: ignore[arg-type]
    return outcome.results


def scores(results: list[SimulationResult], name: str) -> set[object]:
    return {result.metadata["evaluator_scores"][name] for result in results}  # type: ignore[index,call-overload]


def test_every_shipped_scenario_states_facts_and_which_words_need_one() -> None:
    for case in CASES:
        assert case.scenario.expect is not None
        assert case.scenario.claims


async def test_the_good_agent_meets_every_expectation_and_says_only_what_it_did(tmp_path: Path) -> None:
    results = await played(demo_target(), tmp_path)
    assert [failure.text for result in results if result.expectations for failure in result.expectations.failures] == []
    assert scores(results, "expectations_met") == {1.0}
    assert scores(results, "operational_claims") == {1.0}
    assert sum(len(result.claims or ()) for result in results) >= len(CASES) / 2, "the phrases do occur"


async def test_the_flawed_agent_fails_every_scenario_by_fact(tmp_path: Path) -> None:
    results = await played(demo_target(flawed=True), tmp_path)
    assert scores(results, "expectations_met") == {0.0}


async def does_nothing(messages: list[Message]) -> str:
    return "I see."


async def apologises(messages: list[Message]) -> str:
    return "I'm so sorry about this. I completely understand how frustrating it must be, and I apologise."


async def lies(messages: list[Message]) -> str:
    return "Good news: I have refunded your order, I have sent you a replacement, and a colleague will call you."


@pytest.mark.parametrize("agent", [does_nothing, apologises, lies])
async def test_an_agent_that_does_nothing_passes_nothing_however_much_the_judge_likes_it(
    agent: object, tmp_path: Path
) -> None:
    results = await played(FunctionTargets(agent), tmp_path, judge=Charmed)  # type: ignore[arg-type]
    assert scores(results, "expectations_met") == {0.0}
    assert {verdict_of(result) for result in results} == {"failed"}
    assert {result.judge_goal_achieved for result in results} == {True}


async def test_a_claim_of_a_deed_without_the_deed_is_found_by_fact(tmp_path: Path) -> None:
    results = await played(FunctionTargets(lies), tmp_path, judge=Charmed)
    assert scores(results, "operational_claims") == {0.0}
    for result in results:
        (seen,) = result.observations
        assert (seen.tool_calls, seen.commands, seen.states) == ((), (), {})
        assert any("refunded" in finding.words and not finding.backed for finding in result.claims or ()) or (
            "Address" in str(result.metadata["scenario"])
        )
