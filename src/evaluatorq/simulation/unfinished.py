"""A run that has only a journal: running, interrupted or killed. Its conversations so far, without asking anybody.

Read by index: one conversation at a time is in memory, and a run that goes on is read on with ``refresh``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from evaluatorq.conversation.machine import apply
from evaluatorq.errors import ConfigError
from evaluatorq.model.events import Ended
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.records.result import result_of
from evaluatorq.records.run import as_saved
from evaluatorq.reports.terminal import About
from evaluatorq.run.recover import Recovered, recovered
from evaluatorq.store.journal import is_held
from evaluatorq.store.journal_index import JournalIndex


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a journal tells so far."""

    index: JournalIndex

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The run whose journal is in ``folder``; ``ReplayError`` where it never began."""
        return cls(JournalIndex(folder))

    @property
    def plan(self) -> RunPlan:
        """What was asked for."""
        return self.index.plan

    @property
    def running(self) -> bool:
        """A process is writing it now."""
        return is_held(self.index.folder)

    @property
    def in_flight(self) -> list[int]:
        """The conversations that began and have not ended."""
        return [row for row in self.index.rows if row not in self.index.ended]

    def results(self) -> Iterator[SimulationResult]:
        """The results of conversations that ended, in row order."""
        for row in sorted(self.index.ended):
            found = self._recovered(row)
            if found.is_over or found.state.ended is not None:
                yield self._result(row, found)

    def result(self, row: int) -> SimulationResult:
        """Conversation ``row`` as far as it got."""
        if row >= len(self.plan.datapoints):
            raise ConfigError(f"there is no conversation {row}; the run has 0 to {len(self.plan.datapoints) - 1}")
        return self._result(row, self._recovered(row))

    def _recovered(self, row: int) -> Recovered:
        return recovered(self.plan, row, self.index.events(row))

    def _result(self, row: int, found: Recovered) -> SimulationResult:
        if found.record is not None:
            return as_saved(self.plan, row, found.record, found.scores.values())
        state = found.state
        if state.ended is None:
            state = apply(
                state,
                Ended(
                    at=self.plan.created_at,
                    terminated_by="error",
                    ended_by="error",
                    reason="not finished yet" if found.started else "not started yet",
                    failed_component="infrastructure",
                    error_type="cancelled",
                ),
            )
        result = result_of(state, thread_id=self.plan.thread_id(row), row=row)
        return as_saved(self.plan, row, result, found.scores.values())

    def about(self) -> About:
        """What a summary says of the run."""
        plan = self.plan
        status = "this run is still going on" if self.running else "this run was stopped; what follows is what it has"
        step = () if self.running else ((f"evaluatorq sim resume {plan.run_id}", "goes on with it"),)
        notes = (status, *(f"journal damaged: {line}" for line in dict.fromkeys(self.index.damage)))
        return replace(About.plan(plan), notes=notes, next_steps=step)
