"""``sim simulate``: the options of ``SimulationConfig`` as flags, then a run."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from evaluatorq.cli.carry import Manner, add_manner, carry_out, manner_of
from evaluatorq.cli.console import say
from evaluatorq.cli.layers import config_of
from evaluatorq.cli.parsing import Parser, add_config_flags, given_config
from evaluatorq.errors import ConfigError, SimulationCancelledError
from evaluatorq.model.runs import RunPlan
from evaluatorq.ports import Sink
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.simulation.config import SimulationConfig

C = TypeVar("C", bound=SimulationConfig)
DEFAULTS: dict[str, object] = {"save": True}
SOURCES = """Options come from flags, then --config, then .evaluatorq/config.toml, then the defaults.
EVALUATORQ_DIR names another folder than .evaluatorq; evaluatorq --help lists all variables."""


def configure(parser: Parser) -> None:
    """The options of ``sim simulate``."""
    parser.usage = f"{parser.prog} [OPTION ...]"
    parser.epilog = SOURCES
    add_config_flags(parser, DEFAULTS)
    add_settings(parser)
    add_manner(parser)


def add_settings(parser: Parser) -> None:
    """Where options come from and what is asked, for commands that start runs."""
    group = parser.add_argument_group("Settings")
    group.add_argument("--config", metavar="PATH|JSON|-", default=None, help="options from a file, as JSON, or stdin")
    group.add_argument("--force", action="store_true", default=False, help="replace files that are there")
    group.add_argument("-y", "--yes", action="store_true", default=False, help="do not ask before models are called")


def run(args: argparse.Namespace) -> int:
    """Runs the simulation and returns the exit code."""
    config = config_of(given_config(args), args.config, DEFAULTS)
    if not args.force:
        refuse_existing(config.results, config.report_path, config.report_md, config.report_html)
    manner = replace(
        manner_of(args),
        confirm=None if args.yes or args.json or not _asks_models(config) else confirm,
        dead_rows_fail=config.raise_on_execution_failure,
        journal=config.journal,
    )
    with printable(config, manner) as (carried, how):
        return carry_out(lambda sinks: _start(carried, sinks), how)


async def _start(config: SimulationConfig, sinks: Sequence[Sink]) -> RunOutcome:
    from evaluatorq.simulation.api import run_simulation  # noqa: PLC0415  not needed to refuse bad options

    return await run_simulation(config, sinks=sinks)


def refuse_existing(*paths: Path | None) -> None:
    """A file that is there is not written over by accident."""
    for path in paths:
        if path is not None and path.is_file():
            raise ConfigError(f"{path} exists; choose another name, or replace it with --force")


def _asks_models(config: SimulationConfig) -> bool:
    return not config.offline or config.openai_model is not None


def confirm(plan: RunPlan) -> None:
    """Asks before models are paid for."""
    ask_to_start(len(plan.datapoints))


def ask_to_start(conversations: int) -> None:
    """Asks a person, where one can answer. ``SimulationCancelledError`` when the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    # The event loop's own handler would only note the signal and let the read go on.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stderr.write("This asks models, which may cost money. Start? [Y/n] ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, handler)
    if answer.strip().lower() not in ("y", "yes") and answer != "\n":
        raise SimulationCancelledError(f"not started: {conversations} conversations were declined")


@contextmanager
def printable(config: C, manner: Manner) -> Iterator[tuple[C, Manner]]:
    """A run that is to be printed or reported but kept nowhere is written to a temporary file while that takes."""
    read_later = manner.json or any((config.results, config.report_md, config.report_html))
    if not read_later or config.is_stored:
        if (config.executive_summary or config.recommendations) and not config.is_stored:
            say("No summary and no recommendations are made: the run is not stored.")
        yield config, manner
        return
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "run.json"
        yield config.model_copy(update={"report_path": scratch}), replace(manner, scratch=scratch)
