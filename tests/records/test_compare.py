"""Two runs of the same cases: what counts, what is left out, and which word is allowed."""

from __future__ import annotations

import json
import random

import pytest

from evaluatorq.model.cases import Criterion
from evaluatorq.model.results import TerminatedBy
from evaluatorq.records.compare import Comparison, compare_facts
from evaluatorq.records.facts import run_facts
from evaluatorq.records.statistics import sign_test
from evaluatorq.reports.comparison import render_comparison
from evaluatorq.reports.markdown import comparison_markdown
from evaluatorq.testing import a_datapoint, a_persona, a_scenario
from made_runs import CRITERIA, datapoints, facts, header, run_of, talk

GOOD, RUDE, LEAKS = (True, True), (False, True), (True, False)


def test_a_criterion_lost_in_eight_of_ten_datapoints_is_worse_and_shown_with_both_quotes() -> None:
    points = datapoints(10)
    before = run_of(points, [GOOD] * 10)
    after = facts(
        points, [talk(p, i, LEAKS if i < 8 else GOOD, said="Your password, please!") for i, p in enumerate(points)]
    )
    found = compare_facts(before, after)
    assert found.word == "worse"
    assert found.headline.startswith("worse: 8 of 10 datapoints lost, 0 gained (p = 0.008)")
    (worse,) = found.of("criterion", "worse")
    assert (worse.name, worse.down, worse.up, worse.datapoints) == (
        "must not happen: The agent asks for a password", 8, 0, 10,
    )  # fmt: skip
    assert worse.adjusted == sign_test(0, 8)
    assert len(found.flips) == 8
    flip = found.flips[0]
    assert (flip.change, flip.persona, flip.a.held, flip.a.evidence) == ("lost", "P0", True, "")
    assert (flip.b.evidence, flip.b.turn, flip.b.row) == ("Your password, please!", 1, 0)


def test_the_same_run_twice_shows_no_difference_and_says_what_it_could_have_shown() -> None:
    points = datapoints(48)
    found = compare_facts(run_of(points, [GOOD] * 48), run_of(points, [GOOD] * 48))
    assert found.word == "no difference shown"
    assert "a change of 16 percentage points or more would have shown" in found.headline
    assert found.flips == ()


def test_repeats_of_four_datapoints_are_four_observations_and_not_twelve() -> None:
    points = datapoints(4, samples=3)
    found = compare_facts(run_of(points, [RUDE] * 12), run_of(points, [GOOD] * 12))
    assert (found.unit, found.datapoints, found.conversations) == ("datapoint", 4, 12)
    assert found.overall.p_value == 0.125
    assert found.word == "could not measure"
    assert "4 datapoints are too few" in found.headline
    assert {flip.samples for flip in found.flips} == {"3 of 3"}


def test_more_samples_sharpen_a_datapoint_without_multiplying_it() -> None:
    points = datapoints(20, samples=5)
    rng = random.Random(1)
    before = [GOOD if rng.random() < 0.9 else RUDE for _ in points]
    after = [GOOD if rng.random() < 0.4 else RUDE for _ in points]
    found = compare_facts(run_of(points, before), run_of(points, after))
    assert found.word == "worse"
    assert found.datapoints == 20
    assert found.overall.p_value is not None
    assert found.overall.p_value >= 2.0**-19


def test_an_error_on_either_side_is_neither_gain_nor_loss() -> None:
    points = datapoints(20)
    broken = talk(points[0], 0, GOOD, ended=TerminatedBy.ERROR, component="target")
    rest = [talk(p, i) for i, p in enumerate(points)][1:]
    whole = run_of(points, [GOOD] * 20)
    for a, b in ((facts(points, [broken, *rest]), whole), (whole, facts(points, [broken, *rest]))):
        found = compare_facts(a, b)
        assert (found.overall.up, found.overall.down, found.datapoints) == (0, 0, 19)
        assert list(found.left_out.values()) == [1]
        assert found.word == "no difference shown"


def test_no_headline_where_more_than_a_tenth_was_left_out() -> None:
    points = datapoints(20)
    results = [
        talk(p, i, ended=TerminatedBy.TIMEOUT if i < 3 else TerminatedBy.JUDGE, component="target" if i < 3 else None)
        for i, p in enumerate(points)
    ]
    found = compare_facts(run_of(points, [GOOD] * 20), facts(points, results))
    assert found.word == "could not measure"
    assert found.withheld == "3 of 20 conversations had to be left out (errored in B: 3)"
    assert (found.b.errored, found.b.errored_by_agent) == (3, 3)


def test_an_item_that_one_side_left_undecided_counts_on_neither() -> None:
    points = datapoints(8)
    before = facts(points, [talk(p, i, (True, None)) for i, p in enumerate(points)])
    after = facts(points, [talk(p, i, (True, False)) for i, p in enumerate(points)])
    found = compare_facts(before, after)
    assert found.word == "no difference shown"
    unknown = found.of("criterion")[1]
    assert (unknown.name, unknown.word, unknown.left_out) == (
        "must not happen: The agent asks for a password", "could not measure", 8,
    )  # fmt: skip
    assert not any(flip.rule == unknown.name for flip in found.flips)


def test_conversations_in_which_nothing_was_decided_are_left_out() -> None:
    points = datapoints(10)
    nothing = facts(points, [talk(p, i, (None, None), goal=None) for i, p in enumerate(points)])
    found = compare_facts(nothing, nothing)
    assert found.word == "could not measure"
    assert found.left_out == {"not decided on both sides": 10}


def test_a_changed_case_is_named_with_what_changed_and_left_out() -> None:
    points = datapoints(12)
    stricter = a_scenario(criteria=[*CRITERIA, Criterion(description="The agent says goodbye", type="must_happen")])
    edited = [points[0].model_copy(update={"scenario": stricter}), *points[1:]]
    after = facts(edited, [talk(p, i, (False, *GOOD) if i == 0 else GOOD) for i, p in enumerate(edited)])
    found = compare_facts(run_of(points, [GOOD] * 12), after)
    (changed,) = found.changed
    assert (changed.datapoint_id, changed.parts) == ("dp_0", ("criteria",))
    assert found.overall.down == 0
    assert found.left_out == {"case changed": 1}


def test_the_same_case_is_found_under_another_id_and_one_run_alone_is_named() -> None:
    points = datapoints(9)
    renamed = [p.model_copy(update={"id": f"other_{i}"}) for i, p in enumerate(points)]
    renamed += [a_datapoint(a_scenario("Only here"), persona=a_persona("New"), id="new")]
    after = facts(renamed, [talk(p, i, GOOD if i < 9 else ()) for i, p in enumerate(renamed)])
    found = compare_facts(run_of(points, [GOOD] * 9), after)
    assert found.datapoints == 9
    assert (found.only_a, found.only_b, found.changed) == ((), ("New · Only here",), ())


def test_a_first_message_is_part_of_the_case() -> None:
    points = datapoints(8)
    greeted = [p.model_copy(update={"first_message": "Hello"}) for p in points]
    found = compare_facts(run_of(points, [GOOD] * 8), run_of(greeted, [GOOD] * 8))
    assert {changed.parts for changed in found.changed} == {("first message",)}
    assert found.word == "could not measure"


def test_a_missing_result_is_left_out_and_counted() -> None:
    points = datapoints(8)
    found = compare_facts(run_of(points, [GOOD] * 8), facts(points, [talk(p, i) for i, p in enumerate(points)][:7]))
    assert found.left_out == {"no result": 1}
    assert found.withheld is not None


def test_runs_without_their_cases_are_paired_by_name_and_say_so() -> None:
    points = datapoints(8)
    results = [talk(p, i) for i, p in enumerate(points)]
    for result in results:
        result.row = None
    found = compare_facts(facts((), results), run_of(points, [GOOD] * 8))
    assert found.datapoints == 8
    assert any("paired by name" in warning for warning in found.warnings)


def test_judges_are_not_compared_on_different_conversations() -> None:
    points = datapoints(8)
    before = run_of(points, [GOOD] * 8, models={"judge": "j1"})
    other = facts(
        points, [talk(p, i, RUDE, said="Something else now") for i, p in enumerate(points)], models={"judge": "j2"}
    )
    found = compare_facts(before, other)
    assert found.withheld is not None
    assert "judged by j1 and B by j2" in found.withheld
    assert "rejudge" in found.headline
    same_words = facts(points, [talk(p, i, RUDE) for i, p in enumerate(points)], models={"judge": "j2"})
    assert compare_facts(before, same_words).withheld is None


def test_losses_in_samples_without_a_partner_are_not_hidden() -> None:
    once, twice = datapoints(12), datapoints(12, samples=2)
    found = compare_facts(run_of(once, [GOOD] * 12), run_of(twice, [GOOD, RUDE] * 12))
    assert found.left_out == {"sample without a partner": 12}
    assert found.word == "could not measure"
    assert "repeat both equally often (--samples)" in found.headline


def test_a_sample_that_one_run_lost_is_counted_once() -> None:
    points = datapoints(12, samples=2)
    whole, cut = run_of(points, [GOOD] * 24), facts(points, [talk(p, i) for i, p in enumerate(points)][:-1])
    for a, b in ((whole, cut), (cut, whole)):
        assert compare_facts(a, b).left_out == {"no result": 1}
    once = run_of(datapoints(12), [GOOD] * 12)
    assert sum(compare_facts(once, cut).left_out.values()) >= 12


def test_cases_that_the_runs_own_selection_leaves_out_are_not_asked_and_the_others_are_missed() -> None:
    points = datapoints(30)
    chosen = [point for point in points if point.persona.name.startswith("P1")]
    whole = run_of(points, [GOOD] * 30)
    found = compare_facts(whole, run_of(chosen[:-1], [GOOD] * 10, config={"only": " p1*"}))
    assert (found.subset, len(found.not_asked)) == ("subset of 11 of 30 cases, chosen by only ' p1*'", 19)
    assert (len(found.only_a), found.left_out) == (1, {"only in A": 1})
    assert found.headline.endswith("; subset of 11 of 30 cases, chosen by only ' p1*'")
    shown = " ".join(render_comparison(found, width=200).split())
    assert "nothing is said of the other 19" in shown
    assert "not asked: P0 · " in shown
    assert "subset of 11 of 30 cases" in comparison_markdown(found)
    nameless = run_of(chosen, [GOOD] * 11, config={"only": " "})
    assert compare_facts(whole, nameless).left_out == {"only in A": 19}


def test_what_the_same_agent_does_twice_is_noise_and_no_change() -> None:
    points = datapoints(16)
    before, after = run_of(points, [GOOD] * 16), run_of(points, [RUDE] * 6 + [GOOD] * 10)
    assert compare_facts(before, after).word == "worse"
    noisy = run_of(points, [GOOD] * 9 + [RUDE] * 7)
    found = compare_facts(before, after, noisy)
    assert found.word == "no difference shown"
    assert "the same agent run twice differs as much" in found.headline
    assert found.overall.noise == pytest.approx(-7 / 16)


def test_a_control_of_another_agent_is_pointed_out_and_not_taken_for_noise() -> None:
    points = datapoints(8)
    good, bad = run_of(points, [GOOD] * 8), run_of(points, [RUDE] * 8)
    found = compare_facts(good, bad, run_of(points, [RUDE] * 8, target="somebody else"))
    assert (found.word, found.overall.noise) == ("worse", None)
    assert any(
        "the control run's agent is somebody else, not A's agent, so it is not taken for noise" in warning
        for warning in found.warnings
    )


def test_scores_that_are_none_are_left_out_and_stay_null() -> None:
    points = datapoints(8)
    values: list[object] = [1.0, None, float("nan"), "abstain", 3.5, -1, float("inf"), 0.5]
    results = [talk(p, i, scores={"nice": value}) for i, (p, value) in enumerate(zip(points, values, strict=True))]
    run = facts(points, results)
    (measure,) = compare_facts(run, run).of("evaluator")
    assert (measure.datapoints, measure.left_out, measure.a) == (2, 6, 0.75)
    text = json.loads(compare_facts(run, run).model_dump_json())
    assert next(m for m in text["measures"] if m["kind"] == "evaluator")["adjusted"] is None


def test_tokens_that_nobody_told_are_not_compared_as_zero() -> None:
    points = datapoints(8)
    told = facts(points, [talk(p, i, tokens=100 + i) for i, p in enumerate(points)])
    untold = facts(points, [talk(p, i, tokens=None) for i, p in enumerate(points)])
    tokens = next(m for m in compare_facts(told, untold).of("resource") if m.name == "tokens")
    assert (tokens.word, tokens.left_out, tokens.b) == ("could not measure", 8, None)


def test_a_comparison_reads_back_as_it_was_written() -> None:
    points = datapoints(10)
    found = compare_facts(run_of(points, [GOOD] * 10), run_of(points, [LEAKS] * 7 + [GOOD] * 3))
    assert Comparison.model_validate_json(found.model_dump_json()) == found


def test_the_same_case_under_two_models_stays_two_records() -> None:
    points = datapoints(6)
    found = compare_facts(
        run_of(points, [GOOD] * 6, run_id="a" * 32, target_model="m1"),
        run_of(points, [RUDE] * 6, run_id="b" * 32, target_model="m2"),
    )
    assert (found.a.target_model, found.b.target_model) == ("m1", "m2")
    assert found.overall.down == 6


def test_a_noisy_agent_against_itself_is_rarely_called_different_in_anything() -> None:
    rounds, rng = 150, random.Random(11)
    headline = anything = 0
    points = datapoints(12, samples=2)
    for _ in range(rounds):
        chances = [rng.betavariate(3, 1) for _ in range(12)]

        def run() -> list[tuple[bool, bool]]:
            return [(rng.random() < chances[i // 2], rng.random() < chances[i // 2]) for i in range(24)]  # noqa: B023

        found = compare_facts(run_of(points, run()), run_of(points, run()))
        headline += found.word in ("better", "worse")
        anything += any(m.word in ("better", "worse") for m in found.measures[1:])
    assert headline / rounds <= 0.05 + 3 * (0.05 * 0.95 / rounds) ** 0.5
    assert anything / rounds <= 0.05 + 3 * (0.05 * 0.95 / rounds) ** 0.5


def test_the_change_that_the_headline_names_is_called_worse_four_times_in_five() -> None:
    rounds, rng, shown = 250, random.Random(4), 0
    points = datapoints(24)
    before = run_of(points, [GOOD] * 24)
    share = compare_facts(before, before).overall.smallest
    assert share == pytest.approx(0.31, abs=0.01)
    for _ in range(rounds):
        after = run_of(points, [RUDE if rng.random() < share else GOOD for _ in points])
        shown += compare_facts(before, after).word == "worse"
    assert shown / rounds == pytest.approx(0.8, abs=0.03 + 2 * (0.16 / rounds) ** 0.5)


def test_how_long_answers_took_is_compared_where_it_was_recorded() -> None:
    points = datapoints(8)
    results = [talk(p, i) for i, p in enumerate(points)]
    quick, slow, unknown = (
        run_facts(header(), points, results, latency_s=dict.fromkeys(range(8), seconds) if seconds else None)
        for seconds in (0.5, 1.5, None)
    )
    latency = next(m for m in compare_facts(quick, slow).of("resource") if m.name == "seconds to an answer")
    assert (latency.word, latency.difference) == ("more", 1.0)
    assert not any("seconds" in m.name for m in compare_facts(unknown, unknown).measures)
    half = next(m for m in compare_facts(quick, unknown).of("resource") if m.name == "seconds to an answer")
    assert half.word == "could not measure"


def test_cases_that_only_a_has_are_left_out_and_withhold_the_headline() -> None:
    points = datapoints(48)
    whole, part = run_of(points, [GOOD] * 48), run_of(points[:6], [GOOD] * 6)
    found = compare_facts(whole, part)
    assert found.left_out == {"only in A": 42}
    assert found.withheld == "42 of 48 conversations had to be left out (only in A: 42)"
    assert len(found.only_a) == 42
    assert compare_facts(part, whole).withheld is None, "new cases take nothing from the old ones"
    repeated = datapoints(10, samples=3)
    few = compare_facts(run_of(repeated, [GOOD] * 30), run_of(repeated[:27], [GOOD] * 27))
    assert (few.left_out, few.withheld) == ({"only in A": 3}, None)
