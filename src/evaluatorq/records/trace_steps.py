"""A conversation's events as the typed steps of a trace: one or more steps for each event, in order.

A reply during which the agent ran tools itself becomes several: what it wrote, each call with its answer, what it wrote
next. A call that failed is a step of whoever failed, with the failure in place of words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from evaluatorq.conversation.machine import Conversation
from evaluatorq.model.events import (
    CallFailed,
    Ended,
    Event,
    Noted,
    Observed,
    Resumed,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
    WorldChanged,
)
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.trace import (
    Fact,
    Failure,
    JudgeStep,
    NoteStep,
    Precondition,
    Provenance,
    Step,
    TargetStep,
    ToolStep,
    UserStep,
)
from evaluatorq.records.accept import Acceptance
from evaluatorq.records.observation import call_outcome
from evaluatorq.records.states import changes_between

NOT_IN_NOTES = {
    "at",
    "kind",
    "state",
    "state_changed",
    "usage",
    "usage_known",
    "latency_ms",
    "digest",
    "loss_mask",
    "called",
}


@dataclass(slots=True)
class Calls:
    """What is known of tool calls while steps are made: which tools may be repeated, how often each was called, and
    the lists that calls have filled.
    """

    tools: Mapping[str, bool] = field(default_factory=dict)
    in_all: Counter[str] = field(default_factory=Counter)
    in_turn: Counter[tuple[int, str]] = field(default_factory=Counter)
    lists: dict[str, Acceptance] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """An event among its conversation's events, with the conversation before and after it."""

    number: int
    event: Event
    before: Conversation
    after: Conversation
    calls: Calls
    redacted: bool = False

    @property
    def turn(self) -> int:
        """The exchange that the event belongs to, from 1; 0 before the user's first words."""
        return self.after.turns[-1].number if self.after.turns else 0

    @property
    def first_row(self) -> int:
        """Where the event's rows begin in the transcript."""
        return len(self.before.messages)

    def base(self, *, loss_mask: bool) -> dict[str, object]:
        """What every step of the event has."""
        return {"event": self.number, "turn": self.turn, "at": self.event.at, "loss_mask": loss_mask}


def steps_of(place: Place) -> list[Step]:  # noqa: PLR0911  one kind of event per case
    """The steps of one event; none for one that says how the conversation began."""
    match place.event:
        case UserSpoke():
            return [_user(place, place.event)]
        case TargetReplied():
            return list(_target(place, place.event))
        case ToolsReturned():
            return list(_tools(place, place.event))
        case TurnJudged():
            return [_judge(place, place.event)]
        case CallFailed():
            return [_failed(place, place.event)]
        case WorldChanged() | Observed() | Resumed():
            return [note(place)]
        case Ended():
            return [note(place), *_called(place, place.event)]
    return []


def _paid(event: UserSpoke | TargetReplied | ToolsReturned | TurnJudged | CallFailed) -> dict[str, object]:
    return {
        "request_digest": event.digest or None,
        "latency_ms": event.latency_ms,
        "usage": event.usage,
        "usage_unknown": None if event.usage_known else True,
        "model": None if isinstance(event, CallFailed) else event.model,
    }


def _flag(value: bool) -> bool | None:
    return True if value else None


# ---------------------------------------------------------------- user and judge


def _user(place: Place, event: UserSpoke) -> UserStep:
    spoken = bool(event.text.strip())
    return UserStep.model_validate(
        {
            **place.base(loss_mask=event.loss_mask),
            **_paid(event),
            "accepted": True,
            "text": event.text or None,
            "stop": _flag(event.stop),
            "source": event.source,
            "reasoning": event.reasoning,
            "row": place.first_row if spoken else None,
        }
    )


def _judge(place: Place, event: TurnJudged) -> JudgeStep:
    return JudgeStep.model_validate(
        {
            **place.base(loss_mask=event.loss_mask),
            **_paid(event),
            "accepted": True,
            "judgment": event.judgment,
            "final": _flag(event.final),
            "lenient_quotes": _flag(not event.strict),
            "goal_unknown": _flag(not event.goal_known),
            "refused": event.refused or None,
            "unknown_scores": event.unknown_scores or None,
        }
    )


# ---------------------------------------------------------------- target and tools


def _target(place: Place, event: TargetReplied) -> Iterator[Step]:
    calls = {call.id: call for row in event.messages for call in row.tool_calls or ()}
    answered = {row.tool_call_id for row in event.messages if row.role == "tool"}
    last = max((i for i, row in enumerate(event.messages) if row.role != "tool"), default=None)
    for offset, row in enumerate(event.messages):
        at = place.first_row + offset
        if row.role == "tool":
            yield _tool(place, calls.get(row.tool_call_id or ""), row, at, ran_by="target")
            continue
        base = place.base(loss_mask=event.loss_mask or row.role != "assistant")
        closing = _closing(event) if offset == last else {}
        yield TargetStep.model_validate({**base, **closing, "accepted": True, "message": row, "row": at})
        for call in row.tool_calls or ():
            if call.incomplete and call.id not in answered:
                yield _tool(place, call, None, None, ran_by="target")
    if last is None:
        yield TargetStep.model_validate({**place.base(loss_mask=event.loss_mask), **_closing(event), "accepted": True})


def _called(place: Place, event: Ended) -> Iterator[Step]:
    """Calls that no answer of the agent came after; they are in no row of the transcript."""
    calls = {call.id: call for row in event.called for call in row.tool_calls or ()}
    for row in event.called:
        if row.role == "tool":
            yield _tool(place, calls.get(row.tool_call_id or ""), row, None, ran_by="target")
        else:
            yield TargetStep.model_validate({**place.base(loss_mask=True), "accepted": True, "message": row})


def _closing(event: TargetReplied) -> dict[str, object]:
    """What an answer carries as a whole."""
    names = ("response_id", "trace_id", "span_id", "finish_reason", "reasoning", "report", "assessment")
    return {
        **_paid(event),
        **{name: getattr(event, name) for name in names},
        "reports_tools": _flag(event.reports_tools),
    }


def _tools(place: Place, event: ToolsReturned) -> Iterator[ToolStep]:
    calls = {call.id: call for row in place.before.messages for call in row.tool_calls or ()}
    for offset, row in enumerate(event.messages):
        call = calls.get(row.tool_call_id or "")
        step = _tool(place, call, row, place.first_row + offset, ran_by="environment")
        paid = _paid(event) if offset == len(event.messages) - 1 else {}
        yield step.model_copy(update=paid)


def _tool(place: Place, call: ToolCall | None, row: Message | None, at: int | None, *, ran_by: str) -> ToolStep:
    name = call.function.name if call is not None else (row.name if row is not None else None) or "unknown"
    arguments = None if call is None else call.parsed_arguments()
    outcome, reason = call_outcome(row)
    identity = call.id if call is not None else (row.tool_call_id if row is not None else None) or ""
    effects = place.event.effects if isinstance(place.event, TargetReplied | ToolsReturned) else None
    changed = None if effects is None else effects.get(identity)
    if outcome == "accepted" and changed is False:
        outcome = "no_change"
    return ToolStep.model_validate(
        {
            **place.base(loss_mask=True),
            "accepted": outcome in ("accepted", "no_change"),
            "tool": name,
            "call_id": identity,
            "ran_by": ran_by,
            "outcome": outcome,
            "reason": reason,
            "arguments": arguments,
            "idempotent": place.calls.tools.get(name),
            "changed": changed,
            "read_only": _flag(effects is not None and identity not in effects and row is not None),
            "preconditions": _preconditions(place, name, arguments),
            "effects": _effects(place, identity, effects) or None,
            "message": row,
            "row": at,
        }
    )


def _preconditions(place: Place, name: str, arguments: dict[str, JsonValue] | None) -> tuple[Precondition, ...]:
    """What had to hold for the call to run; counts the call."""
    calls, turn = place.calls, place.turn
    rules = (place.after.scenario.tools or {}).get(name)
    held = [Precondition(what="the arguments are a JSON object", held=arguments is not None)]
    if calls.tools:
        known = name in calls.tools or (rules is not None and bool(rules.mocks))
        held.append(Precondition(what="the tool exists", held=known))
    if rules is not None and rules.max_calls is not None:
        what = f"called at most {rules.max_calls} times"
        held.append(Precondition(what=what, held=calls.in_all[name] < rules.max_calls))
    if rules is not None and rules.max_calls_per_turn is not None:
        what = f"called at most {rules.max_calls_per_turn} times in a turn"
        held.append(Precondition(what=what, held=calls.in_turn[turn, name] < rules.max_calls_per_turn))
    calls.in_all[name] += 1
    calls.in_turn[turn, name] += 1
    return tuple(held)


def _effects(place: Place, identity: str, effects: Mapping[str, bool] | None) -> tuple[Fact, ...]:
    """What the event changed in the state, on the last call that changed anything; calls that share it are named."""
    changing = [call for call, changed in (effects or {}).items() if changed]
    if not changing or identity != changing[-1]:
        return ()
    return state_facts(place, Provenance(source="tool", calls=tuple(changing)))


def state_facts(place: Place, provenance: Provenance) -> tuple[Fact, ...]:
    """The resources that are other ones after the event."""
    found = changes_between(place.before.environment.state, place.after.environment.state)
    return tuple(
        Fact(about=pointer, value=change.after, before=change.before, provenance=provenance)
        for pointer, change in found.items()
    )


# ---------------------------------------------------------------- failures and the rest


def _failed(place: Place, event: CallFailed) -> Step:
    failure = Failure(
        component=event.component,
        code=event.code,
        message=event.message,
        attempt=event.attempt,
        final=event.final,
        retry_in_s=event.retry_in_s,
        raw=event.raw,
    )
    fields = {**place.base(loss_mask=True), **_paid(event), "accepted": False, "error": failure}
    match event.component:
        case "user_simulator":
            return UserStep.model_validate(fields)
        case "target":
            return TargetStep.model_validate(fields)
        case "judge":
            return JudgeStep.model_validate(fields)
    fields = {name: value for name, value in fields.items() if name not in ("accepted", "model")}
    return NoteStep.model_validate({**fields, "what": "call_failed"})


def note(place: Place) -> NoteStep:
    """An event that is none of the participants' turns, with its own fields as data."""
    event = place.event
    data = event.model_dump(mode="json", exclude=NOT_IN_NOTES, exclude_none=True, exclude_defaults=True)
    effects: tuple[Fact, ...] = ()
    if isinstance(event, WorldChanged):
        effects = state_facts(place, Provenance(source="outside"))
        data["number"] = event.number
    paid: dict[str, object] = {}
    if isinstance(event, Noted):
        paid = {"usage": event.usage, "usage_unknown": _flag(not event.usage_known)}
    return NoteStep.model_validate(
        {**place.base(loss_mask=True), **paid, "what": event.kind, "data": data or None, "effects": effects or None}
    )
