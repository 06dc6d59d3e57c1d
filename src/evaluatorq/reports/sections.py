"""The published section data of a report, kind by kind and in order: plain JSON for other people's renderers.

Here, as published, a conversation counts as errored when its metadata says so, and rates are over all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRecommendation
from evaluatorq.model.usage import Usage
from evaluatorq.reports import section_rows as rows
from evaluatorq.reports.section_rows import Case, completions, mean


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One section: its published kind, a title for people, and its data."""

    kind: str
    title: str
    data: dict[str, JsonValue] = field(default_factory=dict)


Maker = Callable[[list[Case]], dict[str, JsonValue]]
_ALWAYS: tuple[tuple[str, str, Maker], ...] = (
    ("overview", "Overview", rows.overview),
    ("failures_first", "Failures first", rows.failures),
    ("failure_mode", "Failure modes", rows.failure_modes),
)
_BREAKDOWNS: tuple[tuple[str, str, Maker], ...] = (
    ("persona_scenario_heatmap", "Personas and scenarios", rows.heatmap),
    ("score_distribution", "Score distribution", rows.scores),
    ("turn_quality_timeline", "Turn quality", rows.timeline),
    ("persona_breakdown", "Personas", rows.personas),
    ("scenario_breakdown", "Scenarios", rows.scenarios),
    ("judge_verdicts", "Judge verdicts", rows.verdicts),
    ("turn_metrics", "Turns", rows.turn_metrics),
)


def build_report_sections(
    results: Sequence[SimulationResult],
    *,
    executive_summary: str | None = None,
    recommendations: Sequence[SimulationRecommendation] | None = None,
    run_token_usage_total: Usage | None = None,
) -> list[ReportSection]:
    """The sections of a report on ``results``; those for which there is nothing to say are left out."""
    cases = [Case.of(index, result) for index, result in enumerate(results)]
    sections = [ReportSection("summary", "Summary", _summary(cases, executive_summary))]
    sections += [ReportSection(kind, title, make(cases)) for kind, title, make in _ALWAYS]
    if recommendations:
        sections.append(ReportSection("recommendations", "Recommendations", rows.advice(recommendations)))
    sections += [ReportSection(kind, title, make(cases)) for kind, title, make in _BREAKDOWNS]
    for kind, title, data in (
        ("evaluator_scores", "Evaluators", rows.evaluators(cases)),
        ("errors", "Errors", rows.errors(cases)),
    ):
        if data:
            sections.append(ReportSection(kind, title, data))
    sections.append(ReportSection("token_usage", "Tokens", _tokens(cases, run_token_usage_total)))
    sections.append(ReportSection("individual_results", "Conversations", rows.entries(cases)))
    return sections


def _summary(cases: list[Case], words: str | None) -> dict[str, JsonValue]:
    total, errors = len(cases), sum(case.errored for case in cases)
    achieved = sum(case.achieved for case in cases)
    rate = achieved / total if total else 0.0
    level = 0 if rate >= 0.8 else 1 if rate >= 0.5 else 2
    return {
        "total_conversations": total,
        "goals_achieved": achieved,
        "goals_failed": total - errors - achieved,
        "errors": errors,
        "success_rate": rate,
        "avg_goal_completion_score": mean(completions(cases)) if cases else 0.0,
        "avg_turn_count": mean([case.result.turn_count for case in cases]) or 0.0,
        "total_tokens": sum(case.result.token_usage.total_tokens for case in cases),
        "confidence": ("HIGH", "MEDIUM", "LOW")[level],
        "confidence_note": f"{achieved} of {total} conversations achieved their goal"
        + (f"; {errors} broke off" if errors else ""),
        "verdict": ("pass", "warn", "fail")[level],
        "narrative": words,
    }


def _tokens(cases: list[Case], whole: Usage | None) -> dict[str, JsonValue]:
    total = sum((case.result.token_usage for case in cases), Usage())
    count = len(cases) or 1
    data: dict[str, JsonValue] = {
        **_usage(total, ""),
        "avg_input_tokens": total.input_tokens / count,
        "avg_output_tokens": total.output_tokens / count,
        "avg_total_tokens": total.total_tokens / count,
        "unknown_usage_conversations": sum(not case.result.token_usage_known for case in cases),
    }
    return data | (_usage(whole, "run_total_") if whole is not None else {})


def _usage(usage: Usage, prefix: str) -> dict[str, JsonValue]:
    return {prefix + (name if not prefix else name.removeprefix("total_")): value
            for name, value in usage.model_dump(mode="json").items()}  # fmt: skip
