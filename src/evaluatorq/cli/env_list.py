"""``env list``: the environments that a scenario can name, each with its tools."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from evaluatorq.cli.console import emit
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.worlds import Worlds
from evaluatorq.environments.registry import OWN_ENVIRONMENT, environment_for
from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import Scenario
from evaluatorq.ports import EnvironmentFactory, ToolSpec
from evaluatorq.reports.text import one_line, plural
from evaluatorq.store.cases import load_scenarios


def configure(parser: Parser) -> None:
    """The options of ``env list``."""
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        default=None,
        help="only this environment, or module:function for one of yours",
    )
    parser.add_argument(
        "--scenario", metavar="PATH", default=None, help="the tools that the scenarios of a file have, mocks included"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the tools as they are called."""
    own = args.name if args.name is not None and ":" in args.name else None
    if args.name is not None and own is None:
        environment_for.require(args.name)
    worlds = Worlds(environment_for if own is None else _own_worlds(own))
    if args.scenario is None:
        names = environment_for.names if args.name is None else [args.name]
        scenarios = [Scenario(name=name, goal="", environment=OWN_ENVIRONMENT if own else name) for name in names]
    else:
        wanted = (None, args.name) if own is None else (None, OWN_ENVIRONMENT)
        found = load_scenarios(args.scenario)
        scenarios = [item for item in found if args.name is None or item.environment in wanted]
    if not scenarios:
        raise ConfigError(f"{args.scenario} holds no scenario in environment {args.name!r}")
    emit("\n\n".join("\n".join(_told(scenario, worlds)) for scenario in scenarios))
    return 0


def _own_worlds(reference: str) -> EnvironmentFactory:
    from evaluatorq.simulation.assemble import environment_factory  # noqa: PLC0415  only for a world of one's own

    return environment_factory(reference)


def _told(scenario: Scenario, worlds: Worlds) -> Iterator[str]:
    tools = worlds.tools(scenario) or ()
    where = f" in {scenario.environment}" if scenario.environment not in (None, scenario.name, OWN_ENVIRONMENT) else ""
    yield f"{one_line(scenario.name)}{where}: {plural(len(tools), 'tool')}"
    for tool in tools:
        yield f"  {_signature(tool)}"
        if tool.description:
            yield f"      {one_line(tool.description, 110)}"


def _signature(tool: ToolSpec) -> str:
    """``find_order(order_id, note?)``: what may be left out has a question mark."""
    known, required = tool.parameters.get("properties"), tool.parameters.get("required")
    names = list(known) if isinstance(known, dict) else []
    needed = required if isinstance(required, list) else []
    return f"{tool.name}({', '.join(name if name in needed else f'{name}?' for name in names)})"
