"""The gate holds, is broken or could not measure; without rules it decides as the published reference's snippet."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import SimulationResult, TerminatedBy
from evaluatorq.records.compare import compare_facts
from evaluatorq.records.facts import RunFacts
from evaluatorq.records.gate import gate
from evaluatorq.records.gate_rules import GateReport, GateRules
from evaluatorq.reports.gate import render_gate
from evaluatorq.reports.markdown import gate_markdown
from made_runs import datapoints, facts, run_of, talk

GOOD, RUDE, LEAKS, UNSURE = (True, True), (False, True), (True, False), (True, None)


def decided(run: RunFacts, **rules: object) -> GateReport:
    return gate(run, GateRules.parse(rules))


def with_errors(points: list[SimulationDatapoint], errors: int, component: str) -> RunFacts:
    goal = False if component == "target" else None
    broken = [talk(p, i, goal=goal, ended=TerminatedBy.ERROR, component=component) for i, p in enumerate(points)]
    return facts(points, broken[:errors] + [talk(p, i) for i, p in enumerate(points)][errors:])


# ---------------------------------------------------------------- without rules


def breaks_a_build(result: SimulationResult) -> bool:
    """What the published reference asks of one conversation, in words of our own."""
    dead = result.terminated_by.value in {"error", "timeout"}
    entries = result.metadata.get("criteria_meta") or []
    not_held = any(not entry["passed"] or entry.get("audited") is False for entry in entries)  # type: ignore[index,union-attr]
    return dead or not result.goal_achieved or not_held or result.criteria_verified is not True


RESULTS = st.tuples(
    st.tuples(*[st.sampled_from([True, True, True, False, None])] * 2),
    st.booleans(),
    st.sampled_from(list(TerminatedBy)),
    st.sampled_from([True, True, True, False, None]),
    st.booleans(),
)


@settings(max_examples=150)
@given(st.lists(RESULTS, max_size=4))
def test_without_rules_it_decides_as_the_published_snippet_does(made: list[tuple[object, ...]]) -> None:
    points = datapoints(len(made))
    results = []
    for i, (held, goal, ended, verified, old) in enumerate(made):
        result = talk(points[i], i, held, goal=goal, ended=ended)  # type: ignore[arg-type]
        result.criteria_verified = verified  # type: ignore[assignment]
        if old:
            result.metadata["criteria_meta"] = [
                {k: v for k, v in entry.items() if k != "audited"}
                for entry in result.metadata["criteria_meta"]  # type: ignore[union-attr]
            ]
        results.append(result)
    report = decided(facts(points, results))
    assert report.exit_code == int(any(breaks_a_build(result) for result in results))


@pytest.mark.parametrize("entries", ["abc", 5, {"a": 1}, [None], [{}], [{"audited": True}]])
def test_criteria_that_cannot_be_read_break_a_build(entries: object) -> None:
    (point,) = datapoints(1)
    result = talk(point, 0)
    result.metadata["criteria_meta"] = entries  # type: ignore[assignment]
    assert decided(facts([point], [result])).exit_code == 1


def test_every_objection_is_listed_with_its_conversation_and_its_words() -> None:
    points = datapoints(3)
    report = decided(
        facts(
            points,
            [talk(points[0], 0), talk(points[1], 1, LEAKS, said="Your password, please"), talk(points[2], 2, UNSURE)],
        )
    )
    (rule,) = report.rules
    assert rule.found == "2 of 3 conversations do not"
    assert [(case.row, case.why) for case in rule.conversations] == [
        (1, "failed criteria_1 The agent asks for a password"),
        (2, "criteria_1 The agent asks for a password never audited"),
    ]
    assert [case.quote for case in rule.conversations] == ["Your password, please", ""]


# ---------------------------------------------------------------- thresholds


def test_a_rate_holds_in_the_worst_case_breaks_in_the_best_and_is_unmeasured_between() -> None:
    points = datapoints(10)
    run = run_of(points, [GOOD] * 7 + [RUDE] + [UNSURE] * 2)
    assert decided(run, min_pass_rate=0.7).state == "holds"
    assert decided(run, min_pass_rate=0.8).state == "could not measure"
    assert decided(run, min_pass_rate=0.91).state == "broken"
    (rule,) = decided(run, min_pass_rate=0.8).rules
    assert rule.found == "7 of 8 (87.5 %), 2 undecided: 70 % to 90 % of 10"
    assert [case.row for case in rule.conversations] == [7, 8, 9]


def test_exit_codes_say_holds_broken_and_could_not_measure() -> None:
    points = datapoints(2)
    run = run_of(points, [GOOD, UNSURE])
    assert [decided(run, **rules).exit_code for rules in (
        {"min_goal_rate": 1}, {"max_unknown": 0}, {"min_pass_rate": 1}, {"min_pass_rate": 1, "max_unknown": 0},
    )] == [0, 1, 3, 1]  # fmt: skip


def test_the_agents_errors_count_against_it_and_other_peoples_leave_it_open() -> None:
    points = datapoints(10)
    assert decided(with_errors(points, 2, "target"), min_goal_rate=0.9).state == "broken"
    assert decided(with_errors(points, 2, "infrastructure"), min_goal_rate=0.9).state == "could not measure"
    assert decided(with_errors(points, 2, "target"), min_pass_rate=0.9).state == "broken"
    assert decided(with_errors(points, 2, "infrastructure"), min_pass_rate=0.9).state == "could not measure"


@pytest.mark.parametrize(
    ("most", "state"), [(2, "holds"), (1, "broken"), ("20%", "holds"), ("15 %", "broken"), ("2", "holds")]
)
def test_errors_are_allowed_by_count_or_by_share(most: object, state: str) -> None:
    report = decided(with_errors(datapoints(10), 2, "infrastructure"), max_errors=most)
    assert report.state == state
    if state == "broken":
        assert [case.row for case in report.rules[0].conversations] == [0, 1]


def test_a_missing_score_is_never_green() -> None:
    points = datapoints(4)
    scores = [{"nice": 1.0}, {"nice": 1.0}, {"nice": 1.0}, {"nice": None}]
    run = facts(points, [talk(p, i, scores=scores[i]) for i, p in enumerate(points)], evaluator_names=["nice"])
    assert decided(run, min_evaluator={"nice": 0.5}).state == "could not measure"
    low = facts(
        points, [talk(p, i, scores={"nice": 0.2} if i else {}) for i, p in enumerate(points)], evaluator_names=["nice"]
    )
    assert decided(low, min_evaluator={"nice": 0.9}).state == "broken"
    whole = facts(points, [talk(p, i, scores={"nice": 0.9}) for i, p in enumerate(points)])
    assert decided(whole, min_evaluator={"nice": 0.9}).state == "holds"


def test_scores_that_are_no_rates_are_counted_by_reason_and_never_averaged() -> None:
    points = datapoints(7)
    values: list[object] = [1, None, float("nan"), "abstain", 3.5, -1, float("inf")]
    run = facts(points, [talk(p, i, scores={"x": values[i]}) for i, p in enumerate(points)])
    (rule,) = decided(run, min_evaluator={"x": 0.5}).rules
    assert rule.state == "could not measure"
    assert rule.found == "1 of 1, missing: 1, not a number: 1, abstained: 1, out of range: 3"


def test_one_criterion_has_a_threshold_of_its_own() -> None:
    run = run_of(datapoints(4), [GOOD, GOOD, LEAKS, LEAKS])
    assert decided(run, min_criterion={"password": 0.5}).state == "holds"
    assert decided(run, min_criterion={"*greets": 1.0}).state == "holds"
    report = decided(run, min_criterion={"password": 0.6})
    assert (report.state, [case.row for case in report.rules[0].conversations]) == ("broken", [2, 3])


def test_what_the_run_does_not_have_is_a_mistake_with_near_names() -> None:
    run = run_of(datapoints(1), [GOOD])
    with pytest.raises(
        ConfigError, match=r"no criterion of this run matches 'pasword'.*'The agent asks for a password'"
    ):
        decided(run, min_criterion={"pasword": 1})
    with pytest.raises(ConfigError, match="no evaluator of this run is called 'nice'; it has none"):
        decided(run, min_evaluator={"nice": 1})


def test_spending_that_was_not_told_leaves_a_limit_open_unless_it_is_passed_already() -> None:
    points = datapoints(3)
    told = facts(points, [talk(p, i, tokens=100) for i, p in enumerate(points)])
    untold = facts(points, [talk(p, i, tokens=None if i else 100) for i, p in enumerate(points)])
    assert [decided(run, max_tokens=most).state for run in (told, untold) for most in (300, 99)] == [
        "holds", "broken", "could not measure", "broken",
    ]  # fmt: skip


def test_flaky_datapoints_and_pass_hat_k_have_thresholds() -> None:
    points = datapoints(2, samples=2)
    run = run_of(points, [GOOD, RUDE, GOOD, GOOD])
    assert decided(run, max_flaky=0).state == "broken"
    assert decided(run, max_flaky="50%").state == "holds"
    assert decided(run, min_pass_hat_k=0.5).state == "holds"
    assert decided(run, min_pass_hat_k=0.6).state == "broken"
    unsure = run_of(points, [GOOD, UNSURE, GOOD, GOOD])
    assert decided(unsure, min_pass_hat_k=0.5).state == "could not measure"


def test_a_run_without_any_conversation_meets_no_threshold() -> None:
    assert decided(facts((), ()), min_pass_rate=0.0).state == "could not measure"


def test_a_case_without_a_result_leaves_a_rate_open_and_counts_as_an_error() -> None:
    points = datapoints(2)
    run = facts(points, [talk(points[0], 0)])
    assert decided(run, min_goal_rate=1).state == "could not measure"
    assert decided(run, max_errors=0).state == "broken"


@pytest.mark.parametrize(
    "rules",
    [
        {"strict": True},
        {"min_criteria_rate": 1.0},
        {"min_criterion": {"password": 1.0}},
        {"max_unaudited": 0},
        {"max_unverified": 0},
        {"max_tokens": 10**9},
        {"max_mean_turns": 50},
        {"min_pass_rate": 1.0},
        {"min_goal_rate": 1.0},
        {"max_errors": 0},
        {"max_unknown": 0},
    ],
    ids=str,
)
def test_nothing_holds_for_cases_that_have_no_result(rules: dict[str, object]) -> None:
    points = datapoints(6)
    short = facts(points, [talk(p, i) for i, p in enumerate(points)][:2])
    assert decided(facts(points, [talk(p, i) for i, p in enumerate(points)]), **rules).state == "holds"
    assert decided(short, **rules).state != "holds"
    nothing = facts((), ())
    if "min_criterion" not in rules:
        assert decided(nothing, **rules).state == "could not measure"


def test_the_gate_without_rules_says_what_has_no_result() -> None:
    points = datapoints(6)
    (warning,) = decided(facts(points, [talk(p, i) for i, p in enumerate(points)][:2])).warnings
    assert warning == "4 of 6 cases have no result, which this gate does not ask; add --strict"


@pytest.mark.parametrize("share", range(1, 101))
def test_a_share_of_a_hundred_is_as_many(share: int) -> None:
    rules = GateRules.parse({"max_errors": f"{share}%"})
    assert rules.max_errors is not None
    assert rules.max_errors.most(100) == share


# ---------------------------------------------------------------- against a baseline


def test_another_judge_than_the_baselines_measures_nothing() -> None:
    points = datapoints(10)
    before = run_of(points, [LEAKS] * 10, models={"judge": "j1"})
    talks = [talk(p, i, GOOD, said="Something else now") for i, p in enumerate(points)]
    after = facts(points, talks, models={"judge": "j2"})
    for rules in ({"baseline": "before"}, {"baseline": "before", "max_lost": 0}):
        for a, b in ((before, after), (after, before)):
            report = gate(b, GateRules.parse(rules), compare_facts(a, b))
            assert report.state == "could not measure"
            assert "was judged by j" in report.rules[0].found


def test_nothing_may_be_worse_than_the_baseline() -> None:
    points = datapoints(10)
    good, bad = run_of(points, [GOOD] * 10), run_of(points, [LEAKS] * 8 + [GOOD] * 2)
    rules = GateRules.parse({"baseline": "before"})
    report = gate(bad, rules, compare_facts(good, bad))
    assert report.state == "broken"
    assert len(report.rules[0].conversations) == 8
    assert report.rules[0].conversations[0].why == "lost: must not happen: The agent asks for a password"
    assert gate(good, rules, compare_facts(bad, good)).state == "holds"
    gone = with_errors(points, 5, "target")
    assert gate(gone, rules, compare_facts(good, gone)).state == "could not measure"


def test_given_rules_stand_alone_and_say_so_until_the_gates_own_are_asked_for_too() -> None:
    points = datapoints(6)
    leaking = run_of(points, [LEAKS] * 6)
    same = compare_facts(leaking, leaking)
    alone = gate(leaking, GateRules.parse({"baseline": "before"}), same)
    assert (alone.state, len(alone.rules)) == ("holds", 1), "bad as ever is not worse"
    assert alone.note.startswith("Only these rules were asked; --strict adds: every conversation ended by itself")
    assert alone.note in render_gate(alone, width=300)
    assert alone.warnings[0].startswith("6 of 6 conversations failed, as did 6 of 6 in the baseline: that is not worse")
    assert render_gate(alone, width=300).rstrip().endswith("✓ gate: holds, though 6 of 6 conversations failed")
    assert gate_markdown(alone).startswith("## ✅ Gate: holds, though 6 of 6 conversations failed\n")
    assert alone.rules[0].rule.endswith("by paired tests at 5 %")
    both = gate(leaking, GateRules.parse({"baseline": "before", "strict": True}), same)
    assert (both.state, len(both.rules), both.note) == ("broken", 2, "")
    assert both.decision == "broken"
    assert gate(leaking, GateRules()).note == ""
    fine = run_of(points, [GOOD] * 6)
    held = gate(fine, GateRules.parse({"baseline": "before"}), compare_facts(leaking, fine))
    assert (held.decision, held.warnings) == ("holds", ())


def test_a_conversation_is_shown_once_with_all_that_it_breaks() -> None:
    points = datapoints(3)
    nothing = run_of(points, [(False, False)] * 3)
    text = render_gate(gate(nothing, GateRules()), width=100)
    assert text.count("[1] P1 · ") == 1
    assert "The agent greets" in text
    assert "The agent asks for a password" in text


def test_a_few_losses_that_may_be_chance_are_not_called_nothing_worse() -> None:
    points = datapoints(20)
    good, few = run_of(points, [GOOD] * 20), run_of(points, [LEAKS] * 3 + [GOOD] * 17)
    rules = GateRules.parse({"baseline": "a"})
    (rule,) = gate(few, rules, compare_facts(good, few)).rules
    assert rule.state == "could not measure"
    assert "may be chance: repeat with --samples, or allow some with --max-lost" in rule.found
    assert [case.row for case in rule.conversations] == [0, 1, 2]
    mixed = run_of(points, [LEAKS] * 2 + [GOOD] * 18)
    other = run_of(points, [GOOD] * 18 + [LEAKS] * 2)
    assert gate(other, rules, compare_facts(mixed, other)).state == "holds", "as many gained as lost"
    assert gate(few, rules, compare_facts(good, few, few)).state == "holds", "the same agent twice differs as much"


def test_lost_datapoints_are_counted_whatever_chance_allows() -> None:
    points = datapoints(10)
    good, one = run_of(points, [GOOD] * 10), run_of(points, [LEAKS] + [GOOD] * 9)
    found = compare_facts(good, one)
    assert gate(one, GateRules.parse({"baseline": "a", "max_lost": 0}), found).state == "broken"
    assert gate(one, GateRules.parse({"baseline": "a", "max_lost": "10%"}), found).state == "holds"
    open_ones = with_errors(points, 1, "target")
    assert (
        gate(open_ones, GateRules.parse({"max_lost": 0}), compare_facts(good, open_ones)).state == "could not measure"
    )


def test_a_baseline_of_which_most_cases_are_not_in_the_run_cannot_be_held_against() -> None:
    points = datapoints(48)
    whole, part = run_of(points, [GOOD] * 48), run_of(points[:6], [GOOD] * 6)
    for rules in ({"baseline": "whole"}, {"baseline": "whole", "max_lost": 0}):
        report = gate(part, GateRules.parse(rules), compare_facts(whole, part))
        assert report.exit_code == 3
        assert "only in A: 42" in report.rules[0].found
    nearly = run_of(points[:46], [GOOD] * 46)
    report = gate(nearly, GateRules.parse({"baseline": "whole"}), compare_facts(whole, nearly))
    assert report.state == "holds"
    assert report.rules[0].found.endswith("left out: only in A: 2")


@pytest.mark.parametrize(
    ("outcomes", "unread", "datapoints_open"),
    [([UNSURE] * 6, 6, 6), ([(None, None), *[GOOD] * 5], 2, 1), ([UNSURE, UNSURE, *[GOOD] * 4], 2, 2)],
    ids=["one criterion everywhere", "all of one conversation", "one criterion twice"],
)
def test_what_held_in_the_baseline_and_was_not_audited_again_may_be_lost(
    outcomes: list[tuple[bool | None, ...]], unread: int, datapoints_open: int
) -> None:
    points = datapoints(6)
    before, after = run_of(points, [GOOD] * 6), run_of(points, outcomes)
    found = compare_facts(before, after)
    said = f"{unread} criteria or goals held in A and were not audited in B"
    counted = gate(after, GateRules.parse({"max_lost": 0}), found)
    assert (counted.exit_code, counted.rules[0].found) == (
        3, f"0 of 6 datapoints lost, {datapoints_open} more may be: what held was not audited again",
    )  # fmt: skip
    tested = gate(after, GateRules.parse({"baseline": "before"}), found)
    assert tested.state != "holds", "more than a tenth may be lost"
    for report in (counted, tested):
        assert [warning for warning in report.warnings if said in warning]
        assert said in render_gate(report, width=300)
        assert said in gate_markdown(report)
    assert gate(after, GateRules.parse({"max_lost": datapoints_open}), found).state == "holds"
    other_way = gate(before, GateRules.parse({"max_lost": 0}), compare_facts(after, before))
    assert (other_way.state, other_way.warnings) == ("holds", ()), "more is known than was"
    same = gate(after, GateRules.parse({"max_lost": 0}), compare_facts(after, after))
    assert same.state == "holds", "as unknown as it was"
    assert not [warning for warning in same.warnings if "not audited" in warning]


def test_a_datapoint_is_lost_once_and_one_that_never_held_cannot_be_lost() -> None:
    points = datapoints(3, samples=2)
    before = run_of(points, [GOOD, GOOD, RUDE, RUDE, GOOD, GOOD])
    after = run_of(points, [RUDE, UNSURE, (False, None), (False, None), UNSURE, UNSURE])
    found = compare_facts(before, after)
    assert (found.unread, found.overall.down, found.may_be_lost) == (5, 1, 1)
    for most, state in ((0, "broken"), (1, "could not measure"), (2, "holds")):
        assert gate(after, GateRules.parse({"max_lost": most}), found).state == state


def test_a_goal_and_a_criterion_that_the_record_does_not_have_are_not_audited_either() -> None:
    points = datapoints(6)
    before = run_of(points, [GOOD] * 6)
    no_goal, no_entry = talk(points[0], 0, goal=None), talk(points[0], 0)
    no_entry.metadata["criteria_meta"] = no_entry.metadata["criteria_meta"][:1]  # type: ignore[index]
    for first in (no_goal, no_entry):
        after = facts(points, [first, *(talk(p, i) for i, p in enumerate(points) if i)])
        report = gate(after, GateRules.parse({"max_lost": 0}), compare_facts(before, after))
        assert report.state == "could not measure"
        assert report.warnings[0].startswith("1 criteria or goals held in A")
    errors = with_errors(points, 1, "infrastructure")
    report = gate(errors, GateRules.parse({"max_lost": 1}), compare_facts(before, errors))
    assert report.state == "holds", "a conversation that is left out is counted once"


def test_cases_that_the_baseline_does_not_have_are_counted_in_a_warning() -> None:
    points = datapoints(8)
    before, after = run_of(points[:6], [GOOD] * 6), run_of(points, [GOOD] * 6 + [LEAKS] * 2)
    report = gate(after, GateRules.parse({"max_lost": 0}), compare_facts(before, after))
    assert report.state == "holds"
    assert "2 cases are only in B, so they were compared with nothing" in report.warnings


def test_a_subset_that_was_asked_for_is_decided_and_named_and_hides_nothing_that_was_lost() -> None:
    points = datapoints(48)
    chosen = [point for point in points if point.persona.name.startswith("P1")]
    whole, part = run_of(points, [GOOD] * 48), run_of(chosen, [GOOD] * 11, config={"only": "P1"})
    for rules in ({"baseline": "whole"}, {"baseline": "whole", "max_lost": 0}):
        report = gate(part, GateRules.parse(rules), compare_facts(whole, part))
        assert report.exit_code == 0
        assert report.decision == "holds (subset of 11 of 48 cases, chosen by only 'P1')"
        assert "subset of 11 of 48 cases" in report.rules[0].found
        assert "subset of 11 of 48 cases" in render_gate(report, width=200).splitlines()[-1]
        dropped = facts(chosen, [talk(p, i) for i, p in enumerate(chosen)][:9], config={"only": "P1"})
        lost = run_of(chosen[:9], [GOOD] * 9, config={"only": "P1"})
        for gone in (dropped, lost):
            assert gate(gone, GateRules.parse(rules), compare_facts(whole, gone)).exit_code == 3
        bad = run_of(chosen, [LEAKS] * 11, config={"only": "P1"})
        assert gate(bad, GateRules.parse(rules), compare_facts(whole, bad)).state == "broken"


def test_flakiness_that_was_not_measured_is_never_held() -> None:
    points = datapoints(6, samples=2)
    unmeasured = run_of(points, [UNSURE] * 12)
    report = decided(unmeasured, max_flaky=0)
    assert report.exit_code == 3
    assert report.rules[0].found == "0 of 6, 6 not known: not all samples were measured"
    assert len(report.rules[0].conversations) == 6
    assert decided(unmeasured, max_flaky=6).state == "holds", "they could not be too many"
    assert decided(run_of(points, [GOOD] * 12), max_flaky=0).state == "holds"
    assert decided(run_of(points, [GOOD, RUDE, GOOD, UNSURE, *[GOOD] * 8]), max_flaky=1).state == "could not measure"
    assert decided(run_of(points, [GOOD, RUDE, RUDE, GOOD, *[UNSURE] * 8]), max_flaky=1).state == "broken"
    once = decided(run_of(datapoints(3), [GOOD] * 3), max_flaky=0)
    assert (once.state, once.rules[0].found) == (
        "could not measure", "0 of 3, 3 not known: they have one sample only, repeat with --samples",
    )  # fmt: skip


def test_a_goal_that_nobody_could_decide_is_not_blamed_on_a_judge() -> None:
    (point,) = datapoints(1)
    run = facts([point], [talk(point, 0, goal=None)])
    report = decided(run)
    assert report.exit_code == 1, "as the snippet of the reference"
    assert [case.why for case in report.rules[0].conversations] == ["nobody could decide whether the goal was reached"]
    assert decided(run, min_pass_rate=1).exit_code == 3
    assert decided(run, strict=True).exit_code == 3
    assert decided(facts([point], [talk(point, 0, goal=False)])).rules[0].conversations[0].why == (
        "goal not achieved: it was over"
    )


# ---------------------------------------------------------------- rules as people write them


@pytest.mark.parametrize("name", ["min_goal_rate", "min_pass_rate", "min_criteria_rate", "min_pass_hat_k"])
def test_a_rate_is_written_as_a_fraction_or_in_percent(name: str) -> None:
    for text in ("0.95", "95%", "95 %", 0.95):
        assert getattr(GateRules.parse({name: text}), name) == 0.95
    assert GateRules.parse({"min_criterion": {"x": "95%"}, "min_evaluator": {"y": "95%"}}).min_criterion == {"x": 0.95}


def test_what_is_allowed_is_a_count_a_fraction_or_percent() -> None:
    written = {"2%": "2 %", "0.02": "2 %", "3": "3", "0": "0"}
    assert {text: str(GateRules.parse({"max_errors": text}).max_errors) for text in written} == written
    assert str(GateRules.parse({"max_errors": 0.02}).max_errors) == "2 %"


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"min_gaol_rate": 1}, "min_gaol_rate: no such rule; did you mean min_goal_rate"),
        ({"min_goal_rate": 1.5}, "min_goal_rate: input should be less than or equal to 1"),
        ({"max_errors": "many"}, "max_errors is 'many'; write a count such as 3, or a share such as '5%'"),
        ({"max_errors": True}, "max_errors is True"),
        ({"max_errors": "1.5"}, "max_errors is '1.5'; write a count such as 3"),
        ({"min_goal_rate": "x%"}, "min_goal_rate is 'x%'; write a share such as 0.95 or '95%'"),
        ({"min_goal_rate": "950%"}, "min_goal_rate: input should be less than or equal to 1"),
        ({"max_errors": -1}, "max_errors"),
        ({"min_evaluator": 1}, "min_evaluator"),
    ],
)
def test_rules_that_cannot_be_right_are_refused_in_one_sentence(rules: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        GateRules.parse(rules, where="[gate]")
    assert str(caught.value).startswith("[gate]: ")
    assert "\n" not in str(caught.value)
