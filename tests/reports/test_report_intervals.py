"""Intervals in reports for reading: the same as ``sim samples`` gives, which does not take samples for independent."""

from __future__ import annotations

import pytest

from evaluatorq.records.samples import sample_report
from evaluatorq.reports.document import Document
from evaluatorq.reports.html import html_report
from evaluatorq.reports.markdown_report import markdown_report
from evaluatorq.reports.samples import render_samples
from evaluatorq.reports.terminal import About
from made_runs import datapoints, facts, talk

GOOD, RUDE = (True, True), (False, True)


@pytest.mark.parametrize("passing", [(), (0, 1, 2), (0, 4)])
def test_a_report_and_samples_give_one_interval_for_one_run(passing: tuple[int, ...]) -> None:
    points = datapoints(3, samples=3)
    results = [talk(p, i, GOOD if i in passing else RUDE) for i, p in enumerate(points)]
    run = sample_report(facts(points, results)).run
    low, high = f"{run.low * 100:.0f} %", f"{run.high * 100:.0f} %"
    assert f"95 %: {low} to {high}" in render_samples(sample_report(facts(points, results)))
    about = About(name="n", run_id=None, target="t", offline=True)
    document = Document.of(results, about)
    assert f"({run.passed / 9 * 100:.0f} %, 95 % interval {low} to {high})" in document.headline
    assert f"95 % interval {low} to {high}" in markdown_report(document)
    assert f">{low} to {high}<" in html_report(document)


def test_single_samples_keep_wilsons_interval() -> None:
    points = datapoints(10)
    document = Document.of([talk(p, i) for i, p in enumerate(points)], About(name="n", run_id=None, target="t"))
    assert "95 % interval 72 % to 100 %" in document.headline
