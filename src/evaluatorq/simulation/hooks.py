"""Who is told what happens in a run: eleven methods, each sync or async. ``DefaultHooks`` log; ``RichHooks`` draw.

Only ``on_turn_complete``, ``on_datapoint_complete`` and ``on_datapoint_error`` may fail without consequence: they are
logged, since nothing that was paid for may be lost to a watcher. What ``on_datapoint_start`` raises ends that
conversation; what ``on_confirm``, ``on_stage_start`` or ``on_run_start`` raises calls the run off; what the others
raise is raised when everything is saved.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict, TypeVar

from evaluatorq.evaluators.explained import EvaluationResult, EvaluatorScore
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import SimulationResult, TurnMetrics

if TYPE_CHECKING:
    from evaluatorq.simulation.rich_hooks import RichHooks

T = TypeVar("T")
MaybeAsync: TypeAlias = T | Awaitable[T]
"""What a hook returns: the value, or something to wait for."""

_log = logging.getLogger("evaluatorq.simulation")


class SimStage(StrEnum):
    """A part of a run."""

    GENERATE = "generate"
    SIMULATE = "simulate"


class SimulationRunMeta(TypedDict):
    """What is about to be run. ``model`` plays the user; it is empty where no model does."""

    num_datapoints: int
    model: str
    max_turns: int
    datapoint_parallelism: int
    evaluation_name: str
    evaluator_names: list[str]
    target: str


StageMeta = Mapping[str, object]
"""At the end of a stage: ``error`` (an exception or ``None``) and ``num_results`` or ``num_datapoints``."""


class SimulationHooks(Protocol):
    """A watcher of a run. Every method may also be a coroutine."""

    def on_confirm(self, meta: SimulationRunMeta) -> MaybeAsync[bool]:
        """Whether to go on; asked before anything is paid for."""
        ...

    def on_run_start(self, meta: SimulationRunMeta) -> MaybeAsync[None]:
        """Conversations are about to begin."""
        ...

    def on_stage_start(self, stage: SimStage | str, meta: StageMeta) -> MaybeAsync[None]:
        """A stage begins."""
        ...

    def on_stage_end(self, stage: SimStage | str, meta: StageMeta) -> MaybeAsync[None]:
        """A stage is over, also when it failed."""
        ...

    def on_generate_inputs_ready(self, num_personas: int, num_scenarios: int) -> MaybeAsync[None]:
        """Personas and scenarios were generated."""
        ...

    def on_datapoint_start(self, datapoint: SimulationDatapoint) -> MaybeAsync[None]:
        """A conversation begins."""
        ...

    def on_turn_complete(self, datapoint_id: str, metrics: TurnMetrics) -> MaybeAsync[None]:
        """A turn was judged, or its judging was left out."""
        ...

    def on_datapoint_complete(self, result: SimulationResult) -> MaybeAsync[None]:
        """A conversation has ended and was scored."""
        ...

    def on_evaluator_complete(
        self, datapoint_id: str, name: str, score: EvaluatorScore, result: SimulationResult
    ) -> MaybeAsync[None]:
        """One score of one conversation; told when all conversations have ended."""
        ...

    def on_datapoint_error(self, datapoint: SimulationDatapoint, exception: BaseException) -> MaybeAsync[None]:
        """A conversation ended in an error or a timeout; ``on_datapoint_complete`` follows."""
        ...

    def on_run_complete(self, results: list[SimulationResult]) -> MaybeAsync[None]:
        """The run is over, with the results that there are; told once, also after a failure."""
        ...


class DefaultHooks:
    """Logs to ``evaluatorq.simulation``: runs and stages (INFO), conversations and turns (DEBUG), faults (WARNING)."""

    async def on_confirm(self, meta: SimulationRunMeta) -> bool:  # noqa: ARG002  a hook's signature
        """Yes."""
        return True

    async def on_run_start(self, meta: SimulationRunMeta) -> None:
        """Logs the plan."""
        _log.info("run: %(num_datapoints)d conversations with %(target)s, at most %(max_turns)d turns each", meta)

    async def on_stage_start(self, stage: SimStage | str, meta: StageMeta) -> None:  # noqa: ARG002
        """Logs the stage."""
        _log.info("stage %s begins", stage)

    async def on_stage_end(self, stage: SimStage | str, meta: StageMeta) -> None:
        """Logs the stage's end, and what ended it."""
        if meta.get("error") is not None:
            _log.warning("stage %s failed: %s", stage, meta["error"])
        else:
            _log.info("stage %s is over", stage)

    async def on_generate_inputs_ready(self, num_personas: int, num_scenarios: int) -> None:
        """Logs the counts."""
        _log.info("generated %d personas and %d scenarios", num_personas, num_scenarios)

    async def on_datapoint_start(self, datapoint: SimulationDatapoint) -> None:
        """Logs the id."""
        _log.debug("%s begins", datapoint.id)

    async def on_turn_complete(self, datapoint_id: str, metrics: TurnMetrics) -> None:
        """Logs the turn; not what was said, which may be what the run keeps out of files."""
        _log.debug("%s: turn %d", datapoint_id, metrics.turn_number)

    async def on_datapoint_complete(self, result: SimulationResult) -> None:
        """Logs how it ended."""
        _log.debug("%s ended by %s", result.metadata.get("datapoint_id"), result.terminated_by.value)

    async def on_evaluator_complete(
        self,
        datapoint_id: str,
        name: str,
        score: EvaluatorScore,
        result: SimulationResult,  # noqa: ARG002
    ) -> None:
        """Logs the score; an evaluator that failed is a warning."""
        if score.error is not None:
            _log.warning("%s: %s gave no score: %s", datapoint_id, name, score.error)
        else:
            _log.debug("%s: %s = %s", datapoint_id, name, score.score.value)

    async def on_datapoint_error(self, datapoint: SimulationDatapoint, exception: BaseException) -> None:
        """Logs what broke the conversation."""
        _log.warning("%s failed: %s", datapoint.id, exception)

    async def on_run_complete(self, results: list[SimulationResult]) -> None:
        """Logs how many results there are."""
        _log.info("run over: %d results", len(results))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """``RichHooks``, which loads a drawing library, only when it is asked for."""
        if name == "RichHooks":
            from evaluatorq.simulation.rich_hooks import RichHooks  # noqa: PLC0415

            return RichHooks
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DefaultHooks", "EvaluationResult", "EvaluatorScore", "RichHooks", "SimStage", "SimulationHooks",
    "SimulationRunMeta",
]  # fmt: skip
