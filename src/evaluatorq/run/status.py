"""Keeps a run's manifest: what it is doing, how far it is, whether it still lives. Only saved runs have one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread

from evaluatorq.errors import StoreError
from evaluatorq.model.runs import RunManifest, RunPlan, SimulationRun, StageRecord
from evaluatorq.run.clock import Clock
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.store.manifests import HEARTBEAT_S, read_manifest, write_manifest

Status = Literal["running", "completed", "error", "cancelled"]


class RunStatus:
    """Writes the manifest at each transition and every two seconds in between.

    ``done`` counts the conversations that ended, ``None`` for the stage in which cases are made.
    """

    def __init__(
        self, plan: RunPlan, runs_dir: Path | None, parallelism: int, clock: Clock, done: Callable[[], int] | None
    ) -> None:
        self._runs_dir = runs_dir
        self._clock = clock
        self._done = done
        now = clock.now()
        name = "generate" if done is None else "simulate"
        stage = StageRecord(name=name, started_at=now, total=None if done is None else len(plan.datapoints))
        self._manifest = RunManifest(
            run_id=plan.run_id,
            run_name=plan.run_name,
            target=plan.target,
            mode=plan.mode,
            stage=name,
            stages=[*self._stages_before(plan.run_id, name), stage],
            started_at=plan.created_at,
            updated_at=now,
            parallelism=parallelism,
            pid=os.getpid(),
            host=socket.gethostname(),
            heartbeat_at=now,
        )

    def _stages_before(self, run_id: str, name: str) -> list[StageRecord]:
        """What an earlier writer of this manifest says of the stages before this one."""
        written = read_manifest(run_id, self._runs_dir) if self._runs_dir is not None else None
        return [stage for stage in written.stages if stage.name != name] if written is not None else []

    def begin(self) -> None:
        """The run is under way."""
        self._write("running")

    def over(self) -> None:
        """This stage is over, and the next will say so itself."""
        self._write("running", stage_status="completed")

    async def beat(self) -> None:
        """Says every two seconds that the run lives and how far it is, until cancelled."""
        while True:
            await anyio.sleep(HEARTBEAT_S)
            with suppress(StoreError):
                await anyio.to_thread.run_sync(self._write, "running")

    def completed(self, outcome: RunOutcome) -> None:
        """The run file is in place."""
        header = outcome.header
        self._write(
            "completed",
            report_path=str(outcome.path) if outcome.path else None,
            summary=header.manifest_summary() if header else None,
            summary_version=1,
            undecided={} if header is None else _undecided(header),
            verdicts=outcome.verdicts,
        )

    def failed(self, error: BaseException) -> None:
        """The run ended by a fault, or because somebody interrupted it."""
        with suppress(StoreError):
            if isinstance(error, Exception):
                self._write("error", error=str(error))
            else:
                self._write("cancelled")

    def stopped(self, reason: str | None) -> None:
        """The run stopped itself: its time or budget was up, or an endpoint's quota."""
        with suppress(StoreError):
            self._write("cancelled", error=f"stopped by {reason}")

    def _write(self, status: Status, *, stage_status: Status | None = None, **more: object) -> None:
        if self._runs_dir is None:
            return
        now = self._clock.now()
        ended = None if status == "running" else now
        *before, stage = self._manifest.stages
        of_stage = {
            "status": stage_status or status,
            "completed": None if self._done is None else self._done(),
            "ended_at": now if stage_status else ended,
        }
        times = {"updated_at": now, "heartbeat_at": now, "ended_at": ended}
        stages = [*before, stage.model_copy(update=of_stage)]
        self._manifest = self._manifest.model_copy(update={"status": status, "stages": stages, **times, **more})
        write_manifest(self._manifest, self._runs_dir)


def _undecided(run: SimulationRun) -> dict[str, int]:
    """The averages that rest on goals which nobody could decide, and in how many conversations."""
    return {name: count.undecided for name, count in run.score_counts.items() if count.undecided}
