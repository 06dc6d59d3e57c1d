"""``sim run``: cases made by a model, then a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evaluatorq.cli.carry import add_manner, carry_out, manner_of
from evaluatorq.cli.layers import file_layer, flag_layer, layered, project_layer
from evaluatorq.cli.making import (
    NOT_FOR_MADE_CASES,
    Making,
    check_writable,
    datapoints_flag,
    prepared,
)
from evaluatorq.cli.parsing import Parser, add_config_flags, given_config
from evaluatorq.cli.simulate import DEFAULTS, SOURCES, add_settings, printable, refuse_existing
from evaluatorq.model.runs import CasesFile
from evaluatorq.ports import Sink
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.simulation.orders import RunConfig


def configure(parser: Parser) -> None:
    """The options of ``sim run``."""
    parser.usage = f"{parser.prog} --agent-description TEXT [OPTION ...]"
    parser.epilog = SOURCES
    add_config_flags(parser, DEFAULTS, of=RunConfig, without=NOT_FOR_MADE_CASES)
    datapoints_flag(parser, required=False)
    add_settings(parser)
    add_manner(parser)


def run(args: argparse.Namespace) -> int:
    """Makes the cases, runs the simulation and returns the exit code."""
    file = file_layer(args.config, RunConfig) if args.config else {}
    project = project_layer().but(NOT_FOR_MADE_CASES)
    config = layered(RunConfig, (DEFAULTS, project, file, flag_layer(given_config(args, RunConfig))))
    path = Path(args.cases_file) if args.cases_file else None
    if not args.force:
        refuse_existing(config.results, config.report_path, config.report_md, config.report_html, path)
    check_writable(path)
    making = Making(ask=not (args.yes or args.json), quiet=args.quiet, every_problem=args.verbose > 0)
    manner = replace(manner_of(args), dead_rows_fail=config.raise_on_execution_failure, journal=config.journal)
    cases_file = CasesFile(path=str(path.absolute()), replaces=args.force) if path is not None else None
    with printable(config, manner) as (carried, how):
        return carry_out(lambda sinks: _start(carried, [making, *sinks], cases_file), how)


async def _start(config: RunConfig, sinks: Sequence[Sink], cases_file: CasesFile | None) -> RunOutcome:
    from evaluatorq.simulation.generation import run_made  # noqa: PLC0415  not needed to refuse bad options

    return await run_made(config, sinks=sinks, prepared=prepared, cases_file=cases_file)
