"""The built-in scores by name, what tunes them, and why a conversation counts as unverified or failed."""

from __future__ import annotations

from evaluatorq.evaluators.builtin import (
    SIMULATION_EVALUATORS,
    ConversationQualityScore,
    SimulationScorer,
    failure_reason,
    get_all_evaluators,
    get_evaluator,
    read_criteria_meta,
    unverified_reason,
)
from evaluatorq.evaluators.builtin import conversation_quality as conversation_quality_scorer
from evaluatorq.evaluators.builtin import criteria_met as criteria_met_scorer
from evaluatorq.evaluators.builtin import goal_achieved as goal_achieved_scorer
from evaluatorq.evaluators.builtin import turn_efficiency as turn_efficiency_scorer
from evaluatorq.evaluators.explained import EvaluationResult, EvaluatorScore
from evaluatorq.evaluators.scoring import DEFAULT_SCORING as DEFAULT_SCORING_CONFIG
from evaluatorq.evaluators.scoring import SimulationScoringConfig

__all__ = [
    "DEFAULT_SCORING_CONFIG", "SIMULATION_EVALUATORS", "ConversationQualityScore", "EvaluationResult", "EvaluatorScore",
    "SimulationScorer", "SimulationScoringConfig", "conversation_quality_scorer", "criteria_met_scorer",
    "failure_reason", "get_all_evaluators", "get_evaluator", "goal_achieved_scorer", "read_criteria_meta",
    "turn_efficiency_scorer", "unverified_reason",
]  # fmt: skip
