"""The last things that happened in a run, out of the end of its journal, without reading the rest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaluatorq.model.events import (
    CallFailed,
    Ended,
    Event,
    Started,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
)
from evaluatorq.model.messages import Message
from evaluatorq.model.runs import RunPlan
from evaluatorq.reports.text import one_line
from evaluatorq.reports.transcript import call_text
from evaluatorq.store.journal import parts_of, read_line

_WINDOW = 256 * 1024
_LONGEST = 240


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that happened, in words: in which conversation, when, by whom."""

    row: int
    case: str
    at: str
    who: str
    text: str


def last_events(folder: Path, plan: RunPlan, most: int = 40) -> list[Told]:
    """The last events of a journal, newest first."""
    parts = parts_of(folder)
    if not parts:
        return []
    with parts[-1].open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(0, end - _WINDOW))
        lines = file.read().split(b"\n")
    found: list[Told] = []
    for line in reversed(lines[1 if end > _WINDOW else 0 : -1]):
        read = read_line(line)
        told = words_of(read.event) if read is not None and read.row < len(plan.datapoints) else None
        if read is not None and told is not None:
            point = plan.datapoints[read.row]
            case = f"{point.persona.name} · {point.scenario.name}"
            found.append(Told(read.row, case, f"{read.event.at:%H:%M:%S}", told[0], one_line(told[1], _LONGEST)))
        if len(found) == most:
            break
    return found


def words_of(event: Event) -> tuple[str, str] | None:
    """Who did something and what, ``None`` for what nobody watches for."""
    told: tuple[str, str] | None = None
    match event:
        case Started():
            told = "run", "the conversation begins"
        case UserSpoke():
            told = "user", event.text or "ends the conversation"
        case TargetReplied():
            told = "agent", _said(event.messages)
        case ToolsReturned():
            told = "tool", " ".join(f"→ {message.text}" for message in event.messages)
        case TurnJudged():
            told = "judge", event.judgment.reason
        case CallFailed():
            told = "error", f"{event.component}: {event.message}" + ("" if event.final else " (asked again)")
        case Ended():
            told = "run", f"ended: {event.reason}"
        case _:
            pass
    return told


def _said(messages: tuple[Message, ...]) -> str:
    parts = [message.text for message in messages if message.text]
    calls = [call_text(call) for message in messages for call in message.tool_calls or ()]
    return " ".join((*parts, *calls))
