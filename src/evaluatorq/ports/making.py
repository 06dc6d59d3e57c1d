"""How participants are made: a factory each, told about the conversation that it makes one for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.ports.observing import BeliefDetector, ClaimFinder, ObservationSource
from evaluatorq.ports.participants import Environment, Judge, Target, UserSimulator


@dataclass(frozen=True, slots=True)
class Seat:
    """What a factory is told about the conversation it makes a participant for.

    ``environment`` records every call a target makes through it; ``None`` where the scenario has none. ``tools_url`` is
    where its tools are served over MCP, where they are. ``answer_s`` is how many seconds one answer of the agent may
    take, for targets that keep that time themselves.
    """

    datapoint: SimulationDatapoint
    thread_id: str
    seed: int
    max_turns: int
    environment: Environment | None = None
    tools_url: str | None = None
    answer_s: float | None = None


TargetFactory = Callable[[Seat], Target]
UserFactory = Callable[[Seat], UserSimulator]
JudgeFactory = Callable[[Seat], Judge]
EnvironmentFactory = Callable[[SimulationDatapoint, int], Environment | None]
SourceFactory = Callable[[Seat], ObservationSource]
DetectorFactory = Callable[[Seat], BeliefDetector | None]
FinderFactory = Callable[[Seat], ClaimFinder]
