"""Steps a recorded conversation through today's machine, from any boundary on, and notes every difference.

What is deterministic is done again: rules, fixed lines, the outside's patches, offline users and judges, built-in
scores. Answers of models, and of tools that must not be repeated, are taken from the recording once the question
proves to be the recorded one. After a difference in an answer the recording goes on, so that one fault is one report;
after a difference in the order of things there is nothing to go on with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from evaluatorq.conversation.machine import begin, next_request, request_digest
from evaluatorq.conversation.requests import AskJudge, AskUser, ChangeWorld, Request, RunTools, Stop
from evaluatorq.environments.outside import apply_event
from evaluatorq.errors import CallError, ReplayError
from evaluatorq.evaluators.builtin import SIMULATION_EVALUATORS
from evaluatorq.evaluators.registry import evaluate_one, resolve_evaluators
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import (
    CallFailed,
    Ended,
    Event,
    Noted,
    Observed,
    Resumed,
    Scored,
    Started,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
    WorldChanged,
)
from evaluatorq.model.messages import ToolCall
from evaluatorq.model.trace import Trace
from evaluatorq.ports import Attentive, Environment, Seat, ToolSpec, ToolsReply, UserFactory
from evaluatorq.records.drift import Drift, DriftKind, Mode, differences, step_drifts
from evaluatorq.records.due import answers, ending_differences, event_digest, from_outside, misplaced
from evaluatorq.records.result import result_of
from evaluatorq.records.trace import Walk
from evaluatorq.records.trace_case import content_hash
from evaluatorq.records.trace_events import Recorded, datapoint_of, recorded_events
from evaluatorq.records.training import is_redacted
from evaluatorq.roles.checks import check_judge
from evaluatorq.roles.scripted import offline_user
from evaluatorq.run.crew import without_truth
from evaluatorq.run.driver import waits_for
from evaluatorq.run.live_tools import Round, rerun
from evaluatorq.run.text import clean_text


class OutOfStep(Exception):  # noqa: N818  a state, not an error: nothing can be compared any more
    """The recording and the machine want different things."""


@dataclass(slots=True)
class Retrace:
    """One replay under way. ``environment`` is a world to run harmless tools in, where that is wanted; ``user`` plays
    whoever spoke without a model.
    """

    trace: Trace
    environment: Environment | None = None
    seed: int = 0
    start_at: int = 0
    user: UserFactory = offline_user
    drifts: list[Drift] = field(default_factory=list)
    modes: dict[int, Mode] = field(default_factory=dict)
    datapoint: SimulationDatapoint = field(init=False)
    walk: Walk = field(init=False)

    def __post_init__(self) -> None:
        self.datapoint = datapoint_of(self.trace)
        self.walk = Walk(begin(self.datapoint, self.trace.run.limits))

    async def run(self) -> None:
        """Replays everything from ``start_at`` on."""
        recorded = recorded_events(self.trace)
        self._check_start(recorded)
        try:
            for number, one in enumerate(recorded):
                skipped = one.first_step < self.start_at or any(step.abandoned for step in one.steps)
                event = one.event if skipped else await self._again(one, recorded[number + 1 :])
                self._take(one, event, skipped=skipped)
        except OutOfStep:
            return

    def _check_start(self, recorded: Sequence[Recorded]) -> None:
        """Refuses a start in the middle of an event, before a restart, or without the state that it needs."""
        start = self.start_at
        places = {one.first_step for one in recorded} | {len(self.trace.steps)}
        if start not in places:
            near = sorted(places, key=lambda place: abs(place - start))[:2]
            raise ReplayError(f"step {start} is no boundary; the nearest are {' and '.join(map(str, sorted(near)))}")
        if start and any(step.abandoned for step in self.trace.steps[start:]):
            raise ReplayError(f"step {start} was abandoned by a restart; start after it")
        if start and self.trace.snapshots is not None:
            self._check_state(f"s{start}", self.trace.snapshots.get(f"s{start}"))

    def _check_state(self, name: str, reference: str | None) -> None:
        states = self.trace.states or {}
        if reference is None or reference not in states:
            raise ReplayError(f"the trace keeps no state for {name}, so the conversation cannot start there")
        if content_hash(states[reference]) != reference:
            raise ReplayError(
                f"the state kept for {name} is not the recorded one: its content does not fit {reference}"
            )

    def _take(self, one: Recorded, event: Event, *, skipped: bool) -> None:
        made = self.walk.take(event)
        for number in range(one.first_step, one.after_step):
            self.modes.setdefault(number, "skipped" if skipped else "reexecuted")
        if not skipped:
            self.drifts += step_drifts(one.steps, made, one.first_step)

    # ---------------------------------------------------------------- one event

    async def _again(self, one: Recorded, later: Sequence[Recorded]) -> Event:  # noqa: PLR0911  one kind per case
        """What the event is now; the recorded one where it cannot be had without asking anybody."""
        event, state = one.event, self.walk.state
        match event:
            case Noted() | Observed() | Resumed():
                return self._substituted(one, event)
            case Started():
                self._begin(event)
                return event
            case Scored():
                return await self._score(one, event)
            case Ended():
                return self._end(one, event)
        request = next_request(state)
        self._in_step(one, request, later)
        if event_digest(event) not in ("", request_digest(state, request)):
            self._drift("request_drift", one, "/request_digest", event_digest(event), request_digest(state, request))
        match event, request:
            case UserSpoke(), AskUser():
                return await self._speak(one, event, request)
            case TurnJudged(), AskJudge():
                return await self._judge(one, event, request)
            case WorldChanged(), ChangeWorld():
                return await self._change(one, event, request)
            case ((TargetReplied() | ToolsReturned()), _):
                return await self._rerun(one, event)
        return self._substituted(one, event)

    def _in_step(self, one: Recorded, request: Request, later: Sequence[Recorded]) -> None:
        """Whether the recorded event answers what is asked now."""
        event = one.event
        if isinstance(request, Stop):
            self._drift("extra_step", one, "", event.kind, None)
            raise OutOfStep
        if isinstance(event, CallFailed):
            if event.component in ("infrastructure", "environment", waits_for(self.walk.state)):
                return
        elif answers(event, request):
            return
        kind = misplaced(request, (next_.event for next_ in later))
        self._drift(kind, one, "/kind", event.kind, type(request).__name__)
        raise OutOfStep

    def _substituted(self, one: Recorded, event: Event) -> Event:
        for number, step in enumerate(one.steps, one.first_step):
            if step.kind != "rule":
                self.modes[number] = "substituted"
        return event

    def _drift(self, kind: DriftKind, one: Recorded, path: str, recorded: JsonValue, replayed: JsonValue) -> None:
        self.drifts.append(Drift(kind, one.first_step, path, recorded, replayed))

    # ---------------------------------------------------------------- what can be done again

    def _begin(self, event: Started) -> None:
        """The world begins as it was recorded."""
        if self.environment is None or self.start_at:
            return
        for path, old, new in differences(event.state, self.environment.snapshot(), "/states"):
            self.drifts.append(Drift("result_drift", None, path, old, new))

    async def _speak(self, one: Recorded, event: UserSpoke, request: AskUser) -> Event:
        if request.scripted is not None:
            source = "first_message" if request.is_first_message else "scripted"
            return event.model_copy(update={"text": clean_text(request.scripted), "source": source, "stop": False})
        if event.source != "simulated":
            return event.model_copy(update={"source": "simulated"})
        if not self.trace.run.offline or self.trace.run.own_user or self.redacted:
            return self._substituted(one, event)
        seat = self._seat()
        reply = await self.user(replace(seat, datapoint=without_truth(seat.datapoint))).speak(request.messages)
        return event.model_copy(update={"text": clean_text(reply.text), "stop": reply.stop})

    async def _judge(self, one: Recorded, event: TurnJudged, request: AskJudge) -> Event:
        asked = not self.trace.run.offline or self.trace.run.own_judge or event.model is not None
        if asked or self.redacted:
            return self._substituted(one, event)
        judge = check_judge(self._seat())
        reply = await judge.judge(request.messages, request.open_criteria, final=request.final)
        update = {"judgment": reply.judgment, "goal_known": reply.goal_known, "final": request.final}
        return event.model_copy(update=update)

    @property
    def redacted(self) -> bool:
        """What was said is not known, so nobody can be asked again who goes by it."""
        return is_redacted(self.trace)

    def _seat(self) -> Seat:
        """A seat whose environment shows the recorded state."""
        world = _Shown(self.walk.state.environment.state) if self.walk.state.environment.present else None
        limits = self.trace.run.limits
        return Seat(self.datapoint, self.trace.thread_id, self.seed, limits.max_turns, world)

    async def _change(self, one: Recorded, event: WorldChanged, request: ChangeWorld) -> Event:
        """A patch is laid over the state again where there is a world for it; calls of tools are not made again."""
        world = self.environment
        if world is None or request.event.patch is None:
            return self._substituted(one, event)
        world.restore(self.walk.state.environment.state)
        try:
            await apply_event(world, request.event)
        except CallError as error:
            self._drift("result_drift", one, "", event.kind, f"it cannot be carried out: {error.message}")
            return event
        return event.model_copy(update={"state": world.snapshot(), "number": request.number})

    async def _rerun(self, one: Recorded, event: TargetReplied | ToolsReturned) -> Event:
        self._substituted(one, event)
        request = next_request(self.walk.state)
        calls = list(request.calls) if isinstance(request, RunTools) else _calls_in(event)
        if self.environment is None or not calls:
            return event
        before = self.walk.state.environment.state
        after = event.state if event.state_changed else before
        answers = {row.tool_call_id: row for row in event.messages if row.role == "tool" and row.tool_call_id}
        watcher: object = self.environment
        transcript = self.walk.state.messages if isinstance(watcher, Attentive) else ()
        found = await rerun(self.environment, Round(calls, answers, before, after, event.effects, transcript))
        places = {getattr(step, "call_id", ""): one.first_step + i for i, step in enumerate(one.steps)}
        for call_id in found.live:
            self.modes[places.get(call_id, one.first_step)] = "live"
        for call_id, path, old, new in found.differences:
            self.drifts.append(Drift("result_drift", places.get(call_id, one.first_step), path, old, new))
        return event

    async def _score(self, one: Recorded, event: Scored) -> Event:
        """Built-in scores are computed again."""
        state = self.walk.state
        ours = event.evaluator in SIMULATION_EVALUATORS and not self.trace.run.own_scoring
        if not ours or state.ended is None or self.redacted:
            return self._substituted(one, event)
        (evaluator,) = resolve_evaluators([event.evaluator])
        result = result_of(state, thread_id=self.trace.thread_id, row=self.trace.row)
        outcome = await evaluate_one(evaluator, result)
        return event.model_copy(update={"score": outcome.score, "error": outcome.error, "details": outcome.details})

    def _end(self, one: Recorded, event: Ended) -> Event:
        """An ending that the machine decides is decided again; one that came from outside is taken as it is."""
        request = next_request(self.walk.state)
        if not isinstance(request, Stop):
            if from_outside(event):
                return self._substituted(one, event)
            self._drift("terminal_drift", one, "/data/terminated_by", event.terminated_by, type(request).__name__)
            raise OutOfStep
        for name, old, new in ending_differences(event, request):
            self._drift("terminal_drift", one, f"/data/{name}", old, new)
        return event


def _calls_in(event: TargetReplied | ToolsReturned) -> list[ToolCall]:
    """The calls that an agent made and answered itself."""
    return [call for row in event.messages for call in row.tool_calls or ()]


@dataclass(slots=True)
class _Shown:
    """A world that can only be looked at."""

    state: JsonValue
    tools: tuple[ToolSpec, ...] = ()

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:
        raise ReplayError(f"a replay runs no tools here, not even {calls[0].function.name}")

    def snapshot(self) -> JsonValue:
        return self.state

    def restore(self, state: JsonValue) -> None:
        self.state = state
