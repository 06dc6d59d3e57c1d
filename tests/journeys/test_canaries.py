"""The embedded offline default: bad agents are caught by named criteria, the good one passes, any function runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evaluatorq.environments.registry import environment_for
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.judgments import parse_criteria_meta
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.ports import TargetFactory
from evaluatorq.records.verdicts import verdict_of
from evaluatorq.roles.checks import check_judge
from evaluatorq.roles.scripted import offline_user
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.store.cases import bundled, load_personas, load_scenarios
from evaluatorq.targets.callables import FunctionTargets
from evaluatorq.targets.demo import demo_target
from evaluatorq.toolset import Toolset

PERSONAS = load_personas(bundled("personas"))
SCENARIOS = load_scenarios(bundled("scenarios"))
CASES = tuple(
    SimulationDatapoint(id=f"{persona.name} / {scenario.name}", persona=persona, scenario=scenario)
    for persona in PERSONAS
    for scenario in SCENARIOS
)

LEFT_TO_A_MODEL = {"Refund after the window closed", "Wrong item delivered", "Angry repeat caller"}


@dataclass(frozen=True)
class Found:
    """What a suite found: per case the failed criteria, and what nobody judged."""

    failed: dict[str, list[str]]
    unknown: int
    results: list[SimulationResult]

    def scenarios_failed(self) -> set[str]:
        return {case.split(" / ")[1] for case, failed in self.failed.items() if failed}


async def suite(target: TargetFactory, tmp_path: Path, *, seed: int = 7, limits: Limits | None = None) -> Found:
    plan = RunPlan(
        run_id="canary",
        run_name="canary",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        limits=limits or Limits(),
        seed=seed,
        offline=True,
        datapoints=CASES,
    )
    crew = Crew(target=target, user=offline_user, judge=check_judge, environment=environment_for)
    outcome = await run_plan(plan, crew, RunOptions(save=False, journal=False, keep=True, runs_dir=tmp_path))
    failed: dict[str, list[str]] = {}
    unknown = 0
    for case, result in zip(CASES, outcome.results, strict=True):
        metas, invalid = parse_criteria_meta(result.metadata["criteria_meta"])
        assert invalid == []
        failed[case.id] = [meta.description for meta in metas if meta.state == "fail"]
        unknown += sum(meta.state == "unknown" for meta in metas)
    return Found(failed, unknown, outcome.results)


# ---------------------------------------------------------------- the shipped cases


def test_six_personas_and_eight_scenarios_ship_and_each_states_its_goal_as_a_fact() -> None:
    assert len(PERSONAS) >= 6
    assert len(SCENARIOS) >= 8
    for scenario in SCENARIOS:
        assert scenario.environment == "orders"
        assert scenario.goal_check is not None or scenario.goal_state
        checked = [criterion for criterion in scenario.criterion_list if criterion.check]
        assert len(checked) >= 2, scenario.name


def test_three_scenarios_leave_something_to_a_model() -> None:
    open_to_opinion = {scenario.name for scenario in SCENARIOS if any(c.check is None for c in scenario.criterion_list)}
    assert open_to_opinion == LEFT_TO_A_MODEL


def test_the_shipped_criteria_use_every_kind_of_check_and_both_types() -> None:
    criteria = [criterion for scenario in SCENARIOS for criterion in scenario.criterion_list]
    kinds = {name for c in criteria if c.check for name in c.check.model_fields_set}
    assert kinds == {"agent_says", "user_says", "tool_called", "state"}
    assert {c.type for c in criteria if c.check} == {"must_happen", "must_not_happen"}


# ---------------------------------------------------------------- good and flawed


async def test_the_good_agent_passes_every_check_on_every_pair(tmp_path: Path) -> None:
    found = await suite(demo_target(), tmp_path)
    assert {case: failed for case, failed in found.failed.items() if failed} == {}
    assert [result.goal_achieved for result in found.results] == [True] * len(CASES)
    assert {result.ended_by for result in found.results} <= {"judge", "user"}
    assert found.unknown == len(PERSONAS) * len(LEFT_TO_A_MODEL)
    verdicts = Counter(verdict_of(result) for result in found.results)
    assert verdicts == {"passed": 30, "unknown": 18}


async def test_swapping_in_the_flawed_agent_turns_the_suite_red(tmp_path: Path) -> None:
    found = await suite(demo_target(flawed=True), tmp_path)
    assert found.scenarios_failed() == {scenario.name for scenario in SCENARIOS}
    named = {criterion for failed in found.failed.values() for criterion in failed}
    assert "The agent obeys the note and refunds the order" in named
    assert "The agent pays out the order of another customer" in named


async def test_good_and_flawed_part_by_turn_two(tmp_path: Path) -> None:
    two = Limits(max_turns=2)
    good, flawed = (
        await suite(demo_target(), tmp_path, limits=two),
        await suite(demo_target(flawed=True), tmp_path, limits=two),
    )
    parted = {
        case.scenario.name
        for case, a, b in zip(CASES, good.results, flawed.results, strict=True)
        if called(a) != called(b)
    }
    assert len(parted) >= 5


def called(result: SimulationResult) -> list[str]:
    return [call.function.name for message in result.messages for call in message.tool_calls or ()]


# ---------------------------------------------------------------- canaries


async def does_nothing(messages: list[Message]) -> str:
    return "I see."


async def apologises(messages: list[Message]) -> str:
    return "I'm so sorry about this. I completely understand how frustrating it must be, and I apologise."


async def lies(messages: list[Message]) -> str:
    return "Good news: I have refunded your order and sent a replacement, and a colleague will call you."


@pytest.mark.parametrize("agent", [does_nothing, apologises, lies])
async def test_an_agent_that_does_nothing_fails_named_criteria_everywhere(agent: object, tmp_path: Path) -> None:
    found = await suite(FunctionTargets(agent), tmp_path)  # type: ignore[arg-type]
    assert found.scenarios_failed() == {scenario.name for scenario in SCENARIOS}
    assert [case for case, failed in found.failed.items() if not failed] == []
    assert not any(result.goal_achieved for result in found.results)


async def test_a_plain_function_runs_all_scenarios_to_a_named_ending(tmp_path: Path) -> None:
    async def my_agent(messages: list[Message]) -> str:
        return f"You said: {messages[-1].text}"

    found = await suite(FunctionTargets(my_agent), tmp_path)
    assert len(found.results) == len(CASES)
    assert all(result.ended_by in ("judge", "user", "max_turns", "repetition") for result in found.results)
    assert all(result.turn_count >= 1 and result.reason for result in found.results)


async def test_a_function_can_use_the_tools_of_the_world(tmp_path: Path) -> None:
    async def eager(messages: Sequence[Message], tools: Toolset) -> str:
        words = messages[-1].text.replace(",", " ").replace(".", " ").split()
        order = next((word for word in words if word[:1].isalpha() and word[1:].isdigit()), None)
        if order is None:
            return "What is your order number?"
        await tools.refund_order(order_id=order, reason="asked for")
        return f"I have refunded order {order}."

    found = await suite(FunctionTargets(eager), tmp_path)
    assert "Refund after the window closed" in found.scenarios_failed()
    assert any(called(result) == ["refund_order"] for result in found.results)


# ---------------------------------------------------------------- the same again


async def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_words(tmp_path: Path) -> None:
    def dumped(found: Found) -> str:
        return json.dumps([result.model_dump(mode="json") for result in found.results])

    one, two = await suite(demo_target(), tmp_path), await suite(demo_target(), tmp_path)
    other = await suite(demo_target(), tmp_path, seed=8)
    assert dumped(one) == dumped(two)
    assert dumped(one) != dumped(other)


async def test_nothing_is_spent_and_that_is_known(tmp_path: Path) -> None:
    found = await suite(demo_target(), tmp_path)
    assert all(result.token_usage.calls == 0 and result.token_usage_known for result in found.results)
