"""A run as one HTML file: no script, no network, readable on paper, on a phone, in the dark and by a screen reader.

Templates escape everything, and control characters are written out first, so nothing said in a conversation becomes
part of the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from evaluatorq.conversation.quotes import quote_span
from evaluatorq.errors import ConfigError
from evaluatorq.model.observation import Observation
from evaluatorq.records.verdicts import Rate
from evaluatorq.reports.charts import bars, lines
from evaluatorq.reports.document import QUALITY, Document, bounds, criterion_key, interval
from evaluatorq.reports.progress import MARKS
from evaluatorq.reports.terminal import STATE_MARKS, percent
from evaluatorq.reports.text import plural, printable
from evaluatorq.reports.transcript import NOT_DONE, ConversationView, Row, TurnView, facts_of
from evaluatorq.reports.view import VERDICTS, Mean, party

if TYPE_CHECKING:
    from jinja2 import Environment

INSTALL = "HTML reports need two more packages: pip install 'evaluatorq[html]'"
_MOST_TEXT, _MOST_TOOL_TEXT, _MOST_LINES, _MOST_BARS = 4000, 800, 2000, 40


def require_html() -> None:
    """``ConfigError`` where the extra ``html`` is not installed."""
    if find_spec("jinja2") is None or find_spec("pygal") is None:
        raise ConfigError(INSTALL)


def html_report(document: Document) -> str:
    """The whole file. ``ConfigError`` where the extra ``html`` is not installed."""
    require_html()
    return template_environment().get_template("report.html.j2").render(
        doc=document, summary=document.summary, about=document.about, run=document.run, charts=_charts(document),
        verdicts=VERDICTS, quality=QUALITY, config=_config(document), most_lines=_MOST_LINES,
        shown={view.line.index: view for view in document.conversations}, findings=document.summary.findings(10),
    )  # fmt: skip


def template_environment(*packages: str) -> Environment:
    """The templates of reports, after those of ``packages``, with everything that shows a view as HTML."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  an extra

    made = Environment(
        loader=ChoiceLoader([PackageLoader(name, "templates") for name in (*packages, "evaluatorq.reports")]),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown,
    )  # fmt: skip
    made.filters.update(
        percent=percent, party=party, plural=plural, interval=interval, pieces=pieces, shade=_shade, observed=_observed,
        facts=facts_of, bounds=bounds, excerpt=_excerpt,
    )  # fmt: skip
    made.globals.update(criterion_key=criterion_key, marks=MARKS, state_marks=STATE_MARKS, not_done=NOT_DONE)
    return made


def _shown(value: object) -> object:
    """What an expression of a template puts on the page; text that is markup already stays."""
    return printable(value) if type(value) is str else value


# ---------------------------------------------------------------- words


def pieces(row: Row) -> list[tuple[str, bool]]:
    """A message in pieces, each with whether a verdict rests on it. Long messages are cut, but never within a quote."""
    quotes = [mark.evidence for mark in row.marks if mark.evidence] + list(row.untrue)
    spans = sorted(span for quote in quotes for span in [_place(row.text, quote)] if span)
    most = _MOST_TOOL_TEXT if row.speaker == "tool" else _MOST_TEXT
    end = max([most, *(stop for _, stop in spans)])
    found: list[tuple[str, bool]] = []
    at = 0
    for start, stop in spans:
        if start >= at:
            found += [(row.text[at:start], False), (row.text[start:stop], True)]
            at = stop
    rest = row.text[at:end]
    cut = f"… ({len(row.text) - end} more characters)" if len(row.text) > end else ""
    return [piece for piece in (*found, (rest + cut, False)) if piece[0]]


def _place(text: str, quote: str) -> tuple[int, int] | None:
    """Where a quote stands: as quotes are looked up, else (what a check found) white space and case aside."""
    if span := quote_span(quote, text):
        return span
    found = re.search(r"\s+".join(re.escape(word) for word in quote.split()), text, re.IGNORECASE)
    return found.span() if found and found.group() else None


def _excerpt(view: ConversationView | None) -> TurnView | None:
    """The turn whose words decided a conversation."""
    turns = view.turns if view is not None and view.line.quote_turn is not None else ()
    return next((turn for turn in turns if view is not None and turn.number == view.line.quote_turn), None)


def _observed(seen: Observation) -> str:
    """What a turn of the agent did, in one line."""
    parts = [", ".join(f"{call.name} {call.outcome}" for call in seen.tool_calls or ())]
    parts += [f"events: {', '.join(seen.events)}" if seen.events else ""]
    parts += [f"error: {seen.error_code}" if seen.error_code else "", seen.read_error or ""]
    return "; ".join(part for part in parts if part)


def _shade(rate: Rate) -> str:
    """One of five backgrounds of a heatmap's cell; its text says the same."""
    return "none" if rate.share is None else str(min(4, int(rate.share * 5)))


def _config(document: Document) -> list[tuple[str, str]]:
    run = document.run
    if run is None:
        return []
    known: list[tuple[str, object]] = [
        ("run", run.run_id), ("created", f"{run.created_at:%Y-%m-%d %H:%M:%S} UTC"), ("mode", run.mode),
        ("target", run.target), ("target kind", run.target_kind), ("target model", run.target_model),
        ("turns at most", run.max_turns), ("evaluators", ", ".join(run.evaluator_names)), ("seed", run.seed),
        ("replayed from", run.replayed_from), *((f"model: {role}", name) for role, name in run.models.items()),
        *((f"version: {name}", version) for name, version in run.versions.items()),
        *((name, value) for name, value in run.config.items()),
    ]  # fmt: skip
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in known
        if value not in (None, "", [], {})
    ]


# ---------------------------------------------------------------- charts


def _charts(document: Document) -> dict[str, str]:
    found: dict[str, str] = {}
    turns = document.scored_turns
    if turns:
        series = {QUALITY[name]: _over(means, turns) for name, means in document.quality.items()}
        found["quality"] = lines([str(turn) for turn in turns], series, "Judge's scores turn by turn; table below")
    for name, rows, title in (
        ("scores", document.score_rows, "Conversations by goal completion score; table below"),
        ("turns", document.turn_rows, "Conversations by number of turns; table below"),
    ):
        if 0 < len(rows) <= _MOST_BARS:
            found[name] = bars([label for label, _ in rows], [count for _, count in rows], title)
    return found


def _over(means: Mapping[int, Mean], turns: Sequence[int]) -> list[float | None]:
    return [means[turn].value if turn in means else None for turn in turns]
