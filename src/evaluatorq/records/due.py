"""What is due at a place of a recording: which event answers which request, and how an ending differs from the due one.

Both ways through a recording rest on it: the proof of a run (``records.proof``) and the replay of a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from evaluatorq.conversation.requests import AskJudge, AskTarget, AskUser, ChangeWorld, Request, RunTools, Stop
from evaluatorq.model.events import (
    CallFailed,
    Ended,
    Event,
    Noted,
    Observed,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
    WorldChanged,
)
from evaluatorq.records.drift import DriftKind

_ANSWERS: dict[type[Request], type[Event]] = {
    AskUser: UserSpoke, AskTarget: TargetReplied, ChangeWorld: WorldChanged, RunTools: ToolsReturned,
    AskJudge: TurnJudged,
}  # fmt: skip
_ENDING = ("terminated_by", "ended_by", "reason", "failed_component", "error_type")


def answers(event: Event, request: Request) -> bool:
    """The event is an answer to the request; a failed call and an ending are none."""
    return not isinstance(request, Stop) and isinstance(event, _ANSWERS[type(request)])


def event_digest(event: Event) -> str:
    """The digest of the request that an event answers, empty where it answers none."""
    digest = getattr(event, "digest", "")
    return digest if isinstance(digest, str) else ""


def misplaced(request: Request, later: Iterable[Event]) -> DriftKind:
    """What an event is that does not answer the request: too much where the next answer does, else in a missing one's
    place.
    """
    following = next((event for event in later if not isinstance(event, CallFailed | Noted | Observed)), None)
    due_next = isinstance(request, Stop) or (following is not None and answers(following, request))
    return "extra_step" if due_next else "missing_step"


def ending_differences(recorded: Ended, due: Stop) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """The fields in which a recorded ending is not the due one: name, recorded value, due value."""
    for name in _ENDING:
        old, new = getattr(recorded, name), getattr(due, name)
        if old != new:
            yield name, old, new


def from_outside(ended: Ended) -> bool:
    """The ending was none that the machine decides by itself, so a replay takes it as it is."""
    return ended.terminated_by not in ("judge", "max_turns")
