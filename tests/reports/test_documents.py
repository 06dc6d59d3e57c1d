"""JUnit and Markdown: what CI shows, and what other people's text cannot do to it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from evaluatorq.model.results import TerminatedBy
from evaluatorq.records.compare import compare_facts
from evaluatorq.records.facts import RunFacts
from evaluatorq.records.gate import gate
from evaluatorq.records.gate_rules import GateRules
from evaluatorq.reports.comparison import render_comparison
from evaluatorq.reports.gate import render_gate
from evaluatorq.reports.junit import junit
from evaluatorq.reports.markdown import code, comparison_markdown, escaped, gate_markdown
from made_runs import datapoints, facts, run_of, talk

GOOD, LEAKS, UNSURE = (True, True), (True, False), (True, None)
EVIL = "</failure> \x1b[31m\x00 | `x` <b>@everyone</b> #1 \ud800 ]]> & \u202e"


def a_run() -> RunFacts:
    points = datapoints(5)
    return facts(
        points,
        [
            talk(points[0], 0),
            talk(points[1], 1, LEAKS, said=f"Your password, please {EVIL}"),
            talk(points[2], 2, UNSURE),
            talk(points[3], 3, ended=TerminatedBy.TIMEOUT, component="target"),
        ],
    )


def test_a_conversation_is_a_test_case_and_a_broken_criterion_a_failure_with_its_quote() -> None:
    suites = ET.fromstring(b"".join(junit(a_run())))
    (suite,) = suites
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5", "failures": "1", "errors": "2", "skipped": "1",
    }  # fmt: skip
    passed, broken, unknown, errored, missing = suite
    assert [child.tag for child in passed] == ["system-out"]
    failure = broken.find("failure")
    assert failure is not None
    assert failure.get("message") == "must not happen: The agent asks for a password"
    assert failure.text is not None
    assert failure.text.startswith("turn 1: Your password, please </failure>")
    assert unknown.find("skipped") is not None
    error = errored.find("error")
    assert error is not None
    assert (error.get("type"), error.get("message")) == ("target", "the agent failed: it was over")
    assert missing.find("error") is not None
    assert (broken.get("classname"), broken.get("name")) == ("Refund", "[1] P1 · Refund")


def test_the_gates_rules_are_a_suite_of_their_own() -> None:
    run = a_run()
    report = gate(run, GateRules.parse({"max_errors": 0, "max_unknown": 5, "min_goal_rate": 1}))
    suite = list(ET.fromstring(b"".join(junit(run, report))))[1]
    tags = [[child.tag for child in case] for case in suite]
    assert (suite.get("name"), suite.get("tests")) == ("gate", "3")
    assert sorted(tags) == [[], ["error"], ["failure"]]


@pytest.mark.parametrize("text", [EVIL, "a|b", "``` code ```", "-- [x](javascript:1) ![i](u)", ""])
def test_text_of_others_cannot_leave_its_cell(text: str) -> None:
    for shown in (escaped(text), code(text)):
        assert "\n" not in shown
        assert "\x1b" not in shown
        assert "|" not in shown.replace("\\|", "")
    assert "@everyone" not in escaped(text)
    assert "<b>" not in escaped(text).replace("\\<", "")


@pytest.mark.parametrize("text", [
    "worse: 3 of 8 conversations (38 %)", "run with --strict, then goal_achieved", "R&D said {a} -> b! (p < 0.001)",
])  # fmt: skip
def test_plain_words_stay_as_they_are_in_markdown(text: str) -> None:
    assert escaped(text) == text


@pytest.mark.parametrize(("text", "shown"), [
    ("- a", "\\- a"), ("1. a", "1\\. a"), ("---", "\\---"), ("> a", "\\> a"), ("__a__", "\\_\\_a\\_\\_"),
    (":smile:", "\\:smile:"), ("http://x", "http\\://x"), ("&lt;b", "\\&lt;b"),
])  # fmt: skip
def test_what_would_be_markup_is_none(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_a_step_summary_has_the_rules_and_the_conversations_that_break_them() -> None:
    run = a_run()
    text = gate_markdown(gate(run, GateRules()))
    assert text.startswith("## ❌ Gate: broken")
    assert "**\\[1\\] P1 · Refund**: failed criteria_1 The agent asks for a password" in text
    assert all(line.count("|") == text.splitlines()[4].count("|") for line in text.splitlines() if line.startswith("|"))


def test_a_comparison_for_a_pull_request_fits_into_a_comment() -> None:
    points = datapoints(400)
    found = compare_facts(
        run_of(points, [GOOD] * 400),
        facts(points, [talk(p, i, LEAKS, said="Your password " * 80) for i, p in enumerate(points)]),
    )
    text = comparison_markdown(found)
    assert text.startswith("## ❌ worse: 400 of 400 datapoints lost, 0 gained")
    assert "- **lost** in 400: Refund: must not happen: The agent asks for a password" in text
    assert len(text) < 65_536


@pytest.mark.parametrize("width", [60, 80, 110])
def test_terminal_pages_fit_their_width_and_obey_nobody(width: int) -> None:
    run = a_run()
    good = run_of(datapoints(5), [GOOD] * 5)
    for text in (
        render_comparison(compare_facts(good, run), width=width),
        render_gate(gate(run, GateRules()), width=width),
    ):
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= width
