"""``sim export --format md|html``: a run, or a file of results, as a report for reading."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from evaluatorq.cli.console import say
from evaluatorq.cli.parsing import Parser
from evaluatorq.errors import ConfigError
from evaluatorq.model.calls import DEFAULT_SMART_MODEL
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRecommendation, SimulationRun
from evaluatorq.model.spending import Bill
from evaluatorq.reports.terminal import About
from evaluatorq.reports.text import plural
from evaluatorq.simulation.models import smart_name
from evaluatorq.simulation.report_files import REPORTS, draw
from evaluatorq.store.atomic import replace_file, try_to_write
from evaluatorq.store.runs import find_run, read_header

__all__ = ["REPORTS", "add_report_options", "refuse_report_options", "write_report"]


def add_report_options(parser: Parser) -> None:
    """The options that only reports have."""
    group = parser.add_argument_group("Reports (--format md or html)")
    group.add_argument("--target-label", metavar="TEXT", default=None, help="what the report calls the agent")
    group.add_argument(
        "--recommendations",
        action="store_true",
        default=False,
        help="have changes suggested for the worst conversations, where the run has none; this asks a model",
    )
    group.add_argument(
        "--sim-model", metavar="MODEL", default=None, help=f"the model that suggests (default: {DEFAULT_SMART_MODEL})"
    )


def refuse_report_options(args: argparse.Namespace) -> None:
    """``ConfigError`` for what a format that is no report cannot do."""
    for name, given in (("--recommendations", args.recommendations), ("--sim-model", args.sim_model)):
        if given:
            raise ConfigError(f"{name} goes with --format md or html; {args.format} has no place for suggestions")


def write_report(args: argparse.Namespace, results: Iterable[SimulationResult], output: Path) -> int:
    """Writes the report and says how large it is."""
    given = Path(args.input)
    run: SimulationRun | None = None if given.suffix == ".jsonl" else read_header(find_run(args.input))
    about = About(given.stem) if run is None else About.run(run)
    if args.target_label is not None:
        about = replace(about, target=args.target_label)
    advice = run.recommendations if run is not None else None
    if args.recommendations and advice is None:
        try_to_write(output)
        results = list(results)
        advice = _suggested(results, args.sim_model)
    document, text = draw(args.format, results, about, run, advice)
    replace_file(output, (text.encode(),))
    size = f"{len(text.encode()) / 1e6:.1f} MB" if len(text) >= 1e5 else f"{len(text.encode()) / 1e3:.0f} kB"
    say(f"Exported {plural(document.summary.total, 'result')} to {output} ({size})")
    return 0


def _suggested(results: Sequence[SimulationResult], model: str | None) -> list[SimulationRecommendation]:
    """What a model suggests, with a word on what it cost."""
    import anyio  # noqa: PLC0415  only where a model is asked

    from evaluatorq.simulation.analysis import generate_recommendations  # noqa: PLC0415

    bill = Bill()
    say(f"Asking {model or smart_name()} for suggestions.")
    advice = anyio.run(partial(generate_recommendations, results, model=model, bill=bill))
    spent = bill.spending.total
    count = sum(len(item.suggestions) for item in advice)
    say(f"{plural(count, 'suggestion')} for {plural(len(advice), 'conversation')}, {spent.total_tokens:,} tokens")
    return advice
