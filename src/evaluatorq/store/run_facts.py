"""Reads a saved run as facts, a conversation at a time: what comparing, gating and counting work on."""

from __future__ import annotations

from pathlib import Path

from evaluatorq.errors import ReplayError, RunNotFound
from evaluatorq.records.facts import RunFacts, Signature, behaviour, run_facts
from evaluatorq.store.journal_index import mean_latencies
from evaluatorq.store.paths import journals_dir
from evaluatorq.store.runs import find_journal, find_run, iter_datapoints, iter_results, read_header


def read_facts(path: Path, *, signature: Signature = behaviour) -> RunFacts:
    """The facts of a saved run of any age. ``ReplayError`` when the file is none or its results cannot be read."""
    header = read_header(path)
    journal = journals_dir(path.parent) / (header.run_id or "")
    latency_s = mean_latencies(journal) if header.run_id and journal.is_dir() else {}
    try:
        facts = run_facts(header, iter_datapoints(path), iter_results(path), signature=signature, latency_s=latency_s)
    except ValueError as error:
        raise ReplayError(f"{path} cannot be read: {' '.join(str(error).split())[:300]}") from error
    facts.source = str(path)
    return facts


def find_facts(reference: str, runs_dir: Path | None = None) -> RunFacts:
    """The facts of the run that ``reference`` names, in any way that ``find_run`` knows."""
    return read_facts(_finished(reference, runs_dir))


def _finished(reference: str, runs_dir: Path | None) -> Path:
    """The run's file; ``ReplayError`` that says how to go on where the run has only a journal yet."""
    try:
        return find_run(reference, runs_dir)
    except RunNotFound:
        try:
            run_id = find_journal(reference, runs_dir).name
        except RunNotFound:
            run_id = None
        if run_id is None:
            raise
        raise ReplayError(
            f"run {run_id} is not finished yet; go on with it first: evaluatorq sim resume {run_id}"
        ) from None
