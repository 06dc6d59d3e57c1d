"""``env serve``: what it needs to be told, and a world over HTTP in a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Cli, Inside


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--stdio"], "name an environment to serve, or a scenario that has one"),
        (["orders"], "one of the arguments --stdio --http is required"),
        (["ordrs", "--stdio"], "names environment 'ordrs'; there is orders"),
        (["orders", "--http", "many"], "--http is 'many'; give a number"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(inside: Inside, words: list[str], says: str) -> None:
    ran = inside("env", "serve", *words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_a_scenarios_world_is_served_over_http_until_it_is_interrupted(cli: Cli) -> None:
    scenario = Path(__file__).parents[2] / "scenarios" / "wrong-item.yaml"
    command = cli.command("env", "serve", "--http", "0", "--scenario", str(scenario))
    with subprocess.Popen(command, cwd=cli.folder, env=cli.environment(), stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            url = re.search(r"http://\S+", server.stderr.readline())
            assert url is not None
            with urllib.request.urlopen(f"{url.group()}/state", timeout=20) as answer:
                assert list(json.load(answer)["orders"]) == ["B2002"]
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=20) == 130
