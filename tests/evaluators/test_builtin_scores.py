"""The four built-in scores by their published formulas, and what explains them."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from evaluatorq.errors import ConfigError
from evaluatorq.evaluators.builtin import (
    SIMULATION_EVALUATORS,
    ConversationQualityScore,
    conversation_quality,
    criteria_met,
    evaluator_details,
    failure_reason,
    get_all_evaluators,
    get_evaluator,
    goal_achieved,
    read_criteria_meta,
    turn_efficiency,
    unverified_reason,
)
from evaluatorq.evaluators.scoring import SimulationScoringConfig, scoring_of
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import NO_USAGE


def meta(number: int, *, passed: bool, audited: bool | None = True) -> dict[str, JsonValue]:
    return {
        "id": f"criteria_{number}",
        "description": f"criterion {number}",
        "type": "must_happen",
        "passed": passed,
        "audited": audited,
        "evidence": "",
    }


def result(**fields: object) -> SimulationResult:
    plain = {
        "messages": [],
        "terminated_by": "judge",
        "reason": "done",
        "goal_achieved": True,
        "goal_completion_score": 1.0,
        "rules_broken": [],
        "turn_count": 3,
        "token_usage": NO_USAGE,
        "turn_metrics": [],
    }
    return SimulationResult.model_validate({**plain, **fields})


def with_meta(*entries: JsonValue, **fields: object) -> SimulationResult:
    return result(metadata={"criteria_meta": list(entries)}, criteria_verified=True, **fields)


# ---------------------------------------------------------------- formulas


def test_goal_achieved_is_one_or_zero() -> None:
    assert goal_achieved(result()) == 1.0
    assert goal_achieved(result(goal_achieved=False)) == 0.0


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        pytest.param(with_meta(meta(0, passed=True), meta(1, passed=False)), 0.5, id="half"),
        pytest.param(
            with_meta(meta(0, passed=True, audited=False), meta(1, passed=True)), 0.5, id="unaudited is not met"
        ),
        pytest.param(with_meta(meta(0, passed=True, audited=None)), 1.0, id="old files do not say"),
        pytest.param(with_meta(), 1.0, id="no criteria"),
        pytest.param(result(), 1.0, id="nothing known of criteria"),
        pytest.param(result(criteria_results={"a": True, "b": False, "c": False}), 1 / 3, id="only results by text"),
        pytest.param(with_meta(criteria_results={"a": False}), 0.0, id="an empty list falls through"),
        pytest.param(with_meta(meta(0, passed=True), terminated_by="error"), 0.0, id="error"),
        pytest.param(with_meta(meta(0, passed=True), terminated_by="timeout"), 0.0, id="timeout"),
        pytest.param(with_meta(meta(0, passed=True), terminated_by="max_turns"), 1.0, id="turn cap"),
        pytest.param(result(criteria_verified=False, criteria_results={"a": True}), 0.0, id="unverified"),
    ],
)
def test_criteria_met_is_the_share_that_was_audited_and_passed(judged: SimulationResult, expected: float) -> None:
    assert criteria_met(judged) == pytest.approx(expected)


def test_verdicts_that_cannot_be_read_score_zero_and_are_noted_once() -> None:
    judged = with_meta(meta(0, passed=True), {**meta(1, passed=True), "passed": "yes"})
    assert criteria_met(judged) == 0.0
    assert criteria_met(judged) == 0.0
    (noted,) = judged.metadata["criteria_errors"]
    assert "1 entries" in noted
    assert "'yes'" in noted


@pytest.mark.parametrize(
    ("turns", "expected"),
    [*zip(range(11), (1.0, 1.0, 1.0, 0.9, 0.9, 0.7, 0.7, 0.6, 0.5, 0.4, 0.3), strict=True), (99, 0.3)],
)
def test_turn_efficiency_falls_by_steps_and_then_slowly(turns: int, expected: float) -> None:
    assert turn_efficiency(result(turn_count=turns)) == expected
    assert turn_efficiency(result(turn_count=turns, goal_achieved=False)) == 0.0


cliffs = st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), min_size=1, max_size=5).map(
    lambda rows: tuple(
        zip(sorted({turns for turns, _ in rows}), sorted((s for _, s in rows), reverse=True), strict=False)
    )
)


@given(cliffs, st.floats(0, 1), st.integers(0, 40))
def test_turn_efficiency_never_rises_with_more_turns(
    steps: tuple[tuple[int, float], ...], decay: float, turns: int
) -> None:
    config = SimulationScoringConfig(
        turn_efficiency_cliffs=steps, turn_efficiency_decay_per_turn=decay, turn_efficiency_floor=0
    )
    now, later = (turn_efficiency(result(turn_count=count), config) for count in (turns, turns + 1))
    assert 0 <= later <= now + 5e-5 <= 1.0001


def test_conversation_quality_mixes_the_others_and_knows_its_parts() -> None:
    score = conversation_quality(
        with_meta(meta(0, passed=True), meta(1, passed=False), meta(2, passed=False), turn_count=3)
    )
    assert score == 0.77
    assert score.breakdown == {
        "components": {"goal_achieved": 1.0, "criteria_met": pytest.approx(1 / 3), "turn_efficiency": 0.9},
        "weights": {"goal_achieved": 0.4, "criteria_met": 0.3, "turn_efficiency": 0.3},
    }
    assert conversation_quality(with_meta(turn_count=3)) == 0.97
    assert conversation_quality(with_meta(turn_count=30, goal_achieved=False)) == 0.3


@pytest.mark.parametrize(
    "copied", [lambda s: pickle.loads(pickle.dumps(s)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
def test_a_quality_score_survives_being_copied(copied: object) -> None:
    score = conversation_quality(result())
    again = copied(score)
    assert (type(again), again, again.breakdown) == (ConversationQualityScore, score, score.breakdown)
    assert json.dumps(score) == json.dumps(float(score))


# ---------------------------------------------------------------- configuration


def test_a_config_tunes_the_last_two_scores_only() -> None:
    config = SimulationScoringConfig(
        turn_efficiency_cliffs=((1, 0.5),),
        turn_efficiency_floor=0.1,
        goal_achieved_weight=0,
        criteria_met_weight=0,
        turn_efficiency_weight=1,
    )
    tuned = get_all_evaluators(config)
    one = result(turn_count=2)
    assert list(tuned) == ["goal_achieved", "criteria_met", "turn_efficiency", "conversation_quality"]
    assert list(tuned) == list(SIMULATION_EVALUATORS)
    assert {name: scorer(one) for name, scorer in tuned.items()} == {
        "goal_achieved": 1.0,
        "criteria_met": 1.0,
        "turn_efficiency": 0.4,
        "conversation_quality": 0.4,
    }
    assert get_evaluator("turn_efficiency", config)(one) == 0.4
    assert get_evaluator("turn_efficiency")(one) == 1.0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"turn_efficiency_cliffs": ()}, "turn_efficiency_cliffs"),
        ({"turn_efficiency_cliffs": ((0, 1.0),)}, "turn_efficiency_cliffs"),
        ({"turn_efficiency_cliffs": ((2, 1.0), (2, 0.9))}, "turns must increase"),
        ({"turn_efficiency_cliffs": ((2, 0.8), (4, 0.9))}, "scores must not"),
        ({"turn_efficiency_cliffs": ((2, 1.5),)}, "turn_efficiency_cliffs"),
        ({"turn_efficiency_cliffs": ((2, 0.2),)}, "floor"),
        ({"turn_efficiency_decay_per_turn": -0.1}, "turn_efficiency_decay_per_turn"),
        ({"goal_achieved_weight": 0.5}, "add up to 1.1"),
        ({"goal_weight": 0.4}, "goal_weight"),
    ],
)
def test_a_config_that_cannot_be_right_is_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError):
        SimulationScoringConfig.model_validate(wrong)
    with pytest.raises(ConfigError, match=words) as caught:
        scoring_of(wrong)
    assert "\n" not in str(caught.value)


def test_an_unknown_score_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="goal_achieved, criteria_met, turn_efficiency, conversation_quality"):
        get_evaluator("goal")


# ---------------------------------------------------------------- explanations


def test_why_a_conversation_is_unverified_and_what_broke_it() -> None:
    assert unverified_reason(result()) is None
    assert unverified_reason(result(criteria_verified=False)) == "criteria_verified=False"
    assert unverified_reason(result(terminated_by="timeout")) == "terminated_by=timeout"
    assert failure_reason(result(reason="")) is None
    assert failure_reason(result(terminated_by="error", metadata={"error": "boom"})) == "boom"
    assert failure_reason(result(terminated_by="error", reason="gone", metadata={"error": ""})) == "gone"
    assert failure_reason(result(terminated_by="timeout", reason="")) == "ended in timeout without a reason"


def test_no_list_of_verdicts_is_not_an_empty_list() -> None:
    assert read_criteria_meta(result()) is None
    assert read_criteria_meta(with_meta()) == ([], [])


def test_details_of_criteria_met_hold_the_verdicts() -> None:
    judged = with_meta(meta(0, passed=True))
    assert evaluator_details("criteria_met", judged) == {
        "criteria": [meta(0, passed=True)],
        "criteria_verified": True,
        "unverified_reason": None,
    }
    assert evaluator_details("criteria_met", result(criteria_results={"a": True})) == {
        "criteria_results": {"a": True},
        "criteria_verified": None,
        "unverified_reason": None,
    }
    assert evaluator_details("criteria_met", with_meta()) is None
    assert evaluator_details("goal_achieved", judged) is None


def test_details_of_unreadable_verdicts_say_which_and_mark_the_result() -> None:
    judged = with_meta(meta(0, passed=True), "nonsense")
    details = evaluator_details("criteria_met", judged)
    assert details == {
        "criteria": [meta(0, passed=True)],
        "criteria_verified": False,
        "unverified_reason": "criteria_verified=False",
        "invalid": ["'nonsense'"],
    }
    assert judged.criteria_verified is False
