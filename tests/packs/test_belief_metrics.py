"""Metrics over artifacts written by hand: every value here was worked out on paper."""

from __future__ import annotations

import pytest
from hand_made import SEED, artifact, step

from evaluatorq.model.assessments import Scale
from evaluatorq.model.cognition import Cognition
from evaluatorq.packs.triage import triage_rules
from evaluatorq.records.measurable import Held, measurable_artifact
from evaluatorq.records.metrics import belief_metrics, list_match, ordinal_decision, rationale, slot_coverage
from evaluatorq.records.metrics_summary import summarise

RULES = triage_rules()
ESI = Scale(name="esi", levels=(1, 2, 3, 4, 5))


def held(*levels: tuple[int, object]) -> list[Held]:
    return [Held(turn, level) for turn, level in levels]  # type: ignore[arg-type]  # any JSON


def test_the_way_of_the_seed_to_its_level() -> None:
    decision = belief_metrics(measurable_artifact(SEED, RULES)).decision
    assert (decision.truth, decision.final, decision.correct, decision.absolute_error) == (2, 2, True, 0)
    assert (decision.over, decision.under) == (False, False)
    assert decision.first_correct_turn == 1  # silent steps count: the flag was logged at level 2
    assert decision.flips == 1  # 3 3 2 2 2
    assert (decision.wrong_turns, decision.held_turns) == (1, 3)  # turn 0 ended at 3; turns 1 and 2 at 2
    assert decision.confidence == "high"
    assert decision.missing == {}


def test_a_level_that_comes_and_goes() -> None:
    decision = ordinal_decision(held((0, 3), (1, 2), (1, 4), (3, 1)), 2, ESI, turns=4)
    assert decision.final == 1
    assert decision.flips == 3
    assert decision.first_correct_turn == 1
    # at the end of turns 0 1 2 3 4 stood 3 4 4 1 1, none of them right
    assert (decision.wrong_turns, decision.held_turns) == (5, 5)
    assert (decision.over, decision.under, decision.absolute_error) == (True, False, 1)


@pytest.mark.parametrize(
    ("gravest", "final", "over", "under"),
    [("first", 1, True, False), ("first", 3, False, True), ("last", 1, False, True), ("last", 3, True, False)],
)
def test_the_scale_says_which_side_is_too_grave(gravest: str, final: int, over: bool, under: bool) -> None:
    scale = Scale.model_validate({"name": "s", "levels": [1, 2, 3], "gravest": gravest})
    decision = ordinal_decision(held((0, final)), 2, scale)
    assert (decision.over, decision.under) == (over, under)


def test_levels_may_be_words_and_are_told_apart_without_regard_to_case() -> None:
    scale = Scale(name="severity", levels=("minor", "major", "critical"), gravest="last")
    decision = ordinal_decision(held((0, "Critical")), "minor", scale)
    assert (decision.final, decision.truth, decision.absolute_error, decision.over) == ("critical", "minor", 2, True)


def test_what_cannot_be_had_is_null_with_a_reason_and_never_zero() -> None:
    nothing = ordinal_decision([], 2, ESI)
    assert nothing.correct is None
    assert nothing.flips is None
    assert nothing.missing["final"] == nothing.missing["flips"] == "the agent never held a level"
    no_truth = ordinal_decision(held((0, 3)), None, ESI)
    assert (no_truth.final, no_truth.correct, no_truth.flips) == (3, None, 0)
    assert no_truth.missing["correct"] == "the case says no right level"
    off = ordinal_decision(held((0, 2), (1, 9)), 2, ESI)
    assert off.missing["final"] == "the last level 9 is not on the scale"
    assert off.first_correct_turn == 0
    assert "declares no scale" in ordinal_decision(held((0, 2)), 2, None).missing["correct"]
    never = ordinal_decision(held((0, 3)), 2, ESI)
    assert never.missing == {"first_correct_turn": "the level was never right"}


def test_lists_match_letter_by_letter_and_in_normal_form() -> None:
    match = list_match(["Chest  pain", "syncope", "cough"], ["chest pain", "syncope", "pallor", "fever"])
    assert match.exact.hits == ("syncope",)
    assert (match.exact.precision, match.exact.recall) == (1 / 3, 1 / 4)
    assert match.exact.f1 == 2 / 7
    assert match.normalised.hits == ("chest pain", "syncope")
    assert match.normalised.lacking == ("fever", "pallor")
    assert match.normalised.surplus == ("cough",)
    assert (match.normalised.precision, match.normalised.recall, match.normalised.f1) == (2 / 3, 1 / 2, 4 / 7)


def test_empty_lists_have_the_rates_that_they_can_have() -> None:
    nothing_found = list_match([], ["fever"]).exact
    assert (nothing_found.precision, nothing_found.recall, nothing_found.f1) == (None, 0.0, 0.0)
    nothing_expected = list_match(["fever"], []).exact
    assert (nothing_expected.precision, nothing_expected.recall, nothing_expected.f1) == (0.0, None, 0.0)
    neither = list_match([], []).exact
    assert neither.f1 is None
    assert set(neither.missing) == {"precision", "recall", "f1"}
    assert list_match(["fever"], None).exact.missing["f1"] == "the case says no expected items"


def test_slots_count_under_either_of_their_names() -> None:
    coverage = slot_coverage({"associated_symptoms", "duration"}, ("associated_symptom", "duration", "chief_complaint"))
    assert coverage.covered == ("associated_symptom", "duration")
    assert coverage.absent == ("chief_complaint",)
    assert coverage.share == 2 / 3
    assert slot_coverage({"x"}, None).missing == {"share": "the case names no slots"}


def test_reasons_are_counted_in_steps_and_words() -> None:
    reasons = rationale([Held(0, 3, None, "one two"), Held(1, 3), Held(1, 2, None, "one two three four")])
    assert (reasons.given, reasons.steps, reasons.share) == (2, 3, 2 / 3)
    assert (reasons.at_the_end, reasons.words_at_the_end, reasons.mean_words) == (True, 4, 3.0)
    assert rationale([]).missing["share"] == "there are no steps to read reasons from"


# ---------------------------------------------------------------- many


def several() -> list[object]:
    """Four decisions: 2 for 2 and 1 for 2 when sure, 3 for 2 and 2 for 2 when in doubt; and one without a truth."""
    made = [
        artifact(2, step(0, "end", 2, "high")),
        artifact(2, step(0, "end", 1, "high")),
        artifact(2, step(0, "end", 4, "low")),
        artifact(2, step(0, "end", 2, "low")),
        artifact(None, step(0, "end", 2, "low")),
    ]
    for number, one in enumerate(made):
        one["run_id"] = f"run-{number}"
    return [belief_metrics(measurable_artifact(one, RULES)) for one in made]


def test_rates_and_means_say_what_they_are_taken_of() -> None:
    summary = summarise(several(), ESI)  # type: ignore[arg-type]
    assert summary.conversations == 5
    assert (summary.correct.value, summary.correct.n) == (0.5, 4)
    assert summary.correct.left_out == {"the case says no right level": 1}
    assert (summary.over.value, summary.under.value) == (0.25, 0.25)
    assert summary.absolute_error.value == 0.75  # 0 1 2 0
    # Wilson's 95 % interval of 2 in 4, by its formula with z = 1.959964
    assert summary.correct.low == pytest.approx(0.1500, abs=1e-4)
    assert summary.correct.high == pytest.approx(0.8500, abs=1e-4)


def test_calibration_needs_probabilities_that_somebody_declared() -> None:
    words = summarise(several(), ESI).calibration  # type: ignore[arg-type]
    assert [(one.confidence, one.right.value, one.right.n) for one in words.bins] == [("low", 0.5, 2), ("high", 0.5, 2)]
    assert words.brier.value is None
    assert words.missing["brier"] == "the scale declares no probabilities for its confidences"
    stated = Scale(name="esi", levels=(1, 2, 3, 4, 5), confidences={"low": 0.5, "high": 0.9})
    numbers = summarise(several(), stated).calibration  # type: ignore[arg-type]
    # high: (0.9-1)^2, (0.9-0)^2; low: 0.25 twice
    assert numbers.brier.value == pytest.approx((0.01 + 0.81 + 0.25 + 0.25) / 4)
    assert numbers.expected_error == pytest.approx((2 * 0.4 + 2 * 0.0) / 4)


def test_samples_of_one_case_are_one_cluster_and_one_mean() -> None:
    made = [artifact(2, step(0, "end", level)) for level in (2, 2, 2, 5)]
    for one, case in zip(made, ("a", "a", "a", "b"), strict=True):
        one["run_id"] = case
    summary = summarise([belief_metrics(measurable_artifact(one, RULES)) for one in made])
    assert summary.correct.value == 0.75
    assert summary.absolute_error.value == 1.5  # the mean of case a (0) and case b (3)
    assert summary.absolute_error.n == 4


def test_an_artifact_is_measured_by_the_rules_that_are_given() -> None:
    made = artifact(2, step(0, "end", 2), flags=("Syncope ",), expert=["syncope", "fever"])
    match = belief_metrics(measurable_artifact(made, RULES)).lists["red_flags"]
    assert match.exact.hits == ()
    assert match.normalised.recall == 0.5
    unknown = belief_metrics(measurable_artifact(made, Cognition()))
    assert unknown.decision.missing["final"] == "the case declares no scale"


def test_no_interval_is_wider_than_the_measure_can_be() -> None:
    every = [belief_metrics(measurable_artifact(SEED, RULES)) for _ in range(3)]
    shares = (1.0, 1.0, 0.2)
    spread = [
        one.model_copy(update={"case": str(i), "slots": one.slots.model_copy(update={"share": share})})
        for i, (one, share) in enumerate(zip(every, shares, strict=True))
    ]
    high = summarise(spread).slots
    assert (high.value, high.low, high.high) == (pytest.approx(2.2 / 3), 0.0, 1.0)
    errors = [
        one.model_copy(update={"decision": one.decision.model_copy(update={"absolute_error": error})})
        for one, error in zip(spread, (0, 0, 3), strict=True)
    ]
    error = summarise(errors).absolute_error
    assert error.low == 0.0
    assert error.high is not None
    assert error.high > 3, "an error has no largest value that the metrics know"
