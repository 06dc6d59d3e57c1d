"""What saved runs cost to read and commands to carry out: times in this process, memory of processes of their own."""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from peak import peak_mib
from workload import PERSONA, datapoints, first_line, scenario

from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRun
from evaluatorq.simulation.api import run_simulation
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.store.runs import iter_results, list_runs, read_run, save_run


def write_big_run(folder: Path, count: int) -> Path:
    """A run file of ``count`` results, made from the results of a real offline run."""
    os.environ["EVALUATORQ_DIR"] = str(folder)
    config = SimulationConfig.parse(
        {"datapoints": datapoints(50), "target": "demo", "offline": True, "save": True, "max_turns": 5,
         "raise_on_execution_failure": False}
    )  # fmt: skip
    outcome = anyio.run(lambda: run_simulation(config))
    assert outcome.path is not None
    run = read_run(outcome.path)
    outcome.path.unlink()
    assert run.datapoints
    header = run.model_copy(
        update={"results": [], "total_results": count, "datapoints": [run.datapoints[n % 50] for n in range(count)]}
    )
    return save_run(
        header, (_copied(run.results[n % 50], n) for n in range(count)), outcome.path.parent, run.created_at
    )


def _copied(result: SimulationResult, row: int) -> bytes:
    return result.model_copy(update={"row": row}).model_dump_json(indent=2).encode()


def _timed(work: Callable[[], object]) -> float:
    gc.collect()
    before = time.process_time()
    work()
    return time.process_time() - before


def load_s(path: Path) -> float:
    return _timed(lambda: read_run(path))


def pydantic_s(path: Path) -> float:
    text = path.read_bytes()
    return _timed(lambda: SimulationRun.model_validate_json(text))


def list_s(path: Path) -> float:
    return _timed(lambda: list_runs(path.parent))


def first_s(path: Path) -> float:
    return _timed(lambda: next(iter_results(path)))


def peak_of_command(env: dict[str, str], in_flight: int, finished: int) -> float:
    """The most memory that ``sim simulate`` ever held, in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        cases = Path(folder) / "cases.jsonl"
        with cases.open("w") as file:
            for number in range(finished):
                about = scenario(number).model_dump(mode="json", exclude_none=True)
                row = {"persona": PERSONA.model_dump(mode="json", exclude_none=True), "scenario": about,
                       "first_message": first_line(number)}  # fmt: skip
                file.write(json.dumps(row) + "\n")
        words = ["sim", "simulate", "-i", str(cases), "--openai-model", "mock-target", "--sim-model", "mock-user",
                 "--judge-model", "mock-judge", "--max-turns", "5", "--parallelism", str(in_flight), "-q"]  # fmt: skip
        return peak_mib([sys.executable, "-m", "evaluatorq", *words], env={**env, "EVALUATORQ_DIR": folder})
