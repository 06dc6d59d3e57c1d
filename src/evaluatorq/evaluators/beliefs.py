"""Scores of what an agent believed: the same functions that measure saved runs, one number of each.

A conversation that does not hold what a score is about has none, and the reason is kept.
"""

from __future__ import annotations

from collections.abc import Callable

from evaluatorq.evaluators.evidence import NothingToScore
from evaluatorq.model.results import SimulationResult
from evaluatorq.ports import Score
from evaluatorq.records.measurable import measurable
from evaluatorq.records.metrics import list_match, ordinal_decision, rationale, slot_coverage


def decision_correct(result: SimulationResult) -> Score:
    """1.0 when the agent came to the right level, else 0.0; the details tell its way there."""
    seen = measurable(result)
    decision = ordinal_decision(seen.held, seen.truth, seen.rules.scale, turns=seen.turns)
    if decision.correct is None:
        raise NothingToScore(decision.missing["correct"])
    return Score(float(decision.correct), decision.model_dump(mode="json"))


def decision_closeness(result: SimulationResult) -> Score:
    """1.0 for the right level, 0.0 for one at the other end of the scale, in between by distance."""
    seen = measurable(result)
    decision = ordinal_decision(seen.held, seen.truth, seen.rules.scale, turns=seen.turns)
    if decision.absolute_error is None or seen.rules.scale is None:
        raise NothingToScore(decision.missing["absolute_error"])
    return Score(1 - decision.absolute_error / (len(seen.rules.scale.levels) - 1), decision.model_dump(mode="json"))


def covered_slots(result: SimulationResult) -> Score:
    """The share of the case's slots that hold a value."""
    seen = measurable(result)
    coverage = slot_coverage(seen.filled, seen.rules.slots)
    if coverage.share is None:
        raise NothingToScore(coverage.missing["share"])
    return Score(coverage.share, coverage.model_dump(mode="json"))


def list_f1(result: SimulationResult) -> Score:
    """How well the listed facts match the expected ones, in normal form; the mean over lists."""
    matches = {name: list_match(one.found, one.expected) for name, one in measurable(result).lists.items()}
    scores = [match.normalised.f1 for match in matches.values() if match.normalised.f1 is not None]
    if not scores:
        reasons = [match.normalised.missing.get("f1", "") for match in matches.values()]
        raise NothingToScore("; ".join(dict.fromkeys(reasons)) or "the case has no lists of facts")
    details = {name: match.model_dump(mode="json") for name, match in matches.items()}
    return Score(sum(scores) / len(scores), {**details})


def rationale_given(result: SimulationResult) -> Score:
    """The share of the agent's steps that give reasons."""
    seen = measurable(result)
    reasons = rationale(seen.held)
    if result.cognition is None or reasons.share is None:
        raise NothingToScore(reasons.missing.get("share", "nothing says where reasons would be"))
    return Score(reasons.share, reasons.model_dump(mode="json"))


BELIEF_SCORES: dict[str, Callable[[SimulationResult], Score]] = {
    "decision_correct": decision_correct,
    "decision_closeness": decision_closeness,
    "slot_coverage": covered_slots,
    "list_f1": list_f1,
    "rationale_given": rationale_given,
}
