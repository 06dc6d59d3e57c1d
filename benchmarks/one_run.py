"""One run with the shipped defaults in a process of its own; prints what it cost as one line of JSON.

The journal is on, checks and the search for quotes are on, the run file is written. Imports and making the cases are
not counted, everything after that is.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
import time
from bisect import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
from workload import agent, datapoints

from evaluatorq.llm import client, direct, transport
from evaluatorq.llm.exchange import Answer, Call
from evaluatorq.llm.handles import room_for
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.simulation.api import run_simulation
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.targets import openai


def options(args: argparse.Namespace) -> dict[str, object]:
    target: dict[str, object] = {"target": agent} if args.target == "here" else {"openai_model": "mock-target"}
    return {
        **target,
        "datapoints": datapoints(args.conversations),
        "sim_model": "mock-user",
        "judge_model": "mock-judge",
        "max_turns": args.turns,
        "datapoint_parallelism": args.in_flight,
        "save": True,
        "raise_on_execution_failure": False,
    }


@contextmanager
def listening(bodies: list[tuple[str, bytes]], on: bool) -> Iterator[None]:
    """Keeps a copy of every request body, by host and model."""
    send = transport.Wire.send

    async def heard(wire: transport.Wire, call: Call, timeout_s: float | None = None) -> Answer:
        bodies.append((call.url, call.body or b""))
        return await send(wire, call, timeout_s)

    transport.Wire.send = heard if on else send
    try:
        yield
    finally:
        transport.Wire.send = send


def shared_bytes(one: bytes, other: bytes) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def share_sent_before(bodies: list[tuple[str, bytes]]) -> float:
    """The share of all bytes that are the beginning of an earlier request, as a provider's prompt cache counts."""
    known: list[bytes] = []
    total = sent_before = 0
    for _, body in bodies:
        at = bisect(known, body)
        near = [known[place] for place in (at - 1, at) if 0 <= place < len(known)]
        sent_before += max((shared_bytes(body, other) for other in near), default=0)
        total += len(body)
        known.insert(at, body)
    return sent_before / total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, required=True)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--in-flight", type=int, default=10)
    parser.add_argument("--target", choices=["model", "here"], default="model")
    parser.add_argument("--bodies", action="store_true")
    args = parser.parse_args()
    assert all((client, direct, openai)), "what a run loads when it needs it is loaded before"
    anyio.run(anyio.sleep, 0)  # loads what anyio has for asyncio
    room_for(args.in_flight)
    config = SimulationConfig.parse(options(args))
    bodies: list[tuple[str, bytes]] = []

    async def run() -> RunOutcome:
        return await run_simulation(config)

    gc.collect()
    with tempfile.TemporaryDirectory() as folder, listening(bodies, args.bodies):
        os.environ["EVALUATORQ_DIR"] = str(Path(folder))
        cpu, wall = time.process_time(), time.perf_counter()
        outcome = anyio.run(run)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        results = list(outcome.iter_results())
    report = {
        "cpu_s": cpu,
        "wall_s": wall,
        "turns": sum(result.turn_count for result in results),
        "missing": args.conversations - len(results),
        "unnamed": sum(result.errored and not (result.failed_component and result.reason) for result in results),
        "errored": sum(result.errored for result in results),
    }
    if args.bodies:
        report["sent_before"] = share_sent_before(bodies)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
