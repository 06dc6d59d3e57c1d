"""Finished results on disk until the run file is written, so that memory holds only what is in flight.

The file stands beside the journal: a system's folder for temporary files may be memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from evaluatorq.errors import StoreError
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.run import RowSummary, summary_of


class Spool:
    """An unnamed temporary file of result documents and a small index by row.

    It is made in ``folder`` where that exists. ``StoreError`` when there is no room for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._places: dict[int, tuple[int, int]] = {}
        self._summaries: dict[int, RowSummary] = {}

    def add(self, row: int, result: SimulationResult) -> None:
        """Puts a finished conversation away; a later one of the same row takes its place."""
        text = result.model_dump_json(indent=2).encode()
        try:
            if self._file is None:
                folder = self._folder if self._folder.is_dir() else None
                self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  held until close()
            at = self._file.seek(0, 2)
            written = self._file.write(text)
        except OSError as error:
            raise StoreError(f"cannot put finished conversations away: {error.strerror}") from error
        if written != len(text):
            raise StoreError("cannot put finished conversations away: the disk is full")
        self._places[row] = (at, len(text))
        self._summaries[row] = summary_of(result)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, row: int) -> bool:
        return row in self._places

    def summaries(self) -> list[RowSummary]:
        """The numbers for the run's header, in row order."""
        return [self._summaries[row] for row in sorted(self._summaries)]

    def read(self, row: int) -> SimulationResult:
        """The result of one row."""
        assert self._file is not None, "nothing was put away"
        at, size = self._places[row]
        self._file.seek(at)
        return SimulationResult.model_validate_json(self._file.read(size))

    def documents(self) -> Iterator[bytes]:
        """The result documents in row order."""
        if self._file is None:
            return
        for row in sorted(self._places):
            at, size = self._places[row]
            self._file.seek(at)
            yield self._file.read(size)

    def close(self) -> None:
        """Removes the file."""
        if self._file is not None:
            self._file.close()
