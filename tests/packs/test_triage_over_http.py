"""The triage pack with a model for everybody, from the command line over a real connection to its metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluatorq.cli import main
from evaluatorq.store.run_traces import traces_of_run
from evaluatorq.store.runs import find_run, read_run
from llm.fake_endpoint import FakeEndpoint, Seen, Served, completion, serving, tool_answer
from writing_models import verdict

HELD = {"confidence": "high", "explanation": "The pain may come from the heart."}


def nurse(seen: Seen) -> Served:
    """Asks, measures, puts on record and ends: by how many tool answers it has."""
    answers = sum(message["role"] == "tool" for message in seen.body["messages"])
    if sum(message["role"] == "user" for message in seen.body["messages"]) < 2:
        return completion({"content": "What is wrong?"})
    moves = (
        ("check_vital", {"vital": "pulse", "triage": 3, **HELD}),
        ("log_red_flag", {"red_flags": ["Chest pain", "chest  PAIN"], "triage": 2, **HELD}),
        ("end_triage", {"triage": 2, **HELD}),
    )
    name, arguments = moves[answers]
    return tool_answer(name, json.dumps(arguments))


def everybody(seen: Seen) -> Served:
    """Nurse, patient, judge and belief reader, told apart by the model that is asked for."""
    match seen.body["model"]:
        case "nurse":
            return nurse(seen)
        case "patient":
            return tool_answer("user_message", json.dumps({"reply": "My chest hurts.", "end_conversation": False}))
        case "reader":
            belief = {"slot": "chief_complaint", "value": "chest pain", "quote": "chest hurts", "certainty": "explicit"}
            return tool_answer("noted_beliefs", json.dumps({"beliefs": [belief]}))
    return tool_answer("verdict", json.dumps(verdict(criteria_verdicts=[], should_terminate=False)))


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    with serving() as fake:
        fake.answer = everybody
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        yield fake


MODELS = (
    "--openai-model", "nurse", "--sim-model", "patient", "--judge-model", "auditor", "--belief-model", "reader",
)  # fmt: skip


def test_a_pack_is_run_against_models_and_measured(endpoint: FakeEndpoint, capsys: pytest.CaptureFixture[str]) -> None:
    case = ("--pack", "triage:esi", "--only", "chest-pain-arm-esi")
    assert main(["sim", "simulate", *case, *MODELS, "--quiet"]) == 0
    run = read_run(find_run("latest"))
    (result,) = run.results
    assert (result.ended_by, result.cognition.assessments[-1].assessment.value) == ("agent", 2)
    assert [one.refused for one in result.cognition.lists["red_flags"]] == [None, "duplicate"]
    assert "chest pain" in [item.value for item in result.cognition.belief.slots["chief_complaint"]]
    assert run.models == {"user_simulator": "patient", "judge": "auditor", "beliefs": "reader"}
    spoken = [seen.body for seen in endpoint.seen if seen.body["model"] in ("nurse", "patient")]
    assert not any('"acuity"' in json.dumps(body) for body in spoken)

    capsys.readouterr()
    assert main(["sim", "metrics", "latest", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    decision = told["conversations"][0]["decision"]
    assert (decision["final"], decision["correct"], decision["flips"]) == (2, True, 1)
    assert main(["sim", "traces", "replay", "latest", "--live-tools"]) == 0
    (trace,) = traces_of_run("latest")
    assert trace.run.pack == "triage:esi"


def test_a_nurse_model_that_breaks_off_has_an_artifact_and_no_invented_decision(
    endpoint: FakeEndpoint, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    endpoint.answer = lambda seen: Served(b"{}", 401) if seen.body["model"] == "nurse" else everybody(seen)
    case = ("--pack", "triage:esi", "--only", "chest-pain-arm-esi")
    assert main(["sim", "simulate", *case, *MODELS, "--quiet"]) == 1
    assert (
        main(["sim", "export", "--input", "latest", "--format", "artifact", "--output", str(tmp_path / "made.json")])
        == 0
    )
    capsys.readouterr()
    assert main(["sim", "metrics", "latest", "--json"]) == 0
    decision = json.loads(capsys.readouterr().out)["conversations"][0]["decision"]
    assert (decision["final"], decision["correct"]) == (None, None)
