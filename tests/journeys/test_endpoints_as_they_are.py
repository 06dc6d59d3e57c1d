"""Endpoints that stream, refuse a role or break on what they do not know, met on the command line over real sockets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluatorq.model.runs import SimulationRun
from mock_server.served import MockEndpoint, serving
from mock_server.shell import MODELS, evaluatorq, saved_run, write_cases

CASES = 4
AGENT = ("-i", "cases.jsonl", "--openai-model", "mock-target", "--target-system-prompt", "Be brief.", *MODELS)


def run_against(folder: Path, endpoint: MockEndpoint, *words: str, code: int = 0) -> SimulationRun:
    folder.mkdir()
    write_cases(folder / "cases.jsonl", CASES)
    done = evaluatorq(folder, "sim", "simulate", *AGENT, *words, "-q", endpoint=endpoint)
    assert done.returncode == code, done.stderr
    return SimulationRun.model_validate(saved_run(folder))


def facts(run: SimulationRun) -> list[object]:
    """What has to be the same however the answers were sent."""
    return [
        (result.messages, result.ended_by, result.criteria_audit, result.usage_by_role["target"])
        for result in run.results
    ]


def dropped_by(run: SimulationRun) -> dict[str, list[str]]:
    return {name.partition(" @ ")[0]: parts for name, parts in run.param_dropped.items()}


# ---------------------------------------------------------------- streams


def test_streamed_answers_are_the_same_answers_and_cost_the_same(tmp_path: Path) -> None:
    with serving(finish_turn=2, quote="mixed") as mock:
        whole = run_against(tmp_path / "whole", mock)
        assert mock.stats()["streamed"] == 0
        mock.reset()
        asked = run_against(tmp_path / "asked", mock, "--llm-config", json.dumps({"stream": True}))
        roles = mock.stats()["roles"]
        assert isinstance(roles, dict)
        assert mock.stats()["streamed"] == roles["user"]["requests"] + roles["judge"]["requests"]
        mock.set(streams=True)
        unasked = run_against(tmp_path / "unasked", mock)
    assert facts(asked) == facts(whole)
    assert facts(unasked) == facts(whole)
    assert unasked.token_usage_total == whole.token_usage_total


def test_a_stream_that_breaks_off_is_asked_for_again_and_its_cost_is_owned_to_be_unknown(tmp_path: Path) -> None:
    with serving(finish_turn=1, streams=True, faults=[{"role": "judge", "kind": "cut", "first": 1}]) as mock:
        run = run_against(tmp_path / "run", mock)
    assert {result.ended_by for result in run.results} == {"judge"}
    assert not any(result.token_usage_known for result in run.results)


# ---------------------------------------------------------------- roles


@pytest.mark.parametrize(
    ("refused", "sent"), [(["system"], "developer"), (["system", "developer"], "user")], ids=["one", "both"]
)
def test_a_system_prompt_goes_out_under_a_role_that_is_taken(tmp_path: Path, refused: list[str], sent: str) -> None:
    watched = [json.dumps(role) for role in ("system", "developer", "user")]
    with serving(finish_turn=1, refused=[f"role:{role}" for role in refused], watched=watched) as mock:
        run = run_against(tmp_path / "run", mock, "--parallelism", "1")
        met = mock.stats()["watched"]
    assert isinstance(met, dict)
    assert met[json.dumps("system")] == dict.fromkeys(("user", "target", "judge"), 1), (
        "refused once by each, then known"
    )
    told = [f"role {own} (sent as {sent})" for own in refused]
    assert dropped_by(run) == {f"mock-{role}": told for role in ("user", "target", "judge")}
    assert {result.ended_by for result in run.results} == {"judge"}


# ---------------------------------------------------------------- status 500 for what is not known


def test_an_endpoint_that_breaks_on_forced_tools_costs_no_conversation(tmp_path: Path) -> None:
    with serving(finish_turn=6, breaks=["tool_choice"]) as mock:
        run = run_against(tmp_path / "run", mock, "--parallelism", "4")
    assert [(result.ended_by, result.fully_audited) for result in run.results] == [("judge", True)] * CASES
    forms = {name.partition(" @ ")[0]: form for name, form in run.answer_forms.items()}
    assert forms == {"mock-user": "json_schema", "mock-judge": "json_schema"}
    told = ["tool_choice (failed with status 500, worked without)"]
    assert dropped_by(run) == {"mock-user": told, "mock-judge": told}


def test_an_endpoint_that_is_down_for_a_while_is_asked_as_before_once_it_is_back(tmp_path: Path) -> None:
    with serving(finish_turn=3, faults=[{"kind": "500", "in_all": CASES + 1}]) as mock:
        run = run_against(tmp_path / "run", mock, "--parallelism", "4")
    assert [result.ended_by for result in run.results] == ["judge"] * CASES
    assert run.param_dropped == {}
    assert set(run.answer_forms.values()) == {"tool"}
