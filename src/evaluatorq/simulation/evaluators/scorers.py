"""The published place of the scores; they are those of ``evaluatorq.simulation.evaluators``."""

from __future__ import annotations

from evaluatorq.simulation.evaluators import (
    DEFAULT_SCORING_CONFIG,
    SIMULATION_EVALUATORS,
    ConversationQualityScore,
    SimulationScorer,
    SimulationScoringConfig,
    conversation_quality_scorer,
    criteria_met_scorer,
    failure_reason,
    get_all_evaluators,
    get_evaluator,
    goal_achieved_scorer,
    read_criteria_meta,
    turn_efficiency_scorer,
    unverified_reason,
)

__all__ = [
    "DEFAULT_SCORING_CONFIG", "SIMULATION_EVALUATORS", "ConversationQualityScore", "SimulationScorer",
    "SimulationScoringConfig", "conversation_quality_scorer", "criteria_met_scorer", "failure_reason",
    "get_all_evaluators", "get_evaluator", "goal_achieved_scorer", "read_criteria_meta", "turn_efficiency_scorer",
    "unverified_reason",
]  # fmt: skip
