"""An opened run: a line for each conversation in memory, the conversations on disk.

A file is read through once, in a thread of its own, and is known from then on until it changes; whoever asks meanwhile
learns how far that is. The journal of a run that goes on is read on with each look.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event as Flag
from threading import Lock
from time import monotonic
from typing import Protocol, TypeVar

from evaluatorq.errors import ReplayError, RunNotFound
from evaluatorq.model.events import Event
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.verdicts import Verdict, criteria_of
from evaluatorq.reports.document import Document
from evaluatorq.reports.terminal import About
from evaluatorq.reports.view import line_of
from evaluatorq.simulation.unfinished import Unfinished
from evaluatorq.store.journal_index import JournalIndex
from evaluatorq.store.run_index import RunIndex
from evaluatorq.viewer.choice import Entry, entry_of
from evaluatorq.viewer.shelf import Found, head

T = TypeVar("T")
PATIENCE_S = 2.0
KEPT = 4


class StillReading(Exception):  # noqa: N818  what is going on
    """The run is being read for the first time: ``done`` of ``total`` conversations, 0 of 0 before that is known."""

    def __init__(self, done: int, total: int) -> None:
        super().__init__("still reading")
        self.done = done
        self.total = total


class Book(Protocol):
    """What pages need of a run, finished or not. Conversations are known by the number that reports show."""

    @property
    def about(self) -> About:
        """What the run says of itself."""
        ...

    @property
    def entries(self) -> Mapping[int, Entry]:
        """What its conversations can be chosen by, by their numbers."""
        ...

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many conversations came out how."""
        ...

    def result(self, number: int) -> SimulationResult:
        """One conversation; ``RunNotFound`` where there is none of that number."""
        ...

    def read(self, entry: Entry, needle: str | None, /) -> SimulationResult | None:
        """The conversation of an entry, ``None`` where its record does not hold ``needle``."""
        ...


def _no_conversation(number: int) -> RunNotFound:
    return RunNotFound(f"this run has no conversation {number}")


@dataclass(slots=True)
class SavedBook:
    """A saved run. ``document`` holds its numbers, without any transcript."""

    file: Path
    index: RunIndex
    document: Document
    entries: dict[int, Entry]

    @property
    def about(self) -> About:
        """What the run says of itself."""
        return self.document.about

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many conversations came out how."""
        return self.document.summary.verdicts

    def result(self, number: int) -> SimulationResult:
        """One conversation."""
        if number not in self.entries:
            raise _no_conversation(number)
        return self._at(self.entries[number].place)

    def read(self, entry: Entry, needle: str | None) -> SimulationResult | None:
        """The conversation of an entry, by a look at its text first."""
        text = self.index.text(entry.place) if needle is not None else b""
        if needle is not None and b"\\u" not in text and needle not in text.decode("utf-8", "replace").lower():
            return None
        return self._at(entry.place)

    def _at(self, place: int) -> SimulationResult:
        try:
            return self.index.result(place)
        except (ValueError, OSError) as error:
            raise ReplayError(f"conversation {place} of {self.file} cannot be read; the file has changed") from error


@dataclass(slots=True)
class OngoingBook:
    """A run that has only a journal. Entries are those of conversations that ended; ``waiting`` are not read yet."""

    run: Unfinished
    entries: dict[int, Entry] = field(default_factory=dict)
    waiting: set[int] = field(init=False)
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.waiting = set(self.run.index.ended)

    @property
    def about(self) -> About:
        """What the run says of itself."""
        return self.run.about()

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many conversations came out how."""
        return Counter(entry.line.verdict for entry in self.entries.values())

    def read_on(self, patience_s: float) -> None:
        """Takes in what was written since; ``StillReading`` where that takes longer, and the next look goes on."""
        until = monotonic() + patience_s
        with self.lock:
            ended = self.run.index.ended
            self.waiting |= self.run.index.refresh() & ended
            entries = dict(self.entries)  # others look at the old ones meanwhile
            for row in sorted(self.waiting):
                result = self.run.result(row)
                criteria = criteria_of(result)
                entries[row] = entry_of(result, line_of(result, row, criteria), criteria, row)
                self.waiting.discard(row)
                if monotonic() > until:
                    break
            self.entries = entries
            if self.waiting:
                raise StillReading(len(ended) - len(self.waiting), len(ended))

    @property
    def in_flight(self) -> list[int]:
        """The conversations that began and have not ended."""
        with self.lock:
            return self.run.in_flight

    def result(self, number: int) -> SimulationResult:
        """One conversation, as far as it got."""
        if number >= len(self.run.plan.datapoints):
            raise _no_conversation(number)
        return self.run.result(number)

    def read(self, entry: Entry, _needle: str | None) -> SimulationResult | None:
        """The conversation of an entry."""
        return self.run.result(entry.place)


# ---------------------------------------------------------------- opening


class _Reading:
    """One run file being read through: its counts are looked at by others meanwhile."""

    def __init__(self, file: Path, stopped: Flag) -> None:
        self.file = file
        self.done = 0
        self.total = head(file).total_results
        self._stopped = stopped

    def book(self) -> SavedBook:
        run = head(self.file)
        try:
            index = RunIndex.of(self.file)
            entries: dict[int, Entry] = {}
            document = Document.of(self._entered(index, entries), About.run(run), run, most=0)
        except (ValueError, OSError) as error:
            why = " ".join(str(error).split())[:300]
            raise ReplayError(f"conversation {self.done} of {self.file} cannot be read: {why}") from error
        return SavedBook(self.file, index, document, entries)

    def _entered(self, index: RunIndex, entries: dict[int, Entry]) -> Iterator[SimulationResult]:
        for place, result in enumerate(index):
            if self._stopped.is_set():
                raise ReplayError("the viewer was stopped")
            criteria = criteria_of(result)
            number = place if result.row is None else result.row
            entries.setdefault(number, entry_of(result, line_of(result, number, criteria), criteria, place))
            self.done += 1
            yield result


class Library:
    """Opens runs and keeps the last few open."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._books: OrderedDict[tuple[Path, int, int], tuple[_Reading, Future[SavedBook]]] = OrderedDict()
        self._ongoing: OrderedDict[Path, Future[OngoingBook]] = OrderedDict()
        self._journals: OrderedDict[Path, JournalIndex] = OrderedDict()
        self._lock = Lock()
        self._stopped = Flag()
        self._readers = ThreadPoolExecutor(2, "reading")

    def close(self) -> None:
        """Stops what is being read."""
        self._stopped.set()
        self._readers.shutdown(cancel_futures=True)

    def open(self, found: Found) -> Book:
        """The run that was found. ``StillReading`` while a big one is read for the first time."""
        if found.file is not None:
            return self.saved(found.file)
        assert found.journal is not None, "a run is found by its file or by its journal"
        return self.ongoing(found.journal)

    def saved(self, file: Path) -> SavedBook:
        """The run in a file; ``ReplayError`` where it cannot be read."""
        state = file.stat()
        key = (file, state.st_mtime_ns, state.st_size)
        with self._lock:
            if key not in self._books:
                reading = _Reading(file, self._stopped)
                self._books[key] = reading, self._readers.submit(reading.book)
            self._books.move_to_end(key)
            while len(self._books) > KEPT:
                self._books.popitem(last=False)
            reading, book = self._books[key]
        try:
            return book.result(self._patience_s)
        except TimeoutError:
            raise StillReading(reading.done, reading.total) from None

    def ongoing(self, journal: Path) -> OngoingBook:
        """The run in a journal, as far as it is now."""
        with self._lock:
            opening = self._ongoing.get(journal) or self._readers.submit(_ongoing, journal)
            _keep(self._ongoing, journal, opening)
        try:
            book = opening.result(self._patience_s)
        except TimeoutError:
            raise StillReading(0, 0) from None
        except Exception:
            self._ongoing.pop(journal, None)  # a run that is only beginning may be read the next time
            raise
        book.read_on(self._patience_s)
        return book

    def events(self, journal: Path, number: int) -> list[Event]:
        """The events of one conversation."""
        with self._lock:
            index = self._journals.get(journal)
            if index is None:
                index = JournalIndex(journal)
            else:
                index.refresh()
            _keep(self._journals, journal, index)
        return index.events(number)


def _ongoing(journal: Path) -> OngoingBook:
    return OngoingBook(Unfinished.read(journal))


def _keep(shelf: OrderedDict[Path, T], key: Path, value: T) -> None:
    shelf[key] = value
    shelf.move_to_end(key)
    while len(shelf) > KEPT:
        shelf.popitem(last=False)
