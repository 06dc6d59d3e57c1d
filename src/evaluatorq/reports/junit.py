"""A run as JUnit XML: a test case for each conversation, a failure for each criterion that was broken, with its quote.

An error or timeout is an ``error``, whoever's fault it was. A conversation in which nothing was broken but not
everything was decided is ``skipped``, never passed: nobody tested it, and build servers show skipped tests. The gate's
own rules are a second suite, in which a rule that could not be measured is an ``error``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as ET

from evaluatorq.records.facts import ConversationFacts, Quoted, RunFacts
from evaluatorq.records.gate_rules import GateReport, RuleResult
from evaluatorq.reports.view import party

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(facts: RunFacts, report: GateReport | None = None) -> Iterator[bytes]:
    """The document in pieces."""
    suites = [_suite(facts.header.run_name, [_conversation(talk) for talk in facts.conversations])]
    if facts.missing:
        missing = [_missing(case.name, case.scenario) for case in facts.missing]
        suites[0].extend(missing)
        _count(suites[0])
    if report is not None:
        suites.append(_suite("gate", [_rule(rule) for rule in report.rules]))
    yield b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
    for suite in suites:
        ET.indent(suite, level=1)
        yield b"  " + ET.tostring(suite, encoding="unicode").encode() + b"\n"
    yield b"</testsuites>\n"


def _suite(name: str, cases: Iterable[ET.Element]) -> ET.Element:
    suite = ET.Element("testsuite", name=_clean(name))
    suite.extend(cases)
    _count(suite)
    return suite


def _count(suite: ET.Element) -> None:
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))


def _conversation(talk: ConversationFacts) -> ET.Element:
    case = ET.Element("testcase", classname=_clean(talk.case.scenario), name=_clean(talk.name))
    broken = [criterion for criterion in talk.criteria if criterion.held is False]
    unknown = [criterion for criterion in talk.criteria if criterion.held is None]
    if talk.errored:
        who = talk.component or "unknown"
        _add(case, "error", f"{party(who)} failed: {talk.reason}", type_=who)
    for criterion in broken:
        _add(case, "failure", criterion.rule, _shown(criterion), type_=criterion.type)
    if talk.verdict == "failed" and talk.goal is False:
        _add(case, "failure", f"goal not achieved: {talk.reason}", type_="goal")
    if talk.verdict == "unknown":
        parts = ["nobody could decide the goal"] if talk.goal is None else []
        _add(case, "skipped", "; ".join(parts + [f"not audited: {criterion.description}" for criterion in unknown]))
    _add(case, "system-out", None, _told(talk))
    return case


def _shown(criterion: Quoted) -> str:
    if not criterion.evidence:
        return "never happened"
    turn = f"turn {criterion.turn}: " if criterion.turn else ""
    return turn + criterion.evidence


def _told(talk: ConversationFacts) -> str:
    marks = {True: "held", False: "broken", None: "not audited"}
    lines = [f"ended: {talk.reason}", f"goal: {marks[talk.goal].replace('broken', 'not achieved')}"]
    lines += [f"{marks[criterion.held]}: {criterion.rule}" for criterion in talk.criteria]
    lines += [f"thread: {talk.thread_id}"] if talk.thread_id else []
    return "\n".join(lines)


def _missing(name: str, scenario: str) -> ET.Element:
    case = ET.Element("testcase", classname=_clean(scenario), name=_clean(name))
    _add(case, "error", "the run has no result for this case", type_="missing")
    return case


def _rule(rule: RuleResult) -> ET.Element:
    case = ET.Element("testcase", classname="gate", name=_clean(rule.rule))
    where = "\n".join(": ".join(filter(None, (at.name, at.why, at.quote))) for at in rule.conversations)
    if rule.state == "broken":
        _add(case, "failure", rule.found, where, type_="broken")
    elif rule.state == "could not measure":
        _add(case, "error", rule.found, where, type_="could not measure")
    return case


def _add(case: ET.Element, tag: str, message: str | None, text: str = "", *, type_: str | None = None) -> None:
    child = ET.SubElement(case, tag)
    if message is not None:
        child.set("message", _clean(message))
    if type_ is not None:
        child.set("type", _clean(type_))
    child.text = _clean(text) or None


def _clean(text: str) -> str:
    """Without characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
