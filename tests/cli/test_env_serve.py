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

from mock_server.shell import killed_on_failure

if TYPE_CHECKING:
    from conftest import Cli, Inside


WORLDS = """
from evaluatorq.environments.toolbox import Toolbox, tool

@tool
def sell(state: dict[str, int], item: str) -> str:
    \"\"\"Sells one.\"\"\"
    state[item] -= 1
    return "sold"

def shop():
    return Toolbox({"lamp": 3}, [sell])

def broken():
    raise RuntimeError("nobody is home")
"""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--stdio"], "name an environment to serve, or a scenario that has one"),
        (["orders"], "one of the arguments --stdio --http is required"),
        (["ordrs", "--stdio"], "no environment is called 'ordrs'; did you mean orders?"),
        (["worlds:broken", "--stdio"], "the environment cannot be made: RuntimeError: nobody is home"),
        (["worlds:shp", "--stdio"], "'worlds:shp': worlds has no 'shp'; did you mean shop?"),
        (["orders", "--http", "99999"], "--http is 99999; ports end at 65535"),
        (["orders", "--http", "many"], "--http is 'many'; give a number"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(inside: Inside, folder: Path, words: list[str], says: str) -> None:
    (folder / "worlds.py").write_text(WORLDS, encoding="utf-8")
    ran = inside("env", "serve", *words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


ORDERS = Path(__file__).parents[2] / "scenarios" / "wrong-item.yaml"


@pytest.mark.parametrize(
    ("words", "key", "members"),
    [(["--scenario", str(ORDERS)], "orders", ["B2002"]), (["worlds:shop"], "lamp", None)],
    ids=["a scenario's", "one's own"],
)
def test_a_world_is_served_over_http_until_it_is_interrupted(
    cli: Cli, words: list[str], key: str, members: list[str] | None
) -> None:
    (cli.folder / "worlds.py").write_text(WORLDS, encoding="utf-8")
    command = cli.command("env", "serve", "--http", "0", *words)
    with (
        subprocess.Popen(command, cwd=cli.folder, env=cli.environment(), stderr=subprocess.PIPE, text=True) as server,
        killed_on_failure(server),
    ):
        assert server.stderr is not None
        try:
            url = re.search(r"http://\S+", server.stderr.readline())
            assert url is not None
            with urllib.request.urlopen(f"{url.group()}/state", timeout=20) as answer:
                found = json.load(answer)[key]
            assert (list(found) if members else found) == (members or 3)
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=20) == 130
