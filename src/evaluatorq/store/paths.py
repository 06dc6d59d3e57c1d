"""Where things are on disk: the store folder and the names in it.

.evaluatorq/                          $EVALUATORQ_DIR moves it
  sim-runs/
    <name>_<UTC stamp>.json           finished runs only
    .manifests/<run_id>.json          status of a run, also while it runs
    .journal/<run_id>/0001.jsonl      one append-only journal per writing process
  drafts/<order>/draft.jsonl          cases being made without a run, until they are written
"""

from __future__ import annotations

import os
import re
from pathlib import Path

SIM_RUNS_DIR_NAME = Path(".evaluatorq") / "sim-runs"


def store_dir() -> Path:
    """The store: ``$EVALUATORQ_DIR``, or ``.evaluatorq`` in the working folder. Read at call time."""
    return Path(os.environ.get("EVALUATORQ_DIR") or ".evaluatorq")


def get_sim_runs_dir() -> Path:
    """The folder of saved simulation runs."""
    return store_dir() / "sim-runs"


def manifests_dir(runs_dir: Path) -> Path:
    """The folder of run manifests."""
    return runs_dir / ".manifests"


def journals_dir(runs_dir: Path) -> Path:
    """The folder of journals."""
    return runs_dir / ".journal"


def drafts_dir() -> Path:
    """The folder of orders of cases that are not carried out yet."""
    return store_dir() / "drafts"


def sanitise_run_name(name: str, otherwise: str = "sim") -> str:
    """A run's name as part of a file name: ``[a-z0-9_-]``, at most 64 characters, else ``otherwise``."""
    cleaned = re.sub(r"[^a-z0-9_-]", "_", name.lower())
    return re.sub(r"_+", "_", cleaned).strip("_")[:64] or otherwise
