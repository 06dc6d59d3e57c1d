"""The runs of a store: listed without loading them, found by any of their names. Their files: ``store.run_files``."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue

from evaluatorq.errors import ReplayError, RunNotFound
from evaluatorq.model.runs import RunManifest
from evaluatorq.store.journal_index import ended_rows
from evaluatorq.store.manifests import is_alive, read_manifests
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir, manifests_dir, sanitise_run_name
from evaluatorq.store.run_files import (
    fields_of,
    iter_datapoints,
    iter_results,
    read_header,
    read_run,
    run_parts,
    save_run,
)

_LEAST_PREFIX = 8
_SHORT_PREFIX = re.compile(r"[0-9a-f]{4,7}")
_STAMP = re.compile(r"_\d{8}-\d{6}(_\d{3})?$")


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
        head = fields_of(path)
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
