"""What is in the folder of runs: each run as a row of the list, and found again by the name that is in its address.

A run file that cannot be read is a row as well, with the reason. Heads of files are read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from pathlib import Path

from evaluatorq.errors import ReplayError, RunNotFound
from evaluatorq.model.runs import SimulationRun
from evaluatorq.reports.listing import mean_words
from evaluatorq.reports.text import printable
from evaluatorq.store.manifests import read_manifests
from evaluatorq.store.paths import journals_dir
from evaluatorq.store.runs import RunListing, list_runs, read_header, report_of

UNREADABLE = "unreadable"
NOT_RUNS = ("01_", "02_", "03_")
"""Names of files that other tools of the published package put beside runs."""


@dataclass(frozen=True, slots=True)
class Shelved:
    """One run of the list. ``key`` names it in addresses; ``error`` says why its file cannot be read.

    ``opens`` is ``False`` for a run that has nothing to show yet: its cases are still being made, or never were.
    """

    key: str
    name: str
    status: str
    created_at: str = ""
    target: str = ""
    run_id: str | None = None
    done: int | None = None
    planned: int | None = None
    scores: Mapping[str, str] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    opens: bool = True
    making: bool = False

    @property
    def troubled(self) -> bool:
        """It came to its end, and conversations of it did not come out well."""
        return any(self.verdicts.get(verdict) for verdict in ("failed", "errored"))

    @property
    def alive(self) -> bool:
        """A process is at work on it."""
        return self.status == "running"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the list is narrowed to; an empty text narrows nothing. Days are ISO dates and belong to the range."""

    status: str = ""
    target: str = ""
    name: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        """The filters in an address; a day that is none is left out."""
        days = {name: day for name in ("since", "until") if _is_day(day := query.get(name, ""))}
        return cls(query.get("status", ""), query.get("target", ""), query.get("name", "").strip(), **days)

    def accepts(self, run: Shelved) -> bool:
        """Whether a run is on the narrowed list."""
        day = run.created_at[:10]
        return (
            self.status in ("", run.status)
            and self.target in ("", run.target)
            and (self.name.casefold() in run.name.casefold() or (run.run_id or "-").startswith(self.name))
            and (not self.since or day >= self.since)
            and (not self.until or "" < day <= self.until)
        )


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Found:
    """Where a run is: its file, or the journal of one that is not finished."""

    key: str
    file: Path | None
    journal: Path | None


class Shelf:
    """The runs of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def runs(self) -> list[Shelved]:
        """All of them, newest first; files that cannot be read come last."""
        listed = list_runs(self.folder) if self.folder.is_dir() else []
        named = {Path(row.file).name for row in listed if row.file}
        return [_addressed(run) for run in (*map(self._row, listed), *self._unread(named))]

    def find(self, key: str) -> Found:
        """The run of an address. ``RunNotFound`` for a name that is none of this folder's."""
        if not key or key.startswith(".") or any(sign in key for sign in "/\\\0"):
            raise RunNotFound("there is no such run")
        file = self.folder / f"{key}.json"
        if file.is_file():
            return Found(key, file, self._journal_of(file))
        for manifest in read_manifests(self.folder):
            if manifest.run_id == key:
                saved = report_of(manifest, self.folder)
                if saved is not None:
                    return Found(self._key(saved, key), saved, self._journal_of(saved))
        journal = journals_dir(self.folder) / key
        if journal.is_dir():
            return Found(key, None, journal)
        raise RunNotFound(f"there is no run {key} in {self.folder}")

    def _key(self, file: Path | None, otherwise: str) -> str:
        """The name of a run in addresses: that of its file, where that is in the folder."""
        return otherwise if file is None or file.parent.resolve() != self.folder.resolve() else file.stem

    def _journal_of(self, file: Path) -> Path | None:
        try:
            run_id = head(file).run_id
        except ReplayError:
            return None
        journal = journals_dir(self.folder) / (run_id or "")
        return journal if run_id and journal.is_dir() else None

    def _row(self, row: RunListing) -> Shelved:
        file = Path(row.file) if row.file else None
        done = row.total_results if row.total_results is not None else row.completed
        means = row.scorer_averages or {}
        shelved = Shelved(
            key=self._key(file, row.run_id or row.report_id), name=row.run_name, status=row.status,
            created_at=row.created_at or "", target=row.target or row.target_kind or "", run_id=row.run_id, done=done,
            planned=row.total, verdicts=row.verdicts,
            scores={name: mean_words(name, means, row.undecided, done) for name in means},
            making=row.stage == "generate" and row.status != "completed",
            opens=file is not None or (journals_dir(self.folder) / (row.run_id or "")).is_dir(),
        )  # fmt: skip
        try:
            return replace(shelved, target=head(file).target or shelved.target) if file else shelved
        except ReplayError as error:
            return replace(shelved, status=UNREADABLE, error=str(error))

    def _unread(self, named: set[str]) -> Iterator[Shelved]:
        for path in sorted(self.folder.glob("*.json")):
            if path.name not in named and not path.name.startswith(NOT_RUNS):
                try:
                    head(path)
                except ReplayError as error:
                    yield Shelved(path.stem, path.stem, UNREADABLE, error=str(error))


def _addressed(run: Shelved) -> Shelved:
    """The row of a file whose name cannot stand in an address says so."""
    try:
        run.key.encode()
    except UnicodeEncodeError:
        return replace(run, key=printable(run.key), status=UNREADABLE, error="its file name is not UTF-8; rename it")
    return run


def head(file: Path) -> SimulationRun:
    """A run file without its results and cases, read once for each state of the file. ``ReplayError`` if it is none."""
    try:
        state = file.stat()
    except OSError as error:
        raise ReplayError(f"cannot read {file}: {error.strerror}") from error
    return _head(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _head(file: Path, _changed: int, _size: int) -> SimulationRun:
    return read_header(file)
