"""A table of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evaluatorq.reports.progress import MARKS
from evaluatorq.reports.terminal import STYLES, Page, columns, styled
from evaluatorq.reports.text import one_line
from evaluatorq.reports.view import VERDICTS

if TYPE_CHECKING:
    from rich.text import Text

STATUS_STYLES = {"completed": "green", "running": "cyan", "interrupted": "yellow", "cancelled": "yellow"}
NO_FILE = "(no file yet)"
_ID, _GAP, _LEAST = 8, 2, 8
"""Characters of a run id, between two columns, and of a name or an agent however narrow the page is."""
_TITLES = ("Run", "Name", "Date", "Agent", "State", "Conversations")
_NAME, _AGENT = 1, 3


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run of a listing; ``count`` conversations of ``total`` are done, ``None`` where nobody knows.

    ``verdicts`` counts a finished run's conversations by verdict; it is empty where nobody counted them.
    """

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
    verdicts: Mapping[str, int] = field(default_factory=dict)


def render_listing(runs: Sequence[ListedRun], *, width: int = 80, color: bool = False, full: bool = False) -> str:
    """A line for each run, names and agents cut to make it fit; ``full`` says all of each run and cuts nothing."""
    page = Page(width, color)
    if full:
        for run in runs:
            page.add(styled(one_line(run.name), "bold"), columns(_all_of(run)), f"  {one_line(run.file or NO_FILE)}")
        return page.text()
    rows = [_row(run) for run in runs]
    room = width - sum(_widest(rows, at) + _GAP for at in range(len(_TITLES)) if at not in (_NAME, _AGENT)) - _GAP
    name = max(_LEAST, room - _GAP - max(_LEAST, min(_widest(rows, _AGENT), room // 2)))
    agent = max(_LEAST, room - _GAP - min(name, _widest(rows, _NAME)))
    for row in rows:
        row[_NAME], row[_AGENT] = styled(one_line(row[_NAME].plain, name)), styled(one_line(row[_AGENT].plain, agent))
    page.add(columns([[styled(title, "bold") for title in _TITLES], *rows], indent=0))
    if any(run.verdicts for run in runs):
        page.add(styled("  ".join(f"{MARKS[name]} {name}" for name in VERDICTS), "dim"))
    return page.text()


def _widest(rows: Sequence[Sequence[Text]], at: int) -> int:
    return max(len(_TITLES[at]), *(row[at].cell_len for row in rows)) if rows else len(_TITLES[at])


def _row(run: ListedRun) -> list[Text]:
    return [
        styled((run.run_id or "")[:_ID]),
        styled(one_line(run.name)),
        styled((run.created_at or "")[5:16].replace("T", " ")),
        styled(one_line(run.target or "")),
        _status(run),
        _conversations(run),
    ]


def _status(run: ListedRun) -> Text:
    """A completed run is green where nothing is known to have gone wrong in it."""
    troubled = any(run.verdicts.get(verdict) for verdict in ("failed", "errored"))
    return styled(run.status, "" if troubled else STATUS_STYLES.get(run.status.partition(",")[0], "red"))


def _conversations(run: ListedRun) -> Text:
    """How many came to which verdict, by its mark; before that is known, how many are done."""
    if not run.verdicts:
        return styled(_count(run))
    told = styled("")
    for verdict in VERDICTS:
        if count := run.verdicts.get(verdict):
            told.append(f"{' ' if told.plain else ''}{MARKS[verdict]}{count}", style=STYLES[verdict])
    return told


def _all_of(run: ListedRun) -> list[list[str | Text]]:
    counts = ", ".join(f"{run.verdicts.get(verdict, 0)} {verdict}" for verdict in VERDICTS) if run.verdicts else ""
    scores = ", ".join(f"{one_line(name)} {_mean(run, name)}" for name in run.scores)
    told = (
        ("run", run.run_id or ""), ("date", (run.created_at or "")[:16].replace("T", " ")), ("state", run.status),
        ("mode", run.mode or ""), ("agent", one_line(run.target or "")),
        ("conversations", f"{_count(run)}{': ' if counts else ''}{counts}"), ("scores", scores),
    )  # fmt: skip
    return [[name, value] for name, value in told if value]


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
