"""What a run file alone tells of its conversations, as traces: what is there, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trace_samples import checked

from evaluatorq.errors import ConfigError
from evaluatorq.export import Wanted, to_training_jsonl
from evaluatorq.model.trace import Trace
from evaluatorq.records.verdicts import verdict_of
from evaluatorq.simulation import simulate_sync
from evaluatorq.store.run_traces import traces_of_run

RUNS = Path(__file__).parents[1] / "data" / "published_runs"


def published(name: str) -> list[Trace]:
    (path,) = RUNS.glob(f"{name}_*.json")
    return [checked(trace) for trace in traces_of_run(str(path))]


def saved_in(name: str) -> list[dict[str, object]]:
    (path,) = RUNS.glob(f"{name}_*.json")
    return json.loads(path.read_text(encoding="utf-8"))["results"]


@pytest.mark.parametrize("name", ["two_turns", "sim", "target_died", "with_summary", "personas_x_scenarios"])
def test_the_transcript_the_ending_and_the_verdicts_are_those_of_the_file(name: str) -> None:
    for trace, saved in zip(published(name), saved_in(name), strict=True):
        rows = [
            step.message.text if step.kind == "target" else step.text for step in trace.steps if step.kind != "note"
        ]
        texts = [message["content"] for message in saved["messages"]]
        assert rows == [text for text in texts if text != saved["reason"]]
        assert (trace.outcome.terminal, trace.outcome.reason) == (saved["terminated_by"], saved["reason"])
        assert trace.verdicts.scores == saved["metadata"].get("evaluator_scores")
        assert trace.totals.usage.total_tokens == saved["token_usage"]["total_tokens"]
        kept = [(one.id, one.state != "fail") for one in trace.verdicts.criteria or ()]
        assert kept == [(meta["id"], meta["passed"]) for meta in saved["metadata"]["criteria_meta"]]


def test_what_only_a_journal_tells_is_absent_and_a_caveat_says_so() -> None:
    trace = published("two_turns")[0]
    assert next(caveat.code for caveat in trace.caveats or ()) == "without_journal"
    document = trace.document()
    assert document["outcome"]["labels"] == {"workflow_completed": True}
    assert {"retries", "calls", "duration_ms"} & document["totals"].keys() == set()
    assert {"snapshots", "states"} & document.keys() == set()
    assert "ended_by" not in document["outcome"]
    assert {step["kind"] for step in document["steps"]} == {"user", "target", "note"}
    assert not any("usage" in step or "request_digest" in step for step in document["steps"])


def test_an_error_written_in_the_agents_place_is_no_word_of_the_agent(tmp_path: Path) -> None:
    traces = published("target_died")
    assert traces[0].outcome.failed_component is None
    notes = [step.data for step in traces[0].steps if step.kind == "note"]
    assert notes[0]["data"] == traces[0].outcome.reason
    to_training_jsonl(traces, out=tmp_path / "corpus.jsonl", format="chat")
    text = (tmp_path / "corpus.jsonl").read_text(encoding="utf-8")
    assert "first answer AGENT-TURN-1" in text
    assert "boom" not in text


def test_a_filter_on_what_the_file_does_not_tell_keeps_such_traces_out(tmp_path: Path) -> None:
    for where, reason in (
        (Wanted(simulator_faults=0), "simulator faults unknown"),
        (Wanted(labels={"errors": 0}), "label errors absent"),
        (Wanted(caveats=["without_journal"]), "caveat without_journal"),
    ):
        card = to_training_jsonl(published("two_turns"), out=tmp_path / "c.jsonl", format="chat", where=where)
        assert card["traces_left_out"] == {reason: 4}
    with pytest.raises(ConfigError, match="no conversation has the verdict 'winner'; there is passed, failed"):
        Wanted(verdicts=["winner"])


def test_our_own_run_without_a_journal_keeps_its_facts_and_its_redaction(tmp_path: Path) -> None:
    options = {
        "target": "demo",
        "offline": True,
        "only": "Refund after the window closed",
        "save": True,
        "journal": False,
    }
    kept, *_ = simulate_sync(**options)
    trace, *_ = traces_of_run("latest")
    checked(trace)
    assert trace.verdicts.verdict == verdict_of(kept)
    assert trace.outcome.labels.expectations_met is kept.expectations.met is True
    assert trace.outcome.ended_by == kept.ended_by
    assert trace.outcome.labels.goal_state_reached is kept.goal_achieved is True
    simulate_sync(**options, redact=["agent"])
    hidden, *_ = traces_of_run("latest")
    assert "redacted" in [caveat.code for caveat in hidden.caveats or ()]
    card = to_training_jsonl([hidden], out=tmp_path / "corpus.jsonl", format="chat")
    assert card["characters"]["trained"] == 0
