"""What in a finished conversation calls for a better agent, how bad it is, and the part of the transcript to read.

Conversations that broke off call for nothing here: they say little about how the agent behaves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from pydantic import Field

from evaluatorq.model.base import Strict
from evaluatorq.model.cases import CRITERION_ID_PATTERN
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult, TurnMetrics
from evaluatorq.records.verdicts import CriterionView, criteria_of, goal_of

TriggerKind = Literal["rule_broken", "criterion_failed", "low_factual_accuracy", "high_hallucination_risk", "poor_tone"]
Severity = tuple[int, int, bool, float]
"""Larger is worse: prohibited acts, missing acts, the goal missed, and how far quality scores are beyond bounds."""


class SimulationRecommendationConfig(Strict):
    """When a conversation gets suggestions, how many, and how much of it is shown to the model."""

    max_suggestions: int = Field(3, ge=1)
    max_tokens: int = Field(800, ge=1)
    factual_accuracy_below: float = Field(0.5, ge=0, le=1)
    hallucination_risk_above: float = Field(0.5, ge=0, le=1)
    tone_appropriateness_below: float = Field(0.5, ge=0, le=1)
    max_results: int = Field(10, ge=1)
    max_transcript_chars: int = Field(3000, ge=100)
    max_message_chars: int = Field(400, ge=50)
    max_verdict_chars: int = Field(300, ge=50)


class Trigger(NamedTuple):
    """One reason for a suggestion, and what shows it."""

    kind: TriggerKind
    evidence: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.evidence}"


def find_triggers(result: SimulationResult, config: SimulationRecommendationConfig | None = None) -> list[Trigger]:
    """Every reason in one conversation, the worst kind first; none for one that ended in error or timeout."""
    return _read(result, config or SimulationRecommendationConfig())[0]


def severity(result: SimulationResult, config: SimulationRecommendationConfig | None = None) -> Severity | None:
    """How bad a conversation is, ``None`` for one that gives no reason for a suggestion."""
    triggers, excess = _read(result, config or SimulationRecommendationConfig())
    if not triggers:
        return None
    kinds = [trigger.kind for trigger in triggers]
    return kinds.count("rule_broken"), kinds.count("criterion_failed"), goal_of(result) is False, excess


def _read(result: SimulationResult, config: SimulationRecommendationConfig) -> tuple[list[Trigger], float]:
    if result.errored or result.metadata.get("error") or result.metadata.get("criteria_errors"):
        return [], 0.0
    failed = [criterion for criterion in criteria_of(result) if criterion.state == "fail"]
    broken = [Trigger("rule_broken", _shown(c)) for c in failed if c.type == "must_not_happen"]
    broken += [Trigger("rule_broken", rule) for rule in result.rules_broken if not re.match(CRITERION_ID_PATTERN, rule)]
    missing = [Trigger("criterion_failed", _shown(c)) for c in failed if c.type == "must_happen"]
    quality = list(_poor_quality(result.turn_metrics, config))
    triggers = list(dict.fromkeys([*broken, *missing, *(trigger for trigger, _ in quality)]))
    return triggers, round(sum(excess for _, excess in quality), 6)


def _shown(criterion: CriterionView) -> str:
    if not criterion.evidence:
        return criterion.description
    turn = f", turn {criterion.turn}" if criterion.turn else ""
    return f'{criterion.description} ("{criterion.evidence}"{turn})'


def _poor_quality(
    turns: Sequence[TurnMetrics], config: SimulationRecommendationConfig
) -> Iterable[tuple[Trigger, float]]:
    """Averages over the conversation that are beyond their bound, and by how much."""
    accuracy = _mean(turn.factual_accuracy for turn in turns)
    risk = _mean(turn.hallucination_risk for turn in turns)
    tone = _mean(turn.tone_appropriateness for turn in turns)
    if accuracy is not None and accuracy < config.factual_accuracy_below:
        yield Trigger("low_factual_accuracy", f"average {accuracy:.2f}"), config.factual_accuracy_below - accuracy
    if risk is not None and risk > config.hallucination_risk_above:
        yield Trigger("high_hallucination_risk", f"average {risk:.2f}"), risk - config.hallucination_risk_above
    if tone is not None and tone < config.tone_appropriateness_below:
        yield Trigger("poor_tone", f"average {tone:.2f}"), config.tone_appropriateness_below - tone


def _mean(scores: Iterable[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return fmean(known) if known else None


# ---------------------------------------------------------------- the part to read


def excerpt(result: SimulationResult, config: SimulationRecommendationConfig | None = None) -> str:
    """The rows nearest to what went wrong, in order, within ``max_transcript_chars``; gaps are marked.

    What went wrong is where a failed criterion is quoted and the turn with the worst quality score; what never happened
    is missing most at the end.
    """
    config = config or SimulationRecommendationConfig()
    rows = [_row(place, message, config.max_message_chars) for place, message in enumerate(result.messages)]
    focus = _focus(result, config)
    nearest = sorted(range(len(rows)), key=lambda place: (min(abs(place - at) for at in focus), place))
    chosen: set[int] = set()
    room = config.max_transcript_chars
    for place in nearest:
        if len(rows[place]) + 1 > room:
            break
        chosen.add(place)
        room -= len(rows[place]) + 1
    return "\n".join(_with_gaps(rows, chosen or set(nearest[:1]), config.max_transcript_chars))


def _focus(result: SimulationResult, config: SimulationRecommendationConfig) -> set[int]:
    failed = [criterion for criterion in criteria_of(result) if criterion.state == "fail"]
    last = max(0, len(result.messages) - 1)
    focus = {last if c.message_index is None or not c.evidence else c.message_index for c in failed}
    users = [place for place, message in enumerate(result.messages) if message.role == "user"]
    for turn in _worst_turns(result.turn_metrics, config):
        if 1 <= turn <= len(users):
            focus.add(min(users[turn - 1] + 1, last))
    return focus or {last}


def _worst_turns(turns: Sequence[TurnMetrics], config: SimulationRecommendationConfig) -> Iterable[int]:
    accurate = [(turn.factual_accuracy, turn.turn_number) for turn in turns if turn.factual_accuracy is not None]
    risky = [(-turn.hallucination_risk, turn.turn_number) for turn in turns if turn.hallucination_risk is not None]
    fitting = [(turn.tone_appropriateness, turn.turn_number) for turn in turns if turn.tone_appropriateness is not None]
    bounds = (config.factual_accuracy_below, -config.hallucination_risk_above, config.tone_appropriateness_below)
    for scored, bound in zip((accurate, risky, fitting), bounds, strict=True):
        if scored and fmean(score for score, _ in scored) < bound:
            yield min(scored)[1]


def _row(place: int, message: Message, most: int) -> str:
    who = "agent" if message.role == "assistant" else message.role
    calls = [f"calls {call.function.name}({call.function.arguments})" for call in message.tool_calls or ()]
    said = " ".join(" ".join((message.text, *calls)).split())
    return f"[{place}] {who}: {said if len(said) <= most else said[: most - 1] + '…'}"


def _with_gaps(rows: Sequence[str], chosen: set[int], most: int) -> Iterable[str]:
    left_out = 0
    for place, row in enumerate(rows):
        if place not in chosen:
            left_out += 1
            continue
        if left_out:
            yield f"[… {left_out} rows left out …]"
            left_out = 0
        yield row[:most]
    if left_out:
        yield f"[… {left_out} rows left out …]"


__all__ = [
    "Severity",
    "SimulationRecommendationConfig",
    "Trigger",
    "TriggerKind",
    "excerpt",
    "find_triggers",
    "severity",
]
