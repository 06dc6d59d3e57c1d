"""``sim rescore``: other scores for conversations that are there already; nobody is asked."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from evaluatorq.cli.console import emit, emit_file, has_color, width_of
from evaluatorq.cli.parsing import Parser
from evaluatorq.reports.terminal import About, render_summary
from evaluatorq.reports.view import Summary
from evaluatorq.store.runs import iter_results, read_header


def configure(parser: Parser) -> None:
    """The options of ``sim rescore``."""
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters), a name or a file")
    parser.add_argument(
        "--evaluator", metavar="NAME", nargs="+", action="extend", required=True,
        help="scores to compute: built-in, of a plugin, or your own as module:attribute",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--name", metavar="NAME", default=None, help="label of the new run (default: that of RUN with -rescored)"
    )
    parser.add_argument("--json", action="store_true", default=False, help="print the new run as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Writes the new run and shows it."""
    import anyio  # noqa: PLC0415  only commands that run something

    from evaluatorq.simulation.again import rescore  # noqa: PLC0415  not needed to refuse bad options

    path = anyio.run(lambda: rescore(args.run, args.evaluator, name=args.name))
    if args.json:
        emit_file(path)
        return 0
    about = replace(About.run(read_header(path)), saved=str(path))
    emit(render_summary(Summary.of(iter_results(path)), about, width=width_of(sys.stdout), color=has_color(sys.stdout)))
    return 0
