"""A table of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from evaluatorq.reports.terminal import Page, columns, styled
from evaluatorq.reports.text import one_line

if TYPE_CHECKING:
    from rich.text import Text

STATUS_STYLES = {"completed": "green", "running": "cyan", "interrupted": "yellow", "cancelled": "yellow"}


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run of a listing; ``count`` conversations of ``total`` are done, ``None`` where nobody knows."""

    name: str
    run_id: str | None
    created_at: str | None
    status: str
    mode: str | None
    target: str | None
    count: int | None
    total: int | None
    scores: Mapping[str, float]
    file: str | None
    undecided: Mapping[str, int] = field(default_factory=dict)


def render_listing(runs: Sequence[ListedRun], *, width: int = 80, color: bool = False, full: bool = False) -> str:
    """The runs as a table; ``full`` adds ids and whole paths, each on a line of its own."""
    page = Page(width, color)
    names = ("Name", "Date", "Status", "Mode", "Target", "N", "Scores")
    table = [[styled(name, "bold") for name in names], *(_row(run, full=full) for run in runs)]
    page.add(columns(table, indent=0))
    for run in runs:
        where = run.file or "(no file yet)"
        short = one_line(where if full else PurePath(where).name)
        page.add(f"{(run.run_id or '')[: None if full else 12]:<12}  {short}")
    return page.text()


def _row(run: ListedRun, *, full: bool) -> list[Text]:
    return [
        styled(one_line(run.name, None if full else 24)),
        styled((run.created_at or "")[:16].replace("T", " ")),
        styled(run.status, STATUS_STYLES.get(run.status.partition(",")[0], "red")),
        styled(run.mode or ""),
        styled(one_line(run.target or "", None if full else 24)),
        styled(_count(run)),
        styled(
            ", ".join(
                f"{one_line(name)} {mean_words(name, run.scores, run.undecided, run.count)}" for name in run.scores
            )
        ),
    ]


def _mean(run: ListedRun, name: str) -> str:
    return mean_words(name, run.scores, run.undecided, run.count)


def mean_words(name: str, scores: Mapping[str, float], undecided: Mapping[str, int], count: int | None) -> str:
    """A mean of ``count`` conversations, unless it is of nothing but goals that nobody could decide."""
    unknown = undecided.get(name, 0)
    if unknown and unknown >= (count or 0):
        return "unknown"
    return f"{scores[name]:.2f}" + (f" with {unknown} unknown" if unknown else "")


def _count(run: ListedRun) -> str:
    if run.count is None:
        return ""
    return str(run.count) if run.total in (None, run.count) else f"{run.count}/{run.total}"
