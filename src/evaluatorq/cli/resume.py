"""``sim resume``: goes on with a run that was stopped; only what is missing is asked."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from evaluatorq.cli.carry import add_manner, carry_out, manner_of
from evaluatorq.cli.console import emit_file, say
from evaluatorq.cli.layers import flag_layer
from evaluatorq.cli.making import Making, deliver_cases, prepared
from evaluatorq.cli.parsing import Parser, add_config_flags, given_config
from evaluatorq.errors import RunNotFound
from evaluatorq.ports import Sink
from evaluatorq.run.outcome import NOT_THE_AGENTS, RunOutcome
from evaluatorq.store.drafts import is_draft
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.journal_index import ended_rows
from evaluatorq.store.runs import find_journal, find_run, iter_results, read_header


def configure(parser: Parser) -> None:
    """The options of ``sim resume``."""
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters) or the run's name")
    add_config_flags(parser, {}, sections=("Cases", "Target", "Models", "Limits"))
    parser.add_argument(
        "--retry-errors",
        action="store_true",
        default=False,
        help="begin conversations again that ended by a fault of anybody but the agent",
    )
    for name, what in (("--report-md", "a Markdown"), ("--report-html", "an HTML")):
        parser.add_argument(name, metavar="PATH", help=f"write {what} report to this file when the run is complete")
    add_manner(parser)


def run(args: argparse.Namespace) -> int:
    """Goes on with the run and returns the exit code."""
    folder = find_journal(args.run)
    complete = _complete(folder)
    if complete is not None and not (args.retry_errors and _has_faults(complete)):
        nothing = ", and no conversation ended by a fault of anybody but the agent" if args.retry_errors else ""
        say(f"Run {folder.name} is complete already{nothing}: {complete}")
        if args.json:
            emit_file(complete)
        return 0
    overrides = flag_layer(given_config(args))
    if is_draft(folder):
        making = Making(ask=False, quiet=args.quiet, every_problem=args.verbose > 0)
        return carry_out(lambda sinks: _make(folder, overrides, [making, *sinks]), manner_of(args))
    _deliver_what_is_missing(folder)
    start = partial(_start, folder.name, overrides, retry_errors=args.retry_errors)
    return carry_out(start, replace(manner_of(args), journal=True))


def _deliver_what_is_missing(folder: Path) -> None:
    """A run that was stopped when its cases were nearly made may still owe them to a file."""
    plan, _ = JournalReader(folder).sparse_plan()
    if plan.cases_file is not None and (plan.cases_file.replaces or not Path(plan.cases_file.path).is_file()):
        deliver_cases(JournalReader(folder).plan)


def _complete(folder: Path) -> Path | None:
    """The run's file, unless conversations were begun again after it was written and have not ended yet."""
    try:
        path = find_run(folder.name)
    except RunNotFound:
        return None
    return path if len(ended_rows(folder)) >= read_header(path).total_results else None


def _has_faults(path: Path) -> bool:
    return any(result.failed_component in NOT_THE_AGENTS for result in iter_results(path))


async def _make(folder: Path, overrides: Mapping[str, object], sinks: Sequence[Sink]) -> RunOutcome:
    from evaluatorq.simulation.generation import resume_made  # noqa: PLC0415  not needed to refuse bad options

    return await resume_made(folder, sinks=sinks, overrides=overrides, prepared=prepared)


async def _start(
    reference: str, overrides: Mapping[str, object], sinks: Sequence[Sink], *, retry_errors: bool
) -> RunOutcome:
    from evaluatorq.simulation.api import resume_simulation  # noqa: PLC0415  not needed to refuse bad options

    return await resume_simulation(reference, sinks=sinks, overrides=overrides, retry_faults=retry_errors)
