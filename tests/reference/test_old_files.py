"""Files of older versions load; what they do not say is not recorded, which is neither a pass nor a fail nor a zero."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluatorq.errors import CaseError, ReplayError
from evaluatorq.model.results import SimulationResult
from evaluatorq.reports.terminal import About, render_summary
from evaluatorq.reports.transcript import conversation_view, render_conversation
from evaluatorq.reports.view import Summary
from evaluatorq.simulation import (
    SimulationRun,
    load_datapoints_from_jsonl,
    load_results_from_jsonl,
    simulate,
    to_open_responses,
)
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.simulation.evaluators import criteria_met_scorer, failure_reason
from evaluatorq.simulation.replay import load_simulation_replay
from evaluatorq.store.runs import iter_results, read_header, read_run
from evaluatorq.testing import a_persona

LEGACY = Path(__file__).parents[1] / "data" / "legacy"
RUNS = sorted(LEGACY.glob("*.json"))


def only(name: str) -> SimulationResult:
    [result] = read_run(LEGACY / f"{name}.json").results
    return result


# ---------------------------------------------------------------- all of them


def test_there_are_ten():
    assert len(RUNS) == 10


@pytest.mark.parametrize(
    "path", [path for path in RUNS if path.stem != "traits_beyond_the_scale"], ids=lambda p: p.stem
)
def test_an_old_run_loads_and_reads_back_the_same(path: Path):
    run = read_run(path)
    assert run.created_at.utcoffset() is not None
    assert SimulationRun.model_validate_json(run.model_dump_json()) == run
    assert list(iter_results(path)) == run.results
    assert read_header(path).run_name == "old"


@pytest.mark.parametrize(
    "path", [path for path in RUNS if path.stem != "traits_beyond_the_scale"], ids=lambda p: p.stem
)
def test_an_old_run_is_shown_exported_and_scored(path: Path):
    run = read_run(path)
    page = render_summary(Summary.of(run.results), About.run(run))
    assert "old" in page
    for number, result in enumerate(run.results):
        assert render_conversation(conversation_view(result, number))
        json.dumps(to_open_responses(result))
        assert 0 <= criteria_met_scorer(result) <= 1


@pytest.mark.parametrize("name", ["before_audits", "nulls", "total_turns", "descriptions_only"])
def test_what_was_not_recorded_is_null_or_empty(name: str):
    run = read_run(LEGACY / f"{name}.json")
    assert (run.run_id, run.datapoints, run.token_usage_total, run.recommendations) == (None, None, None, None)
    for result in run.results:
        assert (result.criteria_verified, result.thread_id, result.response_traces) == (None, None, [])
        assert (result.goal_known, result.fully_audited, result.ended_by) == (None, None, None)


# ---------------------------------------------------------------- one by one


def test_a_criterion_without_audited_counts_as_it_stands():
    result = only("before_audits")
    assert result.metadata["criteria_meta"][0].get("audited") is None
    assert criteria_met_scorer(result) == 1.0


def test_tokens_under_their_older_names_are_read_and_written_under_both():
    usage = only("old_token_names").token_usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.total_cost) == (10, 5, 15, 0.002)
    dumped = json.loads(usage.model_dump_json())
    assert (dumped["prompt_tokens"], dumped["completion_tokens"], dumped["cost_usd"]) == (10, 5, 0.002)


def test_total_turns_is_kept():
    assert only("total_turns").total_turns == 1
    run = read_run(LEGACY / "total_turns.json")
    assert run.agent_info == {"key": "agent-key", "tools": ["lookup"]}


def test_criteria_known_by_description_only_are_scored_by_their_share():
    scores = [criteria_met_scorer(result) for result in read_run(LEGACY / "descriptions_only.json").results]
    assert scores == [0.5, 0.0]


def test_a_time_without_a_zone_is_utc():
    run = read_run(LEGACY / "no_time_zone.json")
    assert json.loads(run.model_dump_json())["created_at"] == "2025-03-01T09:30:00Z"


def test_traits_beyond_the_scale_are_kept_and_told():
    with pytest.warns(UserWarning, match="'Ann' has patience, assertiveness outside 0..1"):
        replay = load_simulation_replay(str(LEGACY / "traits_beyond_the_scale.json"))
    assert replay.datapoints[0].persona.patience == 2.5
    assert replay.max_turns is None
    assert replay.source == "feedfacefeedfacefeedfacefeedface"


async def test_an_old_run_with_equal_ids_and_wild_traits_is_had_again():
    with pytest.warns(UserWarning, match="outside 0..1"):
        results = await simulate(
            previous_run=str(LEGACY / "traits_beyond_the_scale.json"), target="demo", offline=True, max_turns=1
        )
    assert [result.messages[0].text for result in results] == ["Where is my parcel?", "Again"]
    assert results.run.replayed_from == "feedfacefeedfacefeedfacefeedface"


def test_keys_of_newer_versions_are_ignored_at_every_depth():
    result = only("newer_keys")
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert result.messages[3].text == "On Monday."


def test_criteria_that_cannot_be_read_score_zero_and_say_so():
    result = only("malformed_criteria")
    assert criteria_met_scorer(result) == criteria_met_scorer(result) == 0.0
    assert len(result.metadata["criteria_errors"]) == 1


def test_a_dead_row_without_a_reason_gets_one():
    result = only("dead_row")
    assert criteria_met_scorer(result) == 0.0
    assert failure_reason(result)


def test_old_results_load_line_by_line():
    assert [result.turn_count for result in load_results_from_jsonl(LEGACY / "results.jsonl")] == [1, 1]


def test_a_line_that_is_no_result_is_named(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    path.write_text((LEGACY / "results.jsonl").read_text(encoding="utf-8").strip() + "\n{}\n", encoding="utf-8")
    with pytest.raises(CaseError, match=r"results.jsonl:3: .*SimulationResult"):
        load_results_from_jsonl(path)


def test_flat_rows_are_read_when_they_are_asked_for():
    with pytest.raises(CaseError, match="legacy"):
        load_datapoints_from_jsonl(LEGACY / "datapoints_flat.jsonl")
    first, second = load_datapoints_from_jsonl(LEGACY / "datapoints_flat.jsonl", legacy=True)
    assert (first.persona.name, first.persona.patience, first.scenario.context) == ("Ann", 0.5, "nine days late")
    assert (second.persona.name, second.persona.communication_style.value) == ("Unknown", "casual")


# ---------------------------------------------------------------- what cannot be replayed


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not JSON"),
        ("[]", "no JSON object"),
        ('{"pipeline": 1}', "red-team"),
        ('{"replay_version": 2, "datapoints": [1]}', "newer version"),
        ('{"datapoints": null}', "without its datapoints"),
        ('{"datapoints": []}', "without its datapoints"),
        ('{"datapoints": [{"id": "x"}]}', "datapoints.0.persona"),
    ],
)
def test_a_file_that_cannot_be_replayed_says_why(tmp_path: Path, content: str, words: str):
    path = tmp_path / "run.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ReplayError, match=words):
        load_simulation_replay(str(path))


def test_a_run_that_is_not_there_names_those_that_are(tmp_path: Path):
    for number in range(6):
        (tmp_path / f"run_{number}.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ReplayError, match=r"the newest are run_\d.json"):
        load_simulation_replay("nothing", tmp_path)
    with pytest.raises(ReplayError, match="name a run"):
        load_simulation_replay("  ", tmp_path)


def test_a_persona_made_today_is_held_to_the_scale():
    with pytest.raises(ValueError, match="patience"):
        SimulationConfig.parse({"personas": [a_persona(patience=2.5)], "scenarios": "x", "target": "demo"})
