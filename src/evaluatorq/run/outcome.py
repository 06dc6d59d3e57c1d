"""What a run came to: where it is saved, what finished, what was dropped and whose fault that was."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evaluatorq.errors import Component, ReplayError
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRun
from evaluatorq.store.runs import iter_results, read_run

NOT_THE_AGENTS: tuple[Component, ...] = ("user_simulator", "judge", "environment", "infrastructure")
"""Whose faults say nothing about the agent, so that the conversation is worth running again."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """One conversation that ended in error or timeout: which, whose fault, what kind, and what was said about it."""

    row: int
    component: Component | None
    code: str
    reason: str


@dataclass(slots=True)
class RunOutcome:
    """A run that has ended or stopped. ``interrupted`` means that conversations are missing and can be resumed.

    ``damage`` names lines of the journal that could not be read; the conversations they belonged to began anew.
    ``verdicts`` counts conversations by verdict.
    ``header`` is the run without results; ``results`` holds them in row order only when they were asked to be kept.
    """

    run_id: str
    run_name: str
    total: int
    finished: int = 0
    dropped: list[Dropped] = field(default_factory=list)
    path: Path | None = None
    journal: Path | None = None
    interrupted: bool = False
    stopped_by: str | None = None
    header: SimulationRun | None = field(default=None, repr=False)
    results: list[SimulationResult] = field(default_factory=list, repr=False)
    damage: list[str] = field(default_factory=list)
    verdicts: dict[str, int] = field(default_factory=dict)

    @property
    def errored(self) -> list[Dropped]:
        """The conversations that ended in error or timeout."""
        return self.dropped

    def read(self) -> SimulationRun:
        """The whole run; from memory where it was kept, else from its file."""
        if self.header is not None and len(self.results) == self.finished:
            return self.header.model_copy(update={"results": list(self.results)})
        return read_run(self._file())

    def iter_results(self) -> Iterator[SimulationResult]:
        """The results one at a time, in row order."""
        return iter(self.results) if self.results else iter_results(self._file())

    def forget_journal(self) -> None:
        """Removes the journal of a run that its caller did not want saved and has in hand."""
        if self.journal is not None:
            shutil.rmtree(self.journal, ignore_errors=True)
            self.journal = None

    def _file(self) -> Path:
        if self.path is None:
            raise ReplayError(f"run {self.run_id} was not saved")
        return self.path
