"""A run, or only its results, as a Markdown or HTML report: the published functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRecommendation, SimulationRun
from evaluatorq.model.usage import Usage
from evaluatorq.reports import markdown_report
from evaluatorq.reports.document import Document
from evaluatorq.reports.html import html_report
from evaluatorq.reports.terminal import About

Reported = SimulationRun | Sequence[SimulationResult]


def export_markdown(
    results: Reported,
    *,
    target: str = "agent",
    run_date: datetime | str | None = None,
    executive_summary: str | None = None,
    recommendations: Sequence[SimulationRecommendation] | None = None,
    run_token_usage_total: Usage | None = None,
) -> str:
    """GitHub-flavoured Markdown of a run or of results; what is given here goes before what the run says.

    ``run_token_usage_total`` is everything that the run cost; what it has beside the conversations is shown apart.
    """
    about = _about(results, target, run_date, executive_summary)
    about = with_total(about, results, run_token_usage_total)
    most = markdown_report.MOST_TRANSCRIPTS
    return markdown_report.markdown_report(Document.of(_results(results), about, _run(results), recommendations, most))


def export_html(
    results: Reported,
    *,
    target: str = "agent",
    run_date: datetime | str | None = None,
    executive_summary: str | None = None,
    recommendations: Sequence[SimulationRecommendation] | None = None,
    run_token_usage_total: Usage | None = None,
    experiment_url: str | None = None,
) -> str:
    """One HTML file of a run or of results, without scripts and offline; ``ConfigError`` without the extra ``html``."""
    about = _about(results, target, run_date, executive_summary)
    about = replace(about, notes=(*about.notes, experiment_url)) if experiment_url else about
    about = with_total(about, results, run_token_usage_total)
    return html_report(Document.of(_results(results), about, _run(results), recommendations))


def _run(results: Reported) -> SimulationRun | None:
    return results if isinstance(results, SimulationRun) else None


def _results(results: Reported) -> Sequence[SimulationResult]:
    return results.results if isinstance(results, SimulationRun) else results


def _about(results: Reported, target: str, run_date: datetime | str | None, words: str | None) -> About:
    if isinstance(results, SimulationRun):
        about = About.run(results)
        return replace(about, target=about.target or target, words=words or about.words)
    date = f"{run_date:%Y-%m-%d %H:%M}" if isinstance(run_date, datetime) else run_date
    return About(f"Simulation of {target}" + (f", {date}" if date else ""), target=target, words=words)


def with_total(about: About, results: Reported, total: Usage | None) -> About:
    """Whatever a given total has beyond the conversations is work beside them."""
    if total is None or about.spent:
        return about
    talk = sum((result.token_usage for result in _results(results)), Usage())
    beside = {name: max(0, getattr(total, name) - getattr(talk, name))
              for name in ("input_tokens", "output_tokens", "total_tokens")}  # fmt: skip
    return replace(about, spent={"beside the conversations": Usage(**beside)}) if beside["total_tokens"] else about
