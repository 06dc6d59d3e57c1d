"""The records of a simulation, what goes in and what comes out, under one module."""

from __future__ import annotations

from evaluatorq.model.calls import DEFAULT_MODEL
from evaluatorq.model.cases import (
    CRITERION_ID_PATTERN,
    CommunicationStyle,
    ConversationStrategy,
    Criterion,
    CulturalContext,
    EmotionalArc,
    InputFormat,
    MustHappenCriterion,
    MustNotHappenCriterion,
    Persona,
    Scenario,
    SimulationDatapoint,
    StartingEmotion,
    criterion_id_for,
)
from evaluatorq.model.judgments import (
    CriteriaMeta,
    CriterionAudit,
    CriterionVerdict,
    Judgment,
    parse_criteria_meta,
)
from evaluatorq.model.messages import Message
from evaluatorq.model.results import (
    ResponseTrace,
    SimulationResult,
    TerminatedBy,
    TurnMetrics,
)
from evaluatorq.model.runs import (
    DEFAULT_EVALUATOR_NAMES,
    DEFAULT_MAX_TURNS,
    DEFAULT_RUN_NAME,
    ScoreCount,
    SimulationRecommendation,
    SimulationRun,
)
from evaluatorq.model.usage import TokenUsage, Usage

__all__ = [
    "CRITERION_ID_PATTERN", "DEFAULT_EVALUATOR_NAMES", "DEFAULT_MAX_TURNS", "DEFAULT_MODEL", "DEFAULT_RUN_NAME",
    "CommunicationStyle", "ConversationStrategy", "CriteriaMeta", "Criterion", "CriterionAudit", "CriterionVerdict",
    "CulturalContext", "EmotionalArc", "InputFormat", "Judgment", "Message", "MustHappenCriterion",
    "MustNotHappenCriterion", "Persona", "ResponseTrace", "Scenario", "ScoreCount", "SimulationDatapoint",
    "SimulationRecommendation", "SimulationResult", "SimulationRun", "StartingEmotion", "TerminatedBy", "TokenUsage",
    "TurnMetrics", "Usage", "criterion_id_for", "parse_criteria_meta",
]  # fmt: skip
