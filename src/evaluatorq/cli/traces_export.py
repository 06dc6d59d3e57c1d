"""``sim traces export``: the traces of a run into a file or a database."""

from __future__ import annotations

import argparse
from collections import Counter

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
    parser.add_argument(
        "--unfinished",
        action="store_true",
        default=False,
        help="also conversations without an ending; when they go on, their later trace is another one and is refused",
    )


def run(args: argparse.Namespace) -> int:
    """Adds the traces; those that are there already stay as they are."""
    store = open_trace_store(args.output)
    done = Counter[str]()
    for trace in traces_from(args.run):
        if trace.outcome.terminal is None and not args.unfinished:
            done["unfinished"] += 1
        else:
            done["new" if store.append(trace) else "known"] += 1
    there = f", {done['known']} were there already" if done["known"] else ""
    left = f", {done['unfinished']} without an ending were left out" if done["unfinished"] else ""
    say(f"Wrote {plural(done['new'], 'trace')} to {_without_password(args.output)}{there}{left}")
    return 0


def _without_password(where: str) -> str:
    scheme, separator, rest = where.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}" if separator else where
