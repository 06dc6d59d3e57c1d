"""Streams that are closed or full when a command begins, and signals that end it from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from conftest import Cli

OFFLINE = ("sim", "simulate", "--offline")
CLOSED = {"all": "<&- >&- 2>&-", "out": ">&-", "out and err": ">&- 2>&-", "err": "2>&-"}


def in_a_shell(cli: Cli, end: str, *words: str) -> subprocess.CompletedProcess[str]:
    line = ["bash", "-c", f'"$@" {end}', "bash", *cli.command(*words)]
    return subprocess.run(
        line, cwd=cli.folder, env=cli.environment(), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("closed", CLOSED.values(), ids=CLOSED.keys())
def test_closed_streams_do_not_change_the_exit_code_of_a_run_and_its_gate(cli: Cli, closed: str) -> None:

    ran = in_a_shell(cli, closed, *OFFLINE, "--only", "Vague*", "-n", "quiet", "--json")
    assert (ran.returncode, "rror" in ran.stderr) == (0, False), ran.stderr
    (row,) = json.loads(cli("sim", "runs", "--json").out)
    assert (row["status"], row["completed"]) == ("completed", row["total"])
    gate = ("sim", "gate", "quiet", "--max-errors", "0", "--junit", "gate.xml")
    held = in_a_shell(cli, closed, *gate)
    assert (held.returncode, held.stderr) == (0, "")
    ET.fromstring((cli.folder / "gate.xml").read_text())


def test_a_full_disk_behind_standard_output_is_one_sentence(cli: Cli) -> None:
    full = in_a_shell(cli, "> /dev/full", "sim", "schema")
    assert (full.returncode, full.stderr) == (1, "Error: [Errno 28] No space left on device\n")


def test_a_report_for_a_pipe_arrives_there(cli: Cli) -> None:
    cli(*OFFLINE, "--only", "Vague*", "-q", "-n", "piped")
    pipe = cli.folder / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    cli("sim", "gate", "piped", "--junit", "pipe")
    reader.join(30)
    assert pipe.is_fifo()
    assert ET.fromstring(read[0]).tag == "testsuites"


def test_a_report_can_go_to_standard_output(cli: Cli) -> None:
    ran = cli(*OFFLINE, "--only", "Vague*", "-q", "-n", "shown", "--report-md", "/dev/stdout")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("#")


# ---------------------------------------------------------------- signals


def stopped(cli: Cli, until: str, *ways: signal.Signals) -> tuple[int, str]:
    """Starts a run, sends it signals when its standard error said ``until``; its exit code and what it said."""
    command = cli.command(
        *OFFLINE, "--target", "agents:slow", "--max-turns", "2", "--parallelism", "2", "-n", "stopped"
    )
    said = ""
    with subprocess.Popen(
        command, cwd=cli.folder, env=cli.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            while until not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
            for way in ways:
                process.send_signal(way)
            said += process.communicate(timeout=60)[1]
        finally:
            process.kill()
    return process.returncode, said


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_a_supervisor_stops_says_how_to_go_on_and_can(cli: Cli, way: signal.Signals) -> None:
    code, said = stopped(cli, "3/48", way)
    assert (code, "Traceback" in said) == (130, False)
    (row,) = json.loads(cli("sim", "runs", "--json").out)
    assert (row["status"], row["alive"]) == ("cancelled", False)
    assert f"evaluatorq sim resume {row['run_id']}" in said
    agent = cli.folder / "agents.py"
    agent.write_text(agent.read_text().replace("sleep(0.2)", "sleep(0)"))
    assert cli("sim", "resume", row["run_id"], "-q").code == 0
    assert json.loads(cli.runs()[0].read_text())["total_results"] == 48


@pytest.mark.parametrize("ways", [[signal.SIGINT] * 2, [signal.SIGHUP, signal.SIGTERM, signal.SIGINT]])
def test_signals_that_come_together_are_one_wish_to_stop(cli: Cli, ways: list[signal.Signals]) -> None:
    code, said = stopped(cli, "3/48", *ways)
    assert (code, "Traceback" in said) == (130, False)
    (row,) = json.loads(cli("sim", "runs", "--json").out)
    assert (row["status"], row["alive"]) == ("cancelled", False)
    assert f"evaluatorq sim resume {row['run_id']}" in said


def test_a_run_that_waits_for_the_reader_of_its_report_is_saved_and_can_be_stopped(cli: Cli) -> None:
    os.mkfifo(cli.folder / "report.md")
    command = cli.command(*OFFLINE, "--only", "Vague*", "-q", "-n", "kept", "--report-md", "report.md", "--force")
    with subprocess.Popen(command, cwd=cli.folder, env=cli.environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            while not cli.runs():
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert (process.returncode, "Traceback" in said) == (130, False)
    assert "6 of 6 conversations are finished" in said
    assert "A report of it:    evaluatorq sim export -i" in said
    assert json.loads(cli.runs()[0].read_text())["total_results"] == 6
    assert not list(cli.folder.rglob("*.tmp"))


def test_a_run_under_nohup_does_not_hear_that_the_terminal_closed(cli: Cli) -> None:
    words = cli.command(*OFFLINE, "--only", "Vague*", "-q", "-n", "kept")
    line = ["bash", "-c", 'trap "" HUP; "$@" & child=$!; sleep 0.5; kill -HUP $child; wait $child', "bash", *words]
    ran = subprocess.run(line, cwd=cli.folder, env=cli.environment(), timeout=60, check=False)
    assert ran.returncode == 0
