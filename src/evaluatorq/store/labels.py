"""A run's labels, in a file of their own beside the run: ``<name>.labels.jsonl``, one label a line.

The file is replaced as a whole with each change, under a lock on its folder, so that two writers lose nothing of each
other's. The run's file is never touched.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from evaluatorq.errors import ReplayError, SchemaError, StoreError
from evaluatorq.model.labels import LABEL_VERSION, Label
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.saved_faults import fault_in

Labels = Mapping[tuple[int, str], Label]


def labels_path(run: Path) -> Path:
    """Where the labels of a run file are."""
    return run.with_name(f"{run.stem}.labels.jsonl")


def read_labels(run: Path) -> dict[tuple[int, str], Label]:
    """The labels of a run by what they are on, in the order of the conversations; none where there is no file.

    ``ReplayError`` with the line of what is no label, ``SchemaError`` where a newer version wrote it.
    """
    path = labels_path(run)
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}") from error
    labels = [_label(path, number, line) for number, line in enumerate(lines, start=1)]
    return {label.key: label for label in sorted(labels, key=lambda label: label.key)}


def _label(path: Path, number: int, line: bytes) -> Label:
    try:
        label = Label.model_validate_json(line)
    except ValidationError as error:
        raise ReplayError(f"{path}:{number}: this is no label: {fault_in(error)}") from error
    if label.label_version > LABEL_VERSION:
        raise SchemaError(f"{path}:{number}: label version {label.label_version} is newer than this version reads")
    return label


def write_label(run: Path, label: Label) -> None:
    """Puts a label on a verdict, in place of the one that was there."""
    with _held(run.parent):
        _write(run, {**read_labels(run), label.key: label})


def remove_label(run: Path, key: tuple[int, str]) -> None:
    """Takes a label away, if there is one."""
    with _held(run.parent):
        _write(run, {kept: label for kept, label in read_labels(run).items() if kept != key})


def _write(run: Path, labels: Labels) -> None:
    replace_file(labels_path(run), (labels[key].model_dump_json().encode() + b"\n" for key in sorted(labels)))


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
