"""``sim traces replay``: does again what is deterministic in a trace, and says where it came out otherwise."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evaluatorq.cli.console import emit, say
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.trace_words import SOURCE, count_in, traces_from
from evaluatorq.errors import ConfigError, ReplayError
from evaluatorq.model.trace import Trace
from evaluatorq.ports import EnvironmentFactory
from evaluatorq.reports.text import plural

if TYPE_CHECKING:
    from evaluatorq.replay import Replay

OK, FAILED = 0, 1


def configure(parser: Parser) -> None:
    """The options of ``sim traces replay``."""
    parser.add_argument("source", metavar="SOURCE", help=SOURCE)
    parser.add_argument("--only", metavar="ID", default=None, help="only the conversation with this id or number")
    parser.add_argument(
        "--live-tools", action="store_true", default=False, help="call tools that may be repeated again and compare"
    )
    parser.add_argument(
        "--environment", metavar="MODULE:NAME", default=None, help="makes the world of live tools, if it is your own"
    )
    parser.add_argument("--start-at", metavar="STEP", default=None, help="begin at this step (default: 0)")


def run(args: argparse.Namespace) -> int:
    """Replays every trace; the exit code is 1 when one of them drifted, 2 when it cannot be replayed as asked."""
    from evaluatorq.replay import replay_sync  # noqa: PLC0415  only this command steps through conversations

    start = count_in(args.start_at, "--start-at") or 0
    factory = None if args.environment is None else _own_world(args.environment)

    def replayed_again(trace: Trace) -> Replay:
        try:
            return replay_sync(trace, environment=factory, live_tools=args.live_tools, start_at=start, collect=True)
        except ReplayError as error:
            raise ConfigError(f"{error}") from None

    replayed = drifted = 0
    for trace in traces_from(args.source):
        if args.only not in (None, trace.thread_id, str(trace.row)):
            continue
        replayed += 1
        again = replayed_again(trace)
        drifted += again.drifted
        for drift in again.drifts:
            emit(f"{trace.thread_id}: {drift}")
        if again.drifted and again.hint:
            emit(f"{trace.thread_id}: a likely cause: {again.hint}")
    if not replayed:
        raise ConfigError(
            f"{args.source} has no conversation {args.only}" if args.only else f"{args.source} has no traces"
        )
    say(f"Replayed {plural(replayed, 'conversation')}: {f'{drifted} drifted' if drifted else 'no drift'}.")
    return FAILED if drifted else OK


def _own_world(reference: str) -> EnvironmentFactory:
    from evaluatorq.simulation.assemble import environment_factory  # noqa: PLC0415  only for a world of one's own

    return environment_factory(reference)
