"""Kills and interruptions by the hundred, a disk that fills, handles that run out: what is lost, repeated or different.

    python benchmarks/campaign.py [--kills 200] [--seed 0]

Runs are stopped at seeded lines of their journals (four in five killed, one in five by Ctrl-C), half of them offline,
half over HTTP, resumed, and compared with an undisturbed run. One series uses tools with effects outside of the
process. Exits with 1 when a result differs, a finished conversation is asked again, or more calls are repeated than
were under way.
"""

from __future__ import annotations

import argparse
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from mock_server.interrupt import OFFLINE, Scene, histogram, repeated
from mock_server.served import MockEndpoint, serving
from mock_server.shell import MODELS, command, environment, journal_lines, saved_run, write_cases

PARALLEL = 4
BOOKING = '''
"""An agent that books by a tool, which leaves a line outside of the process before it answers."""

import os

import anyio
from pydantic import BaseModel

from evaluatorq.environments.toolbox import Toolbox
from evaluatorq.model.messages import assistant, tool_call
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import Seat, TargetReply


class Ledger(BaseModel):
    booked: list[str] = []


async def book(state: Ledger, key: str) -> int:
    """Books it."""
    with open(os.environ["ASKED"], "a") as file:
        file.write(key + "\\n")
    await anyio.sleep(0.004)
    state.booked.append(key)
    return len(state.booked)


def world():
    return Toolbox(Ledger(), [book])


class Booking:
    stateful = False

    async def respond(self, messages, *, thread_id):
        await anyio.sleep(0.002)
        if messages[-1].role == "tool":
            return TargetReply((assistant(f"Booked as number {messages[-1].text} for you."),), usage=NO_USAGE)
        key = f"{thread_id.rpartition(':')[2]}/{len(messages)}"
        return TargetReply((assistant(None, [tool_call(f"c{len(messages)}", "book", {"key": key})]),), usage=NO_USAGE)


def agent(seat: Seat):
    return Booking()
'''


@dataclass
class Series:
    """What came of stopping one kind of run again and again."""

    name: str
    last: int = 0
    places: list[int] = field(default_factory=list)
    stopped: int = 0
    interrupted: int = 0
    different: list[int] = field(default_factory=list)
    asked_again: list[int] = field(default_factory=list)
    most_repeated: int = 0
    total_repeated: int = 0
    wrong_codes: list[str] = field(default_factory=list)
    tokens_off: list[int] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return bool(
            self.different or self.asked_again or self.wrong_codes or self.tokens_off or self.most_repeated > PARALLEL
        )

    def report(self) -> str:
        inside = sum(1 < place < self.last for place in self.places) / max(1, len(self.places))
        return (
            f"\n{self.name}: {self.stopped} stopped ({self.interrupted} by Ctrl-C), {inside:.0%} between the first and "
            f"line {self.last}\n{histogram(self.places, self.last)}\n"
            f"  results that differ: {self.different or 'none'}\n"
            f"  finished conversations asked again: {self.asked_again or 'none'}\n"
            f"  calls repeated: {self.total_repeated} in all, at most {self.most_repeated} after one stop "
            f"(under way at once: {PARALLEL})\n"
            f"  tokens that are not the endpoint's: {self.tokens_off or 'none'}\n"
            f"  wrong exit codes: {self.wrong_codes or 'none'}"
        )


def stop_and_resume(series: Series, scene: Scene, whole: list[dict[str, object]], seed: int) -> None:
    """One stop of an offline run."""
    random = Random(seed)
    how = signal.SIGINT if random.random() < 0.2 else signal.SIGKILL
    scene.forget()
    if scene.endpoint is not None:
        scene.endpoint.reset()
    stopped = scene.stop_at(random.randrange(2, series.last), how)
    before = scene.endpoint.stats() if scene.endpoint is not None else {}
    series.stopped += 1
    series.interrupted += how is signal.SIGINT
    series.places.append(stopped.lines)
    if stopped.code not in {signal.SIGINT: (130, 0), signal.SIGKILL: (-9, 0)}[how]:
        series.wrong_codes.append(f"{seed}: {stopped.code}")
    resumed = scene.resume()
    if resumed.returncode != 0:
        series.wrong_codes.append(f"{seed}: resume {resumed.returncode} {resumed.stderr.strip()[:200]}")
        return
    if scene.facts() != whole:
        series.different.append(seed)
    if scene.endpoint is None:
        again = repeated(stopped, scene.asked())
        count = len(again)
        if {int(question.split("/")[0]) for question in again} & stopped.finished:
            series.asked_again.append(seed)
    else:
        count = compare_endpoint(series, scene, before, stopped.finished, seed)
    series.most_repeated = max(series.most_repeated, count)
    series.total_repeated += count


def compare_endpoint(
    series: Series, scene: Scene, before: dict[str, object], finished: frozenset[int], seed: int
) -> int:
    """Holds what the endpoint counted against the run; returns how many requests it saw twice."""
    assert scene.endpoint is not None
    stats = scene.endpoint.stats()
    cases, earlier = stats["cases"], before["cases"]
    assert isinstance(cases, dict)
    assert isinstance(earlier, dict)
    for row in finished:
        case = f"CASE-{row:04}"
        if cases[case] != earlier[case]:
            series.asked_again.append(seed)
    results = saved_run(scene.folder)["results"]
    assert isinstance(results, list)
    for row, result in enumerate(results):
        charged = sum(role["charged"] for role in cases[f"CASE-{row:04}"].values())
        ours = result["token_usage"]["total_tokens"]
        if (ours != charged) if result["token_usage_known"] else (ours > charged):
            series.tokens_off.append(seed)
    repeats = stats["repeats"]
    assert isinstance(repeats, dict)
    return sum(repeats.values())


def offline_series(folder: Path, kills: int, seed: int) -> Series:
    """The bundled agent and its tools, without a model."""
    scene = Scene(folder, OFFLINE)
    return run_series(Series("offline, the bundled agent"), scene, kills, seed)


def effects_series(folder: Path, kills: int, seed: int) -> Series:
    """Tools with effects outside of the process: each is carried out once, but for those under way."""
    scene = Scene(folder, ("-i", "cases.jsonl", *OFFLINE, "--environment", "desk:world", "--max-turns", "6"))
    (folder / "desk.py").write_text(BOOKING)
    write_cases(folder / "cases.jsonl", 40, criteria=1, script=[f"please book number {n} for me" for n in range(6)])
    return run_series(Series("tools with effects outside of the process"), scene, kills, seed)


def http_series(folder: Path, kills: int, seed: int, endpoint: MockEndpoint) -> Series:
    """Three models over HTTP."""
    folder.mkdir(parents=True)
    write_cases(folder / "cases.jsonl", 12, criteria=1)
    words = ("-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS, "--parallelism", str(PARALLEL))
    return run_series(Series("over HTTP"), Scene(folder, words, endpoint), kills, seed)


def run_series(series: Series, scene: Scene, kills: int, seed: int) -> Series:
    """Stops and resumes the scene so many times."""
    whole = scene.whole()
    series.last = len(journal_lines(scene.folder))
    for number in range(kills):
        stop_and_resume(series, scene, whole, seed + number)
    return series


# ---------------------------------------------------------------- handles and disks


def limited(folder: Path, what: int, size: int) -> tuple[subprocess.CompletedProcess[str], Scene]:
    """A run whose process has less of something."""
    scene = Scene(folder, OFFLINE)
    done = subprocess.run(
        command(*scene.words),
        cwd=folder,
        env={**environment(**scene.env), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(what, (size, size)),
    )
    return done, scene


def disks_that_fill(folder: Path, times: int, seed: int) -> list[str]:
    """Runs on disks that are full after a seeded number of bytes, each resumed; returns what went wrong."""
    wrong: list[str] = []
    reference = Scene(folder / "reference", OFFLINE)
    whole = reference.whole()
    (file,) = (reference.folder / ".evaluatorq" / "sim-runs").glob("*.json")
    for number in range(times):
        room = Random(seed + number).randrange(300_000, file.stat().st_size)
        done, scene = limited(folder / f"disk{number}", resource.RLIMIT_FSIZE, room)
        if done.returncode != 1 or "Traceback" in done.stderr or "Error:" not in done.stderr:
            wrong.append(f"{room} bytes: exit {done.returncode}, {done.stderr.strip()[-200:]}")
        elif "sim resume" in done.stderr and (scene.resume().returncode != 0 or scene.facts() != whole):
            wrong.append(f"{room} bytes: resumed to something else")
    return wrong


def few_handles(folder: Path, endpoint: MockEndpoint) -> list[str]:
    """Two hundred conversations at once in a process that may hold 96 files; returns what went wrong."""
    folder.mkdir(parents=True)
    write_cases(folder / "cases.jsonl", 200, criteria=1)
    words = ("sim", "simulate", "-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS, "--parallelism", "200")
    done = subprocess.run(
        command(*words, "-q"),
        cwd=folder,
        env=environment(endpoint),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96)),
    )
    wrong = [] if done.returncode == 0 else [f"exit {done.returncode}: {done.stderr.strip()[-300:]}"]
    if "connections fit under this process's limit of 96 open files" not in done.stderr:
        wrong.append("nothing was said of the limit")
    return wrong


def main() -> int:
    """Runs everything and prints what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--disks", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    half, effects = args.kills // 2, args.kills // 5
    with tempfile.TemporaryDirectory() as name, serving(latency_ms=8) as endpoint:
        folder = Path(name)
        series = [
            offline_series(folder / "offline", args.kills - half - effects, args.seed),
            effects_series(folder / "effects", effects, args.seed),
            http_series(folder / "http", half, args.seed, endpoint),
        ]
        endpoint.reset()
        wrong = disks_that_fill(folder / "disks", args.disks, args.seed) + few_handles(folder / "handles", endpoint)
    for one in series:
        print(one.report())
    print(f"\n{args.disks} disks that filled, 200 conversations on 96 file handles: {wrong or 'as promised'}")
    return int(bool(wrong) or any(one.failed for one in series))


if __name__ == "__main__":
    raise SystemExit(main())
