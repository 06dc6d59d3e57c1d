"""Repeats of a datapoint: what was not measured is not counted as either, and two kinds of flaky are kept apart."""

from __future__ import annotations

import pytest

from evaluatorq.model.results import SimulationResult, TerminatedBy
from evaluatorq.records.facts import run_facts
from evaluatorq.records.samples import sample_report
from evaluatorq.reports.samples import render_samples
from made_runs import datapoints, facts, header, run_of, talk

GOOD, RUDE, UNSURE = (True, True), (False, True), (True, None)


def test_a_pass_among_infrastructure_errors_is_one_of_one_with_a_quarter_covered() -> None:
    points = datapoints(1, samples=4)
    results = [talk(points[0], 0)] + [
        talk(p, i, ended=TerminatedBy.ERROR, component="infrastructure") for i, p in enumerate(points) if i
    ]
    cell = sample_report(facts(points, results)).datapoints[0]
    assert (cell.passed, cell.measured, cell.samples, cell.coverage) == (1, 1, 4, 0.25)
    assert (cell.rate, cell.strict) == (1.0, 0.25)
    assert (cell.k, cell.pass_hat_k, cell.pass_at_k) == (4, None, None)
    assert (cell.errored, cell.errored_by_agent) == (3, 0)


def test_pass_hat_k_and_pass_at_k_are_means_over_datapoints() -> None:
    points = datapoints(2, samples=3)
    report = sample_report(run_of(points, [GOOD, GOOD, GOOD, GOOD, RUDE, RUDE]))
    assert [cell.pass_hat_k for cell in report.datapoints] == [1.0, 0.0]
    assert [cell.pass_at_k for cell in report.datapoints] == [1.0, 1.0]
    assert (report.run.pass_hat_k, report.run.pass_at_k, report.run.rate) == (0.5, 1.0, pytest.approx(4 / 6))


def test_one_datapoint_with_too_few_samples_takes_the_runs_pass_hat_k_away() -> None:
    points = datapoints(2, samples=2)
    results = [talk(p, i) for i, p in enumerate(points)]
    results[3] = talk(points[3], 3, ended=TerminatedBy.TIMEOUT, component="target")
    report = sample_report(facts(points, results))
    assert report.datapoints[0].pass_hat_k == 1.0
    assert report.datapoints[1].pass_hat_k is None
    assert report.run.pass_hat_k is None
    assert (report.run.errored_by_agent, report.run.rate, report.run.strict) == (1, 1.0, 0.75)


def test_what_nobody_decided_is_unmeasured_and_neither_passed_nor_failed() -> None:
    points = datapoints(1, samples=3)
    results = [talk(points[0], 0), talk(points[1], 1, UNSURE), talk(points[2], 2, UNSURE)]
    report = sample_report(facts(points, results))
    assert (report.run.passed, report.run.measured) == (1, 1)
    assert report.run.flaky_verdict == 0
    assert sample_report(facts(points, results), "decided").run.measured == 3


def test_a_sample_without_a_result_is_missing_from_the_coverage() -> None:
    points = datapoints(2, samples=2)
    report = sample_report(facts(points, [talk(p, i) for i, p in enumerate(points)][:3]))
    assert (report.run.samples, report.run.measured, report.run.coverage) == (4, 3, 0.75)


def test_flaky_by_verdict_and_flaky_by_behaviour_are_two_findings() -> None:
    points = datapoints(3, samples=2)
    did = ["refund", "refund", "refund", "deny", "refund", "refund"]
    held = [GOOD, RUDE, GOOD, GOOD, GOOD, GOOD]
    results = [talk(p, i, held[i]) for i, p in enumerate(points)]

    def signature(result: SimulationResult) -> str:
        return did[result.row or 0]

    report = sample_report(run_facts(header(), points, results, signature=signature))
    assert [(cell.flaky_verdict, cell.flaky_behaviour) for cell in report.datapoints] == [(1, 0), (0, 1), (0, 0)]
    assert (report.run.flaky_verdict, report.run.flaky_behaviour) == (1, 1)
    assert len(report.flaky) == 2


def test_without_observations_nobody_says_that_behaviour_is_steady() -> None:
    points = datapoints(1, samples=2)
    cell = sample_report(run_of(points, [GOOD, GOOD])).datapoints[0]
    assert (cell.behaviours, cell.flaky_behaviour) == (None, None)


def test_the_interval_of_a_run_does_not_take_samples_for_independent() -> None:
    points = datapoints(10, samples=10)
    steady = [GOOD if i // 10 < 5 else RUDE for i in range(100)]
    mixed = [GOOD if (i * 7 + i // 10) % 2 else RUDE for i in range(100)]
    wide, narrow = (sample_report(run_of(points, held)).run for held in (steady, mixed))
    assert wide.rate == narrow.rate == 0.5
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_repeats_in_a_file_that_does_not_number_them_are_numbered_as_they_stand() -> None:
    points = [p.model_copy(update={"sample": None}) for p in datapoints(2, samples=2)]
    results = [talk(p, i) for i, p in enumerate(points)]
    for result in results:
        result.row = None
    run = facts(points, results)
    assert [conversation.sample for conversation in run.conversations] == [0, 1, 0, 1]
    assert [cell.samples for cell in sample_report(run).datapoints] == [2, 2]


def test_of_very_many_personas_those_that_passed_least_are_shown() -> None:
    points = datapoints(60)
    talks = [talk(point, row, (True, row != 57)) for row, point in enumerate(points)]
    shown = render_samples(sample_report(facts(points, talks)))
    assert "P57  0 of 1" in shown
    assert "and 10 more that passed as often or more; --json has all" in shown
    assert "more that passed" not in render_samples(sample_report(facts(points[:50], talks[:50])))


def test_undecided_samples_make_it_unknown_whether_a_datapoint_is_flaky() -> None:
    points = datapoints(3, samples=2)
    held = [UNSURE, UNSURE, GOOD, RUDE, GOOD, GOOD]
    report = sample_report(facts(points, [talk(p, i, held[i]) for i, p in enumerate(points)]))
    assert [(cell.flaky_verdict, cell.unknown_verdict) for cell in report.datapoints] == [(0, 1), (1, 0), (0, 0)]
    assert (report.run.unknown_verdict, report.run.strict, report.run.best) == (1, 0.5, pytest.approx(5 / 6))
    assert "1 by verdict (1 not known)" in " ".join(render_samples(report).split())


def test_nothing_measured_is_not_told_as_no_datapoint_is_flaky() -> None:
    points = datapoints(6, samples=2)
    report = sample_report(facts(points, [talk(p, i, UNSURE) for i, p in enumerate(points)]))
    text = " ".join(render_samples(report).split())
    assert "No datapoint is flaky" not in text
    assert "Not known whether 6 of 6 datapoints are flaky: not all of their samples were measured." in text
    assert "0 % if the rest failed, 100 % if it passed" in text
