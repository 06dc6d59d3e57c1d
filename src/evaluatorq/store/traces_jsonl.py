"""Traces in a file of JSON Lines, one trace a line; any number of processes may append to it.

A line is written whole, under the file's lock. A torn last line (its writer died) is not read, and the next writer
takes it away. A broken line in the middle is left where it is, reported in ``damage``, and the rest is read.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue
from pydantic_core import from_json

from evaluatorq.errors import StoreError
from evaluatorq.model.trace import Trace
from evaluatorq.ports import TraceQuery
from evaluatorq.records.trace_versions import read_trace
from evaluatorq.store.atomic import PRIVATE_FILE, make_private_dir
from evaluatorq.store.traces import another_has_its_id, digest_of_trace, fits

Document = dict[str, JsonValue]


class JsonlTraceStore:
    """A ``TraceStore`` in one file; it is made with the first trace. ``damage`` lists the broken lines seen so far."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.damage: list[str] = []
        self._places: dict[str, tuple[int, str]] = {}
        self._read_to = 0
        self._lines_read = 0

    def append(self, trace: Trace) -> bool:
        """Keeps a trace: ``False`` where the same is there already, ``StoreError`` where another one has its id."""
        document = trace.document()
        digest = digest_of_trace(document)
        with self._locked() as handle:
            self._look()
            known = self._places.get(trace.thread_id)
            if known is not None:
                if known[1] != digest:
                    raise another_has_its_id(trace)
                return False
            self._write(handle, trace.line())
            self._look()
        return True

    def get(self, thread_id: str) -> Trace | None:
        """The trace of a conversation."""
        self._look()
        place = self._places.get(thread_id)
        return None if place is None else read_trace(self._document_at(place[0]))

    def query(self, wanted: TraceQuery) -> Iterator[Trace]:
        """The traces that fit, by time and then by id; one of them is held at a time."""
        self._look()
        found = []
        for thread_id, (at, _) in self._places.items():
            document = self._document_at(at)
            trace = read_trace(document)
            if fits(trace, str(document.get("schema")), wanted):
                found.append((trace.at, thread_id, at))
        for _, _, at in sorted(found):
            yield read_trace(self._document_at(at))

    # ---------------------------------------------------------------- the file

    @contextmanager
    def _locked(self) -> Iterator[int]:
        make_private_dir(self.path.parent)
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)

    def _write(self, handle: int, line: bytes) -> None:
        """Appends a line where the whole lines end."""
        try:
            if os.fstat(handle).st_size > self._read_to:
                os.ftruncate(handle, self._read_to)
            written = os.write(handle, line)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror}") from error
        if written != len(line):
            os.ftruncate(handle, self._read_to)
            raise StoreError(f"cannot write {self.path}: the disk is full")

    def _look(self) -> None:
        """Reads the lines that were added since the last look."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error.strerror}") from error
        with file:
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._lines_read += 1
                self._place(line)
                self._read_to += len(line)

    def _place(self, line: bytes) -> None:
        document = _object(line)
        thread_id = None if document is None else document.get("thread_id", document.get("thread"))
        if document is None or not isinstance(thread_id, str):
            self.damage.append(f"{self.path}:{self._lines_read}: not a trace")
        else:
            self._places.setdefault(thread_id, (self._read_to, digest_of_trace(document)))

    def _document_at(self, at: int) -> Document:
        with self.path.open("rb") as file:
            file.seek(at)
            return _object(file.readline()) or {}


def _object(line: bytes) -> Document | None:
    try:
        value: JsonValue = from_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
