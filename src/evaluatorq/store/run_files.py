"""A run file: written as a stream, whole or not at all, and read one result at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import from_json

from evaluatorq.errors import ReplayError, SchemaError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import REPLAY_VERSION, SimulationRun
from evaluatorq.store.atomic import create_file, replace_file
from evaluatorq.store.paths import sanitise_run_name
from evaluatorq.store.saved_faults import fault_in

M = TypeVar("M", bound=BaseModel)
_RESULTS = '\n  "results": []'
_DATAPOINTS = '\n  "datapoints": []'
_LISTS = re.compile(rb'\n  "(?:results|datapoints)": \[(?=\r?\n)')
_LIST_ENDS = re.compile(rb"\n  (?=\])")
_CHUNK, _OVERLAP = 1 << 20, 32
"""How much is read at once, and how much of it may be the beginning of a list's first or last line."""


# ---------------------------------------------------------------- writing


def run_parts(header: SimulationRun, results: Iterable[bytes]) -> Iterator[bytes]:
    """A run file as pieces: the header with its results put in, each of them JSON indented by two."""
    points = header.datapoints
    text = header.model_copy(update={"datapoints": points and []}).model_dump_json(indent=2)
    before, after = text.split(_RESULTS, 1)
    yield before.encode() + _RESULTS[:-1].encode()
    yield from _items(results)
    if points:
        between, after = after.split(_DATAPOINTS, 1)
        yield between.encode() + _DATAPOINTS[:-1].encode()
        yield from _items(point.model_dump_json(indent=2).encode() for point in points)
    yield after.encode() + b"\n"


def _items(documents: Iterable[bytes]) -> Iterator[bytes]:
    """The documents as members of a list that was opened at an indent of two, and the list's end."""
    first = True
    for document in documents:
        yield (b"\n    " if first else b",\n    ") + document.replace(b"\n", b"\n    ")
        first = False
    yield b"]" if first else b"\n  ]"


def save_run(
    header: SimulationRun, results: Iterable[bytes], runs_dir: Path, stamp: datetime, path: Path | None = None
) -> Path:
    """Writes a run file, whole or not at all: under its own name and the time, or at ``path``, replacing it."""
    parts = run_parts(header, results)
    if path is not None:
        replace_file(path, parts)
        return path
    return create_file(runs_dir / f"{sanitise_run_name(header.run_name)}_{stamp:%Y%m%d-%H%M%S}.json", parts)


# ---------------------------------------------------------------- reading


def read_run(path: Path) -> SimulationRun:
    """A saved run of any age. ``ReplayError`` when it is none, ``SchemaError`` when a newer version wrote it."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ReplayError(f"cannot read {path}: {error.strerror}") from error
    try:
        run = SimulationRun.model_validate_json(text)
    except ValueError as error:
        raise _not_a_run(path, text, error) from error
    if (run.replay_version or 0) > REPLAY_VERSION:
        raise SchemaError(
            f"{path} was saved by a newer version (replay_version {run.replay_version}); upgrade evaluatorq"
        )
    return run


def _not_a_run(path: Path, text: bytes, error: ValueError) -> ReplayError:
    try:
        raw = json.loads(text)
    except ValueError:
        return ReplayError(f"{path} is not JSON")
    if isinstance(raw, dict) and "pipeline" in raw:
        return ReplayError(f"{path} is a red-team run, not a simulation run")
    if not isinstance(error, ValidationError):
        return ReplayError(f"{path} is not a simulation run: {error}")
    return ReplayError(f"{path} is not a simulation run: {fault_in(error)}")


def read_header(path: Path) -> SimulationRun:
    """A saved run without its results and datapoints, which are not held in memory."""
    head = fields_of(path)
    try:
        return SimulationRun.model_validate({**head, "results": [], "datapoints": None})
    except ValueError as error:
        raise _not_a_run(path, json.dumps(head).encode(), error) from error


def iter_results(path: Path) -> Iterator[SimulationResult]:
    """The results of a saved run one at a time; memory holds one of them when the file is written by us."""
    return _each(path, "results", SimulationResult, lambda run: run.results)


def iter_datapoints(path: Path) -> Iterator[SimulationDatapoint]:
    """The cases of a saved run one at a time, nothing where the file does not hold them."""
    return _each(path, "datapoints", SimulationDatapoint, lambda run: run.datapoints or ())


def _each(path: Path, key: str, model: type[M], held: Callable[[SimulationRun], Iterable[M]]) -> Iterator[M]:
    """The items of a list, from the whole run where the file has another layout. ``ReplayError`` says which is none."""
    number = -1
    for number, text in enumerate(texts_of(path, key)):
        try:
            item = model.model_validate_json(text)
        except ValidationError as error:
            raise ReplayError(f"{path}: {key}[{number}] cannot be read: {fault_in(error)}") from error
        yield item
    if number < 0:
        yield from held(read_run(path))


def texts_of(path: Path, key: str) -> Iterator[bytes]:
    """Cuts the items of a list out of an indented run file by its layout; yields nothing for any other layout.

    They are as they are in the file, which may be no JSON and no UTF-8.
    """
    with path.open("rb") as file:
        for line in file:
            if line.rstrip(b"\r\n") == f'  "{key}": ['.encode():
                break
        lines: list[bytes] = []
        for line in file:
            if line.startswith(b"  ]"):
                return
            lines.append(line)
            if line.rstrip(b"\r\n") in (b"    }", b"    },"):
                yield b"".join(lines).rstrip().removesuffix(b",")
                lines.clear()


def fields_of(path: Path) -> dict[str, JsonValue]:
    """The run's own fields; ``ReplayError`` for a file that is no run."""
    try:
        value = head_of(path)
    except (OSError, ValueError) as error:
        raise ReplayError(f"{path} is not a simulation run") from error
    if not isinstance(value, dict) or "mode" not in value or "scorer_averages" not in value:
        raise ReplayError(f"{path} is not a simulation run")
    return value


def head_of(path: Path, at_once: int = _CHUNK) -> JsonValue:
    """What a JSON file holds, with the results and datapoints of a run file's layout skipped (their lists are empty).

    ``at_once`` bytes are read at a time. ``ValueError`` for what is no JSON.
    """
    kept: list[bytes] = []
    inside, text = False, b""
    with path.open("rb") as file:
        while more := file.read(at_once):
            text += more
            while (found := (_LIST_ENDS if inside else _LISTS).search(text)) is not None:
                if not inside:
                    kept.append(text[: found.end()])
                text, inside = text[found.end() :], not inside
            if not inside:
                kept.append(text[:-_OVERLAP])
            text = text[-_OVERLAP:]
    if inside:
        raise ValueError("a list that does not end")
    value: JsonValue = from_json(b"".join([*kept, text]))
    return value
