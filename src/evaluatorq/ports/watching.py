"""What stands around conversations: scores of those that ended, and whoever watches a run or reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from evaluatorq.conversation.machine import Conversation
from evaluatorq.model.events import Event
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Analysis, RunPlan


@dataclass(frozen=True, slots=True)
class Score:
    """An evaluator's number, with an optional structure that explains it."""

    value: float
    details: dict[str, JsonValue] | None = None


class Evaluator(Protocol):
    """Turns a finished conversation into a number."""

    name: str
    version: str

    def evaluate(self, result: SimulationResult) -> Score | Awaitable[Score]:
        """The score, or an exception that says why there is none."""
        ...


class Sink(Protocol):
    """Watches a run: progress, live view, tracing. Called after the event is on disk."""

    def append(self, thread_id: str, event: Event) -> None:
        """One event of one conversation."""
        ...

    def finished(self, result: SimulationResult) -> None:
        """The record of a conversation that ended and was scored."""
        ...


@runtime_checkable
class Briefed(Protocol):
    """A sink that also sees the plan before anything is written or asked; what it raises calls the run off."""

    def begun(self, plan: RunPlan) -> None:
        """The run is about to start, or to go on."""
        ...


@runtime_checkable
class Attendant(Protocol):
    """A sink that is waited for, and that sees what is known rather than what was added.

    A run waits for it before it starts, and each conversation at its start, after each of its answers, and when its
    record is made.
    """

    async def opened(self, plan: RunPlan) -> None:
        """The run is about to start, or to go on; what this raises calls it off."""
        ...

    async def followed(self, thread_id: str, conversation: Conversation) -> None:
        """A conversation is at this point; what this raises ends it with an error."""
        ...

    async def closed(self, result: SimulationResult) -> None:
        """A conversation of this process has ended and was scored; what this raises ends the run."""
        ...


@dataclass(frozen=True, slots=True)
class CaseOrder:
    """Cases that are to be made: how many of each, by which model, and the plan so far, still without datapoints."""

    plan: RunPlan
    personas: int
    scenarios: int
    model: str

    @property
    def conversations(self) -> int:
        """How many pairs that makes."""
        return self.personas * self.scenarios


@runtime_checkable
class Commissioned(Protocol):
    """A sink that also sees cases being made, before there is a plan of conversations."""

    async def ordered(self, order: CaseOrder) -> None:
        """Models are about to be asked; what this raises calls it off before anything is spent."""
        ...

    async def delivered(self, personas: int, scenarios: int, plan: RunPlan) -> None:
        """The cases are made: so many personas and scenarios, paired in the plan."""
        ...


ReadResult = Callable[[int], SimulationResult]


class Analyst(Protocol):
    """Reads a run once, after its last conversation."""

    async def conclude(self, rows: Sequence[int], read: ReadResult) -> Analysis:
        """What the rows add up to; ``read`` gets a row's result. Raises nothing that would end a paid run."""
        ...
