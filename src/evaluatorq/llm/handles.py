"""How many connections the process may hold open: each is a file handle, and handles run out."""

from __future__ import annotations

import logging
from pathlib import Path

RESERVE = 64
"""Handles kept for journals, pipes, name resolution and the like."""


_log = logging.getLogger(__name__)


def fitting(connections: int) -> int:
    """How many of ``connections`` fit; a warning in the log where that is fewer."""
    room, notice = room_for(connections)
    if notice is not None:
        _log.warning(notice)
    return room


def room_for(connections: int) -> tuple[int, str | None]:
    """How many of ``connections`` fit, and a sentence for the user where that is fewer.

    Raises the process's soft limit as far as needed and allowed. Where there is no such limit, all fit.
    """
    try:
        import resource  # noqa: PLC0415  not on Windows
    except ImportError:
        return connections, None
    wanted = connections + RESERVE + _open_handles()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, raised), hard))
            soft = max(soft, raised)
        except (ValueError, OSError):
            pass
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections, None
    fits = max(1, soft - (wanted - connections))
    return fits, (
        f"Only {fits} of {connections} connections fit under this process's limit of {soft} open files; "
        f"the rest wait their turn (raise it with: ulimit -n {wanted})."
    )


def _open_handles() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:
        return 0
