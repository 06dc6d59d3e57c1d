"""The summary of results on a terminal, under its published name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import Usage
from evaluatorq.reports.exports import with_total
from evaluatorq.reports.terminal import About, render_summary
from evaluatorq.reports.view import Summary

if TYPE_CHECKING:
    from rich.console import Console

_WIDEST = 110


def print_simulation_summary(
    results: Sequence[SimulationResult],
    *,
    executive_summary: str | None = None,
    experiment_url: str | None = None,
    console: Console | None = None,
    run_token_usage_total: Usage | None = None,
) -> None:
    """Prints the summary of ``results`` on ``console``, standard error unless given.

    What ``run_token_usage_total`` has beyond the conversations is shown beside them.
    """
    from rich.console import Console  # noqa: PLC0415  only where something is drawn

    console = console or Console(stderr=True, highlight=False, emoji=False)
    about = About("simulation", words=executive_summary, notes=[experiment_url] if experiment_url else [])
    about = with_total(about, results, run_token_usage_total)
    page = render_summary(Summary.of(results), about, width=min(console.width, _WIDEST))
    console.print(page, markup=False, highlight=False, soft_wrap=True)


__all__ = ["print_simulation_summary"]
