"""Stops a run at a chosen line of its journal, resumes it, and tells what that cost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mock_server.served import MockEndpoint
from mock_server.shell import (
    command,
    environment,
    evaluatorq,
    journal_folder,
    journal_lines,
    killed_on_failure,
    saved_run,
)

AGENT = '''
"""The bundled agent, a little slower, noting outside of the process each question that it answers."""

import os

import anyio

from evaluatorq.ports import Seat
from evaluatorq.targets.demo import DemoAgent


class Slow(DemoAgent):
    async def respond(self, messages, *, thread_id):
        with open(os.environ["ASKED"], "a") as file:
            file.write(f"{thread_id.rpartition(':')[2]}/{len(messages)}\\n")
        await anyio.sleep(float(os.environ.get("PACE", "0.004")))
        return await super().respond(messages, thread_id=thread_id)


def agent(seat: Seat):
    specs = () if seat.environment is None else seat.environment.tools
    from evaluatorq.targets.demo_policy import CAREFUL

    return Slow(CAREFUL, frozenset(spec.name for spec in specs))
'''
OFFLINE = ("--offline", "--target", "desk:agent", "--parallelism", "4", "--name", "cut")
VOLATILE = {"thread_id", "attempts", "token_usage_known", "unread_answers"}
"""What may differ between a run that was stopped and one that was not: ids, and what is owned up to about it."""


@dataclass(frozen=True)
class Stopped:
    """A run that was stopped: where, how it ended, what was finished then, and what had been asked."""

    lines: int
    code: int
    stderr: str
    finished: frozenset[int]
    asked: Counter[str]


class Scene:
    """A folder in which one run is started, stopped and resumed."""

    def __init__(self, folder: Path, words: tuple[str, ...], endpoint: MockEndpoint | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "desk.py").write_text(AGENT)
        self.folder, self.words, self.endpoint = folder, ("sim", "simulate", "-q", *words), endpoint
        self.env = {"ASKED": str(folder / "asked.txt")}

    def whole(self) -> list[dict[str, object]]:
        """Runs it undisturbed and returns the facts."""
        done = evaluatorq(self.folder, *self.words, endpoint=self.endpoint, **self.env)
        assert done.returncode == 0, done.stderr
        return self.facts()

    def forget(self) -> None:
        """Clears the store, for the next start."""
        shutil.rmtree(self.folder / ".evaluatorq", ignore_errors=True)
        (self.folder / "asked.txt").unlink(missing_ok=True)

    def stop_at(self, lines: int, how: signal.Signals = signal.SIGKILL) -> Stopped:
        """Starts the run and stops it as soon as its journal has so many lines."""
        env = environment(self.endpoint, **self.env)
        with (
            subprocess.Popen(
                command(*self.words),
                cwd=self.folder,
                env=env,
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
            ) as process,
            killed_on_failure(process),
        ):
            while process.poll() is None and self.lines_so_far() < lines:
                time.sleep(0.001)
            process.send_signal(how)
            _, stderr = process.communicate(timeout=60)
        assert self.lines_so_far(), f"it did not begin: exit {process.returncode}, {stderr}"
        journal = journal_lines(self.folder)
        finished = frozenset(int(str(line["row"])) for line in journal if line["kind"] == "ended")
        return Stopped(len(journal), process.returncode, stderr, finished, self.asked())

    def lines_so_far(self) -> int:
        """How many lines the journal has now."""
        parts = self.folder.glob(".evaluatorq/sim-runs/.journal/*/0001.jsonl")
        return sum(part.read_bytes().count(b"\n") for part in parts)

    def asked(self) -> Counter[str]:
        """What the agent was asked so far, by conversation and length of its transcript; torn lines apart."""
        path = self.folder / "asked.txt"
        return Counter(re.findall(r"^\d+/\d+$", path.read_text() if path.exists() else "", re.MULTILINE))

    def resume(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Goes on with the run."""
        run_id = journal_folder(self.folder).name
        return evaluatorq(self.folder, "sim", "resume", "-q", *words, run_id, endpoint=self.endpoint, **self.env)

    def facts(self) -> list[dict[str, object]]:
        """The saved results without what may differ."""
        results = saved_run(self.folder)["results"]
        assert isinstance(results, list)
        return [without_volatile(result) for result in results]


def without_volatile(result: dict[str, object]) -> dict[str, object]:
    """A result as it must come out whether or not its run was stopped."""
    kept = {key: value for key, value in result.items() if key not in VOLATILE}
    metadata = dict(kept["metadata"]) if isinstance(kept["metadata"], dict) else {}
    metadata.pop("token_usage_unknown", None)
    return {**kept, "metadata": metadata}


def repeated(stopped: Stopped, later: Counter[str]) -> list[str]:
    """Questions that were asked before the stop and again after it."""
    return sorted((later - stopped.asked) & stopped.asked)


def histogram(places: list[int], last: int, bins: int = 10) -> str:
    """Where between the first and the last line runs were stopped, as text."""
    counts = Counter(min(bins - 1, place * bins // (last + 1)) for place in places)
    rows = (f"{i * 100 // bins:>3}-{(i + 1) * 100 // bins:<3}% {'#' * counts[i]} {counts[i]}" for i in range(bins))
    return "\n".join(rows)


def manifest_of(folder: Path) -> dict[str, object]:
    """The manifest of the one run in the folder's store."""
    (path,) = (folder / ".evaluatorq" / "sim-runs" / ".manifests").glob("*.json")
    manifest: dict[str, object] = json.loads(path.read_bytes())
    return manifest


def is_running(pid: int) -> bool:
    """Whether a process lives."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
