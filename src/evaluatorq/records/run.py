"""Conversations read as a ``SimulationRun``: averages over what was scored, and how many that was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, Field, JsonValue

from evaluatorq.model.events import Scored
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import (
    NO_ANALYSIS,
    NOTHING_LEARNED,
    REPLAY_VERSION,
    Analysis,
    Learned,
    RunPlan,
    ScoreCount,
    SimulationRun,
)
from evaluatorq.model.spending import CONVERSATIONS, Spending
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.records.result import with_scores
from evaluatorq.records.verdicts import RESTS_ON_GOAL


@dataclass(frozen=True, slots=True)
class RowSummary:
    """The few numbers of one conversation that a run's header needs; results themselves may be on disk."""

    row: int
    scores: Mapping[str, float]
    usage: Usage
    usage_by_role: Mapping[str, Usage]
    usage_by_model: Mapping[str, Usage] = field(default_factory=dict)
    attempts: int = 1
    goal_known: bool = True


class _Document(BaseModel):
    """A result's JSON, read for those numbers alone."""

    row: int | None = None
    attempts: int = 1
    token_usage: Usage
    usage_by_role: dict[str, Usage]
    usage_by_model: dict[str, Usage] = Field(default_factory=dict)
    goal_known: bool | None = None
    metadata: dict[str, JsonValue]


def summary_of(document: bytes) -> RowSummary:
    """What the header needs of one result, given as JSON."""
    found = _Document.model_validate_json(document)
    return RowSummary(
        found.row or 0,
        scores_in(found.metadata),
        found.token_usage,
        found.usage_by_role,
        found.usage_by_model,
        found.attempts,
        found.goal_known is not False,
    )


def scores_of(result: SimulationResult) -> dict[str, float]:
    """The numeric scores of a result."""
    return scores_in(result.metadata)


def scores_in(metadata: Mapping[str, JsonValue]) -> dict[str, float]:
    """The numeric scores in ``metadata["evaluator_scores"]``."""
    raw = metadata.get("evaluator_scores")
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


@dataclass(slots=True)
class _Sums:
    """What rows add up to, so that none of them need be kept."""

    total: int = 0
    attempts: int = 1
    usage: Usage = NO_USAGE
    by_role: dict[str, Usage] = field(default_factory=dict)
    by_model: dict[str, Usage] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    scored: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    undecided: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, row: RowSummary) -> None:
        self.total += 1
        self.attempts = max(self.attempts, row.attempts)
        self.usage += row.usage
        for role, usage in row.usage_by_role.items():
            self.by_role[role] = self.by_role.get(role, NO_USAGE) + usage
        for model, usage in row.usage_by_model.items():
            self.by_model[model] = self.by_model.get(model, NO_USAGE) + usage
        for name, score in row.scores.items():
            self.scores[name] += score
            self.scored[name] += 1
            self.undecided[name] += not row.goal_known and name in RESTS_ON_GOAL

    def mean(self, name: str) -> float:
        return self.scores[name] / self.scored[name]

    def count(self, name: str) -> ScoreCount:
        scored = self.scored[name]
        return ScoreCount(scored=scored, left_out=self.total - scored, undecided=self.undecided[name])


def run_header(
    plan: RunPlan,
    rows: Iterable[RowSummary],
    *,
    duration_s: float | None,
    analysis: Analysis = NO_ANALYSIS,
    learned: Learned = NOTHING_LEARNED,
) -> SimulationRun:
    """The run without its results. ``rows`` come in row order, so that sums do not depend on who finished first."""
    sums = _Sums()
    for row in rows:
        sums.add(row)
    spent = Spending(usage={CONVERSATIONS: sums.usage}, by_model=sums.by_model) + plan.spent + analysis.spent
    return SimulationRun(
        run_name=plan.run_name,
        created_at=plan.created_at,
        mode=plan.mode,
        target_kind=plan.target_kind,
        target=plan.target,
        target_model=plan.target_model,
        max_turns=plan.limits.max_turns,
        evaluator_names=list(plan.evaluator_names),
        total_results=sums.total,
        scorer_averages={name: sums.mean(name) for name in plan.evaluator_names if sums.scored[name]},
        results=[],
        datapoints=list(plan.datapoints),
        replay_version=REPLAY_VERSION,
        executive_summary=analysis.executive_summary,
        recommendations=analysis.recommendations,
        token_usage_total=spent.total,
        run_id=plan.run_id,
        target_type=plan.target_type,
        score_counts={name: sums.count(name) for name in plan.evaluator_names},
        usage_by_role=sums.by_role,
        usage_by_model=spent.by_model,
        seed=plan.seed,
        offline=plan.offline,
        attempts=sums.attempts,
        duration_s=duration_s,
        versions=plan.versions,
        models=plan.models,
        replayed_from=plan.replayed_from,
        origin=plan.origin,
        config=plan.config,
        usage_by_category=spent.usage,
        unread_by_category=spent.unread,
        generation_problems=list(plan.problems),
        param_dropped={model: list(names) for model, names in learned.param_dropped.items()},
        answer_forms=learned.answer_forms,
    )
