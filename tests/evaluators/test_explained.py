"""Scores are told with their reasons, in the words and order that watchers of a run expect."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from evaluatorq.evaluators.explained import Explanation, explain, scores_told
from evaluatorq.model.results import SimulationResult, TurnMetrics
from evaluatorq.model.usage import NO_USAGE


def result(metadata: dict[str, JsonValue] | None = None, **fields: object) -> SimulationResult:
    values: dict[str, object] = {
        "messages": [], "terminated_by": "judge", "reason": "done", "goal_achieved": True, "goal_completion_score": 1.0,
        "rules_broken": [], "turn_count": 1, "token_usage": NO_USAGE, "turn_metrics": [], "metadata": metadata or {},
    }  # fmt: skip
    return SimulationResult.model_validate({**values, **fields})


def meta(number: int, kind: str, *, passed: bool, audited: bool | None = True) -> dict[str, JsonValue]:
    return {
        "id": f"criteria_{number}",
        "description": f"act {number}",
        "type": kind,
        "passed": passed,
        "audited": audited,
    }


def test_the_goal_is_explained_by_the_judge():
    turns = [TurnMetrics(turn_number=1, token_usage=NO_USAGE, judge_reason="the refund is out")]
    assert explain("goal_achieved", result(turn_metrics=turns)) == Explanation("the refund is out", passed=True)
    assert explain("goal_achieved", result(goal_achieved=False)) == Explanation("done", passed=False)


def test_criteria_are_explained_one_a_line():
    listed = [
        meta(0, "must_happen", passed=True),
        meta(1, "must_not_happen", passed=False),
        meta(2, "must_happen", passed=True, audited=False),
        meta(3, "must_not_happen", passed=True, audited=None),
    ]
    text, passed = explain("criteria_met", result({"criteria_meta": [*listed]}))
    assert passed is False
    assert text == (
        "PASS [required]: act 0\nFAIL [prohibited]: act 1\nUNKNOWN [required]: act 2 (not audited)\n"
        "PASS [prohibited]: act 3"
    )
    assert explain("criteria_met", result({"criteria_meta": [listed[0]]})).passed is True


@pytest.mark.parametrize(
    ("given", "words", "passed"),
    [
        (result({"criteria_meta": []}), "No criteria are defined", True),
        (result({"criteria_meta": ["x"]}), "ERROR: this entry is no verdict: 'x'", None),
        (result(criteria_verified=False), "criteria_verified=False", False),
        (result(terminated_by="timeout"), "terminated_by=timeout", False),
    ],
)
def test_what_cannot_be_judged_says_why(given: SimulationResult, words: str, passed: bool | None):
    text, verdict = explain("criteria_met", given)
    assert words in str(text)
    assert verdict is passed


def test_other_scores_speak_for_themselves():
    assert explain("turn_efficiency", result()) == (None, None)


def test_scores_and_failures_are_told_together():
    told = scores_told(
        result(
            {"evaluator_scores": {"goal_achieved": 1.0}, "evaluator_errors": {"own": "ValueError: no"}},
            evaluator_details={"goal_achieved": {"why": "x"}},
        )
    )
    assert [(score.evaluator_name, score.score.value, score.error) for score in told] == [
        ("goal_achieved", 1.0, None), ("own", None, "ValueError: no"),
    ]  # fmt: skip
    assert told[0].score.raw_output == {"why": "x"}
    assert scores_told(result()) == []
