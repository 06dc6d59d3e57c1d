"""``sim traces query``: the traces in a file or database that fit, a line for each."""

from __future__ import annotations

import argparse
import sys

from evaluatorq.cli.console import emit, say
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.trace_words import is_store, labels_in, tell_damage, time_in
from evaluatorq.errors import ConfigError
from evaluatorq.model.trace import Labels, Trace
from evaluatorq.ports import TraceQuery
from evaluatorq.records.trace_events import datapoint_of
from evaluatorq.reports.text import one_line, plural
from evaluatorq.store.traces import open_trace_store

OK, FAILED = 0, 1


def configure(parser: Parser) -> None:
    """The options of ``sim traces query``."""
    parser.add_argument("where", metavar="WHERE", help="a file of traces (.jsonl) or a database URL")
    parser.add_argument("--run", metavar="ID", default=None, help="only those of this run (its whole id)")
    parser.add_argument(
        "--label", metavar="NAME=VALUE", action="append", default=[], help="only those with this label; may be repeated"
    )
    parser.add_argument("--since", metavar="TIME", default=None, help="only those that began then or later (UTC)")
    parser.add_argument("--until", metavar="TIME", default=None, help="only those that began before (UTC)")
    parser.add_argument("--schema", metavar="TAG", default=None, help="only those stored as this version")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--ids", action="store_true", default=False, help="print only the ids of the conversations")
    shape.add_argument("--json", action="store_true", default=False, help="whole traces, one JSON document a line")


def run(args: argparse.Namespace) -> int:
    """Prints what fits, by time; the exit code is 1 where lines of the file could not be read."""
    if not is_store(args.where):
        raise ConfigError(
            f"{args.where} is no file of traces (.jsonl) and no database URL; sim traces export makes one"
        )
    wanted = TraceQuery(
        run=args.run,
        labels=labels_in(args.label),
        since=time_in(args.since, "--since"),
        until=time_in(args.until, "--until"),
        schema=args.schema,
    )
    count, store = 0, open_trace_store(args.where, existing=True)
    for trace in store.query(wanted):
        count += 1
        if args.json:
            sys.stdout.write(trace.line().decode())
        else:
            emit(trace.thread_id if args.ids else _in_short(trace))
    unknown = [] if count else [name for name in wanted.labels if name not in Labels.model_fields]
    if unknown:
        names = ", ".join(Labels.model_fields)
        raise ConfigError(f"no trace fits, and no label of ours is called {', '.join(unknown)}; there is {names}")
    say(plural(count, "trace"))
    return FAILED if tell_damage(store) else OK


def _in_short(trace: Trace) -> str:
    ended = trace.outcome.ended_by or trace.outcome.terminal or "unfinished"
    case = datapoint_of(trace)
    names = one_line(f"{case.persona.name} · {case.scenario.name}", 60)
    return f"{trace.thread_id}  {trace.at:%Y-%m-%d %H:%M}  {trace.verdicts.verdict:<7}  {ended:<10}  {names}"
