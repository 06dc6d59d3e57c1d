"""A run as GitHub-flavoured Markdown: a verdict, tables, what failed with its quote, transcripts to fold out.

Everything that agents and models wrote is escaped or code on one line; see ``markdown``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evaluatorq.model.usage import Usage
from evaluatorq.records.verdicts import CriterionView, Rate
from evaluatorq.reports.document import QUALITY, Clusters, Document, criterion_key, interval
from evaluatorq.reports.markdown import code, escaped
from evaluatorq.reports.terminal import percent
from evaluatorq.reports.text import plural
from evaluatorq.reports.transcript import NOT_DONE, ConversationView, Fact, Row, TurnView, facts_of
from evaluatorq.reports.view import VERDICTS, CriterionTally, Finding, party

MOST_TRANSCRIPTS = 20
_MOST_FINDINGS, _MOST_CRITERIA, _MOST_SAID = 20, 60, 1500
_MARKS = {"passed": "✅", "failed": "❌", "unknown": "❔", "errored": "⚠️", "pass": "✅", "fail": "❌"}
_STATES = {"pass": "held", "fail": "broken", "unknown": "not audited"}


def markdown_report(document: Document) -> str:
    """The whole file."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    about = document.about
    yield f"# {escaped(about.name)}"
    parts = [f"target {code(about.target)}"] if about.target else []
    parts += [f"{document.run.created_at:%Y-%m-%d %H:%M} UTC"] if document.run else []
    parts += [plural(document.summary.total, "conversation"), plural(document.summary.turns, "turn")]
    yield from ("", " · ".join(parts), "", f"> [!{_callout(document)}]", f"> {document.headline}")
    if about.words:
        yield from ("", escaped(about.words, 4000))
    yield from _summary(document)
    caveats = list(document.caveats())
    if caveats:
        yield from ("", "## Caveats", "", *(f"- {escaped(caveat, 600)}" for caveat in caveats))
    findings = document.summary.findings(_MOST_FINDINGS)
    if findings:
        yield from ("", "## Look at first", "")
        for finding in findings:
            yield from _finding(finding)
    yield from _heatmap(document)
    yield from _criteria(list(document.summary.criteria.values()), document.clusters)
    yield from _errors(document)
    yield from _tokens(document)
    yield from _advice(document)
    yield from ("", "## Conversations")
    for view in document.conversations:
        yield from _conversation(view)


def _callout(document: Document) -> str:
    """GitHub's colours by the pass rate."""
    share = document.summary.agent.share
    if share is None:
        return "NOTE"
    return "TIP" if share >= 0.8 else "WARNING" if share >= 0.5 else "CAUTION"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    yield from (f"| {' | '.join(row)} |" for row in rows)


# ---------------------------------------------------------------- numbers


def _summary(document: Document) -> Iterator[str]:
    summary = document.summary
    yield from ("", "## Summary", "")
    counts = [(f"{_MARKS[verdict]} {verdict}", str(summary.verdicts[verdict])) for verdict in VERDICTS]
    yield from _table(["verdict", "conversations"], counts)
    rates = [("conversations passed", summary.agent, "agent"), ("goals achieved", summary.goal, "goal")]
    rates += [("criteria held", summary.audits, "audits"), ("expectations met", summary.expectations, "expectations")]
    rates += [("without untrue claims", summary.claims, "claims")]
    rows = [[name, *_rate(rate, document.clusters.get(key))] for name, rate, key in rates if rate.total]
    for name, mean in summary.scores.items():
        left = str(summary.total - mean.count)
        rows.append([escaped(name), f"mean of {mean.count}: {mean.value:.2f}", left])
    if rows:
        yield from ("", *_table(["", "of what was decided", "undecided"], rows))
    if document.quality:
        means = {name: list(by_turn.values()) for name, by_turn in document.quality.items()}
        told = [
            f"{QUALITY[name]} {sum(mean.total for mean in all_) / sum(mean.count for mean in all_):.2f}"
            for name, all_ in means.items()
        ]
        yield from ("", f"Judge's scores, mean of all turns: {', '.join(told)}.")


def _rate(rate: Rate, clusters: Clusters | None) -> tuple[str, str]:
    if rate.share is None:
        return "none", str(rate.unknown)
    return f"{rate.yes} of {rate.decided} ({percent(rate.share)}{interval(rate, clusters)})", str(rate.unknown)


def _heatmap(document: Document) -> Iterator[str]:
    if not document.cells:
        return
    yield from ("", "## Personas and scenarios", "", "Passed of decided conversations.", "")
    rows = []
    for scenario in document.scenarios:
        rates = [document.cells.get((persona, scenario)) for persona in document.personas]
        rows.append([escaped(scenario, 120), *(_cell(rate) for rate in rates)])
    yield from _table(["scenario", *(escaped(persona, 60) for persona in document.personas)], rows)


def _cell(rate: Rate | None) -> str:
    if rate is None:
        return "-"
    mark = _MARKS["unknown" if not rate.decided else "failed" if rate.no else "passed"]
    return f"{mark} {rate.yes} of {rate.decided}" + (f", {rate.unknown} open" if rate.unknown else "")


def _criteria(tallies: Sequence[CriterionTally], clusters: Mapping[str, Clusters]) -> Iterator[str]:
    if not tallies:
        return
    yield from ("", "## Criteria", "")
    worst = sorted(tallies, key=lambda tally: (-tally.rate.no, -tally.rate.unknown))
    rows = []
    for tally in worst[:_MOST_CRITERIA]:
        mark = _MARKS["fail" if tally.rate.no else "unknown" if tally.rate.unknown else "pass"]
        key = criterion_key(tally.scenario, tally.type, tally.description)
        rule = f"{tally.type.replace('_', ' ')}: {escaped(tally.description)}"
        rows.append([mark, escaped(tally.scenario, 120), rule, *_rate(tally.rate, clusters.get(key))])
    yield from _table(["", "scenario", "criterion", "held", "not audited"], rows)
    if len(worst) > _MOST_CRITERIA:
        yield from ("", f"and {len(worst) - _MOST_CRITERIA} more")


def _errors(document: Document) -> Iterator[str]:
    if not document.errors:
        return
    yield from ("", "## Errors", "")
    rows = [[escaped(e.kind), escaped(party(e.fault)), str(e.count), code(e.example)] for e in document.errors]
    yield from _table(["kind", "whose fault", "conversations", "for example"], rows)


def _tokens(document: Document) -> Iterator[str]:
    yield from ("", "## Tokens and cost", "")
    if not document.spent.total_tokens and not document.summary.usage_unknown:
        yield f"{document.about.no_tokens.capitalize()}."
        return
    rows = [
        [escaped(party(role)), *_figures(usage)]
        for role, usage in [*document.spending.items(), ("total", document.spent)]
    ]
    yield from _table(["role", "input", "output", "total", "USD"], rows)
    if document.models:
        by_model = [[code(name), *_figures(usage)] for name, usage in document.models.items()]
        yield ""
        yield from _table(["model", "input", "output", "total", "USD"], by_model)


def _figures(usage: Usage) -> list[str]:
    cost = "not known" if usage.total_cost is None else f"{usage.total_cost:.4f}"
    return [f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", f"{usage.total_tokens:,}", cost]


def _advice(document: Document) -> Iterator[str]:
    if not document.recommendations:
        return
    yield from ("", "## Recommendations")
    for item in document.recommendations:
        yield from ("", f"**\\[{item.result_index}\\] {escaped(item.persona)} · {escaped(item.scenario)}**", "")
        for text in item.suggestions:
            yield f"- {'✅ applied: ' if text in document.applied else ''}{escaped(text, 1000)}"


# ---------------------------------------------------------------- conversations


def _finding(finding: Finding) -> Iterator[str]:
    line = finding.line
    turn = f" (turn {line.quote_turn})" if line.quote and line.quote_turn else ""
    quote = f": {code(line.quote)}{turn}" if line.quote else ""
    same = f"; the same in {len(finding.like)} more" if finding.like else ""
    name = f"\\[{line.index}\\] {escaped(line.persona, 80)} · {escaped(line.scenario, 120)}"
    yield f"- {_MARKS[line.verdict]} **{name}**: {escaped(line.why)}{quote}{same}"


def _conversation(view: ConversationView) -> Iterator[str]:
    line = view.line
    # A summary is HTML, where Markdown's escapes do not hold: only a number and a fixed word stand in it.
    yield from ("", f"<details><summary>{_MARKS[line.verdict]} conversation {line.index}: {line.verdict}</summary>", "")
    yield f"**{escaped(line.persona, 80)} · {escaped(line.scenario, 120)}**: {escaped(line.why, 600)}"
    fault = f", the fault of {escaped(party(line.fault))}" if line.fault else ""
    yield from ("", f"Ended by {line.ended}{fault} after {plural(line.turns, 'turn')}.")
    for turn in view.turns:
        yield from _turn(turn)
    if view.criteria:
        yield from ("", "**Verdicts**", "", *(_verdict(criterion) for criterion in view.criteria))
    facts = facts_of(view.result)
    if facts:
        yield from ("", "**Facts**", "", *map(_fact, facts))
    yield from ("", "</details>")


def _turn(turn: TurnView) -> Iterator[str]:
    yield from ("", f"**Turn {turn.number}**" if turn.number else "**Before turn 1**", "")
    for row in turn.rows:
        yield from _said(row)


def _said(row: Row) -> Iterator[str]:
    """What was said or called, and under it what was held and learnt there and what was not true."""
    words = code(row.text, _MOST_SAID) if row.speaker == "tool" else escaped(row.text, _MOST_SAID) or "(nothing)"
    marks = "".join(f" {_MARKS[mark.state]}" for mark in row.marks if mark.state != "unknown")
    yield f"- *{row.speaker}*: {words}{marks}"
    yield from (f"  - *{kind}* {escaped(told, 500)}" for kind, told in row.beside)
    yield from (f"  - ❌ {NOT_DONE}: {code(claimed)}" for claimed in row.untrue)


def _fact(fact: Fact) -> str:
    mark = f"{_MARKS[fact.state]} " if fact.state else ""
    return f"- {mark}{fact.word}: {escaped(fact.text, 600)}"


def _verdict(criterion: CriterionView) -> str:
    mark = _MARKS[criterion.state]
    turn = f" (turn {criterion.turn})" if criterion.turn else ""
    quote = f": {code(criterion.evidence)}{turn}" if criterion.evidence else ""
    return f"- {mark} {_STATES[criterion.state]}: {escaped(criterion.rule)}{quote}"
