"""A trace read back as the events that it was made from: what a replay steps through.

Nothing that the machine needs is lost on the way. Only the masks of what a restart abandoned are not those it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from pydantic import JsonValue

from evaluatorq.errors import SchemaError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import (
    EVENT,
    CallFailed,
    Event,
    Started,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
)
from evaluatorq.model.messages import Message
from evaluatorq.model.trace import Failure, JudgeStep, NoteStep, RuleStep, Step, TargetStep, ToolStep, Trace, UserStep


@dataclass(frozen=True, slots=True)
class Recorded:
    """One event with the steps it was made into, and where they begin among the trace's steps."""

    event: Event
    first_step: int
    steps: tuple[Step, ...] = ()

    @property
    def after_step(self) -> int:
        """The number of the step that follows."""
        return self.first_step + len(self.steps)


def datapoint_of(trace: Trace) -> SimulationDatapoint:
    """The case that the conversation played."""
    return SimulationDatapoint.model_validate(trace.input)


def recorded_events(trace: Trace) -> tuple[Recorded, ...]:
    """The conversation's events in order. ``SchemaError`` for a trace whose steps contradict each other."""
    found: list[Recorded] = []
    reader, at, last = _Reader(trace), 0, -1
    begins = trace.started is not None
    for number, steps in groupby(trace.steps, key=lambda step: step.event):
        if begins and number > len(found):
            found.append(reader.started(at))
            begins = False
        if number <= last:
            raise SchemaError(f"{trace.thread_id}: step {at} goes back to event {number}; steps stand in order")
        group = tuple(steps)
        found.append(Recorded(reader.event_of(group, at), at, group))
        at, last = at + len(group), number
    return (*found, reader.started(at)) if begins else tuple(found)


def events_of(trace: Trace) -> tuple[Event, ...]:
    """The events alone."""
    return tuple(recorded.event for recorded in recorded_events(trace))


def state_before(trace: Trace, step: int) -> JsonValue:
    """The environment's state before a step; ``None`` where none is kept for it."""
    reference = (trace.snapshots or {}).get(f"s{step}")
    return None if reference is None else (trace.states or {}).get(reference)


@dataclass(slots=True)
class _Reader:
    trace: Trace
    last_reference: str | None = None

    def started(self, at: int) -> Recorded:
        """How the conversation began; the one event that makes no step."""
        start, world = self.trace.started, self.trace.environment
        if start is None:
            raise SchemaError(f"{self.trace.thread_id}: the conversation has steps and no beginning")
        self.last_reference = (self.trace.snapshots or {}).get(f"s{at}")
        tools = world.tools if world is not None else None
        event = Started(
            at=start.at,
            attempt=start.attempt,
            has_environment=start.has_environment,
            tools=tools or {},
            state=state_before(self.trace, at),
        )
        return Recorded(event, at)

    def event_of(self, group: Sequence[Step], at: int) -> Event:
        """The event that a group of steps was made from."""
        reference = (self.trace.snapshots or {}).get(f"s{at + len(group)}", self.last_reference)
        changed = reference != self.last_reference
        self.last_reference = reference
        state = state_before(self.trace, at + len(group))
        world: dict[str, JsonValue] = {"state": state, "state_changed": True} if changed else {}
        acts = [step for step in group if not isinstance(step, RuleStep)]
        if not acts:
            raise SchemaError(f"{self.trace.thread_id}: step {at} is a rule that fired on nothing")
        failure = getattr(acts[0], "error", None)
        if isinstance(failure, Failure):
            return _call_failed(acts[0], failure)
        match acts[0]:
            case UserStep():
                return _user_spoke(acts[0])
            case JudgeStep():
                return _turn_judged(acts[0])
            case NoteStep():
                return _noted(acts[0], state, world, _rows(acts))
            case ToolStep(ran_by="environment"):
                return _tools_returned([step for step in acts if isinstance(step, ToolStep)], world)
        return _target_replied(acts, world)


def _paid(step: UserStep | TargetStep | ToolStep | JudgeStep) -> dict[str, object]:
    return {
        "at": step.at,
        "digest": step.request_digest or "",
        "latency_ms": step.latency_ms,
        "usage": step.usage,
        "usage_known": not step.usage_unknown,
        "model": step.model,
        "loss_mask": step.loss_mask,
    }


def _user_spoke(step: UserStep) -> UserSpoke:
    said = {"text": step.text or "", "stop": bool(step.stop), "source": step.source, "reasoning": step.reasoning}
    return UserSpoke.model_validate({**_paid(step), **said})


def _turn_judged(step: JudgeStep) -> TurnJudged:
    return TurnJudged.model_validate(
        {
            **_paid(step),
            "judgment": step.judgment,
            "final": bool(step.final),
            "strict": not step.lenient_quotes,
            "goal_known": not step.goal_unknown,
            "refused": step.refused or {},
            "unknown_scores": step.unknown_scores or {},
        }
    )


def _target_replied(acts: Sequence[Step], world: dict[str, JsonValue]) -> TargetReplied:
    last = next(step for step in reversed(acts) if isinstance(step, TargetStep))
    names = ("response_id", "trace_id", "span_id", "finish_reason", "reasoning", "report", "assessment")
    own = [step for step in acts if isinstance(step, TargetStep) and not step.loss_mask]
    return TargetReplied.model_validate(
        {
            **_paid(last),
            **{name: getattr(last, name) for name in names},
            **world,
            "messages": _rows(acts),
            "reports_tools": bool(last.reports_tools),
            "effects": _effects(acts),
            "loss_mask": not own,
        }
    )


def _tools_returned(acts: Sequence[ToolStep], world: dict[str, JsonValue]) -> ToolsReturned:
    return ToolsReturned.model_validate(
        {**_paid(acts[-1]), **world, "messages": _rows(acts), "effects": _effects(acts)}
    )


def _rows(acts: Sequence[Step]) -> tuple[Message, ...]:
    steps = [step for step in acts if isinstance(step, TargetStep | ToolStep)]
    return tuple(step.message for step in steps if step.message is not None)


def _effects(acts: Sequence[Step]) -> dict[str, bool] | None:
    calls = [step for step in acts if isinstance(step, ToolStep)]
    if not any(step.changed is not None or step.read_only for step in calls):
        return None
    return {step.call_id: step.changed for step in calls if step.changed is not None}


def _call_failed(step: Step, failure: Failure) -> CallFailed:
    names = ("component", "code", "message", "attempt", "final", "retry_in_s", "raw")
    return CallFailed.model_validate(
        {
            **{name: getattr(failure, name) for name in names},
            "at": step.at,
            "usage": getattr(step, "usage", None),
            "usage_known": not getattr(step, "usage_unknown", None),
            "latency_ms": getattr(step, "latency_ms", None),
            "digest": getattr(step, "request_digest", None) or "",
        }
    )


def _noted(step: NoteStep, state: JsonValue, world: dict[str, JsonValue], called: tuple[Message, ...]) -> Event:
    fields: dict[str, object] = {**(step.data or {}), "kind": step.what, "at": step.at}
    if step.what == "ended":
        fields |= {**world, "called": called}
    elif step.what == "world_changed" or (step.what == "resumed" and fields.get("restart")):
        fields["state"] = state
    elif step.what == "noted":
        fields |= {"usage": step.usage, "usage_known": not step.usage_unknown}
    return EVENT.validate_python(fields)
