"""Writes down what happens: without what must not be written, to the journal first, then to whoever watches.

Participants and verdicts work on the conversation as it was; what is written is a copy. As soon as a copy differs from
what happened, the conversation is marked: its digests are taken over what is written, its record is written whole when
it ends (nobody could work it out from the copy), and if it is stopped before that, it begins anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from evaluatorq.conversation.machine import Conversation, apply, request_digest
from evaluatorq.errors import ProtocolError
from evaluatorq.model.events import RECORDED, REDACTED, Event, Noted, Scored
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.ports import Sink
from evaluatorq.records.redaction import Redactor
from evaluatorq.run.brake import Brake
from evaluatorq.store.journal import Journal, encode_line


class Scribe:
    """One run's pen. ``plan`` is the run's as it is written; ``journal`` is set once there is one.

    ``numbers`` counts the lines of each conversation, those of earlier processes included.
    """

    def __init__(self, plan: RunPlan, sinks: Sequence[Sink], redactor: Redactor, brake: Brake) -> None:
        self.plan = redactor.plan(plan)
        self.journal: Journal | None = None
        self.numbers: Counter[int] = Counter()
        self._sinks = tuple(sinks)
        self._redactor = redactor
        self._brake = brake
        self._copies: dict[int, Conversation] = {}
        pairs = zip(self.plan.datapoints, plan.datapoints, strict=True)
        self._changed_cases = {row for row, (clean, raw) in enumerate(pairs) if clean is not raw}

    def write(self, row: int, event: Event, state: Conversation) -> Event:
        """Writes one event of conversation ``row``, which is in ``state`` before it. Returns what was written."""
        self._brake.book(event)
        copy = self._copies.get(row)
        kept = self._redactor.withholding(state.scenario).event(event, state.messages)
        if copy is None and row not in self._changed_cases and kept is event:
            line = encode_line(row, event, self.numbers[row])
            clean = self._redactor.event(event) if self._redactor.may_change(line) else event
            if clean is event:
                return self._put(row, event, line)
        else:
            clean = self._redactor.event(kept)
        if isinstance(event, Scored):
            return self._put(row, clean)
        if copy is None:
            self._put(row, Noted(at=event.at, what=REDACTED))
            copy = replace(state, datapoint=self.plan.datapoints[row])
        if getattr(clean, "digest", ""):
            clean = clean.model_copy(update={"digest": request_digest(copy)})
        self._copies[row] = _after(copy, clean)
        return self._put(row, clean)

    def record(self, row: int, result: SimulationResult, at: datetime) -> SimulationResult:
        """A conversation's record as it may be kept; it is written where the journal alone does not tell it."""
        copy = self._copies.pop(row, None)
        if copy is None:
            return result
        clean = self._redactor.result(self._redactor.withholding(copy.scenario).result(result))
        self._put(row, Noted(at=at, what=RECORDED, data=clean.model_dump(mode="json")))
        return clean

    def _put(self, row: int, event: Event, line: bytes | None = None) -> Event:
        if self.journal is not None:
            self.journal.write_line(line or encode_line(row, event, self.numbers[row]))
            self.numbers[row] += 1
        thread_id = self.plan.thread_id(row)
        for sink in self._sinks:
            sink.append(thread_id, event)
        return event


def _after(copy: Conversation, event: Event) -> Conversation:
    """What a reader makes of the copy; an event that no longer fits it is passed over, as readers do."""
    try:
        return apply(copy, event)
    except ProtocolError:
        return copy
