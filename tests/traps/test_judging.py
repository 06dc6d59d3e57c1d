"""Symptoms that people met when a model judges: verdicts on the wrong line, lost, invented, or read off the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.model.cases import Criterion
from evaluatorq.model.judgments import parse_criteria_meta
from evaluatorq.model.messages import assistant, tool_call
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits
from evaluatorq.model.usage import Usage
from evaluatorq.ports import ChatReply, ChatRequest, TargetReply
from evaluatorq.roles.judge import model_judge
from evaluatorq.roles.user import model_user
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.testing import a_datapoint, a_plan, a_scenario, converse, crew_of
from mock_server.served import MockEndpoint, serving
from mock_server.shell import MODELS, evaluatorq, saved_run, write_cases

PRICE = Criterion(description="gives a price", type="must_happen")
RUDE = Criterion(description="is rude to the customer", type="must_not_happen")
ANSWER = "The price is nine euros."


def spent(tokens: int) -> Usage:
    return Usage(input_tokens=tokens, total_tokens=tokens, calls=1)


def entry(number: int, occurred: bool | None, evidence: str = "", **more: JsonValue) -> dict[str, JsonValue]:
    return {"criterion_id": f"criteria_{number}", "evidence": evidence, "occurred": occurred, **more}


def answer(*entries: dict[str, JsonValue], stop: bool = False) -> dict[str, JsonValue]:
    return {
        "reason": "read", "criteria_verdicts": list(entries), "response_quality": 0.5, "hallucination_risk": 0,
        "tone_appropriateness": 1, "factual_accuracy": None, "goal_achieved": False, "goal_completion_score": 0.5,
        "should_terminate": stop,
    }  # fmt: skip


class JudgeModel:
    """Answers as the judge's model, in order, the last one for ever."""

    name = "m1"

    def __init__(self, *answers: dict[str, JsonValue] | ChatReply) -> None:
        self.answers = answers
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        said = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(request)
        return said if isinstance(said, ChatReply) else ChatReply(answer=said, usage=spent(20), raw=json.dumps(said))


async def judged(model: JudgeModel, *criteria: Criterion, turns: int = 1) -> SimulationResult:
    crew = replace(crew_of(user=["one", "two", "three"], target=[ANSWER]), judge=model_judge(model))
    return await converse(a_datapoint(a_scenario(criteria=criteria)), crew, Limits(max_turns=turns, repetition_limit=9))


def states(result: SimulationResult) -> list[str]:
    metas, invalid = parse_criteria_meta(result.metadata["criteria_meta"])
    assert invalid == []
    return [meta.state for meta in metas]


async def test_undecided_in_the_middle_is_taken_for_failed_and_ends_it() -> None:
    undecided, found = answer(entry(0, None)), answer(entry(0, True, "price is nine euros"), stop=True)
    model = JudgeModel(*[undecided] * 4, *[undecided] * 4, found)
    result = await judged(model, PRICE, turns=3)
    assert (result.turn_count, states(result)) == (3, ["pass"])


async def test_undecided_at_the_end_becomes_a_pass_or_a_failure() -> None:
    result = await judged(JudgeModel(answer(entry(0, None))), PRICE, turns=2)
    assert states(result) == ["unknown"]
    assert result.rules_broken == []
    assert (result.ended_by, result.failed_component) == ("max_turns", None)


async def test_an_abstention_that_carries_a_value_takes_the_whole_report_with_it() -> None:
    both = answer(entry(0, True, "price is nine euros", abstain=True), entry(1, False))
    result = await judged(JudgeModel(both), PRICE, RUDE)
    assert states(result) == ["unknown", "pass"]
    assert result.failed_component is None


async def test_the_second_request_leaves_calls_of_the_first_without_an_answer() -> None:
    broken = ChatReply(
        tool_calls=(tool_call("j1", "read_turn", {}), tool_call("j2", "verdict", "{bad")), usage=spent(20), raw="{bad"
    )
    lost = CallError("malformed_response", "no object", reask=True, usage=spent(20), raw="{bad")

    class Breaking(JudgeModel):
        async def complete(self, request: ChatRequest) -> ChatReply:
            reply = await super().complete(request)
            if reply is broken:
                raise lost
            return reply

    model = Breaking(broken, answer(entry(0, True, "price is nine euros"), stop=True))
    result = await judged(model, PRICE)
    assert states(result) == ["pass"]
    asked = b"\n".join(model.requests[1].lines)
    assert b"tool_call" not in asked
    assert b"j1" not in asked
    assert "refused" in (model.requests[1].tail or "")


async def test_one_unreadable_verdict_stops_the_whole_job(tmp_path: Path) -> None:
    good, prose = answer(entry(0, True, "price is nine euros"), stop=True), ChatReply(text="sorry, no JSON today")
    points = [a_datapoint(a_scenario(criteria=[PRICE]), id=f"dp_{i}") for i in range(3)]
    crew = replace(
        crew_of(target=[ANSWER]),
        judge=lambda seat: model_judge(JudgeModel(prose if seat.datapoint.id == "dp_1" else good))(seat),
    )
    outcome = await run_plan(a_plan(*points), crew, RunOptions(runs_dir=tmp_path, keep=True))
    assert [states(result) for result in outcome.results] == [["pass"], ["unknown"], ["pass"]]
    assert [(dropped.row, dropped.component) for dropped in outcome.dropped] == [(1, "judge")]


async def test_the_result_holds_the_judges_prompt_instead_of_the_conversation() -> None:
    result = await judged(JudgeModel(answer(entry(0, True, "price is nine euros"), stop=True)), PRICE)
    assert [(row.role, row.text) for row in result.messages] == [("user", "one"), ("assistant", ANSWER)]


async def test_what_simulator_and_judge_cost_is_one_sum_where_both_are_one_model() -> None:
    class UserModel(JudgeModel):
        async def complete(self, request: ChatRequest) -> ChatReply:
            line: dict[str, JsonValue] = {"reply": "What does it cost?", "end_conversation": False}
            return ChatReply(answer=line, usage=spent(10), model="m1", raw="{}")

    price = TargetReply((assistant(ANSWER),), usage=spent(30), model="m2")
    judge = JudgeModel(answer(entry(0, True, "price is nine euros"), stop=True))
    crew = replace(crew_of(target=[price]), user=model_user(UserModel()), judge=model_judge(judge))
    result = await converse(a_datapoint(a_scenario(criteria=[PRICE])), crew)
    by_role = {role: usage.total_tokens for role, usage in result.usage_by_role.items()}
    assert by_role == {"user_simulator": 10, "judge": 20, "target": 30}
    assert result.token_usage.total_tokens == 60


# ---------------------------------------------------------------- over real sockets


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with serving(finish_turn=1) as mock:
        yield mock


def test_a_transcript_that_is_too_long_for_the_judge_scores_zero(endpoint: MockEndpoint, tmp_path: Path) -> None:
    endpoint.reset()
    endpoint.set(faults=[{"role": "judge", "kind": "413"}])
    write_cases(tmp_path / "cases.jsonl", 1, criteria=1)
    words = ("-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS, "--max-turns", "1")
    assert evaluatorq(tmp_path, "sim", "simulate", "-q", *words, endpoint=endpoint).returncode == 1
    run = saved_run(tmp_path)
    assert run["scorer_averages"] == {}
    counts = run["score_counts"]["criteria_met"]  # type: ignore[index]
    assert (counts["scored"], counts["left_out"]) == (0, 1)
    roles = endpoint.stats()["roles"]
    assert isinstance(roles, dict)
    assert roles["judge"]["requests"] == 1, "what is too long now is too long in a second"
