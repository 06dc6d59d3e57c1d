"""``sim export --format training``: a corpus and its card out of the traces of a run, a file or a database."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from evaluatorq.cli.console import say
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.trace_words import count_in, labels_in, scores_in, traces_from
from evaluatorq.reports.text import plural

TRAINING = "training"


def add_training_options(parser: Parser) -> None:
    """The options that only this format has."""
    group = parser.add_argument_group("Training data (--format training; the input may also be a database URL)")
    group.add_argument("--style", default="tagged", help="tagged, chat or preference (default: tagged)")
    group.add_argument(
        "--label", metavar="NAME=VALUE", action="append", default=[], help="least outcome, as workflow_completed=true"
    )
    group.add_argument(
        "--verdict", action="append", default=[], help="only conversations with this verdict (passed, …)"
    )
    group.add_argument(
        "--min-score", metavar="NAME=NUMBER", action="append", default=[], help="the least score of an evaluator"
    )
    group.add_argument("--simulator-faults", metavar="N", default=None, help="at most so many failed simulator calls")
    group.add_argument("--without-caveat", metavar="CODE", action="append", default=[], help="leave these traces out")
    group.add_argument("--incomplete", action="store_true", default=False, help="also conversations without an ending")
    group.add_argument("--template", metavar="FILE", default=None, help="tags of your own, for style tagged")


def write_training(args: argparse.Namespace) -> int:
    """Writes the corpus and its card."""
    from evaluatorq.export import Wanted, to_training_jsonl  # noqa: PLC0415  other formats read no traces

    where = Wanted(
        labels=labels_in(args.label),
        verdicts=tuple(args.verdict),
        scores=scores_in(args.min_score, "--min-score"),
        simulator_faults=count_in(args.simulator_faults, "--simulator-faults"),
        complete=not args.incomplete,
        caveats=tuple(args.without_caveat),
    )
    card = to_training_jsonl(
        traces_from(args.input),
        out=args.output,
        format=args.style,
        where=where,
        template=args.template,
    )
    say(f"Wrote {plural(_number(card['rows']), 'row')} to {args.output} and the card beside it.")
    if not card["rows"]:
        say("Warning: no conversation fits, so the file is empty; below stands why.")
    left_out = card["traces_left_out"]
    for reason, count in left_out.items() if isinstance(left_out, Mapping) else ():
        say(f"  left out, {reason}: {count}")
    if card["duplicates_removed"]:
        say(f"  duplicates removed: {card['duplicates_removed']}")
    return 0


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
