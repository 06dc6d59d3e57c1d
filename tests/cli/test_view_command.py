"""``evaluatorq view`` as a person starts and stops it, and every way in which it cannot start."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from conftest import Cli, Inside


@contextmanager
def viewing(cli: Cli, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A viewer in a process of its own, and what it said when it was ready."""
    started = subprocess.Popen(
        cli.command("view", "--port", "0", *words), cwd=cli.folder, env=cli.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    said = ""
    assert started.stderr is not None
    while "Ctrl-C" not in said:
        line = started.stderr.readline()
        assert line, said
        said += line
    try:
        yield started, said
    finally:
        started.kill()
        started.communicate()


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop_and_leaves_cleanly(cli: Cli, way: signal.Signals) -> None:
    with viewing(cli) as (process, said):
        assert "There are no runs in .evaluatorq/sim-runs yet; make one: evaluatorq sim simulate" in said
        url = re.search(r"http://127\.0\.0\.1:\d+/", said)
        assert url
        with httpx.Client() as client:
            assert client.get(url[0]).status_code == 200
            process.send_signal(way)
            out, err = process.communicate(timeout=30)
    assert out == ""
    assert "Traceback" not in err
    if way is signal.SIGINT:
        assert (process.returncode, err) == (0, "Stopped.\n")


def test_an_address_that_others_reach_is_warned_of(cli: Cli) -> None:
    with viewing(cli, "--host", "0.0.0.0") as (_, said):
        assert "Warning: 0.0.0.0 can be reached from other machines" in said
    with viewing(cli, "--host", "localhost") as (_, said):
        assert "Warning" not in said


def test_a_store_stands_for_the_runs_in_it(cli: Cli) -> None:
    (cli.folder / "store" / "sim-runs").mkdir(parents=True)
    with viewing(cli, "store") as (_, said):
        assert "Runs in store/sim-runs: http" in said


def is_there(path: Path, within_s: float) -> bool:
    """A browser is a process of its own, which nobody waits for."""
    end = time.monotonic() + within_s
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return path.exists()


def test_no_browser_is_opened_unless_asked_for(cli: Cli) -> None:
    opened = cli.folder / "opened"
    browser = cli.folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    browser.chmod(0o700)
    for words, expected in (((), False), (("--open",), True)):
        env = cli.environment(BROWSER=str(browser))
        process = subprocess.Popen(
            cli.command("view", "--port", "0", *words), cwd=cli.folder, env=env, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        while b"Ctrl-C" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert is_there(opened, within_s=30.0 if expected else 0.5) is expected


# ---------------------------------------------------------------- it cannot start


def test_a_port_in_use_is_one_sentence(inside: Inside) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = inside("view", "--port", port)
    assert ran.code == 2
    assert ran.err == (
        f"Error: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        "choose another with --port N (0: any that is free)\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "http"), "--port is a number from 0 to 65535, not 'http'"),
        (("--port", "70000"), "--port is a number from 0 to 65535, not '70000'"),
        (("--port", "²"), "--port is a number"),
        (("nowhere",), "there is no folder nowhere; name one with saved runs, or make a run: evaluatorq sim simulate"),
        (("--host", "no.such.host.invalid"), "cannot listen on 'no.such.host.invalid'"),
        (("--host", "192.0.2.1"), "cannot listen on 192.0.2.1"),
        (("--prot", "1"), "did you mean --port?"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(inside: Inside, words: tuple[str, ...], said: str) -> None:
    ran = inside("view", *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_without_the_extra_the_error_has_the_install_line(cli: Cli) -> None:
    hidden = cli.folder / "hidden"
    hidden.mkdir()
    blocker = "import sys\nsys.modules['starlette'] = None\n"
    (hidden / "sitecustomize.py").write_text(blocker)
    ran = cli("view", PYTHONPATH=os.pathsep.join([str(hidden), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]))
    assert ran.code == 2
    assert ran.err == "Error: the viewer needs the extra: pip install 'evaluatorq[web]' (starlette is missing)\n"


def test_help_needs_no_extra_and_starts_nothing(inside: Inside, tmp_path: Path) -> None:
    ran = inside("view", "--help")
    assert ran.code == 0
    assert "--open" in ran.out
