"""A run of the past as something to start from: its plan, and each conversation's events, from its journal or its file.

A run saved without a journal, as the published package does, still tells what was said; what the world behind the agent
was between two turns it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from evaluatorq.errors import ReplayError, RunNotFound
from evaluatorq.model.events import REDACTED, Event, Noted
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.records.recorded import events_of, last_attempt
from evaluatorq.store.journal_index import JournalIndex
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir
from evaluatorq.store.runs import find_journal, find_run, iter_results, read_header
from evaluatorq.store.saved_plan import plan_in


@dataclass(frozen=True, slots=True)
class Past:
    """``plan`` is the run's own, or made up of what its file says. ``journal`` is ``None`` where there is none."""

    plan: RunPlan
    journal: JournalIndex | None
    results: Mapping[int, SimulationResult]

    @classmethod
    def open(cls, reference: str, runs_dir: Path | None = None) -> Self:
        """The run that ``reference`` names; ``ReplayError`` for one that holds neither cases nor a journal."""
        folder = runs_dir or get_sim_runs_dir()
        try:
            path = find_run(reference, folder)
        except RunNotFound:
            index = JournalIndex(find_journal(reference, folder))
            return cls(index.plan, index, {})
        header = read_header(path)
        journal = journals_dir(folder) / (header.run_id or "")
        if header.run_id is not None and journal.is_dir():
            index = JournalIndex(journal)
            return cls(index.plan, index, {})
        return cls(plan_in(path), None, dict(enumerate(iter_results(path))))

    @property
    def rows(self) -> list[int]:
        """The conversations that came to an end."""
        ended = self.results.keys() if self.journal is None else self.journal.ended
        return sorted(row for row in ended if row < len(self.plan.datapoints))

    def events(self, row: int) -> list[Event]:
        """What happened in conversation ``row``, from its last beginning on, without what it cost."""
        if self.journal is None:
            return events_of(self.results[row], self.plan.created_at)
        events = self.journal.events(row)
        if any(isinstance(event, Noted) and event.what == REDACTED for event in events):
            which = self.plan.thread_id(row)
            raise ReplayError(f"conversation {which} was redacted before it was written: what was said is not known")
        return last_attempt(events)
