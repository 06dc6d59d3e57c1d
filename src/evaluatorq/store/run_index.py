"""Where each result of a saved run stands in its file, so that one conversation of ten thousand is read by itself.

Found by the file's layout, without reading what is in it; a file of another layout has no index and is read whole.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Self

from evaluatorq.model.results import SimulationResult
from evaluatorq.store.runs import read_run

_BEGUN = re.compile(rb'\n  "results": \[\r?\n')
_BRACE = re.compile(rb"\n    [{}]")


class RunIndex:
    """The results of one run file by their position, counted from 0."""

    def __init__(self, path: Path, places: array[int], held: list[SimulationResult]) -> None:
        self.path = path
        self._places = places
        self._held = held

    @classmethod
    def of(cls, path: Path) -> Self:
        """The index of ``path``. ``ReplayError`` for a file of another layout that is no run."""
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as text:
            begun = _BEGUN.search(text)
            if begun is not None:
                ended = text.find(b"\n  ]", begun.end() - 1) + 1
                braces = (found.end() - 1 for found in _BRACE.finditer(text, begun.end() - 1, ended))
                return cls(path, array("q", braces), [])
        return cls(path, array("q"), read_run(path).results)

    def __len__(self) -> int:
        return len(self._places) // 2 or len(self._held)

    def __iter__(self) -> Iterator[SimulationResult]:
        """The results in order, one in memory at a time."""
        yield from self._held
        with self.path.open("rb") as file:
            for position in range(len(self._places) // 2):
                yield SimulationResult.model_validate_json(self._cut(file.fileno(), position))

    def result(self, position: int) -> SimulationResult:
        """One result. ``IndexError`` where there is none, ``ValueError`` where it cannot be read."""
        return self._held[position] if self._held else SimulationResult.model_validate_json(self.text(position))

    def text(self, position: int) -> bytes:
        """One result as JSON."""
        if self._held:
            return self._held[position].model_dump_json().encode()
        with self.path.open("rb") as file:
            return self._cut(file.fileno(), position)

    def _cut(self, file: int, position: int) -> bytes:
        start, end = self._places[2 * position], self._places[2 * position + 1]
        return os.pread(file, end + 1 - start, start)
