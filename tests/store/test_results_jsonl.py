"""Results and pairs as JSON Lines, as published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluatorq.errors import CaseError
from evaluatorq.simulation import (
    Persona,
    SimulationResult,
    auto_save_run,
    build_simulation_run,
    export_results_to_jsonl,
    get_sim_runs_dir,
    load_results_from_jsonl,
    parse_jsonl,
    results_to_jsonl,
)
from evaluatorq.simulation.saving import write_report
from evaluatorq.store.runs import read_run
from evaluatorq.testing import a_datapoint, a_persona


def result(**metadata: object) -> SimulationResult:
    return SimulationResult.model_validate(
        {
            "messages": [{"role": "user", "content": "déjà vu 😀"}], "terminated_by": "judge", "reason": "r",
            "goal_achieved": True, "goal_completion_score": 1.0, "rules_broken": [], "turn_count": 1, "token_usage": {},
            "turn_metrics": [], "metadata": metadata,
        }
    )  # fmt: skip


def test_results_are_one_line_each_and_read_back(tmp_path: Path):
    path = tmp_path / "out.jsonl"
    export_results_to_jsonl([result(), result(a=1)], path)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2
    assert load_results_from_jsonl(path) == [result(), result(a=1)]


def test_pairs_are_flat_rows_with_fourteen_keys():
    text = results_to_jsonl([{"datapoint": a_datapoint(), "result": result()}] * 2)
    first, second = (json.loads(line) for line in text.split("\n"))
    assert list(first) == [
        "id", "persona", "scenario", "first_message", "goal_achieved", "goal_completion_score", "terminated_by",
        "turn_count", "messages", "rules_broken", "token_usage", "turn_metrics", "metadata", "evaluator_details",
    ]  # fmt: skip
    assert (first["persona"], first["scenario"], len(first["token_usage"])) == ("Pat", "Refund", 16)
    assert first == second
    assert results_to_jsonl([]) == ""


@pytest.mark.parametrize("pair", [{}, {"datapoint": 1, "result": 2}, {"datapoint": a_datapoint(), "result": {}}])
def test_what_is_no_pair_is_a_type_error(pair: dict[str, object]):
    with pytest.raises(TypeError, match="is a Simulation"):
        results_to_jsonl([pair])


def test_lines_that_are_no_json_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture):
    assert parse_jsonl('{"a": 1}\n\nnot json\n[1]\n') == [{"a": 1}, [1]]
    assert "line 3" in caplog.text


def test_lines_are_read_as_models():
    persona = a_persona()
    assert parse_jsonl(persona.model_dump_json(), Persona) == [persona]
    with pytest.raises(ValueError, match="patience"):
        parse_jsonl('{"name": "x"}', Persona)


def test_a_run_is_built_of_results_with_averages_over_those_that_were_scored():
    scored = [
        result(evaluator_scores={"goal_achieved": 1.0, "own": 0.5}),
        result(evaluator_scores={"goal_achieved": 0}),
    ]
    run = build_simulation_run(
        run_name="n", mode="simulate", target_kind="callback", evaluator_names=["goal_achieved"],
        results=[*scored, result()], datapoints=[a_datapoint()],
    )  # fmt: skip
    assert run.scorer_averages == {"goal_achieved": 0.5, "own": 0.5}
    assert (run.score_counts["own"].scored, run.score_counts["own"].left_out) == (1, 2)
    assert (run.total_results, run.replay_version, run.run_id, run.orq_base_url) == (3, 1, None, None)
    without = build_simulation_run(
        run_name="n", mode="run", target_kind="callback", evaluator_names=[], results=[], agent_info={"key": "k"}
    )
    assert (without.replay_version, without.datapoints, without.agent_info) == (None, None, {"key": "k"})


def test_a_run_is_saved_under_a_name_of_its_own_and_never_replaces_another():
    run = build_simulation_run(
        run_name="n", mode="simulate", target_kind="callback", evaluator_names=[], results=[result()]
    )
    first, second = (auto_save_run(run=run, run_name="My Name!") for _ in range(2))
    assert first != second
    assert first.parent == get_sim_runs_dir()
    assert first.name.startswith("my_name_")
    assert read_run(first) == read_run(second) == run


def test_a_report_replaces_what_is_there(tmp_path: Path):
    run = build_simulation_run(run_name="n", mode="simulate", target_kind="callback", evaluator_names=[], results=[])
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    write_report(run, path)
    assert read_run(path) == run


def test_a_line_with_bytes_that_are_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    export_results_to_jsonl([result(), result()], path)
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b"judge", b"\x9a", 1))
    with pytest.raises(CaseError) as caught:
        load_results_from_jsonl(path)
    assert caught.value.line == 2
