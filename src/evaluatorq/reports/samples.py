"""Repeats as text: the run's pass rate with its interval, then every persona, scenario and flaky datapoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from evaluatorq.records.samples import PassRate, SampleReport
from evaluatorq.reports.terminal import Page, columns, percent, styled
from evaluatorq.reports.text import one_line, plural

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_MOST_ROWS = 50
_OF = {"verdict": "passed", "goal": "reached the goal", "decided": "held in all that was decided"}


def render_samples(report: SampleReport, *, width: int = 80, color: bool = False) -> str:
    """The counts for a reader at a terminal."""
    page, run = Page(width, color), report.run
    title = f"{run.name} · {plural(run.datapoints, 'datapoint')}, {plural(report.k, 'sample')} each"
    page.add(styled(one_line(title), "bold"), "", columns(_facts(report)))
    for name, rates in (("Personas", report.personas), ("Scenarios", report.scenarios)):
        page.add("", styled(name, "bold"), *_rows(rates, _row))
    flaky = report.flaky
    if flaky:
        page.add("", styled("Flaky", "bold"), *_rows(flaky, _flaky))
    elif report.k > 1:
        page.add("", columns([[_none_flaky(run)]], indent=0))
    return page.text()


def _none_flaky(run: PassRate) -> str:
    if not run.unknown_verdict:
        return "No datapoint is flaky."
    of = plural(run.datapoints, "datapoint")
    why = "not all of their samples were measured" if run.measured < run.samples else "they have one sample only"
    return f"Not known whether {run.unknown_verdict} of {of} are flaky: {why}. No other is."


def _rows(rates: Sequence[PassRate], row: Callable[[PassRate], Sequence[str | Text]]) -> list[RenderableType]:
    """All of them, or of very many those that passed least."""
    if len(rates) <= _MOST_ROWS:
        return [columns(map(row, rates))]
    least = sorted(rates, key=lambda rate: 1.0 if rate.rate is None else rate.rate)[:_MOST_ROWS]
    return [
        columns(map(row, least)),
        f"  and {len(rates) - _MOST_ROWS} more that passed as often or more; --json has all",
    ]


def _facts(report: SampleReport) -> list[list[str | Text]]:
    run, k = report.run, report.k
    rows: list[list[str | Text]] = [["samples", f"{run.passed} of {run.measured} {_OF[report.of]}{_interval(run)}"]]
    if run.measured < run.samples:
        left = f"{run.measured} of {run.samples} measured ({percent(run.coverage)})"
        errors = f"; {run.errored} errored, {run.errored_by_agent} by the agent" if run.errored else ""
        if run.strict is not None and run.best is not None:
            errors += f"; {percent(run.strict)} if the rest failed, {percent(run.best)} if it passed"
        rows.append(["coverage", styled(left + errors, "yellow")])
    if k > 1:
        rows.append([f"pass^{k}", _chance(run.pass_hat_k, f"all {k} samples of a datapoint pass")])
        rows.append([f"pass@{k}", _chance(run.pass_at_k, f"at least one of {k} passes")])
        steady = "not observed" if run.flaky_behaviour is None else str(run.flaky_behaviour)
        unknown = f" ({run.unknown_verdict} not known)" if run.unknown_verdict else ""
        rows.append(["flaky", f"{run.flaky_verdict} by verdict{unknown}, {steady} by behaviour, of {run.datapoints}"])
    return rows


def _chance(share: float | None, meaning: str) -> str:
    return f"{percent(share)}: {meaning}" if share is not None else "not available: too few samples were measured"


def _interval(rate: PassRate) -> str:
    if rate.rate is None:
        return ""
    return f" ({percent(rate.rate)}, 95 %: {percent(rate.low)} to {percent(rate.high)})"


def _row(rate: PassRate) -> list[str | Text]:
    return [one_line(rate.name, 50), f"{rate.passed} of {rate.measured}{_interval(rate)}"]


def _flaky(rate: PassRate) -> list[str | Text]:
    ways = [f"{rate.passed} of {rate.measured} passed"] if rate.flaky_verdict else []
    ways += [f"{rate.behaviours} behaviours"] if rate.flaky_behaviour else []
    rows = " ".join(f"[{row}]" for row in rate.rows[:10]) + (" …" if len(rate.rows) > 10 else "")
    return [one_line(rate.name, 60), ", ".join(ways), rows]
