"""``sim simulate`` as a whole: what is printed where, what is saved, and what the exit code says."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluatorq.store.runs import read_run

OFFLINE = ("sim", "simulate", "--offline")
CONTROLS = ("Cc", "Cf", "Cs")


def controls_in(text: str) -> set[str]:
    return {char for char in text if char != "\n" and unicodedata.category(char) in CONTROLS}


def test_offline_runs_the_bundled_cases_without_any_other_flag(cli):
    ran = cli(*OFFLINE)
    assert (ran.code, ran.out) == (0, "")
    run = read_run(cli.runs()[0])
    assert len(run.results) >= 8
    assert {result.metadata["scenario"] for result in run.results} >= {"Refund within the window"}
    assert (run.target, run.offline) == ("demo", True)
    assert "offline: simulated users and checks, no model" in ran.err


def test_the_log_has_a_line_for_each_conversation_and_no_control_character(cli):
    ran = cli(*OFFLINE, "--only", "refund", "--target", "agents:broken")
    total = len(read_run(cli.runs()[0]).results)
    assert len(re.findall(rf"^\d+/{total} ! errored", ran.err, re.MULTILINE)) == total
    assert controls_in(ran.err) == set()


def test_the_flawed_agent_fails_named_criteria_and_still_exits_0(cli):
    ran = cli(*OFFLINE, "--target", "demo:flawed", "--only", "Refund after*")
    assert ran.code == 0
    told = " ".join(ran.err.split())
    assert "happened but must not: The agent refunds the order" in told
    assert "failed" in told


def test_dead_conversations_are_printed_saved_and_exit_1(cli):
    ran = cli(*OFFLINE, "--target", "agents:half_broken", "--only", "re*", "--json")
    assert ran.code == 1
    printed = json.loads(ran.out)
    assert printed["total_results"] == len(printed["results"])
    died = [result for result in printed["results"] if result["terminated_by"] == "error"]
    assert died
    assert {result["failed_component"] for result in died} == {"target"}
    assert ran.out == cli.runs()[0].read_text()
    assert f"the agent {len(died)}" in ran.err


def test_the_exit_code_leaves_dead_conversations_out_where_the_options_say_so(cli):
    config = '{"raise_on_execution_failure": false}'
    assert cli(*OFFLINE, "--target", "agents:broken", "--only", "vague", "--config", config).code == 0


def test_json_is_exactly_one_document_also_when_nothing_is_saved(cli):
    ran = cli(*OFFLINE, "--only", "vague", "--json", "--no-save", "-q")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["mode"] == "simulate"
    assert cli.runs() == []


def test_a_failure_prints_nothing_on_standard_output(cli):
    ran = cli(*OFFLINE, "--only", "nosuch", "--json")
    assert (ran.code, ran.out) == (2, "")


def test_quiet_with_exit_code_1_says_why_in_one_line(cli):
    ran = cli(*OFFLINE, "-q", "--only", "vague", "--target", "agents:broken", "--max-target-retries", "0")
    (line,) = ran.err.splitlines()
    assert (ran.code, ran.out) == (1, "")
    assert line.startswith("6 of 6 conversations errored (the agent): RuntimeError: boom ")
    assert controls_in(line) == set()
    look = line.partition("; look: evaluatorq ")[2]
    assert "the fault of the agent" in cli(*look.split(), "0").out
    assert cli(*OFFLINE, "-q", "--only", "vague").err == ""


def test_a_name_that_no_file_can_have_is_told_and_still_finds_the_run(cli):
    assert "the file is called a_b_…" in cli(*OFFLINE, "--only", "vague", "-n", "a/b").err
    assert cli("sim", "show", "a/b").out.startswith("a/b · ")


def test_very_verbose_says_each_failed_call(cli):
    words = (*OFFLINE, "--only", "vague", "--target", "agents:broken", "--max-target-retries", "1")
    told = cli(*words, "-v").err
    assert "target target_error: " in told
    assert "asking again" in told
    assert "giving up" in told
    assert controls_in(told) == set()


def test_results_and_report_are_written_where_asked(cli, folder: Path):
    assert cli(*OFFLINE, "--only", "vague", "-r", "out/results.jsonl", "--report", "reports", "-n", "My run!").code == 0
    lines = (folder / "out" / "results.jsonl").read_text().splitlines()
    (report,) = (folder / "reports").glob("sim-report-my_run-*.json")
    assert len(lines) == len(read_run(report).results) == len(read_run(cli.runs()[0]).results)
    assert cli.runs()[0].name.startswith("my_run_")


def test_a_file_that_is_there_is_replaced_only_with_force(cli, folder: Path):
    (folder / "results.jsonl").write_text("precious")
    words = (*OFFLINE, "--only", "vague", "-q", "-r", "results.jsonl")
    ran = cli(*words)
    assert (ran.code, (folder / "results.jsonl").read_text()) == (2, "precious")
    assert "--force" in ran.err
    assert cli(*words, "--force").code == 0
    assert (folder / "results.jsonl").read_text() != "precious"


def test_two_runs_with_the_same_options_are_two_files(cli):
    for _ in range(2):
        cli(*OFFLINE, "--only", "vague", "-q")
    assert len(cli.runs()) == 2


def test_a_saved_run_can_be_run_again(cli):
    cli(*OFFLINE, "--only", "vague", "-q", "-n", "first")
    assert cli(*OFFLINE, "--from-run", "first", "--target", "demo:flawed", "-n", "again", "-q").code == 0
    again, first = (read_run(path) for path in cli.runs())
    assert again.datapoints == first.datapoints
    assert (again.target, first.target) == ("demo:flawed", "demo")


def test_the_same_seed_gives_the_same_conversations(cli):
    said = []
    for _ in range(2):
        run = json.loads(cli(*OFFLINE, "--only", "vague", "--json", "-q", "--seed", "7").out)
        said.append([result["messages"] for result in run["results"]])
    assert said[0] == said[1]


def test_the_project_folder_gives_the_defaults(cli, folder: Path):
    cli("init", "here")
    (folder / "here" / "my_agent.py").rename(folder / "my_agent.py")
    ran = cli("sim", "simulate", "--only", "vague", EVALUATORQ_DIR="here/.evaluatorq")
    assert ran.code == 0
    assert "with my_agent:answer" in ran.err


def test_a_pack_in_a_project_folder_runs_the_packs_cases_with_its_agent(cli, folder: Path):
    cli("init", "here")
    ran = cli("sim", "simulate", "--pack", "triage", "--only", "*chest-pain*", EVALUATORQ_DIR="here/.evaluatorq")
    assert ran.code == 0
    assert "with triage" in ran.err
    assert "Angry repeat caller" not in ran.err


def on_a_terminal(
    command: list[str],
    cwd: Path,
    env: dict[str, str],
    answer: Callable[[subprocess.Popen[bytes], int], None] | None = None,
) -> tuple[int, str]:
    """Runs a command whose three streams are one terminal; returns its exit code and everything on the screen.

    ``answer`` is called once, when the command has asked a question.
    """
    main, other = pty.openpty()
    with subprocess.Popen(command, cwd=cwd, env=env, stdin=other, stdout=other, stderr=other) as process:
        os.close(other)
        seen = b""
        try:
            while True:
                try:
                    part = os.read(main, 65536)
                except OSError:  # the other side is closed
                    break
                seen += part
                if answer is not None and seen.endswith(b"[Y/n] "):
                    answer(process, main)
                    answer = None
        except BaseException:  # such as the test's time limit: leaving would wait for the process
            process.kill()
            raise
    os.close(main)
    return process.returncode, seen.decode()


def test_a_terminal_gets_a_bar_and_colour(cli, folder: Path):
    command = cli.command(*OFFLINE, "--only", "vague", "--target", "agents:slow", "--max-turns", "3")
    env = cli.environment(TERM="xterm-256color")
    code, screen = on_a_terminal(command, folder, env)
    assert code == 0
    assert "in flight" in screen
    assert "\x1b[" in screen


def test_no_color_is_honoured(cli, folder: Path):
    command = cli.command(*OFFLINE, "--only", "vague")
    _, screen = on_a_terminal(command, folder, cli.environment(TERM="xterm-256color", NO_COLOR="1"))
    assert re.findall(r"\x1b\[[0-9;]*m", screen) == []


def test_a_dumb_terminal_gets_the_log(cli, folder: Path):
    _, screen = on_a_terminal(cli.command(*OFFLINE, "--only", "vague"), folder, cli.environment(TERM="dumb"))
    assert re.search(r"^1/6 . (passed|unknown) \[", screen, re.MULTILINE)
    assert "\x1b" not in screen


def declines(process: subprocess.Popen[bytes], terminal: int) -> None:
    os.write(terminal, b"n\n")


def presses_ctrl_c(process: subprocess.Popen[bytes], terminal: int) -> None:
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize(("answer", "code"), [(declines, 1), (presses_ctrl_c, 130)])
def test_models_are_not_asked_before_somebody_agrees(cli, folder: Path, answer, code: int):
    cli("init", "w")
    words = ("sim", "simulate", "--target", "demo", "--personas", "w/personas", "--scenarios", "w/scenarios")
    env = cli.environment(TERM="xterm", OPENAI_API_KEY="sk-none", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    ended, screen = on_a_terminal(cli.command(*words), folder, env, answer)
    assert "This asks models" in screen
    assert ended == code
    assert cli.runs() == []
    assert not (folder / ".evaluatorq" / "sim-runs" / ".journal").exists()
