"""One table of what is promised about speed and size: each bar a row, measured here and now, in interleaved runs.

    python benchmarks/speed.py [--quick] [--only WORDS] [--mock-url http://127.0.0.1:PORT/v1]

Everything runs against the mock endpoint of the tests (``tests/mock_server/serve.py``, in a process of its own; with
``--mock-url`` one that is running already), with the shipped defaults: journal on, checks, search for quotes, run file
written. Ratios compare runs that took turns, so that a busy machine slows both; of several rounds the least counts.
CPU is user and system time of the measured process alone. Exit code 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import start_up
import stored

HERE = Path(__file__).parent
ROOT = HERE.parent
Run = dict[str, float]


@dataclass(frozen=True)
class Row:
    """One bar. ``measured`` is held to at most ``bar``, or at least where ``floor`` says so."""

    what: str
    measured: float
    bar: float
    unit: str = "x"
    floor: bool = False
    stretch: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool:
        return self.measured >= self.bar if self.floor else self.measured <= self.bar

    def __str__(self) -> str:
        sign = ">=" if self.floor else "<="
        verdict = "pass" if self.holds else "MISS"
        if self.stretch is not None and self.measured <= self.stretch:
            verdict = "pass, stretch too"
        return f"{self.what:<58} {self.measured:>8.2f} {self.unit:<4} {sign} {self.bar:<6g} {verdict:<18} {self.note}"


class Endpoint:
    """The mock, by its base URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    def set(self, latency_ms: float = 0, faults: list[dict[str, object]] | None = None) -> None:
        self.ask("/knobs", {"latency_ms": latency_ms, "finish_turn": 10**6, "faults": faults or []})
        self.ask("/reset", {})

    def ask(self, path: str, body: object = None) -> dict[str, object]:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.url.removesuffix("/v1") + path, data=data, timeout=60) as answer:
            return json.load(answer)


@contextmanager
def endpoint(url: str | None) -> Iterator[Endpoint]:
    """The mock that runs at ``url``, or one of our own."""
    if url is not None:
        yield Endpoint(url)
        return
    words = [sys.executable, str(ROOT / "tests" / "mock_server" / "serve.py")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Endpoint(process.stdout.readline().strip())
        finally:
            process.kill()


class Bench:
    """Runs what the rows need, each run in a process of its own."""

    def __init__(self, at: Endpoint, *, quick: bool) -> None:
        self.at = at
        self.quick = quick
        self.env = {**os.environ, "OPENAI_BASE_URL": at.url, "OPENAI_API_KEY": "sk-not-a-secret-000"}

    def run(self, script: str, conversations: int, in_flight: int, turns: int = 5, *more: str) -> Run:
        numbers = {"--conversations": conversations, "--turns": turns, "--in-flight": in_flight}
        words = [word for name, value in numbers.items() for word in (name, str(value))]
        done = subprocess.run(
            [sys.executable, str(HERE / script), *words, *more],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{script} {' '.join(words)} failed:\n{done.stderr}")
        return json.loads(done.stdout)

    def least(self, rounds: int, *runs: Callable[[], float]) -> list[float]:
        """The least of each over rounds in which they take turns."""
        best = [float("inf")] * len(runs)
        for _ in range(1 if self.quick else rounds):
            best = [min(known, run()) for known, run in zip(best, runs, strict=True)]
        return best


def cpu_ms(run: Run) -> float:
    return run["cpu_s"] * 1000 / run["turns"]


# ---------------------------------------------------------------- the rows


def cpu_rows(bench: Bench) -> Iterator[Row]:
    bench.at.set()
    for in_flight, conversations, bar in ((20, 300, 4), (200, 600, 4), (1000, 1000, 3)):
        ours, bare = bench.least(
            4,
            lambda n=conversations, p=in_flight: cpu_ms(bench.run("one_run.py", n, p)),
            lambda n=conversations, p=in_flight: cpu_ms(bench.run("bare_run.py", n, p)),
        )
        note = f"{ours:.2f} ms against {bare:.2f} ms"
        yield Row(f"CPU per turn over bare aiohttp, {in_flight} in flight", ours / bare, bar, stretch=2, note=note)


def wall_rows(bench: Bench) -> Iterator[Row]:
    turns, latency_s = 5, 0.5
    ideal = (3 * turns - 1) * latency_s
    bench.at.set(latency_s * 1000)
    (wall,) = bench.least(2, lambda: bench.run("one_run.py", 1000, 1000, turns)["wall_s"])
    note = f"{wall:.1f} s, ideal {ideal:g} s"
    yield Row("wall over serial latency, 1,000 at once, 500 ms", wall / ideal, 1.6, stretch=1.3, note=note)


def length_rows(bench: Bench) -> Iterator[Row]:
    bench.at.set()
    long, short = bench.least(
        3,
        lambda: cpu_ms(bench.run("one_run.py", 60, 20, 40, "--target", "here")),
        lambda: cpu_ms(bench.run("one_run.py", 480, 20, 5, "--target", "here")),
    )
    note = f"{long:.2f} ms against {short:.2f} ms"
    yield Row("CPU per turn at 40 turns over 5, agent in process", long / short, 1.3, note=note)
    for turns in (5, 10):
        share = bench.run("one_run.py", 30, 10, turns, "--bodies")["sent_before"]
        yield Row(f"prompt that is the beginning of an earlier one, {turns} turns", share * 100, 80, "%", floor=True)


def fault_rows(bench: Bench) -> Iterator[Row]:
    thirds = [{"kind": kind, "rate": 0.02 * (n + 1) / 3} for n, kind in enumerate(("malformed", "cut", "empty"))]
    bench.at.set(faults=thirds)
    run = bench.run("one_run.py", 300 if bench.quick else 1000, 100)
    note = f"{run['errored']:g} ended in error, each by name"
    yield Row("conversations missing or unnamed, 2 % bad answers", run["missing"] + run["unnamed"], 0, "", note=note)
    conversations, latency_ms = (200, 200) if bench.quick else (1000, 500)
    bench.at.set(latency_ms)
    clean = bench.run("one_run.py", conversations, 100)["wall_s"]
    bench.at.set(latency_ms, [{"kind": "429", "rate": 0.05, "retry_after": 1}])
    limited = bench.run("one_run.py", conversations, 100)
    note = f"{limited['wall_s']:.1f} s against {clean:.1f} s, {limited['errored']:g} in error"
    yield Row("wall with 5 % refusals (429) over clean", limited["wall_s"] / clean, 1.3, note=note)


def size_rows(bench: Bench) -> Iterator[Row]:
    bench.at.set(20)
    for in_flight, finished in ((10, 10), (100, 1000), (1000, 1000)):
        peak = stored.peak_of_command(bench.env, in_flight, finished)
        allowed = 60 + 130 * in_flight / 1024 + 4 * finished / 1024
        what = f"memory of a command, {in_flight:,} in flight, {finished:,} finished"
        yield Row(what, peak, round(allowed, 1), "MiB")


def store_rows(bench: Bench) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = stored.write_big_run(Path(folder), 1000 if bench.quick else 10_000)
        ours, pydantics, listing, first = bench.least(
            3, lambda: stored.load_s(path), lambda: stored.pydantic_s(path), lambda: stored.list_s(path),
            lambda: stored.first_s(path),
        )  # fmt: skip
    size = f"{ours:.2f} s"
    yield Row("a saved run of 10,000 loads, over pydantic's own time", ours / pydantics, 1.2, note=size)
    yield Row("listing it, over loading it", listing / ours, 0.1, note=f"{listing * 1000:.0f} ms")
    yield Row("reading its first result, over loading it", first / ours, 0.1, note=f"{first * 1000:.0f} ms")


def start_rows(bench: Bench) -> Iterator[Row]:
    times = bench.least(15, *(lambda words=words: start_up.cpu_s(words) for words in start_up.COMMANDS.values()))
    seconds = dict(zip(start_up.COMMANDS, times, strict=True))
    base = seconds["import pydantic"]
    note = f"import pydantic: {base * 1000:.0f} ms"
    yield Row("evaluatorq sim --help, over import pydantic", seconds["sim --help"] / base, 3, note=note)
    yield Row("import evaluatorq.simulation, over import pydantic", seconds["import"] / base, 2.5)
    yield Row("the same and from it import simulate", seconds["import simulate"] / base, 2.5)


ROWS = {
    "start": start_rows,
    "store": store_rows,
    "cpu": cpu_rows,
    "length": length_rows,
    "size": size_rows,
    "wall": wall_rows,
    "faults": fault_rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of each, and smaller ones")
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS), help="some of the rows")
    parser.add_argument("--mock-url", help="base URL of a mock endpoint that is running already")
    args = parser.parse_args()
    missed = 0
    print(f"{'what':<58} {'measured':>8} {'':4} {'bar':<9} {'':<18}")
    with endpoint(args.mock_url) as at:
        bench = Bench(at, quick=args.quick)
        for name in args.only:
            for row in ROWS[name](bench):
                print(row, flush=True)
                missed += not row.holds
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
