"""A run's labels, in a file of their own beside the run: ``<name>.labels.jsonl``, one label a line.

A run that is not finished has no name yet: its labels are under its id, in ``<id>.labels.early.jsonl``, which is the
name of no finished run's labels. They are read together with the others once its file is there, and move to them with
the first change; what names another run stays where it is. A file is replaced as a whole with each change, under a lock
on its folder, so that two writers lose nothing of each other's. The run's file is never touched.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from evaluatorq.errors import ReplayError, SchemaError, StoreError
from evaluatorq.model.labels import LABEL_VERSION, Label
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.saved_faults import fault_in

Labels = Mapping[tuple[int, str], Label]


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The labels of one run. ``early`` holds those that were given before the run had a file."""

    path: Path
    early: Path | None = None
    run_id: str | None = None

    @classmethod
    def beside(cls, run: Path, run_id: str | None = None) -> LabelFile:
        """Of a run file; ``run_id`` is the one it tells."""
        early = _early(run.parent, run_id) if run_id else None
        return cls(run.with_name(f"{run.stem}.labels.jsonl"), early, run_id)

    @classmethod
    def of_unfinished(cls, run_id: str, runs_dir: Path) -> LabelFile:
        """Of a run that has no file yet."""
        return cls(_early(runs_dir, run_id))

    def read(self) -> dict[tuple[int, str], Label]:
        """The labels by what they are on, in the order of the conversations; none where there is no file.

        ``ReplayError`` with the line of what is no label, ``SchemaError`` where a newer version wrote it.
        """
        early = _labels_in(self.early) if self.early else ()
        labels = (*(label for label in early if label.run_id == self.run_id), *_labels_in(self.path))
        return {label.key: label for label in sorted(labels, key=lambda label: label.key)}

    def put(self, label: Label) -> None:
        """Puts a label on a verdict, in place of the one that was there."""
        with _held(self.path.parent):
            self._write({**self.read(), label.key: label})

    def remove(self, key: tuple[int, str]) -> None:
        """Takes a label away, if there is one."""
        with _held(self.path.parent):
            self._write({kept: label for kept, label in self.read().items() if kept != key})

    def _write(self, labels: Labels) -> None:
        replace_file(self.path, _lines(labels[key] for key in sorted(labels)))
        if self.early is None:
            return
        others = [label for label in _labels_in(self.early) if label.run_id != self.run_id]
        if others:
            replace_file(self.early, _lines(others))
        else:
            self.early.unlink(missing_ok=True)


def _early(folder: Path, run_id: str) -> Path:
    return folder / f"{run_id}.labels.early.jsonl"


def _lines(labels: Iterable[Label]) -> Iterator[bytes]:
    return (label.model_dump_json().encode() + b"\n" for label in labels)


def _labels_in(path: Path) -> list[Label]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}") from error
    return [_label(path, number, line) for number, line in enumerate(lines, start=1)]


def _label(path: Path, number: int, line: bytes) -> Label:
    try:
        label = Label.model_validate_json(line)
    except ValidationError as error:
        raise ReplayError(f"{path}:{number}: this is no label: {fault_in(error)}") from error
    if label.label_version > LABEL_VERSION:
        raise SchemaError(f"{path}:{number}: label version {label.label_version} is newer than this version reads")
    return label


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"cannot write in {folder}: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
