"""Saved runs: written as a stream, found by any of their names, listed without loading, read one result at a time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic_core import from_json

from evaluatorq.errors import ReplayError, RunNotFound, SchemaError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import REPLAY_VERSION, RunManifest, SimulationRun
from evaluatorq.store.atomic import create_file, replace_file
from evaluatorq.store.journal_index import ended_rows
from evaluatorq.store.manifests import is_alive, read_manifests
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir, manifests_dir, sanitise_run_name
from evaluatorq.store.saved_faults import fault_in

_RESULTS = '\n  "results": []'
_DATAPOINTS = '\n  "datapoints": []'
_LISTS = re.compile(rb'\n  "(?:results|datapoints)": \[(?=\r?\n)')
_LIST_ENDS = re.compile(rb"\n  (?=\])")
_CHUNK, _OVERLAP = 1 << 20, 32
"""How much is read at once, and how much of it may be the beginning of a list's first or last line."""
_LEAST_PREFIX = 8
_SHORT_PREFIX = re.compile(r"[0-9a-f]{4,7}")
_STAMP = re.compile(r"_\d{8}-\d{6}(_\d{3})?$")


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
    head = _head(path)
    try:
        return SimulationRun.model_validate({**head, "results": [], "datapoints": None})
    except ValueError as error:
        raise _not_a_run(path, json.dumps(head).encode(), error) from error


def iter_results(path: Path) -> Iterator[SimulationResult]:
    """The results of a saved run one at a time; memory holds one of them when the file is written by us."""
    yielded = False
    for number, text in enumerate(texts_of(path, "results")):
        yielded = True
        with _named(path, f"results[{number}]"):
            result = SimulationResult.model_validate_json(text)
        yield result
    if not yielded:
        yield from read_run(path).results


def iter_datapoints(path: Path) -> Iterator[SimulationDatapoint]:
    """The cases of a saved run one at a time, nothing where the file does not hold them."""
    yielded = False
    for number, text in enumerate(texts_of(path, "datapoints")):
        yielded = True
        with _named(path, f"datapoints[{number}]"):
            datapoint = SimulationDatapoint.model_validate_json(text)
        yield datapoint
    if not yielded:
        yield from read_run(path).datapoints or ()


@contextmanager
def _named(path: Path, item: str) -> Iterator[None]:
    """What is wrong with an item of a list, as ``ReplayError`` that says where."""
    try:
        yield
    except ValidationError as error:
        raise ReplayError(f"{path}: {item} cannot be read: {fault_in(error)}") from error


def texts_of(path: Path, key: str) -> Iterator[str]:
    """Cuts the items of a list out of an indented run file by its layout; yields nothing for any other layout."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.rstrip("\n") == f'  "{key}": [':
                break
        lines: list[str] = []
        for line in file:
            if line.startswith("  ]"):
                return
            lines.append(line)
            if line.rstrip("\n") in ("    }", "    },"):
                yield "".join(lines).rstrip().removesuffix(",")
                lines.clear()


# ---------------------------------------------------------------- listing


class RunListing(BaseModel):
    """One row of ``sim runs``; ``alive`` is ``False`` for an unfinished run whose process is gone.

    ``completed`` conversations of ``total`` have ended: of a killed run those that its journal holds. ``stage`` is the
    one under way. ``verdicts`` counts the conversations of a finished run by verdict, where its manifest does.
    """

    model_config = ConfigDict(frozen=True)

    report_id: str
    run_name: str
    created_at: str | None
    status: str
    mode: str | None = None
    target_kind: str | None = None
    total_results: int | None = None
    scorer_averages: dict[str, float] | None = None
    file: str | None = None
    summary_version: int | None = None
    run_id: str | None = None
    completed: int | None = None
    total: int | None = None
    alive: bool = False
    target: str | None = None
    stage: str | None = None
    undecided: dict[str, int] = {}
    verdicts: dict[str, int] = {}


def list_runs(runs_dir: Path | None = None) -> list[RunListing]:
    """Every run in the store, newest first: finished, running and interrupted ones.

    A process that died between putting a run file in place and saying so left a finished run.
    """
    folder = runs_dir or get_sim_runs_dir()
    rows: list[tuple[float, RunListing]] = []
    seen: set[Path] = set()
    for manifest in read_manifests(folder):
        report = report_of(manifest, folder)
        if manifest.report_path and report is None:
            continue
        if report is not None:
            seen.add(report.resolve())
        rows.append((manifest.started_at.timestamp(), _manifest_row(manifest, report, folder)))
    for path in folder.glob("*.json"):
        if path.resolve() not in seen and not path.name.startswith(("01_", "02_", "03_")):
            row = _report_row(path)
            if row is not None:
                rows = [other for other in rows if not _is_same_run(other[1], row)]
                rows.append((path.stat().st_mtime, row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0], reverse=True)]


def _is_same_run(unfinished: RunListing, saved: RunListing) -> bool:
    dead = unfinished.file is None and not unfinished.alive
    return dead and saved.run_id is not None and unfinished.run_id == saved.run_id


def report_of(manifest: RunManifest, folder: Path) -> Path | None:
    """The run file that a manifest in ``folder`` names.

    In a store that was copied the path is the original's, whose files are never touched: that store knows the run, too.
    """
    if not manifest.report_path:
        return None
    named = Path(manifest.report_path)
    own = folder / named.name
    if own.is_file():
        return own
    is_anothers = (manifests_dir(named.parent) / f"{manifest.run_id}.json").is_file()
    return named if named.is_file() and not is_anothers else None


def _manifest_row(manifest: RunManifest, report: Path | None, folder: Path) -> RunListing:
    summary = manifest.summary or {}
    averages = summary.get("scorer_averages")
    stage = manifest.stages[-1] if manifest.stages else None
    alive = manifest.status == "running" and is_alive(manifest)
    interrupted = manifest.status == "running" and not alive
    return RunListing(
        report_id=_report_id(str(report.resolve()) if report else f"manifest:{manifest.run_id}"),
        run_name=manifest.run_name,
        created_at=manifest.started_at.isoformat(),
        status="interrupted" if interrupted else manifest.status,
        mode=_text(summary.get("mode")) or manifest.mode,
        target_kind=_text(summary.get("target_kind")),
        total_results=_count(summary.get("total_results")),
        scorer_averages={k: float(v) for k, v in averages.items() if isinstance(v, int | float)}
        if isinstance(averages, dict)
        else None,
        file=str(report) if report else None,
        summary_version=manifest.summary_version,
        run_id=manifest.run_id,
        completed=_in_journal(manifest, folder) if interrupted else stage.completed if stage else None,
        total=stage.total if stage else None,
        alive=alive,
        target=manifest.target,
        stage=manifest.stage,
        undecided=manifest.undecided,
        verdicts=manifest.verdicts,
    )


def _in_journal(manifest: RunManifest, folder: Path) -> int | None:
    """How many conversations of a killed run came to their end; its last manifest is older than its journal."""
    journal = journals_dir(folder) / manifest.run_id
    return len(ended_rows(journal)) if manifest.stage == "simulate" and journal.is_dir() else None


def _report_row(path: Path) -> RunListing | None:
    try:
        head = _head(path)
    except ReplayError:
        return None
    averages = head.get("scorer_averages")
    return RunListing(
        report_id=_report_id(str(path.resolve())),
        run_name=_text(head.get("run_name")) or path.stem,
        created_at=_text(head.get("created_at")),
        status="completed",
        mode=_text(head.get("mode")),
        target_kind=_text(head.get("target_kind")),
        total_results=_count(head.get("total_results")),
        scorer_averages={k: float(v) for k, v in averages.items() if isinstance(v, int | float)}
        if isinstance(averages, dict)
        else None,
        file=str(path),
        run_id=_text(head.get("run_id")),
        target=_text(head.get("target")),
    )


def _head(path: Path) -> dict[str, JsonValue]:
    """The run's own fields; ``ReplayError`` for a file that is no run."""
    try:
        value = head_of(path)
    except (OSError, ValueError) as error:
        raise ReplayError(f"{path} is not a simulation run") from error
    if not isinstance(value, dict) or "mode" not in value or "scorer_averages" not in value:
        raise ReplayError(f"{path} is not a simulation run")
    return value


def head_of(path: Path) -> JsonValue:
    """What a JSON file holds, with the results and datapoints of a run file's layout skipped (their lists are empty).

    ``ValueError`` for what is no JSON.
    """
    kept: list[bytes] = []
    inside, text = False, b""
    with path.open("rb") as file:
        while more := file.read(_CHUNK):
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


def _report_id(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return base64.urlsafe_b64encode(digest[:12]).decode().rstrip("=")


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# ---------------------------------------------------------------- finding


def find_run(reference: str, runs_dir: Path | None = None) -> Path:
    """The run file named by ``latest``, a path, a file name, a run id, 8 or more characters of one, or a name."""
    folder = runs_dir or get_sim_runs_dir()
    wanted = reference.strip()
    if not wanted:
        raise RunNotFound("name a run: 'latest', a path, a file name, a run id or the run's name")
    for look in (_latest, _by_path, _by_run_id, _by_name):
        found = look(wanted, folder)
        if found is not None:
            return found
    raise RunNotFound(f"no saved run answers to {reference!r}; {_near(wanted, folder)}{_newest(folder)}")


def find_journal(reference: str, runs_dir: Path | None = None) -> Path:
    """The journal folder of a run named by ``latest``, its run id, 8 or more characters of it, or its name."""
    folder = runs_dir or get_sim_runs_dir()
    wanted = reference.strip()
    journals = {path.name: path for path in journals_dir(folder).glob("*") if path.is_dir()}
    if wanted in journals:
        return journals[wanted]
    manifests = [m for m in read_manifests(folder) if m.run_id in journals]
    if wanted.lower() == "latest":
        unfinished = [m for m in manifests if m.status != "completed"] or manifests
        if unfinished:
            return journals[max(unfinished, key=lambda m: m.started_at).run_id]
    names = {run_id for run_id in journals if len(wanted) >= _LEAST_PREFIX and run_id.startswith(wanted)}
    names |= {
        m.run_id
        for m in manifests
        if wanted in (m.run_name, Path(m.report_path or "").name, Path(m.report_path or "").stem)
    }
    match sorted(names):
        case [one]:
            return journals[one]
        case []:
            raise RunNotFound(f"no journal answers to {reference!r}; {_newest_of(manifests, folder)}")
        case several:
            raise RunNotFound(f"{reference!r} is ambiguous: {', '.join(several)}")


def _newest_of(manifests: Sequence[RunManifest], folder: Path) -> str:
    """The newest runs by the names that they can be called by."""
    newest = sorted(manifests, key=lambda manifest: manifest.started_at, reverse=True)[:5]
    named = ", ".join(f"{manifest.run_name} ({manifest.run_id[:_LEAST_PREFIX]})" for manifest in newest)
    return f"the newest are {named}" if named else f"there are none in {folder}"


def _latest(wanted: str, folder: Path) -> Path | None:
    if wanted.lower() != "latest":
        return None
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    found = next((path for path in files if _report_row(path) is not None), None)
    if found is None:
        raise RunNotFound(f"no saved runs in {folder}")
    return found


def _by_path(wanted: str, folder: Path) -> Path | None:
    candidates = [Path(wanted), folder / wanted, folder / f"{wanted}.json"]
    return next((path for path in candidates if path.is_file()), None)


def _by_run_id(wanted: str, folder: Path) -> Path | None:
    found: dict[str, Path] = {}
    for manifest in read_manifests(folder):
        report = report_of(manifest, folder)
        if report is not None:
            found[manifest.run_id] = report
    for path in () if wanted in found else folder.glob("*.json"):
        row = _report_row(path)
        if row is not None and row.run_id:
            found.setdefault(row.run_id, path)
    if wanted in found:
        return found[wanted]
    matches = [run_id for run_id in found if len(wanted) >= _LEAST_PREFIX and run_id.startswith(wanted)]
    if len(matches) > 1:
        raise RunNotFound(f"{wanted!r} is ambiguous: {', '.join(sorted(matches))}")
    return found[matches[0]] if matches else None


def _by_name(wanted: str, folder: Path) -> Path | None:
    for name in dict.fromkeys((wanted, sanitise_run_name(wanted, "") or wanted)):
        named = [path for path in folder.glob("*.json") if path.stem == name or path.stem.startswith(f"{name}_")]
        if named:
            return max(named, key=lambda path: path.stat().st_mtime)
    return None


def _near(wanted: str, folder: Path) -> str:
    """Names that may have been meant: of files, and of files without their time."""
    names = {path.stem for path in folder.glob("*.json")}
    names |= {_STAMP.sub("", name) for name in names}
    near = get_close_matches(wanted.removesuffix(".json"), sorted(names), n=3)
    if _SHORT_PREFIX.fullmatch(wanted) and not near:
        return f"the beginning of a run id has {_LEAST_PREFIX} characters or more; "
    return f"did you mean {' or '.join(near)}? " if near else ""


def _newest(folder: Path) -> str:
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)[:5]
    return f"the newest are {', '.join(path.name for path in files)}" if files else f"there are none in {folder}"


__all__ = [
    "RunListing", "find_journal", "find_run", "iter_datapoints", "iter_results", "list_runs", "read_header", "read_run",
    "report_of", "run_parts", "save_run",
]  # fmt: skip
