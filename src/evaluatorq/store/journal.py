"""The append-only truth of a run: JSON Lines, one file per writing process, whole lines only.

Line 1 of the first file is the plan. Every other line is one event of one conversation, with the ``row`` of its
datapoint. A line is on its way to disk before the next question is asked, so a killed process loses no answer that
came. A torn last line (the process died while writing it) is dropped; a broken line in the middle is reported with its
place and the rest is kept. Each line ends in its number within the conversation and a checksum of itself, so that
nothing is taken for what happened because a line was changed, lost, written twice or put elsewhere and the rest can
still be read; a line without them is taken as it is.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from zlib import crc32

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json, to_json

from evaluatorq.errors import ReplayError, SchemaError, StoreError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import EVENT, KINDS, Event
from evaluatorq.model.runs import JOURNAL_VERSION, RunPlan
from evaluatorq.store.atomic import PRIVATE_FILE, make_private_dir

PLAN_PIECE = 100
HEAD = re.compile(rb'\{"row":(\d{1,9}),"kind":"([a-z_]+)"')
"""How a line of an event begins."""
DRAFT = "draft.jsonl"
"""Beside the parts: what was paid for before there was a plan (``evaluatorq.store.drafts``)."""


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One event, the row of its conversation, and how many lines of that came before, where it is said."""

    row: int
    event: Event
    part: str = ""
    number: int | None = None


def encode_line(row: int, event: Event, number: int | None = None) -> bytes:
    """One journal line, the ``number``-th of its conversation from 0; values that are defaults are left out."""
    body = event.model_dump_json(exclude_defaults=True).encode()
    counted = b"" if number is None else b',"n":%d' % number
    text = b'{"row":%d,"kind":"%b",%b%b' % (row, event.kind.encode(), body[1:-1], counted)
    return text + _SEAL % crc32(text)


_SEAL = b',"crc":"%08x"}\n'
_SEAL_SIZE = len(_SEAL % 0)


def _is_sealed(line: bytes) -> bool:
    return line[-_SEAL_SIZE:].startswith(_SEAL[:8])


def is_changed(line: bytes) -> bool:
    """The line is not the one that its checksum was taken of."""
    return _is_sealed(line) and line[-_SEAL_SIZE:] != _SEAL % crc32(line[:-_SEAL_SIZE])


def _plan_pieces(plan: RunPlan) -> Iterator[bytes]:
    """The plan's line, a few cases at a time: the datapoints are its last member."""
    head = plan.model_copy(update={"datapoints": ()}).model_dump_json().encode()
    assert head.endswith(b'"datapoints":[]}'), "what follows the datapoints would be lost"
    crc = 0
    for piece in _unsealed(b'{"kind":"plan",' + head[1:-2], plan.datapoints):
        crc = crc32(piece, crc)
        yield piece
    yield _SEAL % crc


def _unsealed(head: bytes, datapoints: Sequence[SimulationDatapoint]) -> Iterator[bytes]:
    yield head
    for at in range(0, len(datapoints), PLAN_PIECE):
        points = datapoints[at : at + PLAN_PIECE]
        yield (b"," if at else b"") + b",".join(point.model_dump_json().encode() for point in points)
    yield b"]"


class Journal:
    """Writes one process's part of a run's journal. Holds the run: a second writer is refused.

    ``sync`` asks the operating system to put every line on the medium before going on; without it lines survive a
    killed process but not a power cut.
    """

    def __init__(self, folder: Path, lock: int, file: int, *, sync: bool = False) -> None:
        self.folder = folder
        self._lock = lock
        self._file = file
        self._size = os.fstat(file).st_size
        self._sync = sync

    @classmethod
    def create(cls, folder: Path, plan: RunPlan, *, sync: bool = False) -> Self:
        """A new run's journal; its first line is the plan."""
        make_private_dir(folder)
        journal = cls(folder, hold(folder), _new_part(folder), sync=sync)
        try:
            for piece in _plan_pieces(plan):
                journal.write_line(piece)
        except StoreError:
            journal.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return journal

    @classmethod
    def reopen(cls, folder: Path, *, sync: bool = False) -> Self:
        """A further part of an existing run's journal."""
        journal = cls(folder, hold(folder), _new_part(folder), sync=sync)
        journal.write_line(b'{"kind":"part","journal_version":%d}\n' % JOURNAL_VERSION)
        return journal

    def append(self, row: int, event: Event) -> None:
        """Writes one event; raises ``StoreError`` when it cannot be written whole."""
        self.write_line(encode_line(row, event))

    def write_line(self, line: bytes) -> None:
        """Writes one encoded line, its end included; raises ``StoreError`` when it cannot be written whole."""
        try:
            written = os.write(self._file, line)
            if self._sync:
                os.fsync(self._file)
        except OSError as error:
            raise StoreError(f"cannot write the journal in {self.folder}: {error.strerror}") from error
        if written != len(line):
            os.ftruncate(self._file, self._size)
            raise StoreError(f"cannot write the journal in {self.folder}: the disk is full")
        self._size += written

    def close(self) -> None:
        """Gives the run free for another writer."""
        os.close(self._file)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


LOOKS_S = (0.02, 0.05, 0.1, 0.3, 0.5)
"""A lock may be held for a moment by somebody who only looks whether it is free."""


def hold(folder: Path) -> int:
    """Takes the run's lock; the operating system gives it back when the process dies, however it dies."""
    try:
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    except OSError as error:
        raise StoreError(f"cannot write in {folder}: {error.strerror}") from error
    for patience in (*LOOKS_S, None):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if patience is not None:
                time.sleep(patience)
        except OSError as error:
            os.close(handle)
            raise StoreError(f"cannot lock {folder}: {error.strerror}; its file system may not know locks") from error
    os.close(handle)
    raise StoreError(f"run {folder.name} is being written by another process; wait for it or stop it")


def is_held(folder: Path) -> bool:
    """Whether a live process writes this run's journal. Looking writes nothing, and lookers do not see each other."""
    try:
        handle = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def _new_part(folder: Path) -> int:
    number = len(parts_of(folder)) + 1
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
    try:
        return os.open(folder / f"{number:04d}.jsonl", flags, PRIVATE_FILE)
    except OSError as error:
        raise StoreError(f"cannot write the journal in {folder}: {error.strerror}") from error


def parts_of(folder: Path) -> list[Path]:
    """The files of a journal, in the order in which they were begun."""
    return sorted(folder.glob("[0-9]*.jsonl"))


# ---------------------------------------------------------------- reading


@dataclass(slots=True)
class JournalReader:
    """Reads a run's journal from its first part to its last.

    ``damage`` lists the broken lines so far in a pass, and ``lost`` maps conversations to the kinds of theirs among
    them, as far as that can be read.
    """

    folder: Path
    damage: list[str] = field(default_factory=list)
    lost: dict[int, list[str]] = field(default_factory=dict)

    @property
    def plan(self) -> RunPlan:
        """What was asked for. ``ReplayError`` when there is none, ``SchemaError`` when a newer version wrote it."""
        return self._plan_in(self._plan_head())

    def sparse_plan(self) -> tuple[RunPlan, list[bytes]]:
        """The plan without its cases, and each of them as JSON: an eighth of the memory of as many records."""
        head = self._plan_head()
        points = head.pop("datapoints", None)
        cases: list[bytes] = []
        if isinstance(points, list):
            points.reverse()
            while points:
                cases.append(to_json(points.pop()))
        return self._plan_in({**head, "datapoints": []}), cases

    def _plan_in(self, head: Mapping[str, JsonValue]) -> RunPlan:
        try:
            return RunPlan.model_validate(head)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ".".join(map(str, fault["loc"]))
            where = f"{parts_of(self.folder)[0]}:1"
            raise ReplayError(f"{where}: the plan cannot be read: {place}: {fault['msg']}") from error

    def _plan_head(self) -> dict[str, JsonValue]:
        """The first line, unless there is none or it cannot be trusted."""
        parts = parts_of(self.folder)
        if not parts and (self.folder / DRAFT).is_file():
            raise ReplayError(
                f"run {self.folder.name} has no conversation yet: it was stopped while its cases were made, or they "
                f"are being made now; go on with one that was stopped: evaluatorq sim resume {self.folder.name}"
            )
        if not parts:
            raise ReplayError(f"there is no journal in {self.folder}")
        with parts[0].open("rb") as file:
            line = file.readline()
        head = _object(line) if line.endswith(b"\n") else None
        if head is None or head.get("kind") != "plan":
            raise ReplayError(f"{parts[0]}:1: the journal does not begin with a plan; the run never started")
        _check_version(head, parts[0])
        if is_changed(line):
            raise ReplayError(f"{parts[0]}:1: the plan was changed after it was written: its checksum does not fit")
        return head

    def lines(self) -> Iterator[JournalLine]:
        """The events of all parts in order; torn ends are dropped, broken lines are noted in ``damage``."""
        self.damage.clear()
        self.lost.clear()
        for part in parts_of(self.folder):
            yield from self._part(part)

    def _part(self, part: Path) -> Iterator[JournalLine]:
        with part.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return
                head = _object(line)
                if head is not None and head.get("kind") in ("plan", "part"):
                    _check_version(head, part)
                    continue
                read = None if is_changed(line) else _read_line(head, part.stem)
                if read is not None:
                    yield read
                else:
                    self._lose(f"{part.name}:{number}", line, head)

    def _lose(self, place: str, line: bytes, head: dict[str, JsonValue] | None) -> None:
        self.damage.append(f"{place}: {_what_it_is(line, head)}")
        begun = HEAD.match(line)
        if begun is not None:
            self.lost.setdefault(int(begun[1]), []).append(begun[2].decode())


def _object(line: bytes) -> dict[str, JsonValue] | None:
    try:
        value: JsonValue = from_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_line(line: bytes, part: str = "") -> JournalLine | None:
    """The event in one line, ``None`` where it holds none; one that was changed is read as it stands."""
    return _read_line(_object(line), part)


def _read_line(head: dict[str, JsonValue] | None, part: str) -> JournalLine | None:
    if head is None:
        return None
    row, number = head.pop("row", None), head.pop("n", None)
    if not isinstance(row, int) or isinstance(row, bool) or row < 0:
        return None
    try:
        return JournalLine(row, EVENT.validate_python(head), part, number if isinstance(number, int) else None)
    except ValueError:
        return None


def _what_it_is(line: bytes, head: dict[str, JsonValue] | None) -> str:
    """What stands in the place of an event, for people."""
    if is_changed(line):
        return "changed after it was written: its checksum does not fit"
    kind = head.get("kind") if head is not None else None
    if isinstance(kind, str) and kind not in KINDS:
        return f"a line of a kind that this version does not know: {kind[:40]!r}"
    return "not a journal line"


def _check_version(head: dict[str, JsonValue], part: Path) -> None:
    version = head.get("journal_version")
    if isinstance(version, int) and version > JOURNAL_VERSION:
        raise SchemaError(
            f"{part}: journal version {version} is newer than this version reads ({JOURNAL_VERSION}); upgrade"
        )
