"""The published place of what saves and finds runs."""

from __future__ import annotations

from evaluatorq.model.runs import DEFAULT_RUN_NAME, REPLAY_VERSION
from evaluatorq.simulation.saving import auto_save_run, build_simulation_run, write_report
from evaluatorq.store.paths import SIM_RUNS_DIR_NAME, get_sim_runs_dir, sanitise_run_name

__all__ = [
    "DEFAULT_RUN_NAME", "REPLAY_VERSION", "SIM_RUNS_DIR_NAME", "auto_save_run", "build_simulation_run",
    "get_sim_runs_dir", "sanitise_run_name", "write_report",
]  # fmt: skip
