"""``sim labels``: what people said of a run's verdicts in the viewer, as JSON Lines."""

from __future__ import annotations

import argparse

from evaluatorq.cli.console import emit, say
from evaluatorq.cli.parsing import Parser
from evaluatorq.reports.agreement import Agreement
from evaluatorq.store.labels import read_labels
from evaluatorq.store.runs import find_run


def configure(parser: Parser) -> None:
    """The options of ``sim labels``."""
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters), a name or a file")


def run(args: argparse.Namespace) -> int:
    """Prints the labels, and says how often they agree."""
    labels = read_labels(find_run(args.run)).values()
    for label in labels:
        emit(label.model_dump_json())
    say(Agreement.of(labels).words)
    return 0
