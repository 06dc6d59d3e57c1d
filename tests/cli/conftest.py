"""The command as a person runs it: another process, an empty folder, no terminal unless one is made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

AGENTS = """
import asyncio, sys

def polite(messages):
    return "Could you tell me your order number, please?"

def broken(messages):
    raise RuntimeError("boom \\x1b[31m")

def half_broken(messages):
    if "wrong" in messages[0].text.lower() or "kettle" in messages[0].text.lower():
        raise RuntimeError("boom")
    return "Could you tell me your order number, please?"

async def slow(messages):
    await asyncio.sleep(0.2)
    return "Could you tell me your order number, please?"
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Cli:
    folder: Path

    def __call__(self, *words: str, stdin: str = "", **env: str) -> Ran:
        done = subprocess.run(
            self.command(*words), cwd=self.folder, env=self.environment(**env), input=stdin,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "evaluatorq", *words]

    def environment(self, **env: str) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "PYTHONPATH", "VIRTUAL_ENV")
        }
        return {**kept, "PYTHONWARNINGS": "error", "COLUMNS": "80", **env}

    def runs(self) -> list[Path]:
        return sorted((self.folder / ".evaluatorq" / "sim-runs").glob("*.json"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "agents.py").write_text(AGENTS)
    return made


@pytest.fixture
def cli(folder: Path) -> Cli:
    return Cli(folder)


Inside = Callable[..., Ran]


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    """The command in this process: faster, for what needs no process of its own."""
    from evaluatorq.cli import main

    monkeypatch.chdir(folder)
    monkeypatch.setenv("EVALUATORQ_DIR", str(folder / ".evaluatorq"))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str) -> Ran:
        capsys.readouterr()
        code = main(words)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run
