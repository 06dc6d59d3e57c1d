"""What a reader of a result finds in it: criteria three times over, metadata, ids of replies, scores or why not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import anyio

from evaluatorq.contracts import AgentResponse
from evaluatorq.errors import CallError
from evaluatorq.model.cases import Criterion
from evaluatorq.model.events import Scored
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits
from evaluatorq.ports import JudgeReply
from evaluatorq.records.result import with_scores
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.simulation import SimulationDatapoint, simulate
from evaluatorq.simulation.evaluators import SIMULATION_EVALUATORS, criteria_met_scorer
from evaluatorq.store.manifests import read_manifests
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.testing import a_datapoint, a_persona, a_plan, a_scenario, converse, crew_of, verdict

HELP, RUDE = "I will gladly help you with that", "You are an utter fool, sir"
CRITERIA = (
    Criterion(description="helps", type="must_happen"),
    Criterion(description="is polite", type="must_not_happen"),
    Criterion(description="is polite", type="must_happen"),
)
POINT = a_datapoint(a_scenario(criteria=CRITERIA))


async def result_of(*judge: JudgeReply, target: Sequence[object] = (HELP,), turns: int = 2) -> SimulationResult:
    crew = crew_of(target=target, user=["one", "two", "three"], judge=judge)
    return await converse(POINT, crew, Limits(max_turns=turns))


def metas(result: SimulationResult) -> list[tuple[str, bool, bool, str]]:
    listed = result.metadata["criteria_meta"]
    return [(meta["id"], meta["passed"], meta["audited"], meta["evidence"]) for meta in listed]


# ---------------------------------------------------------------- criteria


async def test_criteria_are_keyed_by_position_and_carry_exactly_six_keys():
    result = await result_of(verdict({0: HELP, 1: False, 2: False}, stop=True, goal=True))
    assert metas(result) == [
        ("criteria_0", True, True, HELP), ("criteria_1", True, True, ""), ("criteria_2", False, True, ""),
    ]  # fmt: skip
    keys = {"id", "description", "type", "passed", "audited", "evidence"}
    assert [set(meta) for meta in result.metadata["criteria_meta"]] == [keys] * 3


async def test_of_equal_descriptions_the_later_one_stands_in_criteria_results():
    result = await result_of(verdict({0: HELP, 1: False, 2: False}, stop=True))
    assert result.criteria_results == {"helps": True, "is polite": False}
    assert result.rules_broken == ["criteria_2"]


async def test_an_occurrence_stays_with_the_quote_of_the_turn_that_showed_it():
    first, later = verdict({0: HELP, 1: False, 2: False}), verdict({0: False, 1: False, 2: False}, stop=True)
    result = await result_of(first, later)
    assert metas(result)[0] == ("criteria_0", True, True, HELP)


async def test_without_any_audit_the_judges_own_list_is_passed_through_and_nothing_fails():
    judgment = Judgment(should_terminate=True, reason="r", goal_achieved=True, rules_broken=["was rude", "criteria_1"])
    result = await result_of(JudgeReply(judgment, strict=False))
    assert (result.criteria_verified, result.rules_broken) == (False, ["was rude", "criteria_1"])
    assert [(passed, audited) for _, passed, audited, _ in metas(result)] == [(True, False)] * 3
    assert criteria_met_scorer(result) == 0.0


async def test_an_audit_before_the_agent_broke_counts_as_one():
    down = CallError("server_error", "HTTP 500")
    result = await result_of(verdict({0: False, 1: False, 2: False}), target=[HELP, down])
    assert (result.terminated_by.value, result.criteria_verified, result.rules_broken) == ("error", True, [])
    assert [audited for _, _, audited, _ in metas(result)] == [False, True, False]
    assert result.goal_completion_score == 0.0


async def test_a_violation_seen_before_the_agent_broke_stays():
    down = CallError("server_error", "HTTP 500")
    result = await result_of(verdict({0: False, 1: RUDE, 2: False}), target=[RUDE, down])
    assert result.rules_broken == ["criteria_1"]


async def test_without_criteria_everything_is_verified_and_met():
    result = await converse(a_datapoint(a_scenario(criteria=None)), crew_of(judge=[verdict(stop=True)]))
    assert (result.criteria_verified, result.criteria_results, result.rules_broken) == (True, None, [])
    assert result.metadata["criteria_meta"] == []
    assert criteria_met_scorer(result) == 1.0


# ---------------------------------------------------------------- a whole run


class Judge:
    async def evaluate(self, messages: Sequence[Message]) -> Judgment:
        done = sum(message.role == "assistant" for message in messages) == 2
        return Judgment(should_terminate=done, reason="r", goal_achieved=done, rules_broken=[])


class User:
    async def generate_first_message(self) -> str:
        return "hello"

    async def respond_async(self, messages: Sequence[Message], **options: object) -> str:
        return f"more {len(messages)}"

    def update_context(self, persona_context: str, scenario_context: str) -> None: ...


async def traced(messages: list[Message]) -> AgentResponse:
    turn = len(messages) // 2
    return AgentResponse(text=f"answer {turn}", model="agent-model", trace_id=f"trace-{turn}", span_id="span")


async def run(**options: object):
    point = SimulationDatapoint(
        id="dp_x", persona=a_persona(background="new"), scenario=a_scenario(context="yesterday"), first_message=""
    )
    return await simulate(
        datapoints=[point], **{"target": traced, "user_simulator": User(), "judge": Judge(), **options}
    )


async def test_metadata_names_who_and_what_and_the_replies_carry_their_ids():
    results = await run(run_name="named")
    [result] = results
    wanted = {
        "persona": "Pat", "scenario": "Refund", "criteria_meta": [], "scenario_goal": "Get a refund",
        "scenario_context": "yesterday", "datapoint_id": "dp_x", "target_model": "agent-model",
        "evaluation_name": "named", "evaluator_scores": {"goal_achieved": 1.0, "criteria_met": 1.0},
    }  # fmt: skip
    assert {key: result.metadata[key] for key in wanted} == wanted
    assert list(result.metadata["persona_traits"]) == [
        "patience", "assertiveness", "politeness", "technical_level", "communication_style", "background",
    ]  # fmt: skip
    assert [trace.trace_id for trace in result.response_traces] == ["trace-0", "trace-1"]
    assert result.last_trace_id == "trace-1"
    assert result.thread_id == f"{results.run.run_id}:0"


async def test_an_unnamed_run_is_called_sim_and_its_results_are_not_labelled():
    results = await run()
    assert results.run.run_name == "sim"
    assert "evaluation_name" not in results[0].metadata


async def test_the_model_that_plays_the_user_is_named():
    plan = a_plan(POINT, models={"user_simulator": "some-model", "judge": "another"})
    outcome = await run_plan(plan, crew_of(), RunOptions(journal=False, keep=True))
    assert outcome.results[0].metadata["model"] == "some-model"


async def test_a_conversation_out_of_time_says_how_much_it_had():
    async def slow(messages: list[Message]) -> str:
        await anyio.sleep_forever()
        return ""

    [result] = await run(target=slow, per_simulation_timeout_s=0.05, raise_on_execution_failure=False)
    assert (result.terminated_by.value, result.metadata["timeout"]) == ("timeout", 0.05)
    assert result.metadata["error"] == result.reason != ""


async def test_evaluator_details_explain_criteria_and_quality():
    [result] = await run(evaluator_names=list(SIMULATION_EVALUATORS))
    assert set(result.evaluator_details) == {"conversation_quality"}
    assert result.evaluator_details["conversation_quality"] == {
        "components": {"goal_achieved": 1.0, "criteria_met": 1.0, "turn_efficiency": 1.0},
        "weights": {"goal_achieved": 0.4, "criteria_met": 0.3, "turn_efficiency": 0.3},
    }


def test_a_score_that_is_none_is_named_and_no_score():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    base = SimulationResult.model_validate_json(
        '{"messages":[],"terminated_by":"judge","reason":"","goal_achieved":true,"goal_completion_score":1,'
        '"rules_broken":[],"turn_count":0,"token_usage":{},"turn_metrics":[]}'
    )
    scored = with_scores(base, [Scored(at=now, evaluator="a", score=0.5), Scored(at=now, evaluator="b", error="no")])
    assert scored.metadata == {"evaluator_scores": {"a": 0.5}, "evaluator_errors": {"b": "no"}}


# ---------------------------------------------------------------- on disk


async def test_a_saved_run_lies_where_readers_look():
    results = await run(run_name="My first Run!", save=True)
    folder = get_sim_runs_dir()
    assert results.path.parent == folder.resolve()
    assert results.path.name.startswith("my_first_run_")
    assert [path.name for path in folder.glob("*.json")] == [results.path.name]
    [manifest] = read_manifests(folder)
    assert (folder / ".manifests" / f"{results.run.run_id}.json").is_file()
    assert (manifest.surface, manifest.status, manifest.summary_version) == ("sim", "completed", 1)
    assert manifest.report_path == str(results.path)
    assert manifest.summary == results.run.manifest_summary()
    assert set(manifest.summary) == {"mode", "target_kind", "total_results", "scorer_averages"}
    text = results.path.read_text(encoding="utf-8")
    assert text.startswith('{\n  "run_name": "My first Run!",\n  "created_at": "')
    document = json.loads(text)
    assert "pipeline" not in document
    assert (document["replay_version"], document["orq_base_url"], document["target_kind"]) == (1, None, "callback")
