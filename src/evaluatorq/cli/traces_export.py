"""``sim traces export``: the traces of a run into a file or a database."""

from __future__ import annotations

import argparse

from evaluatorq.cli.console import say
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.trace_words import SOURCE, traces_from
from evaluatorq.reports.text import plural
from evaluatorq.store.traces import open_trace_store


def configure(parser: Parser) -> None:
    """The options of ``sim traces export``."""
    parser.add_argument("run", metavar="RUN", help=SOURCE)
    parser.add_argument(
        "-o",
        "--output",
        metavar="WHERE",
        required=True,
        help="a file (.jsonl) or a database URL; traces are added to it",
    )


def run(args: argparse.Namespace) -> int:
    """Adds the traces; those that are there already stay as they are."""
    store = open_trace_store(args.output)
    added = [store.append(trace) for trace in traces_from(args.run)]
    there = f", {added.count(False)} were there already" if False in added else ""
    say(f"Wrote {plural(added.count(True), 'trace')} to {_without_password(args.output)}{there}")
    return 0


def _without_password(where: str) -> str:
    scheme, separator, rest = where.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}" if separator else where
