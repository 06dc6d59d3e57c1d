"""Makes a run's file again from its journal, which is the truth of which the file is a copy."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from evaluatorq.errors import ReplayError, RunNotFound
from evaluatorq.model.runs import RunPlan, SimulationRun
from evaluatorq.records.result import result_of
from evaluatorq.records.run import as_saved, run_header
from evaluatorq.run.recover import Recovered, recover
from evaluatorq.run.score import expects_scores
from evaluatorq.run.spool import Spool
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.manifests import read_manifests
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.store.run_traces import journal_of
from evaluatorq.store.runs import find_journal, read_header, report_of, save_run

ONLY_IN_THE_FILE = (
    "executive_summary", "recommendations", "applied_suggestions", "agent_info", "duration_s", "token_usage_total",
    "usage_by_category", "usage_by_model", "unread_by_category",
)  # fmt: skip
"""What was asked about a run as a whole, with its price: no journal holds it, so a readable file keeps it."""


def rebuild(reference: str, runs_dir: Path | None = None) -> Path:
    """Writes the file of the run that ``reference`` names and returns its path.

    A file that is there is replaced and keeps its time, so that it is not taken for the newest run; a new one has the
    time of the run's last conversation. ``ReplayError`` for a run with conversations that are not finished.
    """
    folder = runs_dir or get_sim_runs_dir()
    reader = JournalReader(_journal(reference, folder))
    plan, spool = reader.plan, Spool(folder)
    ended: list[datetime] = [plan.created_at]

    def finished(row: int, recovered: Recovered) -> None:
        result = recovered.record or result_of(recovered.state, thread_id=plan.thread_id(row), row=row)
        spool.add(row, as_saved(plan, row, result, recovered.scores.values()))
        if recovered.state.ended is not None:
            ended[0] = max(ended[0], recovered.state.ended.at)

    try:
        recovery = recover(reader, plan, lambda row: _is_complete(plan, row), finished)
        for row in recovery.unfinished:
            spool.discard(row)  # it was begun again, so what it came to first does not stand
        _check(plan, spool, recovery.damage)
        duration_s = round(recovery.active_s, 3)
        header = run_header(plan, spool.summaries(), duration_s=duration_s, learned=recovery.learned)
        return _write(header, spool, folder, ended[0])
    finally:
        spool.close()


def _journal(reference: str, folder: Path) -> Path:
    """The run's journal; also where its file, by which it is named, cannot be read any more."""
    try:
        return find_journal(reference, folder)
    except RunNotFound:
        return journal_of(reference, folder)


def _is_complete(plan: RunPlan, recovered: Recovered) -> bool:
    return not expects_scores(recovered.state) or set(plan.evaluator_names) <= recovered.scores.keys()


def _check(plan: RunPlan, spool: Spool, damage: list[str]) -> None:
    missing = len(plan.datapoints) - len(spool)
    if missing:
        why = f" ({damage[0]})" if damage else ""
        raise ReplayError(
            f"{missing} of {len(plan.datapoints)} conversations of run {plan.run_id} are not finished{why}; "
            f"go on with it first: evaluatorq sim resume {plan.run_id}"
        )


def _write(header: SimulationRun, spool: Spool, folder: Path, ended: datetime) -> Path:
    path = _file_of(header.run_id, folder)
    kept = _kept(path)
    time = ended.timestamp() if path is None else path.stat().st_mtime
    written = save_run(header.model_copy(update=kept), spool.documents(), folder, header.created_at, path)
    os.utime(written, (time, time))
    return written


def _file_of(run_id: str | None, folder: Path) -> Path | None:
    """The run's file, also one that cannot be read any more: its manifest names it."""
    manifest = next((found for found in read_manifests(folder) if found.run_id == run_id), None)
    return None if manifest is None else report_of(manifest, folder)


def _kept(path: Path | None) -> dict[str, object]:
    if path is None:
        return {}
    try:
        header = read_header(path)
    except (ReplayError, OSError):
        return {}
    return {name: getattr(header, name) for name in ONLY_IN_THE_FILE if name in header.model_fields_set}
