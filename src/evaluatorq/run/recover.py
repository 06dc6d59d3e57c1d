"""Reads a journal back into conversations: finished ones are handed over at once, unfinished ones are kept to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from evaluatorq.conversation.machine import Conversation, Phase, apply, begin
from evaluatorq.errors import ProtocolError
from evaluatorq.model.events import (
    MODELS,
    PAUSED,
    RECORDED,
    REDACTED,
    CallFailed,
    Event,
    Noted,
    Observed,
    Resumed,
    Scored,
    Started,
)
from evaluatorq.model.replacing import replace
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import NOTHING_LEARNED, Learned, RunPlan
from evaluatorq.store.journal import JournalLine, JournalReader


@dataclass(slots=True)
class Recovered:
    """One conversation as the journal tells it.

    ``broken`` means that a lost line made the rest unreadable, ``paused`` that no call was under way when it stopped.
    ``redacted`` means that what happened was not written as it was: then only ``record`` tells how it came out.
    ``lines`` counts its lines. ``unusable`` are the answers to the question that waits which could not be used: they
    were asked again at once.
    """

    state: Conversation
    scores: dict[str, Scored] = field(default_factory=dict)
    started: bool = False
    broken: bool = False
    paused: bool = False
    redacted: bool = False
    record: SimulationResult | None = None
    lines: int = 0
    unusable: list[CallFailed] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """It ended, and how it came out is known."""
        if self.redacted:
            return self.record is not None
        return self.state.phase is Phase.OVER and not self.broken


Finished = Callable[[int, Recovered], None]


@dataclass(slots=True)
class Recovery:
    """What a pass over the journal found besides the finished conversations."""

    unfinished: dict[int, Recovered] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    active_s: float = 0.0
    learned: Learned = NOTHING_LEARNED


def recover(
    reader: JournalReader, plan: RunPlan, is_complete: Callable[[Recovered], bool], finished: Finished
) -> Recovery:
    """One pass in constant memory: ``finished`` gets each conversation as soon as nothing of it can be missing."""
    rows: dict[int, Recovered] = {}
    done: set[int] = set()
    failed: dict[int, Recovered] = {}
    spans, learned = _Spans(), NOTHING_LEARNED
    for line in reader.lines():
        spans.see(line)
        if isinstance(line.event, Noted) and line.event.what == MODELS:
            learned |= _read_learned(line.event)
        if line.row >= len(plan.datapoints) or (line.row in done and not _reopens(line.event)):
            continue
        row = rows.get(line.row)
        if row is None:
            fresh = failed.pop(line.row, None) or Recovered(begin(plan.datapoints[line.row], plan.limits))
            row = rows[line.row] = fresh
            done.discard(line.row)
        if _follows(row, line, reader.lost.pop(line.row, [])):
            _take(row, line.event)
        if row.is_over and is_complete(row):
            finished(line.row, rows.pop(line.row))
            done.add(line.row)
            if row.state.ended is not None and row.state.ended.failed_component is not None:
                failed[line.row] = _spent(row)
    return Recovery(rows, list(reader.damage), spans.total(), learned)


def _spent(row: Recovered) -> Recovered:
    """What is left of a conversation that ended by a fault and may have been begun again: what it cost."""
    old, lines = row.state, row.lines
    spent = replace(begin(old.datapoint, old.limits), carried=old.usage, usage_by_role=old.usage_by_role)
    spent = replace(spent, usage_by_model=old.usage_by_model)
    return Recovered(replace(spent, unread=old.unread, attempts=old.attempts), started=True, lines=lines)


def recovered(plan: RunPlan, row: int, events: Iterable[Event]) -> Recovered:
    """One conversation, out of its own events alone."""
    found = Recovered(begin(plan.datapoints[row], plan.limits))
    for event in events:
        _take(found, event)
    return found


def _reopens(event: Event) -> bool:
    return isinstance(event, Resumed) and event.restart


def _follows(row: Recovered, line: JournalLine, lost: list[str]) -> bool:
    """Whether this line was not taken before. Where lines are missing ahead of it, the conversation is broken.

    What failed calls alone cost may be missing: then that is unknown. ``lost`` are the kinds of unreadable lines.
    """
    number = row.lines if line.number is None else line.number
    if number < row.lines:
        return False
    gap, row.lines = number - row.lines, number + 1
    if gap and lost == ["call_failed"] * gap:
        row.state = apply(row.state, Noted(at=line.event.at, what="journal", usage_known=False))
    elif gap and not isinstance(line.event, Scored):
        row.started = row.broken = True
    return True


def _take(row: Recovered, event: Event) -> None:
    row.paused = isinstance(event, Noted) and event.what == PAUSED
    if isinstance(event, Noted) and event.what == REDACTED:
        row.redacted = True
    if isinstance(event, Noted) and event.what == RECORDED:
        row.record = _read_record(event)
    if isinstance(event, Scored):
        row.scores[event.evaluator] = event
        return
    if row.broken and not _reopens(event):
        return
    try:
        row.state = apply(row.state, event)
    except ProtocolError:
        row.started, row.broken = True, not row.redacted
        return
    row.broken = False
    row.started = row.started or isinstance(event, Started)
    if isinstance(event, CallFailed) and not event.final:
        row.unusable += [event] if event.retry_in_s == 0.0 else []
    elif _reopens(event) or not isinstance(event, Noted | Observed | Resumed):
        row.unusable.clear()
    if _reopens(event):
        row.scores.clear()
        row.redacted, row.record = False, None


def _read_record(event: Noted) -> SimulationResult | None:
    try:
        return SimulationResult.model_validate(event.data)
    except ValueError:
        return None


def _read_learned(event: Noted) -> Learned:
    try:
        return Learned.model_validate(event.data)
    except ValueError:
        return NOTHING_LEARNED


class _Spans:
    """How long the processes that wrote the journal were at work: from first to last line of each part."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[datetime, datetime]] = {}

    def see(self, line: JournalLine) -> None:
        first, _ = self._parts.get(line.part, (line.event.at, line.event.at))
        self._parts[line.part] = (first, line.event.at)

    def total(self) -> float:
        return sum(max(0.0, (last - first).total_seconds()) for first, last in self._parts.values())
