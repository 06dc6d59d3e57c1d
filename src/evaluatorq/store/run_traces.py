"""The traces of a saved, running or interrupted run, read out of its journal one at a time, or of its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from evaluatorq.errors import ReplayError, RunNotFound
from evaluatorq.model.events import Event
from evaluatorq.model.trace import Trace
from evaluatorq.records.trace import trace_of
from evaluatorq.records.trace_saved import trace_of_result
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir
from evaluatorq.store.runs import find_journal, find_run, iter_results, read_header
from evaluatorq.store.saved_plan import plan_in


def traces_of_run(reference: str, runs_dir: Path | None = None) -> Iterator[Trace]:
    """The traces of a run's conversations, each as soon as its last line was read; those that never began have none.

    ``reference`` is ``latest``, a run id (8 or more characters), a name or a file. Of a run that was saved without its
    journal they are made of its file, and say so. Raises ``RunNotFound``, and ``ReplayError`` for such a file without
    cases.
    """
    folder = runs_dir or get_sim_runs_dir()
    try:
        saved = find_run(reference, folder)
    except RunNotFound:
        return traces_in(find_journal(reference, folder))
    journal = _journal_beside(saved, folder)
    return traces_in_file(saved) if journal is None else traces_in(journal)


def journal_of(reference: str, runs_dir: Path | None = None) -> Path:
    """The journal folder of a run that is finished or not."""
    folder = runs_dir or get_sim_runs_dir()
    try:
        saved = find_run(reference, folder)
    except RunNotFound:
        return find_journal(reference, folder)
    journal = _journal_beside(saved, folder)
    if journal is None:
        raise ReplayError(f"{saved} has no journal beside it, and only a journal tells what was asked")
    return journal


def _journal_beside(saved: Path, folder: Path) -> Path | None:
    run_id = read_header(saved).run_id
    journal = journals_dir(folder) / (run_id or "")
    return journal if run_id is not None and journal.is_dir() else None


def traces_in_file(saved: Path) -> Iterator[Trace]:
    """The traces that a run file alone tells, each as its result is read."""
    plan = plan_in(saved)
    for position, result in enumerate(iter_results(saved)):
        row = position if result.row is None else result.row
        if row < len(plan.datapoints):
            yield trace_of_result(plan, row, result)


def traces_in(folder: Path) -> Iterator[Trace]:
    """The traces in a journal; memory holds the events of the conversations that are not read to their end."""
    reader = JournalReader(folder)
    plan = reader.plan
    left = Counter(line.row for line in reader.lines())
    events: dict[int, list[Event]] = {}
    for line in reader.lines():
        if line.row >= len(plan.datapoints):
            continue
        events.setdefault(line.row, []).append(line.event)
        left[line.row] -= 1
        if left[line.row] == 0:
            yield trace_of(plan, line.row, events.pop(line.row))
