"""``sim rejudge``: the same conversations, another judge. User and agent stay as they were recorded."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluatorq.cli.carry import add_manner, carry_out, manner_of
from evaluatorq.cli.layers import flag_layer
from evaluatorq.cli.parsing import Parser, add_config_flags, given_config
from evaluatorq.errors import ConfigError
from evaluatorq.ports import Sink
from evaluatorq.run.outcome import RunOutcome


def configure(parser: Parser) -> None:
    """The options of ``sim rejudge``."""
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters), a name or a file")
    parser.add_argument(
        "-n",
        "--name",
        dest="run_name",
        metavar="NAME",
        help="label of the new run (default: that of RUN with -rejudged)",
    )
    parser.add_argument(
        "--evaluator", dest="evaluator_names", metavar="NAME", nargs="+", action="extend", help="scores to compute"
    )
    add_config_flags(parser, {}, sections=("Models", "Limits"))
    add_manner(parser)


def run(args: argparse.Namespace) -> int:
    """Judges the conversations again and returns the exit code."""
    overrides = {**flag_layer(given_config(args)), "save": True}
    if not any(overrides.get(name) for name in ("offline", "judge_model", "llm_config")):
        raise ConfigError("name the judge: --judge-model MODEL, or --offline for the checks that need no model")
    return carry_out(lambda sinks: _start(args.run, sinks, overrides), replace(manner_of(args), journal=True))


async def _start(reference: str, sinks: Sequence[Sink], overrides: Mapping[str, object]) -> RunOutcome:
    from evaluatorq.simulation.again import rejudge  # noqa: PLC0415  not needed to refuse bad options

    return await rejudge(reference, sinks=sinks, overrides=overrides)
