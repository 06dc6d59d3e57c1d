"""``sim labels``: what people said of a run's verdicts in the viewer, as JSON Lines."""

from __future__ import annotations

import argparse

from evaluatorq.cli.console import emit, say
from evaluatorq.cli.parsing import Parser
from evaluatorq.errors import RunNotFound
from evaluatorq.reports.agreement import Agreement
from evaluatorq.store.labels import LabelFile
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.store.runs import find_journal, find_run, read_header


def configure(parser: Parser) -> None:
    """The options of ``sim labels``."""
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters), a name or a file")


def run(args: argparse.Namespace) -> int:
    """Prints the labels, and says how often they agree."""
    labels = _labels_of(args.run).read().values()
    for label in labels:
        emit(label.model_dump_json())
    say(Agreement.of(labels).words)
    return 0


def _labels_of(run: str) -> LabelFile:
    try:
        path = find_run(run)
    except RunNotFound as not_saved:
        try:
            journal = find_journal(run)
        except RunNotFound:
            raise not_saved from None
        return LabelFile.of_unfinished(journal.name, get_sim_runs_dir())
    return LabelFile.beside(path, read_header(path).run_id)
