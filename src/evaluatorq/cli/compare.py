"""``sim compare``: did the change make the agent better or worse, or is it noise?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluatorq.cli.console import emit, has_color, width_of
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.written import MORE, check_writable
from evaluatorq.records.compare import compare_facts
from evaluatorq.reports.comparison import render_comparison
from evaluatorq.reports.markdown import comparison_markdown
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.run_facts import find_facts


def configure(parser: Parser) -> None:
    """The options of ``sim compare``."""
    parser.add_argument("a", metavar="A", help="the run before: 'latest', a run id, a name or a file")
    parser.add_argument("b", metavar="B", help="the run after")
    parser.add_argument("--control", metavar="RUN", default=None, help="A's agent run once more: what differs is noise")
    parser.add_argument("--json", action="store_true", default=False, help="the comparison as JSON on standard output")
    parser.add_argument("--markdown", metavar="PATH", default=None, help=f"write it as Markdown as well{MORE}")


def run(args: argparse.Namespace) -> int:
    """Prints the comparison."""
    check_writable(markdown=args.markdown)
    found = compare_facts(find_facts(args.a), find_facts(args.b), find_facts(args.control) if args.control else None)
    if args.markdown is not None:
        replace_file(Path(args.markdown), [comparison_markdown(found).encode()])
    if args.json:
        emit(found.model_dump_json(indent=2))
    else:
        emit(render_comparison(found, width=width_of(sys.stdout), color=has_color(sys.stdout)))
    return 0
