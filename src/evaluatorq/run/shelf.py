"""Keeps a run that was prepared and in which no conversation began, so that ``resume`` begins it."""

from __future__ import annotations

from pathlib import Path

from evaluatorq.model.runs import RunPlan
from evaluatorq.run.clock import SystemClock
from evaluatorq.run.engine import RunOptions
from evaluatorq.run.status import RunStatus
from evaluatorq.store.journal import Journal
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir


def shelve(plan: RunPlan, options: RunOptions) -> Path:
    """Writes the plan as a journal without conversations, and a manifest where the run is one to be saved.

    Returns the journal's folder; raises ``StoreError`` when it cannot be written.
    """
    runs_dir = options.runs_dir or get_sim_runs_dir()
    folder = journals_dir(runs_dir) / plan.run_id
    Journal.create(folder, plan, sync=options.sync).close()
    saved_to = runs_dir if options.save else None
    RunStatus(plan, saved_to, options.parallelism, SystemClock(), lambda: 0).stopped(None)
    return folder
