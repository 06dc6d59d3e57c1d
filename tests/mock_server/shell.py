"""The command line as a user runs it: a process of its own, in a folder of its own, with a small environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import AnyStr

from mock_server.served import MockEndpoint

MODELS = ("--sim-model", "mock-user", "--judge-model", "mock-judge")


def environment(endpoint: MockEndpoint | None = None, **more: str) -> dict[str, str]:
    """The process environment: a path, a home, the endpoint."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    models = {} if endpoint is None else {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "sk-not-a-secret-000"}
    return {**kept, **models, **more}


def command(*words: str) -> list[str]:
    """``evaluatorq`` with these words, by the interpreter that runs the tests."""
    return [sys.executable, "-m", "evaluatorq", *words]


@contextmanager
def killed_on_failure(process: subprocess.Popen[AnyStr]) -> Iterator[None]:
    """Ends the process when the block fails: leaving ``Popen``'s own block would wait for it, for ever perhaps."""
    try:
        yield
    except BaseException:  # such as the test's time limit
        process.kill()
        raise


def evaluatorq(
    folder: Path, *words: str, endpoint: MockEndpoint | None = None, timeout: float = 100, **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end in ``folder``."""
    return subprocess.run(
        command(*words),
        cwd=folder,
        env=environment(endpoint, **env),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def write_cases(path: Path, count: int, *, criteria: int = 3, **scenario: object) -> Path:
    """``count`` datapoints as JSON Lines, each known to the mock by the ``CASE-0000`` in its goal."""
    with path.open("w") as file:
        for number in range(count):
            row = {"persona": {"name": "Pat", "patience": 0.5, "assertiveness": 0.5, "politeness": 0.5,
                               "technical_level": 0.5, "communication_style": "casual", "background": "A customer."},
                   "scenario": {"name": f"Scenario {number:04}", "goal": f"Settle CASE-{number:04}",
                                "criteria": [{"description": f"The agent does thing {i} of case {number}",
                                              "type": "must_not_happen" if i % 2 else "must_happen"}
                                             for i in range(criteria)], **scenario}}  # fmt: skip
            file.write(json.dumps(row) + "\n")
    return path


def saved_run(folder: Path) -> dict[str, object]:
    """The one run file in the folder's store."""
    (path,) = (folder / ".evaluatorq" / "sim-runs").glob("*.json")
    run: dict[str, object] = json.loads(path.read_bytes())
    return run


def journal_folder(folder: Path) -> Path:
    """The journal of the one run in the folder's store."""
    (path,) = (folder / ".evaluatorq" / "sim-runs" / ".journal").iterdir()
    return path


def journal_lines(folder: Path) -> list[dict[str, object]]:
    """Every whole line of that journal, in order."""
    text = b"".join(part.read_bytes() for part in sorted(journal_folder(folder).glob("*.jsonl")))
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")]
