"""Writes run artifacts: into a folder a file for each conversation, into ``.jsonl`` a line for each, else one list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from evaluatorq.cli.console import say
from evaluatorq.errors import ConfigError
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.artifact import to_artifact
from evaluatorq.reports.text import plural
from evaluatorq.store.atomic import replace_file

ARTIFACT = "artifact"


def write_artifacts(results: Iterable[SimulationResult], output: Path, *, force: bool) -> int:
    """Writes them and returns the exit code. In a folder a file that is there is replaced only by ``force``."""
    if output.is_dir() or not output.suffix:
        count = sum(_write(output, result, force=force) for result in results)
    else:
        listed = list(results)
        count = len(listed)
        replace_file(output, (part.encode() for part in (_lines if output.suffix == ".jsonl" else _list)(listed)))
    say(f"Exported {plural(count, 'artifact')} to {output}")
    return 0


def _write(folder: Path, result: SimulationResult, *, force: bool) -> int:
    artifact = to_artifact(result)
    path = folder / f"{artifact['run_id']}.json"
    if path.exists() and not force:
        raise ConfigError(f"{path} exists; choose another folder, or replace it with --force")
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(artifact, indent=2).encode(),))
    return 1


def _lines(results: Iterable[SimulationResult]) -> Iterator[str]:
    for result in results:
        yield json.dumps(to_artifact(result)) + "\n"


def _list(results: Iterable[SimulationResult]) -> Iterator[str]:
    yield "["
    for number, result in enumerate(results):
        text = json.dumps(to_artifact(result), indent=2).replace("\n", "\n  ")
        yield f"{',' if number else ''}\n  {text}"
    yield "\n]\n"
