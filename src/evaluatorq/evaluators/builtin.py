"""The four built-in scores, by the published formulas, and what explains them.

``criteria_met`` counts what was audited and passed: an unverified conversation, and one cut short by an error or a
timeout, is 0. Two of these functions write to the result they read, as readers of these fields expect: entries of
``criteria_meta`` that cannot be read are noted in ``metadata["criteria_errors"]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Self

from pydantic import JsonValue

from evaluatorq.errors import ConfigError
from evaluatorq.evaluators.scoring import DEFAULT_SCORING, SimulationScoringConfig
from evaluatorq.model.judgments import CriteriaMeta, parse_criteria_meta
from evaluatorq.model.results import SimulationResult

SimulationScorer = Callable[[SimulationResult], float]
"""A plain scoring function."""


class ConversationQualityScore(float):
    """A number that knows what it is made of: ``breakdown`` has the keys ``components`` and ``weights``."""

    breakdown: dict[str, JsonValue]

    def __new__(cls, value: float, breakdown: Mapping[str, JsonValue]) -> Self:  # noqa: D102  the class says it
        score = super().__new__(cls, value)
        score.breakdown = dict(breakdown)
        return score

    def __getnewargs__(self) -> tuple[float, dict[str, JsonValue]]:  # type: ignore[override]  # ours takes two
        return float(self), self.breakdown


# ---------------------------------------------------------------- scores


def goal_achieved(result: SimulationResult) -> float:
    """1.0 when the goal was achieved, else 0.0."""
    return 1.0 if result.goal_achieved else 0.0


def criteria_met(result: SimulationResult) -> float:
    """The share of criteria that were audited and passed; 1.0 without criteria, 0.0 when unverified or cut short."""
    if unverified_reason(result) is not None:
        return 0.0
    valid, invalid = read_criteria_meta(result) or ([], [])
    if invalid:
        _note_malformed(result, invalid)
        return 0.0
    if valid:
        return sum(meta.passed and meta.audited is not False for meta in valid) / len(valid)
    results = result.criteria_results
    return sum(results.values()) / len(results) if results else 1.0


def turn_efficiency(result: SimulationResult, config: SimulationScoringConfig = DEFAULT_SCORING) -> float:
    """How soon the goal was achieved, 0.0 when it was not."""
    if not result.goal_achieved:
        return 0.0
    for turns, score in config.turn_efficiency_cliffs:
        if result.turn_count <= turns:
            return score
    last_turns, last_score = config.turn_efficiency_cliffs[-1]
    decayed = last_score - (result.turn_count - last_turns) * config.turn_efficiency_decay_per_turn
    return round(max(config.turn_efficiency_floor, decayed), 4)


def conversation_quality(
    result: SimulationResult, config: SimulationScoringConfig = DEFAULT_SCORING
) -> ConversationQualityScore:
    """The weighted mean of the three others, in hundredths."""
    components = {
        "goal_achieved": goal_achieved(result),
        "criteria_met": criteria_met(result),
        "turn_efficiency": turn_efficiency(result, config),
    }
    weights = {
        "goal_achieved": config.goal_achieved_weight,
        "criteria_met": config.criteria_met_weight,
        "turn_efficiency": config.turn_efficiency_weight,
    }
    mixed = sum(components[name] * weights[name] for name in components)
    return ConversationQualityScore(round(mixed * 100) / 100, {"components": {**components}, "weights": {**weights}})


SIMULATION_EVALUATORS: dict[str, SimulationScorer] = {
    "goal_achieved": goal_achieved,
    "criteria_met": criteria_met,
    "turn_efficiency": turn_efficiency,
    "conversation_quality": conversation_quality,
}


def get_evaluator(name: str, config: SimulationScoringConfig | None = None) -> SimulationScorer:
    """A built-in score by name; ``config`` tunes the last two. ``ConfigError`` (a ``ValueError``) for another name."""
    if name not in SIMULATION_EVALUATORS:
        raise ConfigError(f"no built-in evaluator is called {name!r}; there is {', '.join(SIMULATION_EVALUATORS)}")
    return get_all_evaluators(config)[name]


def get_all_evaluators(config: SimulationScoringConfig | None = None) -> dict[str, SimulationScorer]:
    """The built-in scores by name, the last two tuned by ``config``."""
    tuned = config or DEFAULT_SCORING
    return {
        "goal_achieved": goal_achieved,
        "criteria_met": criteria_met,
        "turn_efficiency": partial(turn_efficiency, config=tuned),
        "conversation_quality": partial(conversation_quality, config=tuned),
    }


# ---------------------------------------------------------------- what explains them


def unverified_reason(result: SimulationResult) -> str | None:
    """Why ``criteria_met`` is 0 without looking at a criterion; ``None`` when it looks."""
    if result.errored:
        return f"terminated_by={result.terminated_by}"
    return "criteria_verified=False" if result.criteria_verified is False else None


def failure_reason(result: SimulationResult) -> str | None:
    """What cut the conversation short, never blank; ``None`` when nothing did."""
    if not result.errored:
        return None
    error = result.metadata.get("error")
    return (str(error) if error else "") or result.reason or f"ended in {result.terminated_by} without a reason"


def read_criteria_meta(result: SimulationResult) -> tuple[list[CriteriaMeta], list[object]] | None:
    """The verdicts in ``metadata["criteria_meta"]``, and the entries that are none; ``None`` where there is no list."""
    raw = result.metadata.get("criteria_meta")
    return None if raw is None else parse_criteria_meta(raw)


def evaluator_details(name: str, result: SimulationResult) -> dict[str, JsonValue] | None:
    """The structure kept beside ``criteria_met``; ``None`` for a scenario without criteria and for other scores.

    Where entries cannot be read, the result is marked as not verified.
    """
    if name != "criteria_met":
        return None
    valid, invalid = read_criteria_meta(result) or ([], [])
    if invalid:
        result.criteria_verified = False
    if valid or invalid:
        details: dict[str, JsonValue] = {"criteria": [meta.model_dump(mode="json") for meta in valid]}
    elif result.criteria_results:
        details = {"criteria_results": {**result.criteria_results}}
    else:
        return None
    details["criteria_verified"] = result.criteria_verified
    details["unverified_reason"] = unverified_reason(result)
    if invalid:
        details["invalid"] = [repr(entry) for entry in invalid]
    return details


def _note_malformed(result: SimulationResult, invalid: list[object]) -> None:
    noted = result.metadata.get("criteria_errors")
    kept = noted if isinstance(noted, list) else []
    message = f"criteria_meta holds {len(invalid)} entries that are no verdict, first {invalid[0]!r}"
    if message not in kept:
        result.metadata["criteria_errors"] = [*kept, message]
