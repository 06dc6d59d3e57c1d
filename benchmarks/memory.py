"""Memory of 10,000 conversations of 10 turns on the command line, against its bar. Run: python benchmarks/memory.py

The bar is 60 MiB + 130 KiB for each conversation in flight + 4 KiB for each that is finished. The run is measured
with --json as well, which is streamed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from peak import peak_mib

BASE_KIB, IN_FLIGHT_KIB, FINISHED_KIB = 60 * 1024, 130, 4
AGENT = """
from evaluatorq.targets.callables import inline


@inline
def agent(messages):
    return f"Answer {len(messages)}: I have looked at the order and can see that the item was shipped on Monday. " * 4
"""


def write_cases(path: Path, count: int, turns: int) -> None:
    """Datapoints whose simulated users follow a script of their own, so that every conversation has all its turns."""
    persona = {
        "name": "Pat", "patience": 0.5, "assertiveness": 0.5, "politeness": 0.5, "technical_level": 0.5,
        "communication_style": "casual", "background": "A customer who bought a kettle.",
    }  # fmt: skip
    with path.open("w") as file:
        for number in range(count):
            script = [
                f"Case {number}, message {turn}: where is my parcel, and when will it come?" for turn in range(turns)
            ]
            criteria = [{"description": "The agent answers", "type": "must_happen"}]
            scenario = {
                "name": f"Scenario {number}",
                "goal": f"Settle case {number}",
                "script": script,
                "criteria": criteria,
            }
            file.write(json.dumps({"persona": persona, "scenario": scenario}) + "\n")


def measure(folder: Path, count: int, turns: int, parallel: int, *, json_out: bool) -> dict[str, float]:
    """Runs the command and returns its peak and how long it took."""
    write_cases(folder / "cases.jsonl", count, turns)
    (folder / "desk.py").write_text(AGENT)
    words = [
        sys.executable, "-m", "evaluatorq", "sim", "simulate", "-q", "--offline", "--target", "desk:agent",
        "-i", "cases.jsonl", "--max-turns", str(turns), "--parallelism", str(parallel),
    ]  # fmt: skip
    started = time.perf_counter()
    with (folder / "out").open("wb") as out:
        peak = peak_mib([*words, *(["--json"] if json_out else [])], cwd=folder, stdout=out)
    return {"peak_mib": peak, "seconds": time.perf_counter() - started}


def main() -> int:
    """Prints peaks beside their bars; fails when one is above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("-n", type=int, default=10_000, help="conversations")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("-p", type=int, default=100, help="conversations at once")
    args = parser.parse_args()
    worst = 0.0
    for json_out in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            found = measure(Path(folder), args.n, args.turns, args.p, json_out=json_out)
            kept = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 2**20
        bar = (BASE_KIB + IN_FLIGHT_KIB * args.p + FINISHED_KIB * args.n) / 1024
        worst = max(worst, found["peak_mib"] / bar)
        print(
            f"{args.n} conversations of {args.turns} turns, {args.p} at once{', --json' if json_out else ''}: "
            f"peak {found['peak_mib']:.0f} MiB, bar {bar:.0f} MiB, {found['seconds']:.0f} s, {kept:.0f} MiB written"
        )
    return int(worst > 1)


if __name__ == "__main__":
    raise SystemExit(main())
