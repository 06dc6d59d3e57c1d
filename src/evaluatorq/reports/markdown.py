"""Comparisons and gate decisions as Markdown for a pull request or a build's step summary.

What agents and models wrote is shown as code or escaped, so that it cannot become markup, a mention or a link. Lists
are cut, because a comment on a pull request may have 65,536 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evaluatorq.records.compare import Comparison, Flip, RunLabel, Side, p_text
from evaluatorq.records.gate_rules import Evidence, GateReport, RuleResult
from evaluatorq.records.measures import Measure, Word
from evaluatorq.reports.text import one_line, plural

_MOST_CASES, _MOST_RULES_SHOWN, _MOST_FLIPS = 10, 20, 20
_MARKUP = re.compile(r"([\\`*\[\]|~$]|<(?=[a-zA-Z/!?])|(?<![^\W_])_|_(?![^\W_])|:(?=\S)|&(?=#?\w+;))")
"""What is markup wherever it stands: a colon in a link or an emoji's name, an underline at the edge of a word, ``<``
before a tag's name.
"""
_BEGINNING = re.compile(r"^(?:(\d{1,9})(?=[.)](?:\s|$))|(?=[-+](?:\s|$)|[-=\s]+$|>))")
"""What would begin a list, a quotation or a heading."""
_LINKED = re.compile(r"([@#])|(?<=www)(?=\.)", re.IGNORECASE)
_STATES = {"holds": "✅", "broken": "❌", "could not measure": "⚠️"}
_WORDS: dict[Word, str] = {"better": "✅", "worse": "❌", "could not measure": "⚠️", "no difference shown": "=",
                           "more": "🔼", "less": "🔽"}  # fmt: skip


def escaped(text: str, width: int = 300) -> str:
    """Text of other people as plain words of one line."""
    plain = _BEGINNING.sub(r"\1\\", _MARKUP.sub(r"\\\1", one_line(text, width)))
    return _LINKED.sub(lambda found: found[0] + "\u200b", plain)


def code(text: str, width: int = 300) -> str:
    """Text of other people as it stands, on one line."""
    line = one_line(text, width).replace("|", "\u2502")
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else "(nothing)"


def _codes(text: str) -> str:
    """What stands on several lines, one after another."""
    return ", ".join(map(code, text.splitlines()))


# ---------------------------------------------------------------- a gate


def gate_markdown(report: GateReport, comparison: Comparison | None = None) -> str:
    """The decision, every rule, and the conversations that broke one."""
    lines = [f"## {_STATES[report.state]} Gate: {report.decision}", "", _run(report.run), ""]
    lines += ["| | rule | found |", "|---|---|---|"]
    lines += [f"| {_STATES[rule.state]} | {escaped(rule.rule)} | {escaped(rule.found)} |" for rule in report.rules]
    lines += [f"\n> ⚠️ {escaped(warning, 2000)}" for warning in report.warnings]
    lines += ["", f"{escaped(report.note)}."] if report.note else []
    for rule in report.rules[:_MOST_RULES_SHOWN]:
        lines += _rule(rule)
    if comparison is not None:
        lines += ["", *_comparison(comparison)]
    return "\n".join(lines) + "\n"


def _rule(rule: RuleResult) -> Iterable[str]:
    if not rule.conversations:
        return
    yield from ("", f"### {escaped(rule.rule)}", "")
    yield from (_case(case) for case in rule.conversations[:_MOST_CASES])
    left = len(rule.conversations) - _MOST_CASES
    if left > 0:
        yield f"- and {left} more"


def _case(case: Evidence) -> str:
    quote = f": {_codes(case.quote)}" if case.quote else ""
    turn = f" (turn {case.turn})" if case.quote and case.turn else ""
    return f"- **{escaped(case.name)}**: {escaped(case.why)}{quote}{turn}"


# ---------------------------------------------------------------- a comparison


def comparison_markdown(found: Comparison) -> str:
    """The headline, the measures, and one example of each flip with the words of both sides."""
    return "\n".join(_comparison(found)) + "\n"


def _comparison(found: Comparison) -> Iterable[str]:
    yield from (f"## {_WORDS[found.word]} {escaped(found.headline)}", "")
    yield from (f"- **A**: {_run(found.a)}", f"- **B**: {_run(found.b)}")
    if found.control:
        yield f"- **C** (the control): {_run(found.control)}"
    compared = f"{plural(found.datapoints, 'datapoint')} compared; the unit of every test is the datapoint"
    left_out = ", ".join(f"{why}: {count}" for why, count in found.left_out.items())
    yield from ("", compared + (f"; left out: {escaped(left_out)}" if left_out else "") + ".")
    yield from (f"\n> ⚠️ {escaped(warning)}" for warning in found.warnings)
    yield from ("", "| | measure | A | B | B - A (95 %) | datapoints | p |", "|---|---|---|---|---|---|---|")
    yield from (_measure(m) for m in found.measures if m.kind != "criterion" or m.up or m.down)
    same = sum(m.kind == "criterion" and not (m.up or m.down) for m in found.measures)
    if same:
        yield from ("", f"{same} more criteria did not change or could not be compared.")
    yield from _flips(found.flips)


def _run(run: RunLabel) -> str:
    errors = f", {run.errored} errored ({run.errored_by_agent} by the agent)" if run.errored else ""
    return (
        f"{escaped(run.label)}, target {code(run.target or 'not recorded')}, {run.conversations} conversations{errors}"
    )


def _measure(measure: Measure) -> str:
    shares = measure.kind not in ("evaluator", "resource")
    cells = [_WORDS[measure.word], escaped(measure.label)]
    if measure.a is None or measure.b is None or measure.difference is None:
        return f"| {' | '.join([*cells, '', '', escaped(measure.why), '', ''])} |"
    form = "{:.0%}" if shares else "{:.4g}"
    signed = "{:+.0%}" if shares else "{:+.3g}"
    change = signed.format(measure.difference)
    if measure.low is not None and measure.high is not None:
        change += f" ({signed.format(measure.low)} to {signed.format(measure.high)})"
    p_value = measure.p_value if measure.kind == "conversations" else measure.adjusted
    moved = f"{measure.down} fell, {measure.up} rose of {measure.datapoints}"
    tested = p_text(p_value) if p_value is not None else ""
    return f"| {' | '.join([*cells, form.format(measure.a), form.format(measure.b), change, moved, tested])} |"


def _flips(flips: Sequence[Flip]) -> Iterable[str]:
    groups: dict[tuple[str, str, str], list[Flip]] = {}
    for flip in flips:
        groups.setdefault((flip.change, flip.scenario, flip.rule), []).append(flip)
    if groups:
        yield from ("", "### Flips", "")
    for (change, scenario, rule), same in list(groups.items())[:_MOST_FLIPS]:
        yield f"- **{change}** in {len(same)}: {escaped(scenario)}: {escaped(rule)}"
        yield f"  - A {_side(same[0].a, same[0].kind)}"
        yield f"  - B {_side(same[0].b, same[0].kind)}"
    if len(groups) > _MOST_FLIPS:
        yield f"- and {len(groups) - _MOST_FLIPS} more"


def _side(side: Side, kind: str) -> str:
    state = "held" if side.held else "broken"
    if kind == "goal":
        return f"[{side.row}] {state}: {escaped(side.evidence)}"
    turn = f" (turn {side.turn})" if side.turn and side.evidence else ""
    return f"[{side.row}] {state}: {_codes(side.evidence) if side.evidence else 'never happened'}{turn}"
