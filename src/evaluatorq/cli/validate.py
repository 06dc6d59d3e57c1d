"""``sim validate``: reads case files exactly as a run would, and lists everything that is wrong with them."""

from __future__ import annotations

import argparse

from evaluatorq.cli.console import emit, say
from evaluatorq.cli.parsing import Parser
from evaluatorq.errors import ConfigError
from evaluatorq.store.cases import Kind, validate_paths

OK, USAGE = 0, 2
KINDS: tuple[Kind, ...] = ("personas", "scenarios", "datapoints")


def configure(parser: Parser) -> None:
    """The options of ``sim validate``."""
    parser.add_argument("paths", metavar="PATH", nargs="*", default=[], help="files, folders or globs of cases")
    parser.add_argument("-i", "--input", metavar="PATH", nargs="+", action="extend", default=[], help="the same")


def run(args: argparse.Namespace) -> int:
    """Says how many cases there are, or everything that is wrong."""
    paths = [*args.paths, *args.input]
    if not paths:
        raise ConfigError("name at least one file, folder or glob to check")
    report = validate_paths(paths)
    for error in report.errors:
        say(str(error))
    counted = ", ".join(f"{report.counts[kind]} {kind}" for kind in KINDS if report.counts[kind]) or "no cases"
    if report.errors:
        say(f"Error: {len(report.errors)} problems; {counted} are right")
        return USAGE
    emit(f"{counted}: all right")
    return OK
