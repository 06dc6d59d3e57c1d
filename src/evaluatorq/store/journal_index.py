"""Reads the events of one conversation at a time out of a journal in which all of them are mixed."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from pydantic import JsonValue
from pydantic_core import from_json

from evaluatorq.errors import ReplayError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import Event
from evaluatorq.model.runs import RunPlan
from evaluatorq.store.journal import HEAD, JournalReader, is_changed, parts_of, read_line

_ANSWERED = re.compile(rb'\{"row":(\d+),"kind":"target_replied","at":"[^"]*","latency_ms":(\d+(?:\.\d+)?)')
_TURNED = re.compile(rb'\{"row":(\d+),"kind":"(ended|started|resumed)".*\n')


@dataclass(slots=True)
class JournalIndex:
    """Where the lines of each conversation stand: two numbers a line in memory, the events on disk.

    ``ended`` are the conversations that came to an end at least once. ``refresh`` reads on where a run goes on. With
    ``sparse`` the plan has no cases: they are read one at a time (``datapoint``).
    """

    folder: Path
    sparse: bool = False
    plan: RunPlan = field(init=False)
    damage: list[str] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)
    _parts: list[Path] = field(default_factory=list)
    _read: dict[Path, tuple[int, int]] = field(default_factory=dict)
    _places: dict[int, array[int]] = field(default_factory=dict)
    _cases: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        reader = JournalReader(self.folder)
        if self.sparse:
            self.plan, self._cases = reader.sparse_plan()
        else:
            self.plan = reader.plan
        self.refresh()

    @property
    def size(self) -> int:
        """How many cases the plan has."""
        return len(self._cases) if self.sparse else len(self.plan.datapoints)

    def datapoint(self, row: int) -> SimulationDatapoint:
        """The case of conversation ``row``."""
        if not self.sparse:
            return self.plan.datapoints[row]
        try:
            return SimulationDatapoint.model_validate_json(self._cases[row])
        except ValueError as error:
            raise ReplayError(f"{self._parts[0]}:1: case {row} of the plan cannot be read: {error}") from error

    def refresh(self) -> set[int]:
        """Reads the lines that were written since the last time; returns the conversations that they are of."""
        changed: set[int] = set()
        self._parts = parts_of(self.folder)
        for number, part in enumerate(self._parts):
            changed |= self._scan(number, part)
        return changed

    @property
    def rows(self) -> list[int]:
        """The conversations that have any line."""
        return sorted(row for row in self._places if row < self.size)

    def events(self, row: int) -> list[Event]:
        """The events of conversation ``row`` in order, each once; what is missing is noted in ``damage``."""
        places = self._places.get(row, array("q"))
        events: list[Event] = []
        expected = 0
        for number, place in groupby(zip(places[::2], places[1::2], strict=True), key=itemgetter(0)):
            part = self._parts[number]
            with part.open("rb") as file:
                for _, at in place:
                    file.seek(at)
                    text = file.readline()
                    line = read_line(text)
                    if is_changed(text):
                        self.damage.append(f"{part.name}: the line at byte {at}, of conversation {row}, was changed")
                    if line is None:
                        self.damage.append(f"{part.name}: the line at byte {at}, of conversation {row}, cannot be read")
                        continue
                    here = expected if line.number is None else line.number
                    if here > expected:
                        self.damage.append(f"{part.name}: before byte {at} lines of conversation {row} are missing")
                    if here >= expected:
                        events.append(line.event)
                        expected = here + 1
        return events

    def _scan(self, number: int, part: Path) -> set[int]:
        count, at = self._read.get(part, (0, 0))
        changed: set[int] = set()
        with part.open("rb") as file:
            file.seek(at)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                count += 1
                row, kind = _identity(line)
                if row is not None:
                    changed.add(row)
                    self._places.setdefault(row, array("q")).extend((number, at))
                    if kind == "ended":
                        self.ended.add(row)
                elif kind not in ("plan", "part"):
                    self.damage.append(f"{part.name}:{count}: not a journal line")
                at += len(line)
        self._read[part] = count, at
        return changed


def ended_rows(folder: Path) -> set[int]:
    """The conversations that are at their end, read without reading what was said in them."""
    rows: set[int] = set()
    for part in parts_of(folder):
        with part.open("rb") as file:
            for found in filter(None, map(_TURNED.match, file)):
                (rows.add if found[2] == b"ended" else rows.discard)(int(found[1]))
    return rows


def mean_latencies(folder: Path) -> dict[int, float]:
    """The mean seconds that an answer of the agent took, by conversation, read without reading the answers."""
    total: dict[int, float] = {}
    count: Counter[int] = Counter()
    for part in parts_of(folder):
        with part.open("rb") as file:
            for found in filter(None, map(_ANSWERED.match, file)):
                row = int(found[1])
                total[row] = total.get(row, 0.0) + float(found[2]) / 1000
                count[row] += 1
    return {row: seconds / count[row] for row, seconds in total.items()}


def _identity(line: bytes) -> tuple[int | None, str | None]:
    """Row and kind of a line, quickly where it is written as we write it."""
    found = HEAD.match(line)
    if found is not None:
        return int(found[1]), found[2].decode()
    try:
        value: JsonValue = from_json(line)
    except ValueError:
        return None, None
    if not isinstance(value, dict):
        return None, None
    row, kind = value.get("row"), value.get("kind")
    counts = isinstance(row, int) and not isinstance(row, bool) and row >= 0
    return row if counts and isinstance(row, int) else None, kind if isinstance(kind, str) else None
