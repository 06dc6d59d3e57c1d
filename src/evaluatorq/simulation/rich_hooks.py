"""Hooks that draw on a terminal: the plan and a question, a bar, a line for each conversation, a summary at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import SimulationResult, TurnMetrics
from evaluatorq.records.verdicts import verdict_of
from evaluatorq.reports.progress import MARKS
from evaluatorq.reports.terminal import STYLES, About, render_summary
from evaluatorq.reports.text import one_line, plural
from evaluatorq.reports.view import Summary
from evaluatorq.simulation.hooks import DefaultHooks, SimStage, SimulationRunMeta, StageMeta

WIDEST = 110


class RichHooks(DefaultHooks):
    """Draws to ``console``, by default standard error. ``verbose`` 2 gives each conversation a bar of its own.

    Asks before a run unless ``skip_confirm``, and only where somebody can answer. With ``defer_summary`` the summary
    waits for ``print_summary``.
    """

    def __init__(
        self,
        *,
        console: Console | None = None,
        skip_confirm: bool = False,
        defer_summary: bool = False,
        verbose: int = 0,
    ) -> None:
        self.console = console or Console(stderr=True, highlight=False, emoji=False)
        self._skip_confirm = skip_confirm
        self._defer_summary = defer_summary
        self._verbose = verbose
        self._name = ""
        self._max_turns = 1
        self._summarised = False
        self._bars: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=self.console, transient=True,
        )  # fmt: skip
        self._overall: TaskID | None = None

    async def on_confirm(self, meta: SimulationRunMeta) -> bool:
        """Draws the plan; asks whether to start where a person sits at a terminal."""
        plan = Table.grid(padding=(0, 2))
        for label, value in meta.items():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            plan.add_row(label.replace("_", " "), Text(one_line(shown)))
        self.console.print(plan)
        if self._skip_confirm or not sys.stdin.isatty() or not self.console.is_terminal:
            return True
        return self.console.input("Start? [Y/n] ").strip().lower() in ("", "y", "yes")

    async def on_run_start(self, meta: SimulationRunMeta) -> None:
        """Starts the bar."""
        self._name, self._max_turns = meta["evaluation_name"] or "simulation", meta["max_turns"]
        self._overall = self._progress.add_task("conversations", total=meta["num_datapoints"])
        self._progress.start()

    async def on_stage_start(self, stage: SimStage | str, meta: StageMeta) -> None:  # noqa: ARG002  a hook's signature
        """Draws a rule with the stage's name."""
        self.console.rule(str(stage))

    async def on_stage_end(self, stage: SimStage | str, meta: StageMeta) -> None:  # noqa: ARG002
        """Takes the bars away."""
        self._progress.stop()

    async def on_datapoint_start(self, datapoint: SimulationDatapoint) -> None:
        """A bar for the conversation, with ``verbose`` 2."""
        if self._verbose >= 2:
            about = one_line(f"{datapoint.persona.name} · {datapoint.scenario.name}", 50)
            self._bars[datapoint.id] = self._progress.add_task(about, total=self._max_turns)

    async def on_turn_complete(self, datapoint_id: str, metrics: TurnMetrics) -> None:
        """Moves that bar."""
        if datapoint_id in self._bars:
            self._progress.update(self._bars[datapoint_id], completed=metrics.turn_number)

    async def on_datapoint_complete(self, result: SimulationResult) -> None:
        """A line with the verdict."""
        bar = self._bars.pop(str(result.metadata.get("datapoint_id")), None)
        if bar is not None:
            self._progress.remove_task(bar)
        if self._overall is not None:
            self._progress.advance(self._overall)
        verdict = verdict_of(result)
        who = f"{result.metadata.get('persona')} · {result.metadata.get('scenario')}"
        line = f"{MARKS[verdict]} {verdict:8}{one_line(who, 60)}, {plural(result.turn_count, 'turn')}"
        self.console.print(Text(line, style=STYLES.get(verdict, "")))

    async def on_run_complete(self, results: list[SimulationResult]) -> None:
        """The summary, unless it is left to ``print_summary``."""
        self._progress.stop()
        if not self._defer_summary:
            self.print_summary(results)

    def print_summary(
        self,
        results: Sequence[SimulationResult],
        *,
        executive_summary: str | None = None,
        experiment_url: str | None = None,
    ) -> None:
        """Prints the summary of ``results``, once however often it is asked for."""
        if self._summarised:
            return
        self._summarised = True
        notes = [text for text in (executive_summary, experiment_url) if text]
        width = min(self.console.width, WIDEST)
        page = render_summary(Summary.of(results), About(self._name, notes=notes), width=width)
        self.console.print(page, markup=False, highlight=False, soft_wrap=True)
