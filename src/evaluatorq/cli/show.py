"""``sim show``: a run, or one of its conversations with the verdicts beside the words they rest on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from evaluatorq.cli.console import emit, emit_file, has_color, width_of
from evaluatorq.cli.parsing import Parser
from evaluatorq.errors import ConfigError, RunNotFound
from evaluatorq.model.results import SimulationResult
from evaluatorq.reports.terminal import About, render_conversations, render_summary
from evaluatorq.reports.transcript import conversation_view, render_conversation
from evaluatorq.reports.view import Summary
from evaluatorq.simulation.unfinished import Unfinished
from evaluatorq.store.runs import find_journal, find_run, iter_results, read_header


def configure(parser: Parser) -> None:
    """The options of ``sim show``."""
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters), a name or a file")
    parser.add_argument("number", metavar="N", nargs="?", default=None, help="a conversation's number, from 0")
    parser.add_argument("--full", action="store_true", default=False, help="do not cut long tool results")
    parser.add_argument("--json", action="store_true", default=False, help="the record as JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Prints the run or the conversation."""
    number = _number(args.number)
    try:
        path = find_run(args.run)
    except RunNotFound as not_saved:
        return _show_unfinished(args, number, not_saved)
    if number is not None:
        return _show_one(_nth(iter_results(path), number, args.run), number, args)
    if args.json:
        emit_file(path)
        return 0
    _show_all(Summary.of(iter_results(path)), replace(About.run(read_header(path)), saved=str(path)))
    return 0


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise ConfigError(f"N is the number of a conversation, counted from 0, not {text!r}")
    return int(text)


def _nth(results: Iterator[SimulationResult], number: int, reference: str) -> SimulationResult:
    before = sum(1 for _ in islice(results, number))
    found = next(results, None)
    if found is None:
        has = f"conversations 0 to {before - 1}" if before else "no conversations"
        raise ConfigError(f"{reference} has no conversation {number}; it has {has}")
    return found


def _show_one(result: SimulationResult, number: int, args: argparse.Namespace) -> int:
    if args.json:
        emit(result.model_dump_json(indent=2))
        return 0
    view = conversation_view(result, number)
    emit(render_conversation(view, width=width_of(sys.stdout), color=has_color(sys.stdout), full=args.full))
    return 0


def _show_all(summary: Summary, about: About) -> None:
    width, color = width_of(sys.stdout), has_color(sys.stdout)
    emit(render_summary(summary, about, width=width, color=color))
    summary.lines.sort(key=lambda line: line.index)
    emit("\n" + render_conversations(summary.lines, width=width, color=color))


def _show_unfinished(args: argparse.Namespace, number: int | None, not_saved: RunNotFound) -> int:
    """A run that has only a journal yet."""
    try:
        run = Unfinished.read(find_journal(args.run))
    except RunNotFound:
        raise not_saved from None
    if number is not None:
        return _show_one(run.result(number), number, args)
    if args.json:
        raise ConfigError(f"{args.run} is not finished, so there is no run file to print; name a conversation")
    _show_all(Summary.of(run.results()), run.about())
    return 0
