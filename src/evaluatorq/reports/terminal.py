"""Reports as text of a given width: readable at 80 columns, without colour, and in a log.

Pure: a view in, a string out. Whatever an agent or a model wrote goes through ``printable`` first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING

from evaluatorq.reports.progress import MARKS
from evaluatorq.reports.text import one_line, printable
from evaluatorq.reports.transcript import ConversationView, Row, TurnView
from evaluatorq.reports.view import (
    VERDICTS,
    ConversationLine,
    CriterionTally,
    CriterionView,
    Finding,
    Rate,
    State,
    Summary,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

OFFLINE = "offline: simulated users and checks, no model"
STYLES = {
    "passed": "green", "failed": "bold red", "unknown": "yellow", "errored": "magenta",
    "pass": "green", "fail": "bold red",
}  # fmt: skip
STATE_MARKS: dict[State, str] = {"pass": "✓", "fail": "✗", "unknown": "?"}
_BAR = 24
_LONGEST_TOOL_TEXT = 300


@dataclass(frozen=True, slots=True)
class About:
    """What a summary says of the run itself. ``next_steps`` are commands and what they do."""

    name: str
    run_id: str | None = None
    target: str | None = None
    offline: bool = False
    seed: int | None = None
    duration_s: float | None = None
    planned: int | None = None
    evaluator_names: Sequence[str] = ()
    saved: str | None = None
    notes: Sequence[str] = ()
    next_steps: Sequence[tuple[str, str]] = field(default=())


@dataclass(slots=True)
class Page:
    """Collects parts and renders them once; strings are lines that are never wrapped."""

    width: int = 80
    color: bool = False
    parts: list[RenderableType] = field(default_factory=list)

    def add(self, *parts: RenderableType) -> None:
        """Adds parts, each on lines of its own; ``""`` is an empty line."""
        self.parts.extend(parts)

    def text(self) -> str:
        """Everything added, without trailing blanks."""
        buffer = StringIO()
        console = _console(buffer, self.width, color=self.color)
        for part in self.parts:
            console.print(part, soft_wrap=isinstance(part, str))
        return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _console(buffer: StringIO, width: int, *, color: bool) -> Console:
    from rich.console import Console  # noqa: PLC0415  only where something is drawn

    return Console(
        file=buffer, width=width, force_terminal=color, color_system="standard" if color else None,
        no_color=not color, highlight=False, markup=False, emoji=False, _environ={},
    )  # fmt: skip


def _styled(text: str, style: str = "") -> Text:
    from rich.text import Text  # noqa: PLC0415

    return Text(text, style=style)


def _columns(rows: Iterable[Sequence[str | Text]], *, indent: int = 2, wrap: int = -1) -> RenderableType:
    """Rows in aligned columns; only column ``wrap`` may break over lines."""
    from rich.padding import Padding  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    cells = [list(row) for row in rows]
    grid = Table.grid(padding=(0, 2, 0, 0))
    last = max((len(row) for row in cells), default=0) - 1
    for column in range(last + 1):
        grid.add_column(no_wrap=column != (last if wrap == -1 else wrap), overflow="fold")
    for row in cells:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, indent))


# ---------------------------------------------------------------- a run


def render_summary(summary: Summary, about: About, *, width: int = 80, color: bool = False) -> str:
    """The page that answers in five seconds: what passed, what did not, whose fault, where it is, what to type."""
    page = Page(width, color)
    page.add(_title(about), *(_styled(one_line(note), "yellow") for note in about.notes), "")
    page.add(_columns(_verdict_rows(summary)), "", _columns(_rate_rows(summary)))
    findings = summary.findings()
    if findings:
        page.add("", _styled("Look at first", "bold"))
        for finding in findings:
            page.add(*_finding(finding, width))
    page.add(*_criteria(list(summary.criteria.values())), "")
    page.add(_columns(_facts(summary, about), indent=0), *_to_copy(about))
    return page.text()


def _title(about: About) -> Text:
    parts = [one_line(about.name)]
    parts += [about.run_id[:12]] if about.run_id else []
    parts += [f"target {one_line(about.target)}"] if about.target else []
    parts += [OFFLINE] if about.offline else []
    return _styled(" · ".join(parts), "bold")


def _verdict_rows(summary: Summary) -> list[list[str | Text]]:
    rows: list[list[str | Text]] = []
    for name in VERDICTS:
        count = summary.verdicts[name]
        if not count and name != "passed":
            continue
        bar = "█" * max(1 if count else 0, round(_BAR * count / summary.total)) if summary.total else ""
        rows.append([_styled(f"{MARKS[name]} {name}", STYLES[name]), f"{count:>4}", _styled(bar, STYLES[name]), ""])
        if name == "errored":
            rows[-1][3] = ", ".join(f"{_party(who)} {n}" for who, n in summary.faults.most_common())
        if name == "unknown":
            rows[-1][3] = "nobody decided them"
    return rows


def _party(component: str) -> str:
    return {"target": "the agent", "user_simulator": "simulated user"}.get(component, component)


def _rate_rows(summary: Summary) -> list[list[str | Text]]:
    rows: list[list[str | Text]] = [["Conversations", _rate(summary.agent, "passed")]]
    if summary.goal.total:
        rows.append(["Goals", _rate(summary.goal, "achieved")])
    if summary.audits.total:
        rows.append(["Criteria", _rate(summary.audits, "held")])
    for name, mean in summary.scores.items():
        left_out = summary.total - mean.count
        rows.append([one_line(name, 24), f"{mean.value:.2f} mean of {mean.count}" + _left_out(left_out)])
    return rows


def _left_out(count: int) -> str:
    return f", {count} left out" if count else ""


def _rate(rate: Rate, verb: str) -> str:
    if rate.share is None or rate.worst is None or rate.best is None:
        return f"none of {rate.total} decided"
    text = f"{rate.yes} of {rate.decided} {verb} ({_percent(rate.share)})"
    if rate.unknown:
        text += f"; {rate.unknown} undecided, so {_percent(rate.worst)} to {_percent(rate.best)} of {rate.total}"
    return text


def _percent(share: float) -> str:
    """Never rounded up to 100 % or down to 0 %."""
    rounded = round(share * 100)
    if rounded == 100 and share < 1:
        return "over 99 %"
    return "under 1 %" if rounded == 0 and share > 0 else f"{rounded} %"


def _finding(finding: Finding, width: int) -> list[RenderableType]:
    line = finding.line
    head = _styled(f"  {MARKS[line.verdict]} [{line.index}] ", STYLES[line.verdict])
    head.append(one_line(f"{line.persona} · {line.scenario}", width - 12), style="bold")
    parts: list[RenderableType] = [head, _columns([[one_line(line.why, 300)]], indent=6)]
    if line.quote:
        turn = f" (turn {line.quote_turn})" if line.quote_turn else ""
        parts.append(_columns([[f"“{one_line(line.quote, 200)}”{turn}"]], indent=6))
    if finding.like:
        others = " ".join(f"[{index}]" for index in finding.like[:12]) + (" …" if len(finding.like) > 12 else "")
        parts.append(_columns([[_styled(f"the same in {len(finding.like)} more: {others}", "dim")]], indent=6))
    return parts


def _criteria(tallies: Sequence[CriterionTally]) -> list[RenderableType]:
    """Criteria that were broken or not audited; those that held everywhere are only counted."""
    if not tallies:
        return []
    shown = [tally for tally in tallies if tally.rate.no or tally.rate.unknown]
    shown.sort(key=lambda tally: (-tally.rate.no, -tally.rate.unknown))
    held = len(tallies) - len(shown)
    parts: list[RenderableType] = ["", _styled("Criteria", "bold")]
    rows: list[list[str | Text]] = [["held", "broken", "not audited", ""]] if shown else []
    for tally in shown[:20]:
        text = f"{tally.type.replace('_', ' ')}: {one_line(tally.description, 160)} ({one_line(tally.scenario, 40)})"
        broken = _styled(f"{tally.rate.no:>6}", STYLES["fail"] if tally.rate.no else "")
        unknown = _styled(f"{tally.rate.unknown:>11}", STYLES["unknown"] if tally.rate.unknown else "")
        rows.append([f"{tally.rate.yes:>4}", broken, unknown, text])
    if rows:
        parts.append(_columns(rows))
    if len(shown) > 20:
        parts.append(f"  and {len(shown) - 20} more that were broken or not audited")
    if held:
        parts.append(f"  {held} of {len(tallies)} held in every conversation")
    return parts


def _facts(summary: Summary, about: About) -> list[list[str | Text]]:
    rows: list[list[str | Text]] = []
    done = f"{summary.total} conversations, {summary.turns} turns"
    if about.planned is not None and about.planned != summary.total:
        done = f"{summary.total} of {about.planned} conversations, {summary.turns} turns"
    rows.append(["Done", done + (f" in {_duration(about.duration_s)}" if about.duration_s is not None else "")])
    rows.append(["Tokens", _tokens(summary)])
    if about.seed is not None:
        rows.append(["Seed", str(about.seed)])
    return rows


def _to_copy(about: About) -> list[str]:
    """Lines that are never wrapped: paths and commands."""
    lines = [f"Saved   {one_line(about.saved)}"] if about.saved else []
    steps = [f"{command}   {what}" for command, what in about.next_steps]
    return lines + [f"{'Next' if i == 0 else '':<8}{step}" for i, step in enumerate(steps)]


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def _tokens(summary: Summary) -> str:
    usage = summary.usage
    unknown = f"; {summary.usage_unknown} conversations did not tell all" if summary.usage_unknown else ""
    if not usage.total_tokens:
        return ("none reported" if unknown else "none: no model was asked") + unknown
    roles = ", ".join(
        f"{_party(role)} {spent.total_tokens:,}" for role, spent in summary.usage_by_role.items() if spent.total_tokens
    )
    cost = ""
    if usage.total_cost is not None:
        cost = f", {usage.total_cost:.4f} USD" + (" (part of the calls)" if usage.cost_is_partial else "")
    return f"{usage.total_tokens:,}" + (f" ({roles})" if roles else "") + cost + unknown


def render_conversations(lines: Sequence[ConversationLine], *, width: int = 80, color: bool = False) -> str:
    """A table of conversations with their numbers."""
    page = Page(width, color)
    rows: list[list[str | Text]] = [["", "#", "turns", "ended by", "conversation"]]
    for line in lines:
        who = one_line(f"{line.persona} · {line.scenario}", 120)
        what = "" if line.verdict == "passed" else f"\n{one_line(line.why, 160)}"
        mark = _styled(MARKS[line.verdict], STYLES[line.verdict])
        rows.append([mark, f"{line.index:>3}", f"{line.turns:>5}", line.ended, who + what])
    page.add(_columns(rows, indent=0))
    return page.text()


# ---------------------------------------------------------------- a conversation


def render_conversation(view: ConversationView, *, width: int = 80, color: bool = False, full: bool = False) -> str:
    """A transcript with each verdict beside the words it rests on. Long tool results are cut unless ``full``."""
    page = Page(width, color)
    line = view.line
    title = _styled(f"Conversation {line.index}: {one_line(f'{line.persona} · {line.scenario}')}  ", "bold")
    page.add(title.append(f"{MARKS[line.verdict]} {line.verdict}", style=STYLES[line.verdict]))
    page.add(_columns(_head_rows(view)))
    for turn in view.turns:
        page.add("", _styled(f"Turn {turn.number}" if turn.number else "Before turn 1", "bold"))
        page.add(_columns([row for said in turn.rows for row in _said(said, full=full)] + _scored(turn)))
    if view.criteria:
        page.add("", _styled("Verdicts", "bold"), _columns([_verdict_row(criterion) for criterion in view.criteria]))
    return page.text()


def _head_rows(view: ConversationView) -> list[list[str | Text]]:
    line, result = view.line, view.result
    known = {True: "achieved", False: "not achieved", None: "nobody could decide"}
    goal = known[view.goal_achieved]
    if view.judge_goal is not None and view.judge_goal != view.goal_achieved:
        goal += f" (decided by code; the judge says {known[view.judge_goal]})"
    rows: list[list[str | Text]] = [
        ["goal", f"{goal}, {_percent(view.completion)} complete: {one_line(view.goal, 300)}"]
    ]
    fault = f", the fault of {_party(line.fault)}" if line.fault else ""
    rows.append(["ended", f"by {line.ended}{fault} after {line.turns} turns: {one_line(view.reason, 300)}"])
    tokens = f"{result.token_usage.total_tokens:,}" + ("" if result.token_usage_known else " and more that nobody told")
    rows.append(["tokens", tokens])
    if result.attempts > 1:
        rows.append(["resumed", f"{result.attempts - 1} times"])
    return rows


def _said(row: Row, *, full: bool) -> list[list[str | Text]]:
    text = printable(row.text)
    if row.speaker == "tool" and not full and len(text) > _LONGEST_TOOL_TEXT:
        text = f"{text[:_LONGEST_TOOL_TEXT]}… ({len(text)} characters)"
    dim = "dim" if row.speaker in ("tool", "system") else ""
    styles = {"user": "cyan", "agent": "bold"}
    said: list[list[str | Text]] = [
        [_styled(row.speaker, styles.get(row.speaker, "dim")), _styled(text or "(nothing)", dim)]
    ]
    return said + [["", _mark(criterion)] for criterion in row.marks]


def _mark(criterion: CriterionView) -> Text:
    unverified = " (these words are not in the transcript)" if criterion.unverified else ""
    text = f"{STATE_MARKS[criterion.state]} {one_line(criterion.rule)}: {_quoted(criterion)}{unverified}"
    return _styled(text, STYLES[criterion.state])


def _quoted(criterion: CriterionView) -> str:
    evidence = one_line(criterion.evidence, 300)
    return evidence if criterion.by_check else f"“{evidence}”"


def _scored(turn: TurnView) -> list[list[str | Text]]:
    metrics = turn.metrics
    if metrics is None:
        return []
    scores = {
        "quality": metrics.response_quality,
        "hallucination risk": metrics.hallucination_risk,
        "tone": metrics.tone_appropriateness,
        "accuracy": metrics.factual_accuracy,
    }
    told = " · ".join(f"{name} {value:.2f}" for name, value in scores.items() if value is not None)
    text = "\n".join(part for part in (told, one_line(metrics.judge_reason, 400)) if part)
    return [[_styled("judge", "dim"), _styled(text or "not scored", "dim")]]


def _verdict_row(criterion: CriterionView) -> list[str | Text]:
    style = STYLES[criterion.state]
    shown = {"pass": "held", "fail": "broken", "unknown": "not audited"}[criterion.state]
    by = "check" if criterion.by_check else "judge"
    if criterion.state == "unknown":
        why = criterion.refused or "nobody looked"
    elif criterion.evidence:
        place = f" (turn {criterion.turn})" if criterion.turn else ""
        why = f"{by}: {_quoted(criterion)}{place}"
    else:
        why = f"{by}: never happened"
    text = f"{one_line(criterion.rule)}\n{one_line(why, 400)}"
    return [_styled(f"{STATE_MARKS[criterion.state]} {shown}", style), text]
