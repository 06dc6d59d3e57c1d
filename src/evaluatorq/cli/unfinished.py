"""A run that has only a journal: running, interrupted or killed. Its conversations so far, without asking anybody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from evaluatorq.conversation.machine import apply, begin
from evaluatorq.errors import ConfigError
from evaluatorq.model.events import Ended
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.records.result import result_of, with_scores
from evaluatorq.reports.terminal import About
from evaluatorq.run.recover import Recovered, recover
from evaluatorq.store.journal import JournalReader, is_held


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a journal tells. ``running`` means that a process is writing it now."""

    plan: RunPlan
    conversations: dict[int, Recovered]
    damage: tuple[str, ...]
    running: bool

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads the whole journal."""
        reader = JournalReader(folder)
        plan = reader.plan
        recovery = recover(reader, plan, lambda _: False, lambda _row, _conversation: None)
        return cls(plan, recovery.unfinished, tuple(recovery.damage), is_held(folder))

    @property
    def ended(self) -> list[int]:
        """The rows of conversations that came to an end."""
        return sorted(row for row, conversation in self.conversations.items() if conversation.state.ended is not None)

    def results(self) -> Iterator[SimulationResult]:
        """The results of conversations that ended, in row order."""
        return (self.result(row) for row in self.ended)

    def result(self, row: int) -> SimulationResult:
        """Conversation ``row`` as far as it got."""
        if row >= len(self.plan.datapoints):
            raise ConfigError(f"there is no conversation {row}; the run has 0 to {len(self.plan.datapoints) - 1}")
        conversation = self.conversations.get(row) or Recovered(begin(self.plan.datapoints[row], self.plan.limits))
        if conversation.record is not None:
            return with_scores(conversation.record.model_copy(deep=True), conversation.scores.values())
        state = conversation.state
        if state.ended is None:
            state = apply(
                state,
                Ended(
                    at=self.plan.created_at,
                    terminated_by="error",
                    ended_by="error",
                    reason="not finished yet" if conversation.started else "not started yet",
                    failed_component="infrastructure",
                    error_type="cancelled",
                ),
            )
        return result_of(state, thread_id=self.plan.thread_id(row), row=row, scores=list(conversation.scores.values()))

    def about(self) -> About:
        """What a summary says of the run."""
        plan = self.plan
        status = "this run is still going on" if self.running else "this run was stopped; what follows is what it has"
        step = () if self.running else ((f"evaluatorq sim resume {plan.run_id}", "goes on with it"),)
        notes = (status, *(f"journal damaged: {line}" for line in self.damage))
        return replace(About.plan(plan), notes=notes, next_steps=step)
