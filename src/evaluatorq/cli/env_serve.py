"""``env serve``: an environment's tools over MCP, by itself or joined to a conversation that is going on."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from evaluatorq.cli.console import say
from evaluatorq.cli.parsing import Parser
from evaluatorq.errors import ConfigError
from evaluatorq.ports import EnvironmentFactory
from evaluatorq.toolset import TOOLS_URL, Recorder

_LAST_PORT = 65535


def configure(parser: Parser) -> None:
    """The options of ``env serve``."""
    parser.epilog = (
        f"Where {TOOLS_URL} is set (a run sets it for command targets) --stdio joins that conversation's world instead."
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        default=None,
        help="a registered environment, such as orders, or MODULE:FUNCTION that makes your own",
    )
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--stdio", action="store_true", default=False, help="serve on standard input and output")
    how.add_argument("--http", metavar="PORT", default=None, help="serve streamable HTTP on this machine; 0: any port")
    parser.add_argument("--scenario", metavar="PATH", default=None, help="the scenario that sets the world up")
    parser.add_argument(
        "--join", metavar="URL", default=os.environ.get(TOOLS_URL), help="join a world that a run serves"
    )
    parser.add_argument("--seed", metavar="N", default="0", help="seed of what mocks leave to chance")


def run(args: argparse.Namespace) -> int:
    """Serves until the input ends or Ctrl-C."""
    import anyio  # noqa: PLC0415  not needed to refuse bad options

    try:
        from evaluatorq.environments.serving import join_stdio, serve_stdio  # noqa: PLC0415  needs an extra
    except ImportError as error:
        raise ConfigError(f"serving over MCP needs the extra: pip install 'evaluatorq[mcp]' ({error.name})") from None
    if args.stdio and args.join:
        anyio.run(join_stdio, args.join)
        return 0
    port = 0 if args.stdio else _number("--http", args.http)
    if port > _LAST_PORT:
        raise ConfigError(f"--http is {port}; ports end at {_LAST_PORT}")
    world = _world(args)
    if args.stdio:
        anyio.run(serve_stdio, world)
    else:
        anyio.run(_serve_http, world, port)
    return 0


async def _serve_http(world: Recorder, port: int) -> None:
    import anyio  # noqa: PLC0415

    from evaluatorq.environments.serving import tools_over_http  # noqa: PLC0415

    async with tools_over_http(port) as urls:
        url = urls.url_for(world)
        say(f"MCP (streamable HTTP): {url}\nIts state as JSON: {url}/state\nCtrl-C ends it.")
        await anyio.sleep_forever()


def _world(args: argparse.Namespace) -> Recorder:
    from evaluatorq.environments.registry import environment_for  # noqa: PLC0415
    from evaluatorq.model.cases import Scenario, SimulationDatapoint  # noqa: PLC0415
    from evaluatorq.store.cases import bundled, load_personas, load_scenarios  # noqa: PLC0415

    own = args.name if args.name is not None and ":" in args.name else None
    if args.name is not None and own is None:
        environment_for.require(args.name)
    scenario = Scenario(name=args.name or "", goal="", environment=None if own else args.name)
    if args.scenario is not None:
        found = load_scenarios(Path(args.scenario))
        if len(found) != 1:
            raise ConfigError(f"{args.scenario} holds {len(found)} scenarios; name a file with one")
        named = None if own else args.name or found[0].environment
        scenario = found[0].model_copy(update={"environment": named})
    persona = load_personas(bundled("personas"))[0]
    datapoint = SimulationDatapoint(id="served", persona=persona, scenario=scenario)
    factory = environment_for if own is None else _own_worlds(own)
    seed = _number("--seed", args.seed)
    try:
        environment = factory(datapoint, seed)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"the environment cannot be made: {type(error).__name__}: {error}") from error
    if environment is None:
        raise ConfigError("name an environment to serve, or a scenario that has one")
    return Recorder(environment)


def _own_worlds(reference: str) -> EnvironmentFactory:
    from evaluatorq.simulation.assemble import environment_factory  # noqa: PLC0415  only for a world of one's own

    return environment_factory(reference)


def _number(option: str, text: str) -> int:
    if not text.isdecimal():
        raise ConfigError(f"{option} is {text!r}; give a number")
    return int(text)
