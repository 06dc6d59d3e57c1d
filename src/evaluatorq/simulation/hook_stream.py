"""Puts hooks on a run's event stream: one sink that the run waits for, and that tells every hook in turn.

Around the run: confirmation, stage and run start before anything is written or asked; scores, the run's results and the
stage's end after everything is saved, also when the run failed. Several hooks are all told; the first exception counts.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Literal, Protocol, get_args

import anyio

from evaluatorq.conversation.machine import Conversation, Phase
from evaluatorq.errors import SimulationCancelledError, WrongKind
from evaluatorq.evaluators.explained import scores_told
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import Event
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.ports import CaseOrder
from evaluatorq.records.result import turn_metrics
from evaluatorq.simulation.hooks import DefaultHooks, SimStage, SimulationRunMeta

HookName = Literal[
    "on_confirm", "on_run_start", "on_stage_start", "on_stage_end", "on_generate_inputs_ready", "on_datapoint_start",
    "on_turn_complete", "on_datapoint_complete", "on_evaluator_complete", "on_datapoint_error", "on_run_complete",
]  # fmt: skip
HOOK_NAMES: tuple[HookName, ...] = get_args(HookName)
FAREWELL_S = 10.0
"""So long may hooks take to hear of a run that was cancelled."""

_log = logging.getLogger("evaluatorq.simulation")


def hooks_of(given: object) -> tuple[object, ...]:
    """The hooks in ``given``: none means ``DefaultHooks``. Raises ``WrongKind`` naming the methods that one lacks."""
    if given is None:
        return (DefaultHooks(),)
    hooks = tuple(given) if isinstance(given, Sequence) else (given,)
    for hook in hooks:
        lacking = [name for name in HOOK_NAMES if not callable(getattr(hook, name, None))]
        if lacking:
            raise WrongKind(f"hooks have eleven methods; {type(hook).__name__} has no {', '.join(lacking)}")
    return hooks


class _Hook(Protocol):
    def __call__(self, *what: object) -> object: ...


class ConversationHooks:
    """A sink for the conversations of one run that tells hooks when they begin, turn and end."""

    def __init__(self, hooks: object) -> None:
        self._hooks = hooks_of(hooks)
        self._plan: RunPlan | None = None
        self._told_turns: dict[str, int] = {}
        self._refused: dict[str, BaseException] = {}

    async def tell(self, name: HookName, *what: object) -> list[object]:
        """Tells every hook, then raises the first exception that one of them raised."""
        answers: list[object] = []
        failure: Exception | None = None
        for hook in self._hooks:
            method: _Hook = getattr(hook, name)
            try:
                answer = method(*what)
                answers.append(await answer if inspect.isawaitable(answer) else answer)
            except Exception as error:  # noqa: BLE001  the others are told first
                failure = failure or error
        if failure is not None:
            raise failure
        return answers

    async def opened(self, plan: RunPlan) -> None:
        """Learns the cases."""
        self._plan = plan

    async def followed(self, thread_id: str, conversation: Conversation) -> None:
        """Tells the start of a conversation, and each turn that is complete."""
        if thread_id not in self._told_turns:
            self._told_turns[thread_id] = conversation.turn_count
            try:
                await self.tell("on_datapoint_start", conversation.datapoint)
            except Exception as error:
                self._refused[thread_id] = error
                raise
        told = self._told_turns[thread_id]
        complete = conversation.turn_count - (conversation.phase is Phase.JUDGE)
        if complete <= told:
            return
        self._told_turns[thread_id] = complete
        for turn in conversation.turns:
            if told < turn.number <= complete:
                metrics = turn_metrics(turn, conversation)
                await _failure_of(self.tell("on_turn_complete", conversation.datapoint.id, metrics))

    async def closed(self, result: SimulationResult) -> None:
        """Tells the end of a conversation, and what broke it where something did."""
        self._told_turns.pop(result.thread_id or "", None)
        if result.errored:
            error = self._refused.pop(result.thread_id or "", None) or RuntimeError(result.reason)
            await _failure_of(self.tell("on_datapoint_error", self._datapoint(result), error))
        await _failure_of(self.tell("on_datapoint_complete", result))

    def append(self, thread_id: str, event: Event) -> None:
        """Hooks are told of turns, not of events."""

    def finished(self, result: SimulationResult) -> None:
        """Hooks are told by ``closed``."""

    def _datapoint(self, result: SimulationResult) -> SimulationDatapoint:
        assert self._plan is not None, "conversations end after the run was opened"
        return self._plan.datapoints[result.row or 0]


class HookStream(ConversationHooks):
    """A sink for one run that also tells hooks of the run itself. ``parallelism`` is only told."""

    def __init__(self, hooks: object, parallelism: int) -> None:
        super().__init__(hooks)
        self._parallelism = parallelism
        self._started = False
        self._confirmed = False
        self._making = False
        self._results: dict[int, SimulationResult] = {}

    @asynccontextmanager
    async def around(self) -> AsyncIterator[None]:
        """Tells the end of the run, with what ended it; a hook's own failure never takes the place of that."""
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            if self._making:
                meta = {"num_datapoints": 0, "error": error}
                await _failure_of(self.tell("on_stage_end", SimStage.GENERATE, meta))
            if self._started:
                await self._farewell(error)

    async def ordered(self, order: CaseOrder) -> None:
        """Asks for confirmation before cases are made, and tells that they are."""
        await self._confirm(_meta_of(order.plan, order.conversations, self._parallelism))
        await self.tell("on_stage_start", SimStage.GENERATE, {})
        self._making = True

    async def delivered(self, personas: int, scenarios: int, plan: RunPlan) -> None:
        """Tells what was made."""
        await self.tell("on_generate_inputs_ready", personas, scenarios)
        self._making = False
        meta = {"num_datapoints": len(plan.datapoints), "error": None}
        await self.tell("on_stage_end", SimStage.GENERATE, meta)

    async def opened(self, plan: RunPlan) -> None:
        """Asks for confirmation, unless cases were made with it, and tells that the run starts."""
        await super().opened(plan)
        meta = _meta_of(plan, len(plan.datapoints), self._parallelism)
        await self._confirm(meta)
        await self.tell("on_stage_start", SimStage.SIMULATE, {})
        await self.tell("on_run_start", meta)
        self._started = True

    async def _confirm(self, meta: SimulationRunMeta) -> None:
        if not self._confirmed and not all(await self.tell("on_confirm", meta)):
            raise SimulationCancelledError(f"not started: {meta['num_datapoints']} conversations were declined")
        self._confirmed = True

    def finished(self, result: SimulationResult) -> None:
        """Keeps the result for the end of the run, also one of an earlier process."""
        self._results[result.row or 0] = result

    async def _farewell(self, error: BaseException | None) -> None:
        unheard = late = None
        cancelled = error is not None and not isinstance(error, Exception)
        with anyio.move_on_after(FAREWELL_S if cancelled else None, shield=cancelled):
            unheard = await _failure_of(self._last_words())
            meta = {"num_results": len(self._results), "error": error or unheard}
            late = await _failure_of(self.tell("on_stage_end", SimStage.SIMULATE, meta))
        failure = unheard or late
        if error is None and failure is not None:
            raise failure

    async def _last_words(self) -> None:
        """Every score, then all results; the results also where telling a score failed."""
        results = [self._results[row] for row in sorted(self._results)]
        try:
            for result in results:
                for score in scores_told(result):
                    case = str(result.metadata.get("datapoint_id"))
                    await self.tell("on_evaluator_complete", case, score.evaluator_name, score, result)
        finally:
            await self.tell("on_run_complete", results)


def _meta_of(plan: RunPlan, conversations: int, parallelism: int) -> SimulationRunMeta:
    return {
        "num_datapoints": conversations,
        "model": plan.models.get("user_simulator", ""),
        "max_turns": plan.limits.max_turns,
        "datapoint_parallelism": parallelism,
        "evaluation_name": plan.evaluation_name or "",
        "evaluator_names": list(plan.evaluator_names),
        "target": plan.target or "",
    }


async def _failure_of(telling: Awaitable[object]) -> Exception | None:
    """What a hook raised, logged, because a watcher's fault must not end what it watches."""
    try:
        await telling
    except Exception as error:  # noqa: BLE001  whatever somebody else's code raises
        _log.warning("a hook failed", exc_info=error)
        return error
    return None
