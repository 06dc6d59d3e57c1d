"""Finished results on disk until the run file is written, so that memory holds only what is in flight.

The file stands beside the journal: a system's folder for temporary files may be memory. That folder takes its place
where nothing may be written beside the journal, as when a run is only looked at.
"""

from __future__ import annotations

import errno
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, get_args

from evaluatorq.errors import StoreError
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.run import RowSummary, summary_of
from evaluatorq.records.verdicts import Verdict, verdict_of

_VERDICTS: tuple[str, ...] = get_args(Verdict)


class Spool:
    """An unnamed temporary file of result documents, and where each row's stands in it: 17 bytes a row.

    It is made in ``folder`` where that exists and can be written. ``StoreError`` when there is no room for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._starts = array("q")
        self._sizes = array("q")
        self._verdicts = array("b")
        self._count = 0

    def add(self, row: int, result: SimulationResult) -> None:
        """Puts a finished conversation away; a later one of the same row takes its place."""
        text = result.model_dump_json(indent=2).encode()
        try:
            file = self._file = self._file or _unnamed(self._folder)
            at = file.seek(0, 2)
            written = file.write(text)
        except OSError as error:
            raise StoreError(f"cannot put finished conversations away: {error.strerror}") from error
        if written != len(text):
            raise StoreError("cannot put finished conversations away: the disk is full")
        more = row + 1 - len(self._sizes)
        self._starts.extend([0] * more)
        self._sizes.extend([0] * more)
        self._verdicts.extend([0] * more)
        self._count += not self._sizes[row]
        self._starts[row], self._sizes[row] = at, len(text)
        self._verdicts[row] = _VERDICTS.index(verdict_of(result))

    def discard(self, row: int) -> None:
        """Forgets a row: its conversation was begun again."""
        if row in self:
            self._sizes[row] = 0
            self._count -= 1

    def __len__(self) -> int:
        return self._count

    def __contains__(self, row: int) -> bool:
        return row < len(self._sizes) and self._sizes[row] > 0

    def summaries(self) -> Iterator[RowSummary]:
        """The numbers for the run's header, in row order."""
        return map(summary_of, self.documents())

    def verdicts(self) -> dict[str, int]:
        """How many conversations came to which verdict, all four of them named."""
        found = Counter(verdict for verdict, size in zip(self._verdicts, self._sizes, strict=True) if size)
        return {name: found[number] for number, name in enumerate(_VERDICTS)}

    def read(self, row: int) -> SimulationResult:
        """The result of one row."""
        return SimulationResult.model_validate_json(self._document(row))

    def documents(self) -> Iterator[bytes]:
        """The result documents in row order."""
        return (self._document(row) for row, size in enumerate(self._sizes) if size)

    def _document(self, row: int) -> bytes:
        assert self._file is not None, "nothing was put away"
        self._file.seek(self._starts[row])
        return self._file.read(self._sizes[row])

    def close(self) -> None:
        """Removes the file."""
        if self._file is not None:
            self._file.close()


def _unnamed(folder: Path) -> IO[bytes]:
    """A file without a name in ``folder``, or among the system's temporary files where it cannot be there."""
    try:
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        return tempfile.TemporaryFile(buffering=0)
