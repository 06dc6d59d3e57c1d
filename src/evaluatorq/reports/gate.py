"""A gate's decision as text: the rules, and under each broken one the conversations that break it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluatorq.records.gate_rules import Evidence, GateReport, RuleResult, State
from evaluatorq.reports.terminal import Page, columns, styled
from evaluatorq.reports.text import by_lines, one_line, plural

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

MARKS: dict[State, str] = {"holds": "✓", "broken": "✗", "could not measure": "?"}
STYLES: dict[State, str] = {"holds": "green", "broken": "bold red", "could not measure": "yellow"}
_MOST = 10


def render_gate(report: GateReport, *, width: int = 80, color: bool = False) -> str:
    """The decision for a reader at a terminal or in a build's log."""
    page = Page(width, color)
    run = report.run
    target = f" · target {run.target}" if run.target else ""
    page.add(styled(one_line(f"{run.label}{target} · {run.conversations} conversations"), "bold"), "")
    for rule in report.rules:
        page.add(*_rule(rule, width))
    for warning in report.warnings:
        page.add("", columns([["!", styled(one_line(warning, 2000), "bold yellow")]], indent=0))
    if report.note:
        page.add("", styled(report.note, "dim"))
    page.add("", styled(f"{MARKS[report.state]} gate: {report.decision}", STYLES[report.state]))
    return page.text()


def _rule(rule: RuleResult, width: int) -> list[RenderableType]:
    mark = styled(f"{MARKS[rule.state]} {rule.state}", STYLES[rule.state])
    rows: list[list[str | Text]] = [[mark, one_line(rule.rule)], ["", styled(one_line(rule.found), "dim")]]
    parts: list[RenderableType] = [columns(rows, indent=0)]
    cases: dict[int, list[Evidence]] = {}
    for case in rule.conversations:
        cases.setdefault(case.row, []).append(case)
    for found in list(cases.values())[:_MOST]:
        parts.append(f"    {one_line(found[0].name, width - 4)}")
        parts += [columns([[_shown(case)]], indent=8) for case in found]
    left = len(cases) - _MOST
    return [*parts, f"      and {plural(left, 'conversation')} more"] if left > 0 else parts


def _shown(case: Evidence) -> str:
    turn = f" (turn {case.turn})" if case.turn else ""
    quote = f"\n{by_lines(case.quote, 300)}{turn}" if case.quote else ""
    return f"{one_line(case.why, 300)}{quote}"
