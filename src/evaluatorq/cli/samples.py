"""``sim samples``: how often each datapoint passes over its repeats, and which are flaky."""

from __future__ import annotations

import argparse
import sys
from typing import get_args

from evaluatorq.cli.console import emit, has_color, width_of
from evaluatorq.cli.parsing import Parser
from evaluatorq.records.samples import Outcome, sample_report
from evaluatorq.reports.samples import render_samples
from evaluatorq.store.run_facts import find_facts

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def configure(parser: Parser) -> None:
    """The options of ``sim samples``."""
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters), a name or a file")
    parser.add_argument(
        "--of", choices=OUTCOMES, default="verdict",
        help="what passes: everything decided and held (verdict), the goal, or whatever was decided (default: verdict)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", default=False, help="the counts as JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Prints the counts."""
    report = sample_report(find_facts(args.run), args.of)
    if args.json:
        emit(report.model_dump_json(indent=2))
    else:
        emit(render_samples(report, width=width_of(sys.stdout), color=has_color(sys.stdout)))
    return 0
