"""A score with its reasons, for those who watch a run: value, explanation, whether it is a pass, what it is made of."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import JsonValue

from evaluatorq.evaluators.builtin import read_criteria_meta, unverified_reason
from evaluatorq.model.base import Record
from evaluatorq.model.judgments import CriteriaMeta
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import Usage

_KINDS = {"must_happen": "required", "must_not_happen": "prohibited"}


class EvaluationResult(Record):
    """A score. ``value`` and ``pass_`` are ``None`` where there is none; ``raw_output`` is the evaluator's detail."""

    value: float | None = None
    explanation: str | None = None
    pass_: bool | None = None
    token_usage: Usage | None = None
    raw_output: dict[str, JsonValue] | None = None


class EvaluatorScore(Record):
    """One evaluator's word on one conversation, or the ``error`` that stands in its place."""

    evaluator_name: str
    score: EvaluationResult
    error: str | None = None


class Explanation(NamedTuple):
    """Why a score is what it is, and whether it is a pass; ``None`` where that cannot be said."""

    text: str | None
    passed: bool | None


def scores_told(result: SimulationResult) -> list[EvaluatorScore]:
    """Every score and every failed evaluator of a conversation, with explanations."""
    scores, errors = result.metadata.get("evaluator_scores"), result.metadata.get("evaluator_errors")
    told = [_told(name, value, result) for name, value in scores.items()] if isinstance(scores, dict) else []
    if isinstance(errors, dict):
        told += [
            EvaluatorScore(evaluator_name=name, score=EvaluationResult(), error=str(error))
            for name, error in errors.items()
        ]
    return told


def _told(name: str, value: JsonValue, result: SimulationResult) -> EvaluatorScore:
    text, passed = explain(name, result)
    number = float(value) if isinstance(value, int | float) else None
    details = result.evaluator_details.get(name)
    return EvaluatorScore(
        evaluator_name=name,
        score=EvaluationResult(value=number, explanation=text, pass_=passed, raw_output=details),
    )


def explain(name: str, result: SimulationResult) -> Explanation:
    """Why the built-in score ``name`` is what it is."""
    if name == "goal_achieved":
        said = result.turn_metrics[-1].judge_reason if result.turn_metrics else result.reason
        return Explanation(said or None, result.goal_achieved)
    return _criteria(result) if name == "criteria_met" else Explanation(None, None)


def _criteria(result: SimulationResult) -> Explanation:
    reason = unverified_reason(result)
    if reason is not None:
        return Explanation(f"The criteria were not verified ({reason}), so none counts as met.", passed=False)
    valid, invalid = read_criteria_meta(result) or ([], [])
    if invalid:
        return Explanation("\n".join(f"ERROR: this entry is no verdict: {entry!r}" for entry in invalid), None)
    if not valid:
        return Explanation("No criteria are defined for this scenario.", passed=True)
    met = all(meta.state == "pass" for meta in valid)
    return Explanation("\n".join(_line(meta) for meta in valid), met)


def _line(meta: CriteriaMeta) -> str:
    doubt = " (not audited)" if meta.state == "unknown" else ""
    return f"{meta.state.upper()} [{_KINDS[meta.type]}]: {meta.description}{doubt}"
