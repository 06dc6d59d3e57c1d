"""What fails by claims or expectations alone: no rule, comparison or report lets it pass, and the reason is named."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.findings import ClaimFinding, ExpectationFailure, ExpectationReport
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.compare import compare_facts
from evaluatorq.records.facts import RunFacts, conversation_facts
from evaluatorq.records.gate import gate
from evaluatorq.records.gate_rules import GateReport, GateRules
from evaluatorq.records.samples import sample_report
from evaluatorq.reports.gate import render_gate
from evaluatorq.reports.junit import junit
from evaluatorq.reports.markdown import gate_markdown
from made_runs import datapoints, facts, talk

FORBIDDEN = ExpectationFailure(name="forbidden_tool", expected="no call of drop_table", actual="1 call")


def claiming(result: SimulationResult, *, backed: bool) -> SimulationResult:
    """It says that it refunded, and did so, or not by then."""
    result.claims = [
        ClaimFinding(words="have refunded", message_index=1, turn=1, backed=backed, requires="a call of refund()")
    ]
    return result


def expecting(result: SimulationResult, *, met: bool) -> SimulationResult:
    result.expectations = ExpectationReport(met=met, failures=[] if met else [FORBIDDEN])
    return result


def run(points: list[SimulationDatapoint], way: str, *, well: bool) -> RunFacts:
    results = [talk(point, i) for i, point in enumerate(points)]
    if way == "claims":
        return facts(points, [claiming(result, backed=well) for result in results])
    return facts(points, [expecting(result, met=well) for result in results])


def decided(found: RunFacts, **rules: object) -> GateReport:
    return gate(found, GateRules.parse(rules))


WAYS = pytest.mark.parametrize(
    ("way", "words"), [("claims", "have refunded"), ("expectations", "no call of drop_table")]
)


@WAYS
def test_a_failed_conversation_never_held(way: str, words: str) -> None:
    (talked,) = run(datapoints(1), way, well=False).conversations
    assert (talked.verdict, talked.held, talked.goal) == ("failed", False, True)
    assert any(words in criterion.evidence for criterion in talked.criteria if criterion.held is False)
    assert run(datapoints(1), way, well=True).conversations[0].held is True


def test_a_verdict_that_failed_is_not_held_whatever_else_was_decided() -> None:
    (point,) = datapoints(1)
    talked = conversation_facts(claiming(talk(point, 0, (None, None), goal=None), backed=False))
    assert talked.held is False


@WAYS
def test_the_gate_without_rules_keeps_its_exit_code_and_warns_loudly(way: str, words: str) -> None:
    report = decided(run(datapoints(8), way, well=False))
    assert (report.exit_code, report.rules[0].found) == (0, "all do")
    (warning,) = report.warnings
    assert warning.startswith(
        "8 of 8 conversations failed by claims or expectations, which this gate does not read: [0]"
    )
    assert "and 3 more" in warning
    assert "--min-pass-rate 1" in warning
    shown = " ".join(render_gate(report, width=80).split())
    assert warning in shown
    assert "--min-pass-rate 1" in gate_markdown(report).replace("\\", "")
    assert decided(run(datapoints(8), way, well=True)).warnings == ()
    assert decided(run(datapoints(8), way, well=False), max_errors=0).warnings != (), words


@WAYS
@pytest.mark.parametrize("rules", [{"min_pass_rate": 1}, {"strict": True}, {"strict": True, "max_errors": 0}])
def test_every_rule_that_reads_verdicts_breaks_and_names_the_reason(
    way: str, words: str, rules: dict[str, object]
) -> None:
    report = decided(run(datapoints(3), way, well=False), **rules)
    assert (report.exit_code, report.warnings) == (1, ())
    cases = report.rules[-1 if "strict" in rules else 0].conversations
    assert [case.row for case in cases] == [0, 1, 2]
    assert all(case.why and words in case.quote for case in cases)


@WAYS
def test_against_a_baseline_it_is_lost(way: str, words: str) -> None:
    points = datapoints(8)
    good, bad = run(points, way, well=True), run(points, way, well=False)
    found = compare_facts(good, bad)
    assert (found.word, found.overall.down) == ("worse", 8)
    assert words in found.flips[0].b.evidence
    assert gate(bad, GateRules.parse({"baseline": "good"}), found).exit_code == 1
    counted = gate(bad, GateRules.parse({"baseline": "good", "max_lost": 0}), found)
    assert counted.exit_code == 1
    assert words in counted.rules[0].conversations[0].quote


@WAYS
def test_junit_shows_a_failure_and_nothing_skipped(way: str, words: str) -> None:
    document = ET.fromstring(b"".join(junit(run(datapoints(2), way, well=False))))
    suite = document.find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("skipped")) == ("2", "0")
    assert words in (document.findtext(".//failure") or "")
    undecided = claiming(talk(datapoints(1)[0], 0, (True, None)), backed=False)
    document = ET.fromstring(b"".join(junit(facts(datapoints(1), [undecided]))))
    assert document.find(".//skipped") is None


def test_samples_count_it_as_failed_in_every_sense() -> None:
    found = run(datapoints(2, samples=2), "claims", well=False)
    assert [sample_report(found, of).run.passed for of in ("verdict", "decided")] == [0, 0]  # type: ignore[arg-type]
