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
from evaluatorq.model.runs import RunManifest, RunPlan, StageRecord
from evaluatorq.run.clock import Clock
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.store.manifests import HEARTBEAT_S, write_manifest

Status = Literal["running", "completed", "error", "cancelled"]


class RunStatus:
    """Writes the manifest at each transition and every two seconds in between."""

    def __init__(
        self, plan: RunPlan, runs_dir: Path | None, parallelism: int, clock: Clock, done: Callable[[], int]
    ) -> None:
        self._runs_dir = runs_dir
        self._clock = clock
        self._done = done
        now = clock.now()
        self._manifest = RunManifest(
            run_id=plan.run_id,
            run_name=plan.run_name,
            stage="simulate",
            stages=[StageRecord(name="simulate", started_at=now, completed=0, total=len(plan.datapoints))],
            started_at=plan.created_at,
            updated_at=now,
            parallelism=parallelism,
            pid=os.getpid(),
            host=socket.gethostname(),
            heartbeat_at=now,
        )

    def begin(self) -> None:
        """The run is under way."""
        self._write("running")

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

    def _write(self, status: Status, **more: object) -> None:
        if self._runs_dir is None:
            return
        now = self._clock.now()
        ended = None if status == "running" else now
        stage = self._manifest.stages[0].model_copy(
            update={"status": status, "completed": self._done(), "ended_at": ended}
        )
        times = {"updated_at": now, "heartbeat_at": now, "ended_at": ended}
        self._manifest = self._manifest.model_copy(update={"status": status, "stages": [stage], **times, **more})
        write_manifest(self._manifest, self._runs_dir)
