"""``sim resume``: goes on with a run that was stopped; only what is missing is asked."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from evaluatorq.cli.carry import add_manner, carry_out, manner_of
from evaluatorq.cli.console import emit_file, say
from evaluatorq.cli.layers import flag_layer
from evaluatorq.cli.parsing import Parser, add_config_flags, given_config
from evaluatorq.errors import RunNotFound
from evaluatorq.ports import Sink
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.store.runs import find_journal, find_run


def configure(parser: Parser) -> None:
    """The options of ``sim resume``."""
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters) or the run's name")
    add_config_flags(parser, {}, sections=("Target", "Models", "Limits"))
    add_manner(parser)


def run(args: argparse.Namespace) -> int:
    """Goes on with the run and returns the exit code."""
    folder = find_journal(args.run)
    complete = _complete(folder.name)
    if complete is not None:
        say(f"Run {folder.name} is complete already: {complete}")
        if args.json:
            emit_file(complete)
        return 0
    overrides = flag_layer(given_config(args))
    return carry_out(lambda sinks: _start(folder.name, sinks, overrides), replace(manner_of(args), journal=True))


def _complete(run_id: str) -> Path | None:
    try:
        return find_run(run_id)
    except RunNotFound:
        return None


async def _start(reference: str, sinks: Sequence[Sink], overrides: Mapping[str, object]) -> RunOutcome:
    from evaluatorq.simulation.api import resume_simulation  # noqa: PLC0415  not needed to refuse bad options

    return await resume_simulation(reference, sinks=sinks, overrides=overrides)
