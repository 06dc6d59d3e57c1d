"""Carries a run out for a command: watches it, survives Ctrl-C, reports it, and turns its outcome into an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluatorq.cli.console import emit_file, has_color, say, spoken_aside, width_of
from evaluatorq.cli.live import Confirm, watched
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.signals import heard_once
from evaluatorq.errors import RunNotFound, StoreError
from evaluatorq.ports import Sink
from evaluatorq.reports.progress import Progress
from evaluatorq.reports.terminal import About, render_summary
from evaluatorq.reports.text import one_line, plural
from evaluatorq.reports.view import party
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.store.paths import sanitise_run_name
from evaluatorq.store.runs import find_journal, find_run

OK, FAILED, INTERRUPTED = 0, 1, 130
Start = Callable[[Sequence[Sink]], Awaitable[RunOutcome]]


@dataclass(frozen=True, slots=True)
class Manner:
    """How much is said, and what the exit code counts. ``scratch`` is a run file that is only there to be printed."""

    quiet: bool = False
    verbose: int = 0
    json: bool = False
    confirm: Confirm | None = None
    dead_rows_fail: bool = True
    journal: bool = True
    scratch: Path | None = None


def add_manner(parser: Parser) -> None:
    """The options that every command that runs conversations has."""
    group = parser.add_argument_group("On the terminal")
    group.add_argument("--json", action="store_true", default=False, help="print the run as one JSON document")
    group.add_argument(
        "-v", "--verbose", action="count", default=0, help="say each conversation; twice: also each failed call"
    )
    group.add_argument("-q", "--quiet", action="store_true", default=False, help="say nothing but errors")


def manner_of(args: argparse.Namespace) -> Manner:
    """The manner that the options ask for."""
    return Manner(quiet=args.quiet, verbose=args.verbose, json=args.json)


def carry_out(start: Start, manner: Manner) -> int:
    """Runs ``start`` to its end and returns the exit code."""
    import anyio  # noqa: PLC0415  only commands that run something

    with (
        spoken_aside(manner.json),
        watched(quiet=manner.quiet, verbose=manner.verbose, confirm=manner.confirm) as progress,
    ):

        async def run() -> RunOutcome:
            with heard_once():
                return await start([progress])

        stop = "Interrupted.", INTERRUPTED
        try:
            outcome = anyio.run(run)
        except KeyboardInterrupt:
            outcome = None
        except StoreError as error:
            if not _can_go_on(progress):
                raise
            outcome, stop = None, (f"Error: {error}.", FAILED)
    if outcome is None:
        return _stopped(*stop, progress, manner)
    for line in outcome.damage:
        say(f"The journal is damaged: {line}; that conversation was begun anew where it mattered.")
    if outcome.interrupted:
        return _stopped(f"Stopped by {(outcome.stopped_by or '').rstrip('.')}.", FAILED, progress, manner)
    failed = bool(outcome.dropped) and manner.dead_rows_fail
    if not manner.quiet:
        _summarise(progress, _about(progress, outcome, manner))
    elif failed:
        say(_why_failed(outcome, manner))
    if manner.json and outcome.path is not None:
        emit_file(outcome.path)
    return FAILED if failed else OK


def _why_failed(outcome: RunOutcome, manner: Manner) -> str:
    """What exit code 1 means, in one line."""
    whose = ", ".join(dict.fromkeys(party(dropped.component or "not recorded") for dropped in outcome.dropped))
    counts = f"{len(outcome.dropped)} of {plural(outcome.total, 'conversation')} errored ({whose})"
    saved = outcome.path is not None and manner.scratch is None
    look = f"; look: evaluatorq sim show {outcome.run_id[:8]}" if saved else ""
    return f"{counts}: {one_line(outcome.dropped[0].reason, 300).rstrip('.')}{look}"


def _can_go_on(progress: Progress) -> bool:
    """There is a journal to go on from; a run whose first line could not be written never began."""
    if progress.plan is None:
        return False
    try:
        find_journal(progress.plan.run_id)
    except RunNotFound:
        return False
    return True


def _stopped(what: str, code: int, progress: Progress, manner: Manner) -> int:
    plan = progress.plan
    if plan is None:
        say(f"{what} No conversation was started.")
        return code
    done = f"{progress.done} of {progress.total} conversations are finished ({progress.counts()})"
    if not manner.journal:
        say(f"{what} {done}; there is no journal, so they are lost.")
        return code
    say(f"{what} {done} and kept.")
    if progress.done == progress.total and _is_saved(plan.run_id):
        say(f"The run is saved:  evaluatorq sim show {plan.run_id}")
        say(f"A report of it:    evaluatorq sim export -i {plan.run_id} -o report.html --format html")
        return code
    say(f"Go on with it:     evaluatorq sim resume {plan.run_id}\nSee it so far:     evaluatorq sim show {plan.run_id}")
    return code


def _is_saved(run_id: str) -> bool:
    """Only reports can be missing."""
    try:
        find_run(run_id)
    except RunNotFound:
        return False
    return True


def _summarise(progress: Progress, about: About) -> None:
    say("\n" + render_summary(progress.summary, about, width=width_of(sys.stderr), color=has_color(sys.stderr)))


def _about(progress: Progress, outcome: RunOutcome, manner: Manner) -> About:
    about = About.plan(progress.plan) if progress.plan else About(outcome.run_name, outcome.run_id)
    if outcome.header is not None:
        about = replace(about.analysed(outcome.header), duration_s=outcome.header.duration_s)
    if outcome.path is None or manner.scratch is not None:
        return about
    findings = progress.summary.findings(1)
    reference = outcome.run_id[:8]
    steps: tuple[tuple[str, str], ...] = (
        (f"evaluatorq sim show {reference} {findings[0].line.index if findings else 0}", "reads that conversation"),
        (f"evaluatorq sim show {reference}", "lists them all"),
    )
    if about.suggestions:
        steps += ((f"evaluatorq sim apply {reference} --prompt FILE", "works the suggestions into a prompt"),)
    stem = sanitise_run_name(outcome.run_name)
    notes = about.notes
    if stem != outcome.run_name.lower():
        notes = (*notes, f"A file name cannot hold the name {outcome.run_name!r}: the file is called {stem}_…")
    return replace(about, saved=str(_from_here(outcome.path)), next_steps=steps, notes=notes)


def _from_here(path: Path) -> Path:
    """The path relative to the working folder where it is below: shorter to read and to type."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
