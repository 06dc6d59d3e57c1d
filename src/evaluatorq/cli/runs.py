"""``sim runs``: what is in the store, also what is running and what was interrupted."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from evaluatorq.cli.console import emit, has_color, say, width_of
from evaluatorq.cli.parsing import Parser
from evaluatorq.errors import ConfigError, ReplayError
from evaluatorq.reports.listing import ListedRun, render_listing
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.store.run_counts import counted
from evaluatorq.store.runs import RunListing, list_runs, read_header


def configure(parser: Parser) -> None:
    """The options of ``sim runs``."""
    parser.add_argument("folder", nargs="?", metavar="DIR", default=None, help="folder of saved runs")
    parser.add_argument("-n", "--limit", metavar="N", default="20", help="most runs to show (default: 20)")
    parser.add_argument("-f", "--full", action="store_true", default=False, help="whole names, run ids and paths")
    parser.add_argument("--json", action="store_true", default=False, help="one JSON array on standard output")


def run(args: argparse.Namespace) -> int:
    """Prints the newest runs."""
    folder, limit = _folder(args.folder), _limit(args.limit)
    rows = [counted(row) for row in list_runs(folder)[:limit]] if folder.is_dir() else []
    if args.json:
        emit(json.dumps([row.model_dump(mode="json") for row in rows], indent=2))
        return 0
    if not rows:
        emit(f"No saved runs in {folder}.")
        return 0
    listed = [_listed(row) for row in rows]
    emit(render_listing(listed, width=width_of(sys.stdout), color=has_color(sys.stdout), full=args.full))
    _hint(rows)
    return 0


def _folder(given: str | None) -> Path:
    """The folder of runs; a store is accepted for the runs in it."""
    if given is None:
        return get_sim_runs_dir()
    inside = Path(given) / "sim-runs"
    return inside if inside.is_dir() else Path(given)


def _limit(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--limit must be a number of at least 1, not {text!r}")
    return int(text)


def _listed(row: RunListing) -> ListedRun:
    return ListedRun(
        name=row.run_name,
        run_id=row.run_id,
        created_at=row.created_at,
        status=f"{row.status}, making cases" if row.stage == "generate" and row.status != "completed" else row.status,
        mode=row.mode,
        target=row.target or _target_in(row.file) or row.target_kind,
        count=row.total_results if row.total_results is not None else row.completed,
        total=row.total,
        scores=row.scorer_averages or {},
        file=row.file,
        undecided=row.undecided,
        verdicts=row.verdicts,
    )


def _target_in(file: str | None) -> str | None:
    """What a run's file calls the agent, where its manifest does not."""
    try:
        return None if file is None else read_header(Path(file)).target
    except (OSError, ReplayError):
        return None


def _hint(rows: Sequence[RunListing]) -> None:
    stopped = next((row for row in rows if row.run_id and row.status in ("interrupted", "cancelled", "error")), None)
    if stopped is not None:
        say(f"go on with one that stopped: evaluatorq sim resume {stopped.run_id}")
    say("look into one: evaluatorq sim show RUN")
