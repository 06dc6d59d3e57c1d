"""The status of a run, readable by anyone while it runs: a small file rewritten atomically, with a heartbeat."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from evaluatorq.model.runs import RunManifest
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.paths import manifests_dir

HEARTBEAT_S = 2.0
STALE_AFTER = timedelta(seconds=60)


def write_manifest(manifest: RunManifest, runs_dir: Path) -> None:
    """Puts the manifest in place, whole. A heartbeat does not wait for the disk."""
    text = manifest.model_dump_json(indent=2) + "\n"
    path = manifests_dir(runs_dir) / f"{manifest.run_id}.json"
    replace_file(path, [text.encode()], durable=manifest.status != "running")


def read_manifests(runs_dir: Path) -> Iterator[RunManifest]:
    """Every manifest of simulation runs that can be read."""
    for path in sorted(manifests_dir(runs_dir).glob("*.json")):
        try:
            manifest = RunManifest.model_validate_json(path.read_bytes())
        except (OSError, ValueError):
            continue
        if manifest.surface == "sim":
            yield manifest


def read_manifest(run_id: str, runs_dir: Path) -> RunManifest | None:
    """The manifest of one run, ``None`` where there is none that can be read."""
    try:
        return RunManifest.model_validate_json((manifests_dir(runs_dir) / f"{run_id}.json").read_bytes())
    except (OSError, ValueError):
        return None


def is_alive(manifest: RunManifest) -> bool:
    """Whether the process that writes the run still lives: by its pid on this machine, else by its heartbeat."""
    if manifest.pid is not None and manifest.host == socket.gethostname():
        try:
            os.kill(manifest.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        if _is_dead_but_known(manifest.pid):
            return False
    beat = manifest.heartbeat_at
    return beat is not None and datetime.now(UTC) - beat < STALE_AFTER


def _is_dead_but_known(pid: int) -> bool:
    """A process that ended and whose parent has not asked after it yet; only Linux says so in a file."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return status.rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])  # a name in parentheses may hold anything
