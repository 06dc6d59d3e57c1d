"""Conversations read as a ``SimulationRun``: averages over what was scored, and how many that was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evaluatorq.model.events import Scored
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import NO_ANALYSIS, REPLAY_VERSION, Analysis, RunPlan, ScoreCount, SimulationRun
from evaluatorq.model.spending import CONVERSATIONS, Spending
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.records.result import with_scores


@dataclass(frozen=True, slots=True)
class RowSummary:
    """The few numbers of one conversation that a run's header needs; results themselves may be on disk."""

    row: int
    scores: Mapping[str, float]
    usage: Usage
    usage_by_role: Mapping[str, Usage]
    attempts: int = 1


def summary_of(result: SimulationResult) -> RowSummary:
    """What the header needs of one result."""
    return RowSummary(
        result.row or 0, scores_of(result), result.token_usage, dict(result.usage_by_role), result.attempts
    )


def scores_of(result: SimulationResult) -> dict[str, float]:
    """The numeric scores in ``metadata["evaluator_scores"]``."""
    raw = result.metadata.get("evaluator_scores")
    if not isinstance(raw, dict):
        return {}
    return {
        name: value for name, value in raw.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }


def as_saved(plan: RunPlan, row: int, result: SimulationResult, scores: Iterable[Scored]) -> SimulationResult:
    """A result with all that its run knows of it: scores in the run's order, labels, what it was made from."""
    order = {name: i for i, name in enumerate(plan.evaluator_names)}
    with_scores(result, sorted(scores, key=lambda scored: order.get(scored.evaluator, len(order))))
    if plan.evaluation_name is not None:
        result.metadata["evaluation_name"] = plan.evaluation_name
    if "user_simulator" in plan.models:
        result.metadata["model"] = plan.models["user_simulator"]
    result.origin = plan.origin_of(row)
    return result


def run_header(
    plan: RunPlan, rows: Iterable[RowSummary], *, duration_s: float | None, analysis: Analysis = NO_ANALYSIS
) -> SimulationRun:
    """The run without its results. ``rows`` come in row order, so that sums do not depend on who finished first."""
    summaries = list(rows)
    by_role: dict[str, Usage] = {}
    for summary in summaries:
        for role, usage in summary.usage_by_role.items():
            by_role[role] = by_role.get(role, NO_USAGE) + usage
    averages: dict[str, float] = {}
    counts: dict[str, ScoreCount] = {}
    for name in plan.evaluator_names:
        scores = [summary.scores[name] for summary in summaries if name in summary.scores]
        counts[name] = ScoreCount(scored=len(scores), left_out=len(summaries) - len(scores))
        if scores:
            averages[name] = sum(scores) / len(scores)
    talked = Spending(usage={CONVERSATIONS: sum((summary.usage for summary in summaries), NO_USAGE)})
    spent = talked + plan.spent + analysis.spent
    return SimulationRun(
        run_name=plan.run_name,
        created_at=plan.created_at,
        mode=plan.mode,
        target_kind=plan.target_kind,
        target=plan.target,
        target_model=plan.target_model,
        max_turns=plan.limits.max_turns,
        evaluator_names=list(plan.evaluator_names),
        total_results=len(summaries),
        scorer_averages=averages,
        results=[],
        datapoints=list(plan.datapoints),
        replay_version=REPLAY_VERSION,
        executive_summary=analysis.executive_summary,
        recommendations=analysis.recommendations,
        token_usage_total=spent.total,
        run_id=plan.run_id,
        target_type=plan.target_type,
        score_counts=counts,
        usage_by_role=by_role,
        seed=plan.seed,
        offline=plan.offline,
        attempts=max((summary.attempts for summary in summaries), default=1),
        duration_s=duration_s,
        versions=plan.versions,
        models=plan.models,
        replayed_from=plan.replayed_from,
        origin=plan.origin,
        config=plan.config,
        usage_by_category=spent.usage,
        unread_by_category=spent.unread,
        generation_problems=list(plan.problems),
    )
