"""Statistics in sentences: nothing is said that the numbers do not."""

from __future__ import annotations

from evaluatorq.records.compare import compare_facts
from evaluatorq.records.measures import Measure
from evaluatorq.reports.plain_words import in_words
from made_runs import datapoints, run_of

POINTS = datapoints(40)
HELD, BROKEN = (True, True), (False, True)


def overall(a: list[tuple[bool, bool]], b: list[tuple[bool, bool]]) -> str:
    return in_words(compare_facts(run_of(POINTS, a), run_of(POINTS, b)).overall)


def test_a_loss_says_how_much_how_sure_and_that_b_is_worse() -> None:
    text = overall([HELD] * 40, [BROKEN] * 20 + [HELD] * 20)
    assert "held in 100 % of the datapoints in A and 50 % in B: 50 percentage points lower" in text
    assert "Of 40 datapoints, 20 went down and 0 went up." in text
    assert "less than once in 1,000 times" in text
    assert text.endswith("B is worse here.")


def test_two_equal_runs_differ_in_nothing_and_say_what_would_have_shown() -> None:
    text = overall([HELD] * 40, [HELD] * 40)
    assert "100 % of the datapoints in A and 100 % in B, the same." in text
    assert "None of 40 datapoints moved." in text
    assert "That shows no difference. A change of" in text
    assert "chance alone" not in text


def test_as_many_up_as_down_is_what_chance_looks_like() -> None:
    text = overall([HELD] * 30 + [BROKEN] * 10, [BROKEN] * 10 + [HELD] * 30)
    assert "10 went down and 10 went up" in text
    assert "Chance alone looks just like that (p = 1.000)." in text
    assert "B is" not in text


def test_what_was_not_measured_is_not_called_equal() -> None:
    text = in_words(Measure(kind="goal", name="goal achieved", why="nothing was decided on both sides"))
    assert text == "It could not be measured: nothing was decided on both sides."


def test_few_datapoints_give_no_verdict() -> None:
    points = datapoints(3)
    text = in_words(compare_facts(run_of(points, [HELD] * 3), run_of(points, [BROKEN] * 3)).overall)
    assert "No verdict: 3 datapoints are too few to tell any change from chance." in text


def test_scores_are_means_and_not_shares() -> None:
    measure = Measure(
        kind="evaluator", name="criteria_met", word="better", datapoints=20, a=0.5, b=0.75, difference=0.25, low=0.125,
        high=0.375, up=15, down=1, p_value=0.004, adjusted=0.008,
    )  # fmt: skip
    text = in_words(measure)
    assert (
        "The mean score was 0.5 in A and 0.75 in B: 0.25 higher, with 95 % confidence between +0.125 and +0.375."
        in text
    )
    assert "about 4 times in 1,000 (p = 0.004); corrected for everything that was measured, p = 0.008." in text
    few = in_words(measure.model_copy(update={"p_value": 0.25, "adjusted": None, "word": "no difference shown"}))
    assert "about 25 times in 100 (p = 0.250); too few datapoints moved to show more. That shows no difference." in few
