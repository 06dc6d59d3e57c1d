"""What the commands that have cases made share: the options, asking before the spend, and the file of cases."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evaluatorq.cli.console import say
from evaluatorq.cli.simulate import ask_to_start
from evaluatorq.errors import ConfigError, StoreError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import Event
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.model.spending import Spending
from evaluatorq.ports import CaseOrder
from evaluatorq.reports.text import one_line, plural
from evaluatorq.simulation.config import INPUTS
from evaluatorq.store.atomic import replace_file, try_to_write
from evaluatorq.store.cases import export_datapoints_to_jsonl

NOT_FOR_MADE_CASES = (*INPUTS, "only", "pack", "offline")
"""Options of ``simulate`` that have no meaning where a model makes the cases."""
_MOST_PROBLEMS = 10


class Making:
    """A sink that says what is about to be made, asks whether to go on, and says what came of it."""

    def __init__(self, *, ask: bool, quiet: bool, every_problem: bool = False) -> None:
        self._ask = ask
        self._most = None if every_problem else _MOST_PROBLEMS
        self._quiet = quiet

    async def ordered(self, order: CaseOrder) -> None:
        """Says how much it will be, before anything is spent."""
        cases = f"{plural(order.personas, 'persona')} and {plural(order.scenarios, 'scenario')}"
        then = "" if order.plan.mode == "generate" else f", then {plural(order.conversations, 'conversation')}"
        firsts = plural(order.conversations, "first message")
        if not self._quiet:
            say(one_line(f"Making {cases} with {firsts} by {order.model}{then}"))
        if self._ask:
            ask_to_start(order.conversations)

    def reopened(self, spent: Spending) -> None:
        """Says that a command that was stopped had made some of it already."""
        if not self._quiet:
            say(f"Going on with these cases where it was stopped: {spent.total.total_tokens:,} tokens are paid already")

    async def delivered(self, personas: int, scenarios: int, plan: RunPlan) -> None:
        """Says what was made, and what was not."""
        if not self._quiet:
            cases = f"{plural(personas, 'persona')} and {plural(scenarios, 'scenario')}"
            say(f"Made {cases}: {plural(len(plan.datapoints), 'case')}, {plan.spent.total.total_tokens:,} tokens")
        told = plan.problems[: self._most]
        for problem in told:
            say(one_line(f"Not made: {problem}", 300))
        if len(told) < len(plan.problems):
            say(f"Not made: {len(plan.problems) - len(told)} more; --verbose lists them")

    def append(self, thread_id: str, event: Event) -> None:
        """Conversations are watched by others."""

    def finished(self, result: SimulationResult) -> None:
        """Conversations are watched by others."""


def write_cases(path: Path, datapoints: Sequence[SimulationDatapoint], *, as_dataset: bool = False) -> None:
    """One case a line, whole or not at all; ``as_dataset`` in the envelope of a data set."""
    if as_dataset:
        export_datapoints_to_jsonl(datapoints, path)
    else:
        replace_file(path, (case.model_dump_json(exclude_none=True).encode() + b"\n" for case in datapoints))


def deliver_cases(plan: RunPlan) -> None:
    """Writes the cases of a run where its plan wants them, unless they are there; what prevents it is said.

    A file that somebody else put there in the meantime stays.
    """
    wanted = plan.cases_file
    if wanted is None or plan.redacted:
        return
    path = Path(wanted.path)
    try:
        if not path.is_file() or (wanted.replaces and path.stat().st_mtime < plan.created_at.timestamp()):
            write_cases(path, plan.datapoints)
        elif not wanted.replaces:
            say(f"{path} exists by now and is left as it is; the run's file has the cases as well")
    except (OSError, StoreError) as error:
        say(f"{error}; the run goes on, its file has the cases as well")


async def prepared(plan: RunPlan) -> None:
    """``deliver_cases``, for whoever makes cases."""
    deliver_cases(plan)


def check_writable(path: Path | None) -> None:
    """A file that is to be written after models were paid can be written: tried before."""
    if path is not None:
        try:
            try_to_write(path)
        except StoreError as error:
            raise ConfigError(f"--datapoints: {error}") from None


def datapoints_flag(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """``-d``: where the cases go."""
    text = "write the cases to this file, one JSON line each"
    parser.add_argument(
        "-d", "--datapoints", dest="cases_file", metavar="PATH", default=None, required=required, help=text
    )
