"""Files that a command writes beside what it prints: tried before anything is decided, then replaced each time.

A build that runs again writes the same files again, so that they are there is no mistake. Run files are another matter:
they are what was paid for, and no report takes their place.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evaluatorq.errors import ConfigError, StoreError
from evaluatorq.store.atomic import try_to_write

MORE = "; a file that is there is replaced"


def check_writable(**paths: str | None) -> None:
    """``ConfigError``, with the option, where a file could not be written."""
    for option, path in paths.items():
        if path is not None:
            try:
                try_to_write(Path(path))
            except StoreError as error:
                raise ConfigError(f"--{option}: {error}") from None


def refuse_to_replace(runs: Iterable[str | None], **paths: str | None) -> None:
    """``ConfigError`` where a report would take the place of a run that it is made of."""
    kept = {Path(run).resolve() for run in runs if run}
    for option, path in paths.items():
        if path is not None and Path(path).resolve() in kept:
            raise ConfigError(f"--{option}: {path} is the run itself; write the report to another file")
