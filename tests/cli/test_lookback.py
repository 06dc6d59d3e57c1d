"""``sim runs``, ``sim show``, ``sim resume``: what is in the store, finished or not."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from evaluatorq.store.runs import read_run
from mock_server.shell import killed_on_failure

OFFLINE = ("sim", "simulate", "--offline")


def test_an_empty_store_is_a_sentence_or_an_empty_list(inside):
    assert inside("sim", "runs", "nowhere").out == "No saved runs in nowhere.\n"
    assert json.loads(inside("sim", "runs", "--json").out) == []


def test_runs_are_listed_newest_first_and_at_most_as_many_as_asked(inside):
    for name in ("one", "two", "three"):
        inside(*OFFLINE, "--only", "vague", "-q", "-n", name)
    rows = json.loads(inside("sim", "runs", "--json", "-n", "2").out)
    assert [row["run_name"] for row in rows] == ["three", "two"]
    published = {
        "report_id", "run_name", "created_at", "status", "mode", "target_kind", "total_results", "scorer_averages",
        "file", "summary_version",
    }  # fmt: skip
    assert published <= rows[0].keys()
    listed = inside("sim", "runs")
    assert listed.out.index("three") < listed.out.index("two") < listed.out.index("one")
    assert "completed" in listed.out
    assert inside("sim", "runs", ".evaluatorq").out == listed.out


def test_runs_are_listed_with_the_agent_that_they_were_had_with(inside, cli):
    inside(*OFFLINE, "--only", "vague", "-q", "-n", "mine", "--target", "agents:polite")
    assert " agents:polite " in inside("sim", "runs").out
    assert json.loads(inside("sim", "runs", "--json").out)[0]["target"] == "agents:polite"
    (manifest,) = (cli.folder / ".evaluatorq/sim-runs/.manifests").glob("*.json")
    manifest.write_text(manifest.read_text().replace('"target": "agents:polite"', '"target": null'))
    assert " agents:polite " in inside("sim", "runs").out


def test_a_run_file_without_a_manifest_is_listed_with_its_counts_too(inside, cli):
    inside(*OFFLINE, "--only", "vague", "-q", "-n", "good", "--report", "kept/baseline.json")
    inside(*OFFLINE, "--only", "vague", "-q", "-n", "bad", "--target", "agents:broken")
    inside("sim", "rescore", "bad", "--evaluator", "turn_efficiency")
    (baseline,) = json.loads(inside("sim", "runs", "kept", "--json").out)
    assert (baseline["run_name"], sum(baseline["verdicts"].values())) == ("good", 6)
    rescored, bad, good = json.loads(inside("sim", "runs", "--json").out)
    assert rescored["run_name"] == "bad-rescored"
    assert rescored["verdicts"] == bad["verdicts"]
    assert baseline["verdicts"] == good["verdicts"]
    assert bad["verdicts"]["errored"] == 6
    (cli.folder / "kept" / "cut.json").write_text(
        (cli.folder / "kept" / "baseline.json").read_text().replace('"messages"', '"messages of"', 1)
    )
    (cli.folder / "kept" / "flipped.json").write_bytes(
        (cli.folder / "kept" / "baseline.json").read_bytes().replace(b'"reason": "', b'"reason": "\x9a', 1)
    )
    assert len(inside("sim", "runs", "kept").out.splitlines()) == 5, "what cannot be counted is listed all the same"
    told = cli("sim", "show", "kept/flipped.json")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "kept/flipped.json: results[0] cannot be read" in told.err


def test_a_mean_over_goals_that_nobody_could_decide_is_unknown_in_the_list(inside, cli):
    (cli.folder / "s.yaml").write_text("name: S\ngoal: be greeted\n")
    personas = str(Path(__file__).parents[2] / "personas")
    inside("sim", "simulate", "--offline", "-q", "--target", "agents:polite", "--personas", personas, "--scenarios",
           "s.yaml", "--max-turns", "1", "-n", "open")  # fmt: skip
    assert "goal_achieved unknown," in " ".join(inside("sim", "runs", "--full").out.split())
    run = read_run(cli.runs()[0])
    assert run.scorer_averages["goal_achieved"] == 0.0
    assert run.score_counts["goal_achieved"].undecided == 6
    assert run.score_counts["criteria_met"].undecided == 0


def test_a_completed_run_in_which_all_errored_says_so_on_its_one_line_of_80_columns(inside, cli):
    inside(*OFFLINE, "--only", "vague", "-q", "-n", "a name that is rather long", "--target", "agents:broken")
    inside(*OFFLINE, "--only", "vague", "-q", "-n", "good", "--target", "agents:polite")
    title, good, bad, _ = inside("sim", "runs").out.splitlines()
    assert title.split() == ["Run", "Name", "Date", "Agent", "State", "Conversations"]
    assert bad.endswith("completed  !6")
    assert "!" not in good
    (broken,) = (path for path in cli.runs() if path.name.startswith("a_name"))
    assert bad.startswith(str(read_run(broken).run_id)[:8])
    assert sum(json.loads(inside("sim", "runs", "--json").out)[0]["verdicts"].values()) == 6
    full = inside("sim", "runs", "--full").out
    assert "6: 0 passed, 0 failed, 0 unknown, 6 errored" in full
    assert "a name that is rather long" in full
    assert broken.name in full


def test_a_file_that_is_no_run_is_refused_without_the_words_of_a_library(inside, cli):
    (cli.folder / "x.json").write_text('{"mode": "simulate", "scorer_averages": {}, "results": []}')
    ran = inside("sim", "show", "./x.json")
    assert ran.code == 2
    assert ran.err == "Error: x.json is not a simulation run: run_name is missing\n"


def test_the_journal_says_how_far_a_killed_run_came(cli):
    command = cli.command(*OFFLINE, "--target", "agents:slow", "--max-turns", "2", "--parallelism", "2", "-n", "killed")
    with (
        subprocess.Popen(
            command, cwd=cli.folder, env=cli.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process,
        killed_on_failure(process),
    ):
        while "2/48" not in process.stderr.readline():
            pass
        process.kill()
        process.communicate()
    (row,) = json.loads(cli("sim", "runs", "--json").out)
    journal = cli.folder / ".evaluatorq/sim-runs/.journal" / row["run_id"] / "0001.jsonl"
    ended = sum('"kind":"ended"' in line for line in journal.read_text().splitlines())
    assert (row["status"], row["mode"], row["completed"], row["total"]) == ("interrupted", "simulate", ended, 48)
    assert ended >= 2
    assert f" {ended}/48\n" in cli("sim", "runs").out


def test_a_run_is_shown_with_its_conversations(inside):
    inside(*OFFLINE, "--only", "vague", "-q", "-n", "nightly")
    shown = inside("sim", "show", "nightly")
    assert (shown.code, shown.err) == (0, "")
    assert "nightly" in shown.out
    assert shown.out.count("Vague request") >= 6
    assert inside("sim", "show", "latest").out == shown.out


def test_a_conversation_is_shown_with_verdicts_beside_what_was_said(inside):
    inside(*OFFLINE, "--only", "Refund within*", "-q", "--target", "demo")
    shown = inside("sim", "show", "latest", "0")
    assert shown.code == 0
    lines = [line.strip() for line in shown.out.splitlines()]
    call = next(i for i, line in enumerate(lines) if line.startswith("tool") and "find_order(" in line)
    near = " ".join(lines[call : call + 8])
    assert "✓ must happen: The agent looks the order up before it acts" in near
    assert "Verdicts" in lines


def test_a_number_out_of_range_says_what_there_is(inside):
    inside(*OFFLINE, "--only", "vague", "-q")
    ran = inside("sim", "show", "latest", "6")
    assert ran.code == 2
    assert "conversations 0 to 5" in ran.err
    assert "not 'x'" in inside("sim", "show", "latest", "x").err


def test_one_conversation_can_be_had_as_json(inside):
    inside(*OFFLINE, "--only", "vague", "-q")
    path = Path(json.loads(inside("sim", "runs", "--json").out)[0]["file"])
    shown = json.loads(inside("sim", "show", "latest", "2", "--json").out)
    assert shown == read_run(path).results[2].model_dump(mode="json")
    assert inside("sim", "show", "latest", "--json").out == path.read_text()


@pytest.fixture
def interrupted(cli) -> str:
    """The id of a run that Ctrl-C stopped after its first conversations."""
    command = cli.command(*OFFLINE, "--target", "agents:slow", "--max-turns", "2", "--parallelism", "2", "-n", "long")
    with (
        subprocess.Popen(
            command, cwd=cli.folder, env=cli.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
        killed_on_failure(process),
    ):
        told = ""
        while "3/48" not in told:
            told += process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    (line,) = [line for line in err.splitlines() if "evaluatorq sim resume " in line]
    assert "conversations are finished" in err
    return line.rpartition(" ")[2]


def test_ctrl_c_leaves_a_run_that_can_be_listed_shown_and_resumed(cli, interrupted):
    assert cli.runs() == []
    (row,) = json.loads(cli("sim", "runs", "--json").out)
    assert (row["run_id"], row["status"], row["alive"]) == (interrupted, "cancelled", False)
    assert 3 <= row["completed"] < row["total"] == 48
    listed = cli("sim", "runs")
    assert f"sim resume {interrupted}" in listed.err

    shown = cli("sim", "show", interrupted)
    assert shown.code == 0
    assert "of 48 conversations" in shown.out
    assert f"evaluatorq sim resume {interrupted}" in shown.out
    assert "not started yet" in " ".join(cli("sim", "show", "long", "47").out.split())

    agent = cli.folder / "agents.py"
    agent.write_text(agent.read_text().replace("sleep(0.2)", "sleep(0)"))
    resumed = cli("sim", "resume", interrupted, "--json", "-q")
    assert resumed.code == 0
    run = json.loads(resumed.out)
    assert (run["run_id"], run["total_results"]) == (interrupted, 48)
    assert resumed.out == cli.runs()[0].read_text()

    again = cli("sim", "resume", interrupted)
    assert again.code == 0
    assert "complete already" in again.err
    assert len(cli.runs()) == 1


def test_a_run_that_is_going_on_is_shown_and_not_resumed(cli):
    command = cli.command(*OFFLINE, "--target", "agents:slow", "--parallelism", "2", "-n", "busy")
    with subprocess.Popen(
        command, cwd=cli.folder, env=cli.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while "1/48" not in process.stderr.readline():
                pass
            assert "still going on" in cli("sim", "show", "busy").out
            refused = cli("sim", "resume", "busy")
            assert refused.code == 1
            assert "another process" in refused.err
        finally:
            process.kill()
            process.communicate()
    killed = json.loads(cli("sim", "runs", "--json").out)[0]
    assert (killed["status"], killed["alive"]) == ("interrupted", False)
    assert (cli.folder / ".evaluatorq" / "sim-runs" / ".journal" / killed["run_id"]).is_dir()


def test_a_run_stopped_by_its_own_time_limit_exits_1_and_can_be_resumed(cli):
    began = time.monotonic()
    ran = cli(*OFFLINE, "--target", "agents:slow", "--parallelism", "2", "--run-timeout-s", "1")
    assert ran.code == 1
    assert time.monotonic() - began < 30
    assert "sim resume " in ran.err
    assert cli.runs() == []
