"""Progress on standard error: a bar on a terminal, a line for each conversation in a log, nothing when quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from evaluatorq.cli.console import has_color, is_lively, say
from evaluatorq.model.events import CallFailed, Event
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.reports.progress import Progress
from evaluatorq.reports.terminal import OFFLINE
from evaluatorq.reports.text import one_line, plural

if TYPE_CHECKING:
    from rich.console import RenderableType

Confirm = Callable[[RunPlan], None]


class Watch(Progress):
    """Progress that speaks: each conversation (``verbose`` 1), also each failed call (2), a bar where ``lively``."""

    def __init__(self, verbose: int, *, lively: bool, confirm: Confirm | None) -> None:
        super().__init__()
        self.screen = ExitStack()
        self._verbose = verbose
        self._lively = lively
        self._confirm = confirm

    def begun(self, plan: RunPlan) -> None:
        """Says what is about to happen and has it confirmed."""
        super().begun(plan)
        say(plan_line(plan))
        if self._confirm is not None:
            self._confirm(plan)
        if self._lively:
            self.screen.enter_context(_bar(self))

    def append(self, thread_id: str, event: Event) -> None:
        """Books the event; says so when a call failed."""
        super().append(thread_id, event)
        if self._verbose >= 2 and isinstance(event, CallFailed):
            then = "giving up" if event.final else f"asking again in {event.retry_in_s or 0:.1f} s"
            row = thread_id.rpartition(":")[2]
            say(f"[{row}] {event.component} {event.code}: {one_line(event.message, 300)}; {then}")

    def finished(self, result: SimulationResult) -> None:
        """Books the verdict and says it."""
        super().finished(result)
        if self._verbose >= 1:
            say(self.log_line(self.summary.lines[-1]))


def plan_line(plan: RunPlan) -> str:
    """What a run is going to do, in one line."""
    who = OFFLINE if plan.offline else ", ".join(f"{role} {model}" for role, model in plan.models.items())
    count, longest = plural(len(plan.datapoints), "conversation"), plural(plan.limits.max_turns, "turn")
    what = f"{count} with {plan.target}, at most {longest}"
    return one_line(f"{plan.run_name} {plan.run_id[:8]}: {what}" + (f"; {who}" if who else ""))


@contextmanager
def watched(*, quiet: bool, verbose: int, confirm: Confirm | None) -> Iterator[Progress]:
    """A sink that shows how far the run is while the block runs."""
    if quiet:
        yield Progress()
        return
    lively = is_lively(sys.stderr)
    watch = Watch(verbose if lively else verbose + 1, lively=lively, confirm=confirm)
    with watch.screen:
        yield watch


@contextmanager
def _bar(progress: Progress) -> Iterator[None]:
    from rich.console import Console  # noqa: PLC0415  only on a terminal
    from rich.live import Live  # noqa: PLC0415

    console = Console(stderr=True, no_color=not has_color(sys.stderr), highlight=False, markup=False, emoji=False)
    with Live(get_renderable=lambda: _drawn(progress), console=console, transient=True, refresh_per_second=4):
        yield


def _drawn(progress: Progress) -> RenderableType:
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    text = f"{progress.counts()} · {progress.in_flight} in flight · {progress.tokens:,} tokens"
    if progress.retries:
        text += f" · {progress.retries} retries"
    grid = Table.grid(padding=(0, 1, 0, 0))
    bar = ProgressBar(total=progress.total or 1, completed=progress.done, width=20)
    grid.add_row(bar, f"{progress.done}/{progress.total}", text)
    return grid
