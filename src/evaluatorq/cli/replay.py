"""``sim replay``: proves a run from its recording (``--verify``), or forks its conversations (``--from-turn``)."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluatorq import __version__
from evaluatorq.cli.carry import add_manner, carry_out, manner_of
from evaluatorq.cli.console import emit, say
from evaluatorq.cli.layers import flag_layer
from evaluatorq.cli.parsing import Parser, add_config_flags, given_config
from evaluatorq.errors import ConfigError
from evaluatorq.ports import Sink
from evaluatorq.reports.text import plural
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.run.verify import Verification, verify_run
from evaluatorq.store.journal_index import JournalIndex
from evaluatorq.store.run_traces import journal_of

OK, DRIFTED = 0, 1
_MOST = 50


def configure(parser: Parser) -> None:
    """The options of ``sim replay``."""
    parser.epilog = (
        "--verify asks no model and opens no connection: every recorded answer must fit the question that\n"
        "is asked today, and the saved results must come out again. The exit code is 1 when they do not.\n"
        "--from-turn N keeps what was said up to the user's words of turn N and lets another --target answer."
    )
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters), a name or a file")
    parser.add_argument("number", metavar="N", nargs="?", default=None, help="fork only this conversation, from 0")
    parser.add_argument("--verify", action="store_true", default=False, help="prove the run from its recording")
    parser.add_argument("--from-turn", metavar="N", default=None, help="the first turn whose answer is new, from 1")
    parser.add_argument(
        "-n",
        "--name",
        dest="run_name",
        metavar="NAME",
        help="label of the forked run (default: that of RUN with -fork)",
    )
    add_config_flags(parser, {}, sections=("Target", "Models", "Limits"))
    add_manner(parser)


def run(args: argparse.Namespace) -> int:
    """Does either and returns the exit code."""
    if args.verify == (args.from_turn is not None):
        raise ConfigError("give one of --verify (prove the run) and --from-turn N (fork it)")
    if args.verify:
        return _verify(args)
    turn, row = _number(args.from_turn, "--from-turn", 1), None
    if args.number is not None:
        row = _number(args.number, "N", 0)
    overrides = {**flag_layer(given_config(args)), "save": True}
    return carry_out(lambda sinks: _fork(args.run, turn, row, sinks, overrides), replace(manner_of(args), journal=True))


def _number(text: str, what: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise ConfigError(f"{what} is a number from {least}, not {text!r}")
    return int(text)


async def _fork(
    reference: str, turn: int, row: int | None, sinks: Sequence[Sink], overrides: Mapping[str, object]
) -> RunOutcome:
    from evaluatorq.simulation.again import fork  # noqa: PLC0415  not needed to refuse bad options

    return await fork(reference, turn, row=row, sinks=sinks, overrides=overrides)


def _verify(args: argparse.Namespace) -> int:
    verification = verify_run(args.run)
    if args.json:
        emit(json.dumps(_document(verification), indent=2, ensure_ascii=False))
    else:
        _told(args, verification)
    return OK if verification.holds else DRIFTED


def _told(args: argparse.Namespace, verification: Verification) -> None:
    for line in verification.damage:
        emit(f"{verification.run_id}: the journal is damaged: {line}")
    for found in verification.found[:_MOST]:
        emit(str(found))
    left = len(verification.found) - _MOST
    if left > 0:
        emit(f"and {left} more differences")
    hint = _hint(args.run) if verification.found else ""
    notes = [f"{verification.redacted} redacted, by their records"] if verification.redacted else []
    notes += [f"{verification.unfinished} not finished yet"] if verification.unfinished else []
    notes += ["no run file to compare with"] if verification.saved is None else []
    about = f" ({', '.join(notes)})" if notes else ""
    result = "no drift" if verification.holds else plural(len(verification.found), "difference")
    say(f"Replayed {plural(verification.conversations, 'conversation')}{about}: {result}.{hint}")


def _hint(reference: str) -> str:
    version = JournalIndex(journal_of(reference)).plan.versions.get("evaluatorq")
    return "" if version in (None, __version__) else f" It was recorded by evaluatorq {version}, this is {__version__}."


def _document(verification: Verification) -> dict[str, object]:
    return {
        "run_id": verification.run_id,
        "conversations": verification.conversations,
        "redacted": verification.redacted,
        "unfinished": verification.unfinished,
        "holds": verification.holds,
        "damage": verification.damage,
        "drifts": [
            {
                "conversation": found.thread_id,
                "row": found.row,
                "kind": found.drift.kind,
                "step": found.drift.step,
                "path": found.drift.path,
                "recorded": found.drift.recorded,
                "replayed": found.drift.replayed,
            }
            for found in verification.found
        ],
    }
