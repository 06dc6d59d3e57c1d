"""How far a run is, folded from what it reports: counts, tokens, and a line for each conversation that ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from evaluatorq.model.events import CallFailed, Ended, Event, Noted, Resumed, Scored, Started
from evaluatorq.model.results import SimulationResult
from evaluatorq.reports.text import one_line
from evaluatorq.reports.view import VERDICTS, ConversationLine, Verdict, line_of

MARKS: dict[Verdict, str] = {"passed": "✓", "failed": "✗", "unknown": "?", "errored": "!"}


class Progress:
    """A sink that counts. ``show`` is called with the line of each conversation that ended."""

    def __init__(self, show: Callable[[ConversationLine], None] | None = None) -> None:
        self.total: int | None = None
        self.verdicts: Counter[Verdict] = Counter()
        self.tokens = 0
        self.retries = 0
        self._running: set[str] = set()
        self._show = show

    @property
    def done(self) -> int:
        """How many conversations have ended."""
        return self.verdicts.total()

    @property
    def in_flight(self) -> int:
        """How many conversations are going on."""
        return len(self._running)

    def append(self, thread_id: str, event: Event) -> None:
        """Books one event."""
        match event:
            case Started() | Resumed():
                self._running.add(thread_id)
            case Ended():
                self._running.discard(thread_id)
            case CallFailed():
                self.retries += not event.final
                self._spend(event.usage.total_tokens if event.usage else 0)
            case Noted() | Scored():
                pass
            case _:
                self._spend(event.usage.total_tokens if event.usage else 0)

    def finished(self, result: SimulationResult) -> None:
        """Books the verdict of one conversation."""
        line = line_of(result, result.row if result.row is not None else self.done)
        self.verdicts[line.verdict] += 1
        if self._show is not None:
            self._show(line)

    def _spend(self, tokens: int) -> None:
        self.tokens += tokens

    def counts(self) -> str:
        """The verdicts so far that occurred at all: ``5 passed, 1 failed``."""
        return (
            ", ".join(f"{self.verdicts[name]} {name}" for name in VERDICTS if self.verdicts[name]) or "none ended yet"
        )

    def log_line(self, line: ConversationLine) -> str:
        """The conversation that just ended, as one line without control characters."""
        of = f"/{self.total}" if self.total else ""
        who = one_line(f"{line.persona} · {line.scenario}", 60)
        tail = "" if line.verdict == "passed" else f": {one_line(line.why, 100)}"
        return f"{self.done}{of} {MARKS[line.verdict]} {line.verdict} [{line.index}] {who}, {line.turns} turns{tail}"
