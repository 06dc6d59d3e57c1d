"""Artifacts: the shape that readers know, the snippets that they run, and numbers that an outside reference gave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hand_made import SEED, artifact
from hand_made import step as a_step

from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.results import SimulationResult
from evaluatorq.packs.triage import compute_all_metrics, triage_rules
from evaluatorq.records.artifact import KEYS, to_artifact
from evaluatorq.records.cognition import read_cognition
from evaluatorq.simulation import simulate_sync
from evaluatorq.testing import a_datapoint, converse, crew_of, verdict


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[SimulationResult]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALUATORQ_DIR", str(tmp_path_factory.mktemp("store")))
        return list(simulate_sync(pack="triage", offline=True, only="*chest-pain*"))


def test_an_artifact_has_the_seven_keys_in_their_order(results: list[SimulationResult]) -> None:
    made = to_artifact(results[0])
    assert tuple(made) == KEYS
    assert json.loads(json.dumps(made)) == made
    assert to_artifact(results[0]) == made


def test_history_has_the_lines_of_both_and_what_happened(results: list[SimulationResult]) -> None:
    history = to_artifact(results[0])["history"]
    assert history[0] == {
        "turn": 0,
        "actor": "nurse",
        "utterance": "Hello, I am the triage nurse. What brings you in today?",
        "triage": 3,
    }
    assert history[1] == {
        "turn": 0,
        "actor": "patient",
        "utterance": "I have chest pain that goes into my left arm.",
    }
    vital = next(row for row in history if row.get("event") == "vital")
    assert set(vital) == {"turn", "actor", "event", "name", "value"}
    assert history[-1] == {"turn": 3, "actor": "system", "event": "triage_end"}


def test_every_step_of_the_trace_has_its_level_confidence_and_reasons(results: list[SimulationResult]) -> None:
    trace = to_artifact(results[0])["trace"]
    assert {row["action"]["type"] for row in trace} == {"utterance", "check_vital", "log_red_flag", "end"}
    keys = {"turn", "actor", "action", "triage", "confidence", "explanation", "red_flags_proposed"}
    assert all(set(row) == keys and row["actor"] == "nurse" for row in trace)
    assert all(row["triage"] in range(1, 6) and row["confidence"] in ("low", "medium", "high") for row in trace)
    logged = next(row for row in trace if row["action"]["type"] == "log_red_flag")
    assert logged["red_flags_proposed"] == logged["action"]["red_flags"] == ["chest pain"]
    assert set(trace[-1]["action"]) == {"type", "triage"}


def test_beliefs_keep_what_the_patient_hinted_at_beside_what_the_nurse_put_on_record(
    results: list[SimulationResult],
) -> None:
    made = to_artifact(results[0])
    flags = [(row["source"], row["certainty"]) for row in made["belief"]["red_flags"] if row["value"] == "chest pain"]
    assert flags == [("patient", "suspected"), ("nurse", "explicit")]
    assert made["belief"]["red_flags_logged"] == made["red_flags"] == ["chest pain"]
    assert made["belief"]["vitals_known"] == sorted(made["belief"]["vitals_known"])
    graph = results[0].cognition.belief
    assert [one.text for one in graph.evidence_for("chief_complaint", 0)] == [
        "I have chest pain that goes into my left arm."
    ]


def test_proposals_that_were_refused_are_in_the_record_with_their_reason() -> None:
    rows = [
        user("I fell"),
        assistant(None, [tool_call("c1", "log_red_flag", {"red_flags": ["Syncope", "syncope", " "], "triage": 2})]),
        tool_result("c1", "{}"),
        assistant(None, [tool_call("c2", "log_red_flag", {"red_flags": ["SYNCOPE"]})]),
        tool_result("c2", '{"error": {"code": "ended"}}'),
    ]
    record = read_cognition(triage_rules(), rows)
    assert [(one.value, one.refused) for one in record.lists["red_flags"]] == [
        ("Syncope", None),
        ("syncope", "duplicate"),
        (" ", "blank"),
    ]
    [assessed] = record.assessments
    assert (assessed.assessment.value, assessed.assessment.source, assessed.call) == (2, "tool", "c1")


async def test_a_run_without_any_rules_has_an_artifact_too() -> None:
    result = await converse(a_datapoint(), crew_of(target=["Certainly."], judge=[verdict(stop=True)]))
    made = to_artifact(result)
    assert made["ground_truth"] == {}
    assert made["history"] == [
        {"turn": 0, "actor": "patient", "utterance": "I want a refund."},
        {"turn": 1, "actor": "nurse", "utterance": "Certainly.", "triage": None},
    ]
    assert made["state"] == {"ground_truth": {}, "turn": 1, "done": True}


async def test_a_conversation_that_broke_is_not_done() -> None:
    result = await converse(a_datapoint(), crew_of(target=[RuntimeError("gone")]))
    assert to_artifact(result)["state"]["done"] is False


# ---------------------------------------------------------------- the known snippets


def test_the_known_snippets_run_on_our_artifacts(
    results: list[SimulationResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the line that makes ``artifact`` and the import of the metrics are ours."""
    monkeypatch.chdir(tmp_path)
    artifact = to_artifact(results[0])
    print(artifact.keys())
    for h in artifact["history"]:
        if h["actor"] == "nurse":
            print(f"Nurse: {h['utterance']}")
        elif h["actor"] == "patient":
            print(f"Patient: {h['utterance']}")
        elif h.get("event") == "vital":
            print(f"[Vital] {h['name']} = {h['value']}")
        elif h.get("event") == "triage_end":
            print("[Triage ended]")
    for step in artifact["trace"]:
        action = step["action"]
        print(f"turn {step['turn']:>2} {action['type']:<13} triage={step['triage']} ({step['confidence']})")

    out = Path("runs") / f"{artifact['run_id']}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(artifact, indent=2))

    for path in sorted(Path("runs").glob("*.json")):
        artifact = json.loads(path.read_text())
        metrics = compute_all_metrics(
            trace=artifact["trace"],
            belief=artifact["belief"],
            ground_truth=artifact["ground_truth"],
        )
        print(path.stem, metrics["triage"]["correct"])

    told = capsys.readouterr().out
    assert "dict_keys(['run_id', 'ground_truth', 'state', 'history', 'trace', 'belief', 'red_flags'])" in told
    assert "Patient: I have chest pain that goes into my left arm." in told
    assert "[Triage ended]" in told
    assert "turn  3 end           triage=2" in told
    assert told.rstrip().endswith(f"{artifact['run_id']} True")


# ---------------------------------------------------------------- compute_all_metrics


def test_numbers_and_keys_are_those_of_an_outside_reference() -> None:
    rows = json.loads((Path(__file__).parent / "data" / "reference_metrics.json").read_text())
    assert len(rows) == 30
    for row in rows:
        found = compute_all_metrics(
            trace=row["trace"],
            belief=row["belief"],
            ground_truth=row["ground_truth"],
            expert_red_flags=row["expert"],
        )
        for group, numbers in row["metrics"].items():
            assert found[group] == numbers
            assert list(found[group]) == list(numbers)


def test_reasons_are_found_where_artifacts_have_them() -> None:
    found = compute_all_metrics(trace=SEED["trace"], belief=SEED["belief"], ground_truth=SEED["ground_truth"])
    assert found["explanation"] == {"has_explanation": True, "explanation_length": 3}
    assert found["triage"]["first_correct_turn"] == 1
    silent = artifact(2, a_step(0, "check_vital", 2, why="", vital="o2sat"))
    found = compute_all_metrics(trace=silent["trace"], belief=silent["belief"], ground_truth=silent["ground_truth"])
    assert found["explanation"] == {"has_explanation": False, "explanation_length": 0}
    assert found["triage"]["final_prediction"] is None


def test_the_metrics_take_their_parts_by_name_only() -> None:
    with pytest.raises(TypeError):
        compute_all_metrics([], {}, {})  # type: ignore[misc]


def test_an_agent_may_return_what_it_holds_beside_its_words() -> None:
    async def nurse(messages: list[Message]) -> dict[str, object]:
        return {
            "content": "Where does it hurt?",
            "assessment": {"value": 2, "confidence": "low", "rationale": "it hurts"},
        }

    [result] = simulate_sync(pack="triage", target=nurse, offline=True, only="*tick*", max_turns=1)
    trace = to_artifact(result)["trace"]
    assert [(row["triage"], row["confidence"], row["explanation"]) for row in trace] == [(2, "low", "it hurts")] * 2
    assert result.cognition.assessments[0].assessment.source == "structured_output"


def test_an_assessment_that_is_none_is_the_fault_of_the_agent_that_returned_it() -> None:
    async def nurse(messages: list[Message]) -> dict[str, object]:
        return {"content": "Hm.", "assessment": {"rationale": 3}}

    options = {"pack": "triage", "target": nurse, "offline": True, "only": "*tick*", "max_target_retries": 0}
    [result] = simulate_sync(**options, raise_on_execution_failure=False)  # type: ignore[arg-type]
    assert (result.failed_component, result.metadata["error_type"]) == ("target", "target_protocol")
    assert "assessment.rationale" in result.reason
