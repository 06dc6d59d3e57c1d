"""``sim generate``: cases made by a model, written to a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from evaluatorq.cli.console import emit, say
from evaluatorq.cli.layers import file_layer, flag_layer, layered, project_layer
from evaluatorq.cli.making import NOT_FOR_MADE_CASES, Making, check_writable, datapoints_flag, write_cases
from evaluatorq.cli.parsing import Parser, add_config_flags, given_config
from evaluatorq.cli.signals import heard_once
from evaluatorq.cli.simulate import add_settings, refuse_existing
from evaluatorq.model.runs import RunPlan
from evaluatorq.reports.text import plural
from evaluatorq.simulation.config import TARGETS
from evaluatorq.simulation.orders import GenerateConfig, OrderOptions
from evaluatorq.store.atomic import is_replaced

INTERRUPTED = 130
KEPT = frozenset({*OrderOptions.model_fields, "sim_model", "llm_config", "llm_parallelism", "seed"})


def configure(parser: Parser) -> None:
    """The options of ``sim generate``."""
    parser.usage = f"{parser.prog} --agent-description TEXT -d PATH [OPTION ...]"
    add_config_flags(parser, {}, of=GenerateConfig, without=GenerateConfig.model_fields.keys() - KEPT)
    datapoints_flag(parser, required=True)
    parser.add_argument("--dataset-format", action="store_true", default=False, help="rows of a data set")
    add_settings(parser)
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say everything that could not be made")
    parser.add_argument("-q", "--quiet", action="store_true", default=False, help="say only what could not be made")


def run(args: argparse.Namespace) -> int:
    """Makes the cases, writes the file and returns the exit code."""
    import anyio  # noqa: PLC0415  not needed for help

    from evaluatorq.simulation.generation import run_generate  # noqa: PLC0415  not needed for help

    file = file_layer(args.config, GenerateConfig) if args.config else {}
    project = project_layer().but((*NOT_FOR_MADE_CASES, *TARGETS))
    config = layered(GenerateConfig, (project, file, flag_layer(given_config(args, GenerateConfig))))
    path = Path(args.cases_file)
    if not args.force:
        refuse_existing(path)
    check_writable(path)
    making = Making(ask=not args.yes, quiet=args.quiet, every_problem=args.verbose > 0)

    async def write(plan: RunPlan) -> None:
        write_cases(path, plan.datapoints, as_dataset=args.dataset_format)

    async def make() -> int:
        with heard_once():
            return len(await run_generate(config, sinks=[making], prepared=write, reopened=making.reopened))

    try:
        count = anyio.run(make)
    except KeyboardInterrupt:
        say("Interrupted. No file was written.")
        return INTERRUPTED
    tell = emit if is_replaced(path) else say  # what goes into a pipe, or our own output, is cases and nothing else
    tell(f"{plural(count, 'case')} written to {path}")
    return 0
