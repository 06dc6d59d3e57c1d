"""How far a run is, folded from what it reports: counts, tokens, and a line for each conversation that ended."""

from __future__ import annotations

from evaluatorq.model.events import CallFailed, Ended, Event, Noted, Observed, Resumed, Scored, Started, WorldChanged
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.records.verdicts import Verdict
from evaluatorq.reports.text import one_line, plural
from evaluatorq.reports.view import VERDICTS, ConversationLine, Summary

MARKS: dict[Verdict, str] = {"passed": "✓", "failed": "✗", "unknown": "?", "errored": "!"}


class Progress:
    """A sink that counts. ``plan`` is known once the run begins; ``summary`` holds the verdicts so far."""

    def __init__(self) -> None:
        self.plan: RunPlan | None = None
        self.summary = Summary()
        self.tokens = 0
        self.retries = 0
        self._running: set[str] = set()

    @property
    def total(self) -> int:
        """How many conversations there will be, 0 before the run begins."""
        return len(self.plan.datapoints) if self.plan else 0

    @property
    def done(self) -> int:
        """How many conversations have ended."""
        return self.summary.total

    @property
    def in_flight(self) -> int:
        """How many conversations are going on."""
        return len(self._running)

    def begun(self, plan: RunPlan) -> None:
        """Learns what was asked for."""
        self.plan = plan

    def append(self, thread_id: str, event: Event) -> None:
        """Books one event."""
        match event:
            case Started() | Resumed():
                self._running.add(thread_id)
            case Ended():
                self._running.discard(thread_id)
            case Noted() | Scored() | Observed() | WorldChanged():
                pass
            case _:
                self.tokens += event.usage.total_tokens if event.usage else 0
                self.retries += isinstance(event, CallFailed) and not event.final

    def finished(self, result: SimulationResult) -> None:
        """Books the verdict of one conversation."""
        self.summary.add(result)

    def counts(self) -> str:
        """The verdicts so far that occurred at all: ``5 passed, 1 failed``."""
        seen = self.summary.verdicts
        return ", ".join(f"{seen[name]} {name}" for name in VERDICTS if seen[name]) or "none ended yet"

    def log_line(self, line: ConversationLine) -> str:
        """The conversation that just ended, as one line without control characters."""
        who = one_line(f"{line.persona} · {line.scenario}", 80)
        tail = "" if line.verdict == "passed" else f": {one_line(line.why, 300)}"
        verdict = f"{MARKS[line.verdict]} {line.verdict}"
        return f"{self.done}/{self.total} {verdict} [{line.index}] {who}, {plural(line.turns, 'turn')}{tail}"
