"""A conversation's recorded events made ready for being gone on from, or for being judged again.

What led to answers that were given in the end is left out: failed attempts, pauses, earlier beginnings. What is taken
over was paid for where it was recorded, so it costs nothing again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from evaluatorq.conversation.machine import Phase, apply, begin
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import (
    FAULT_CODES,
    CallFailed,
    Ended,
    Event,
    Noted,
    Resumed,
    Scored,
    Started,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
)
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits
from evaluatorq.model.usage import NO_USAGE


def last_attempt(events: Sequence[Event]) -> list[Event]:
    """The events of the last beginning, from ``started`` on, each without its price."""
    restarts = [number for number, event in enumerate(events) if isinstance(event, Resumed) and event.restart]
    if restarts:
        again = events[restarts[-1]]
        assert isinstance(again, Resumed)
        tools = next((event.tools for event in events if isinstance(event, Started)), {})
        first = Started(at=again.at, state=again.state, has_environment=again.has_environment, tools=tools)
        events = [first, *events[restarts[-1] + 1 :]]
    return [_unpaid(event) for event in events if not _is_passing(event)]


def _is_passing(event: Event) -> bool:
    return isinstance(event, Noted | Scored | Resumed) or (isinstance(event, CallFailed) and not event.final)


def _unpaid(event: Event) -> Event:
    match event:
        case Started():
            return event.model_copy(update={"attempt": 1})
        case UserSpoke() | TargetReplied() | ToolsReturned() | TurnJudged():
            return event.model_copy(update={"usage": NO_USAGE, "usage_known": True})
        case CallFailed():
            return event.model_copy(update={"usage": None, "usage_known": True, "attempt": 1})
        case Ended():
            return event.model_copy(update={"lost": None})
    return event


def up_to_turn(
    datapoint: SimulationDatapoint, limits: Limits, events: Sequence[Event], turn: int
) -> list[Event] | None:
    """What was recorded up to the user's words that begin ``turn``; ``None`` for a conversation without that turn."""
    state, taken = begin(datapoint, limits), []
    for event in events:
        state = apply(state, event)
        taken.append(event)
        if state.phase is Phase.TARGET and state.turns and state.turns[-1].number == turn:
            return taken
    return None


def events_of(result: SimulationResult, at: datetime) -> list[Event]:
    """Events that tell a saved result's conversation, for a run that has no journal: words, calls and the ending."""
    return [
        Started(at=at, state=result.final_state, has_environment=result.final_state is not None),
        *_said(result, at),
        Ended(
            at=at,
            terminated_by=result.terminated_by.value,
            ended_by=result.ended_by or result.terminated_by.value,
            reason=result.reason,
            failed_component=result.failed_component or ("infrastructure" if result.errored else None),
            error_type=_fault(result),
        ),
    ]


def _said(result: SimulationResult, at: datetime) -> Iterator[Event]:
    """The transcript as answers: what stands between two user rows is one answer of the agent."""
    answer: list[Message] = []
    for message in result.messages:
        if message.role in ("assistant", "tool"):
            answer.append(message)
            continue
        if answer:
            yield _reply(tuple(answer), at)
            answer = []
        if message.role == "user":
            yield UserSpoke(at=at, text=message.text, usage=NO_USAGE)
    if answer:
        yield _reply(tuple(answer), at)


def _reply(rows: tuple[Message, ...], at: datetime) -> TargetReplied:
    return TargetReplied(at=at, messages=rows, usage=NO_USAGE, reports_tools=any(row.tool_calls for row in rows))


def _fault(result: SimulationResult) -> str | None:
    if not result.errored:
        return None
    kind = result.metadata.get("error_type")
    return kind if isinstance(kind, str) and kind in FAULT_CODES else "target_error"
