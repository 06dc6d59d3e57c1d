"""The ``evaluatorq`` and ``eq`` commands."""

from __future__ import annotations

from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 1 (conversations died), 2 (asked wrongly), 130 (interrupted)."""
    from evaluatorq.cli.app import run  # noqa: PLC0415  the entry point itself costs nothing

    return run(words)
