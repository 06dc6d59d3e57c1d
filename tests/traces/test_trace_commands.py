"""Traces on the command line: written, found, replayed and made into training data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from trace_samples import SAMPLES, made

from evaluatorq.cli import main
from evaluatorq.store.traces import open_trace_store

Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sh(capsys: pytest.CaptureFixture[str]) -> Shell:
    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A file with a trace of each sample."""
    store = open_trace_store(tmp_path / "all.jsonl")
    for row, name in enumerate(SAMPLES):
        store.append(made(name).model_copy(update={"row": row, "thread_id": f"run:{row}"}))
    return tmp_path / "all.jsonl"


def test_a_run_is_exported_found_again_and_replayed(sh: Shell, tmp_path: Path) -> None:
    assert sh("sim", "simulate", "--target", "demo", "--offline", "-q", "--only", "engineer")[0] == 0
    out = tmp_path / "t.jsonl"
    assert sh("sim", "traces", "export", "latest", "-o", out) == (0, "", f"Wrote 8 traces to {out}\n")
    assert sh("sim", "traces", "export", "latest", "-o", out)[2] == f"Wrote 0 traces to {out}, 8 were there already\n"
    code, found, said = sh("sim", "traces", "query", out, "--label", "workflow_completed=true", "--since", "2020-01-01")
    assert (code, said) == (0, "8 traces\n")
    assert all("Blunt engineer · " in line for line in found.splitlines())
    assert len(found.splitlines()) == 8
    whole = sh("sim", "traces", "query", out, "--json")[1]
    assert [json.loads(line)["schema"] for line in whole.splitlines()] == ["evaluatorq.trace/1"] * 8
    assert sh("sim", "traces", "replay", "latest", "--live-tools")[2] == "Replayed 8 conversations: no drift.\n"


def test_a_conversation_without_an_ending_is_exported_only_when_asked_for(sh: Shell, tmp_path: Path) -> None:
    half = tmp_path / "half.jsonl"
    open_trace_store(half).append(made("refund", 5))
    out = tmp_path / "t.jsonl"
    assert sh("sim", "traces", "export", half, "-o", out)[2].endswith(", 1 without an ending were left out\n")
    assert sh("sim", "traces", "export", half, "-o", out, "--unfinished")[2] == f"Wrote 1 trace to {out}\n"


def test_the_same_query_gives_the_same_from_a_file_and_a_database(sh: Shell, traces: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    assert sh("sim", "traces", "export", traces, "-o", url)[0] == 0
    for query in (
        ["--label", "errors=0", "--label", "fallback_taken=false"],
        ["--since", "2026-01-01T00:00:00.001", "--until", "2026-01-02"],
        ["--run", "0123456789abcdef0123456789abcdef", "--schema", "evaluatorq.trace/1"],
        ["--until", "2025-12-31"],
        ["--json"],
    ):
        from_file, from_database = (sh("sim", "traces", "query", where, *query) for where in (traces, url))
        assert from_file == from_database
    assert sh("sim", "traces", "query", traces, "--label", "goal_state_reached=true", "--ids")[1].split() == [
        "run:0",
        "run:13",
        "run:19",
    ]


def test_lines_that_are_no_traces_are_told_and_the_rest_is_used(sh: Shell, traces: Path, tmp_path: Path) -> None:
    traces.write_bytes(b"{]\n" + traces.read_bytes())
    code, out, said = sh("sim", "traces", "query", traces, "--ids")
    assert (code, len(out.split())) == (1, 21)
    assert said == f"21 traces\nnot read: {traces}:1: not a trace\n"
    code, _, said = sh("sim", "traces", "export", traces, "-o", tmp_path / "t.jsonl")
    assert (code, said.splitlines()[0]) == (0, f"not read: {traces}:1: not a trace")


def test_a_query_for_a_label_that_there_is_not_names_those_there_are(sh: Shell, traces: Path) -> None:
    code, out, said = sh("sim", "traces", "query", traces, "--label", "completed=true")
    assert (code, out) == (2, "")
    assert "no label of ours is called completed; there is workflow_completed, " in said


def test_a_drift_is_told_by_conversation_and_step_and_fails(sh: Shell, traces: Path) -> None:
    text = traces.read_text(encoding="utf-8")
    traces.write_text(text.replace('"ended_by":"max_turns"', '"ended_by":"user"'), encoding="utf-8")
    code, out, said = sh("sim", "traces", "replay", traces)
    assert code == 1
    assert "run:6: terminal_drift at step" in out
    assert said == "Replayed 21 conversations: 1 drifted.\n"
    assert sh("sim", "traces", "replay", traces, "--only", "run:0", "--start-at", "2")[0] == 0


def test_training_data_is_exported_with_its_reasons(sh: Shell, traces: Path, tmp_path: Path) -> None:
    out = tmp_path / "corpus.jsonl"
    words = ["sim", "export", "--format", "training", "-i", traces, "-o", out, "--label", "workflow_completed=true"]
    code, _, said = sh(*words, "--style", "chat", "--verdict", "passed")
    assert code == 0
    assert said.startswith(f"Wrote 4 rows to {out} and the card beside it.\n")
    assert "left out, label workflow_completed: 6\n" in said
    assert json.loads(out.with_suffix(".card.json").read_text(encoding="utf-8"))["rows"] == 4
    assert sh(*words)[0] == 2
    assert sh(*words, "--force", "--min-score", "goal_achieved=0.9")[2].startswith("Wrote 1 row to")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["query", "latest"], "latest is no file of traces"),
        (["query", "missing.jsonl"], "no such file: missing.jsonl"),
        (["query", "sqlite:///missing.db"], "no such database: sqlite:///missing.db"),
        (["replay", "sqlite:///missing.db"], "no such database: sqlite:///missing.db"),
        (["query", "sqlite://"], "sqlite:// holds no traces: it has no table evaluatorq_traces"),
        (["query", "x.jsonl", "--json", "--ids"], "argument --ids: not allowed with argument --json"),
        (["query", "x.jsonl", "--label", "x"], "--label takes name=value, not 'x'"),
        (["query", "x.jsonl", "--since", "yesterday"], "--since takes a date or time such as"),
        (["replay", "missing.jsonl"], "no such file: missing.jsonl"),
        (["replay", "nothing"], "no journal answers to 'nothing'"),
        (["export", "latest", "-o", "nosuch://x"], "no database that can be opened here"),
    ],
)
def test_a_mistake_is_one_sentence(sh: Shell, words: list[str], says: str) -> None:
    code, out, said = sh("sim", "traces", *words)
    assert (code, out) == (2, "")
    assert said.startswith("Error: ")
    assert says in said
    assert not Path("missing.db").exists()


PUBLISHED = Path(__file__).parents[1] / "data" / "published_runs" / "two_turns_20261130-151616.json"


def test_a_run_saved_without_a_journal_has_traces_that_say_so_and_no_replay(sh: Shell, tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    assert sh("sim", "traces", "export", PUBLISHED, "-o", out) == (0, "", f"Wrote 4 traces to {out}\n")
    code, shown, _ = sh("sim", "traces", "query", out, "--label", "workflow_completed=true")
    assert (code, len(shown.splitlines())) == (0, 4)
    assert sh("sim", "traces", "query", out, "--label", "errors=0")[2] == "0 traces\n"
    code, _, said = sh("sim", "traces", "replay", PUBLISHED)
    assert code == 2
    assert "a trace made of a run file does not tell what was asked, so it has no replay" in said


@pytest.mark.parametrize(("pack", "case"), [("triage:ats", "chest-pain-arm-ats"), ("incident", "checkout-down")])
def test_a_run_of_a_pack_is_replayed_with_its_own_user_and_world(sh: Shell, pack: str, case: str) -> None:
    assert sh("sim", "simulate", "--pack", pack, "--only", case, "--offline", "-q")[0] == 0
    done = "Replayed 1 conversation: no drift.\n"
    assert sh("sim", "traces", "replay", "latest") == (0, "", done)
    assert sh("sim", "traces", "replay", "latest", "--live-tools") == (0, "", done)


def test_the_schema_is_printed_as_it_is_published(sh: Shell) -> None:
    code, out, _ = sh("sim", "schema", "--trace")
    assert code == 0
    assert json.loads(out)["title"] == "evaluatorq.trace/1"


def test_a_mistyped_label_is_refused_and_a_corpus_without_rows_is_told(sh: Shell, traces: Path, tmp_path: Path) -> None:
    out = tmp_path / "corpus.jsonl"
    words = ["sim", "export", "--format", "training", "-i", traces, "-o", out, "--label"]
    code, _, said = sh(*words, "workflow_complete=true")
    assert code == 2
    assert "no label is called 'workflow_complete'; did you mean workflow_completed? There is checks_held, " in said
    assert not out.exists()
    code, _, said = sh(*words, "errors=99")
    assert code == 0
    assert f"Wrote 0 rows to {out}" in said
    assert "Warning: no conversation fits, so the file is empty" in said
