"""``sim rebuild``: a run's file made again from its journal."""

from __future__ import annotations

import argparse

from evaluatorq.cli.console import emit
from evaluatorq.cli.parsing import Parser
from evaluatorq.run.rebuild import rebuild


def configure(parser: Parser) -> None:
    """The options of ``sim rebuild``."""
    parser.add_argument("run", metavar="RUN", help="a run id (8 or more characters), a name or a file")


def run(args: argparse.Namespace) -> int:
    """Writes the file and says where it is."""
    emit(str(rebuild(args.run)))
    return 0
