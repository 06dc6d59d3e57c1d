"""What is noticed about each of the agent's turns while a conversation goes on: places, states, reports, failures.

A turn of the agent begins when it is asked and is over when it spoke or failed for good. These are raw facts; an
``Observation`` is made of them in ``evaluatorq.records.observation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from evaluatorq.model.events import CallFailed, Ended, FaultCode, Observed, TargetReplied, ToolsReturned, WorldChanged
from evaluatorq.model.messages import Message, open_calls
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.replacing import replace

UNUSABLE: frozenset[FaultCode] = frozenset(
    {"malformed_response", "truncated_response", "empty_reply", "refusal", "target_protocol", "bad_verdict"}
)
"""Failures where an answer came and was thrown away."""


@dataclass(frozen=True)
class TurnFacts:
    """One turn of the agent. Its rows are ``messages[start:end]``; ``end`` is ``None`` while nothing came back.

    ``world`` is the state it found, ``before`` the same after outside changes, ``after`` what it left. ``called`` are
    tool rows that belong to no answer.
    """

    number: int
    start: int
    end: int | None = None
    over: bool = False
    world: JsonValue = None
    before: JsonValue = None
    after: JsonValue = None
    events_applied: int = 0
    reports: tuple[TurnReport, ...] = ()
    stored: bool = False
    effects: Mapping[str, bool] | None = None
    failures: tuple[FaultCode, ...] = ()
    called: tuple[Message, ...] = ()
    error_code: str | None = None
    read_error: str | None = None


Facts = tuple[TurnFacts, ...]
TurnEvent = TargetReplied | ToolsReturned | CallFailed | WorldChanged | Observed | Ended


def begin_turn(facts: Facts, number: int, start: int, world: JsonValue) -> Facts:
    """The facts with a new turn at their end."""
    return (*facts, TurnFacts(number, start, world=world, before=world, after=world))


def notice(facts: Facts, event: TurnEvent, *, rows: int, has_environment: bool) -> Facts:
    """The facts after an event of the present turn; ``rows`` is how many the transcript holds now."""
    if not facts:
        return facts
    turn = facts[-1]
    match event:
        case TargetReplied():
            waits = has_environment and bool(open_calls(event.messages))
            reports = turn.reports if event.report is None else (*turn.reports, event.report)
            turn = replace(_acted(turn, event), end=rows, over=not waits, reports=reports)
        case ToolsReturned():
            turn = replace(_acted(turn, event), end=rows)
        case WorldChanged():
            turn = replace(turn, before=event.state, after=event.state, events_applied=turn.events_applied + 1)
        case CallFailed():
            turn = _failed(turn, event)
        case Observed():
            turn = replace(turn, stored=True, reports=(*turn.reports, event.report))
        case Ended():
            turn = _ended(turn, event)
    return (*facts[:-1], turn)


def _acted(turn: TurnFacts, event: TargetReplied | ToolsReturned) -> TurnFacts:
    if event.effects is not None:
        turn = replace(turn, effects={**(turn.effects or {}), **event.effects})
    return replace(turn, after=event.state) if event.state_changed else turn


def _failed(turn: TurnFacts, event: CallFailed) -> TurnFacts:
    if turn.over or event.component in ("judge", "user_simulator"):
        return turn
    if event.component == "target":
        turn = replace(turn, failures=(*turn.failures, event.code))
    return replace(turn, over=True, error_code=event.code) if event.final else turn


def _ended(turn: TurnFacts, event: Ended) -> TurnFacts:
    if not turn.over:
        turn = replace(turn, over=True, error_code=turn.error_code or event.error_type or event.ended_by)
    if event.called:
        turn = replace(turn, called=event.called)
    if event.state_changed:
        turn = replace(turn, after=event.state)
    return replace(turn, read_error=event.state_error) if event.state_error else turn
