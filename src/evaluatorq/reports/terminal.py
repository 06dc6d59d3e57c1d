"""Reports as text of a given width: readable at 80 columns, without colour, and in a log.

Pure: a view in, a string out. Whatever an agent or a model wrote goes through ``printable`` first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import TYPE_CHECKING, Self

from evaluatorq.model.results import Origin
from evaluatorq.model.runs import RunPlan, SimulationRun
from evaluatorq.model.spending import CONVERSATIONS
from evaluatorq.model.usage import Usage
from evaluatorq.records.verdicts import Rate, State
from evaluatorq.reports.progress import MARKS
from evaluatorq.reports.text import one_line, plural, printable
from evaluatorq.reports.view import (
    VERDICTS,
    ConversationLine,
    CriterionTally,
    Finding,
    Summary,
    party,
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
_WITHOUT_MODELS = ("DemoAgent", "Pack")
"""Agents that come with the package and ask no model; what anybody else's does is not known."""
_BAR = 24
_MOST_FINDINGS, _MOST_BROKEN, _MOST_UNKNOWN, _MOST_FLAKY = 5, 20, 8, 5


@dataclass(frozen=True, slots=True)
class About:
    """What a summary says of the run itself. ``next_steps`` are commands and what they do.

    ``asked`` says whether the run asks models at all, ``None`` where nobody knows.
    ``spent`` is what was paid for beside the conversations, by category, ``models`` all of it by model; ``words`` the
    executive summary.
    """

    name: str
    run_id: str | None = None
    target: str | None = None
    offline: bool = False
    seed: int | None = None
    duration_s: float | None = None
    planned: int | None = None
    saved: str | None = None
    asked: bool | None = None
    spent: Mapping[str, Usage] = field(default_factory=dict)
    models: Mapping[str, Usage] = field(default_factory=dict)
    words: str | None = None
    suggestions: int = 0
    notes: Sequence[str] = ()
    next_steps: Sequence[tuple[str, str]] = ()

    @classmethod
    def plan(cls, plan: RunPlan) -> Self:
        """What is known before and while a run goes on."""
        about = cls(plan.run_name, plan.run_id, plan.target, plan.offline, plan.seed, planned=len(plan.datapoints))
        return replace(about, asked=_asks_models(plan))

    @classmethod
    def run(cls, run: SimulationRun) -> Self:
        """What a saved run says of itself."""
        about = cls(
            run.run_name, run.run_id, run.target, bool(run.offline), run.seed, run.duration_s, run.total_results
        )
        notes = (_made_from(run.origin),) if run.origin else ()
        return replace(about, notes=notes, asked=_asks_models(run)).analysed(run)

    @property
    def no_tokens(self) -> str:
        """What it means that no tokens were spent."""
        if self.asked is None:
            return "none reported by the agent" if self.offline else "none reported"
        return "none: no model gave an answer" if self.asked else "none: no model was asked"

    def analysed(self, run: SimulationRun) -> Self:
        """The same with what was made of the run as a whole, and what that and making its cases cost."""
        spent = {category: usage for category, usage in run.usage_by_category.items() if category != CONVERSATIONS}
        suggestions = sum(len(item.suggestions) for item in run.recommendations or ())
        notes = (*self.notes, *refusals(run))
        told = replace(self, words=run.executive_summary, suggestions=suggestions, notes=notes)
        return replace(told, spent=spent, models=run.usage_by_model)


def _asks_models(run: RunPlan | SimulationRun) -> bool | None:
    if run.models or run.target_kind == "openai_model":
        return True
    return False if run.offline and run.target_type in _WITHOUT_MODELS else None


def refusals(run: SimulationRun) -> Iterator[str]:
    """What models refused to be told, a sentence each: those options did not hold."""
    for model, names in run.param_dropped.items():
        yield f"{model} refused {', '.join(names)}; it was asked without."


def _made_from(origin: Origin) -> str:
    kinds = {
        "fork": f"the conversations of run {origin.run}, had anew from the agent's answer in turn {origin.turn} on",
        "rejudge": f"the conversations of run {origin.run}, judged again",
        "rescore": f"the conversations of run {origin.run}, scored again",
    }
    return kinds[origin.kind]


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


def styled(text: str, style: str = "") -> Text:
    """The text in a style that is left out where there is no colour."""
    from rich.text import Text  # noqa: PLC0415

    return Text(text, style=style)


def columns(rows: Iterable[Sequence[str | Text]], *, indent: int = 2, wrap: int = -1) -> RenderableType:
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
    page.add(_title(about), *(styled(one_line(note), "yellow") for note in about.notes), "")
    page.add(columns(_verdict_rows(summary)), "", columns(_rate_rows(summary)))
    findings = summary.findings(len(summary.lines))
    if findings:
        page.add("", styled("Look at first", "bold"))
        for finding in findings[:_MOST_FINDINGS]:
            page.add(*_finding(finding, width))
        page.add(*_further(findings[_MOST_FINDINGS:]))
    if about.words:
        page.add("", styled("In words", "bold"), columns([[printable(about.words)]]))
    page.add(*_criteria(list(summary.criteria.values())), "")
    page.add(columns(_facts(summary, about), indent=0), *_to_copy(about))
    return page.text()


def _title(about: About) -> Text:
    parts = [one_line(about.name)]
    parts += [about.run_id[:12]] if about.run_id else []
    parts += [f"target {one_line(about.target)}"] if about.target else []
    parts += [OFFLINE] if about.offline else []
    return styled(" · ".join(parts), "bold")


def _verdict_rows(summary: Summary) -> list[list[str | Text]]:
    rows: list[list[str | Text]] = []
    for name in VERDICTS:
        count = summary.verdicts[name]
        if not count and name != "passed":
            continue
        bar = "█" * max(1 if count else 0, round(_BAR * count / summary.total)) if summary.total else ""
        rows.append([styled(f"{MARKS[name]} {name}", STYLES[name]), f"{count:>4}", styled(bar, STYLES[name]), ""])
        if name == "errored":
            rows[-1][3] = ", ".join(f"{party(who)} {n}" for who, n in summary.faults.most_common())
        if name == "unknown":
            rows[-1][3] = "nothing broken, not everything decided"
    return rows


def _rate_rows(summary: Summary) -> list[list[str | Text]]:
    rows: list[list[str | Text]] = [["Conversations", _rate(summary.agent, "passed")]]
    if summary.goal.total:
        rows.append(["Goals", _rate(summary.goal, "achieved")])
    if summary.audits.total:
        rows.append(["Criteria", _rate(summary.audits, "held")])
    if summary.expectations.total:
        rows.append(["Expectations", _rate(summary.expectations, "met")])
    if summary.claims.no:
        untrue, total = summary.claims.no, summary.claims.total
        rows.append(["Claims", f"{untrue} of {total} said that something was done that was not"])
    if repeats := summary.repeats:
        rows.append(["Flaky", _flaky(repeats)])
    names = dict.fromkeys((*summary.scores, *summary.undecided))
    rows += [[one_line(name, 24), _mean(summary, name)] for name in names]
    return rows


def _flaky(repeats: Sequence[Sequence[ConversationLine]]) -> str:
    """Which datapoints pass in some of their samples only, of those with two or more that passed or failed."""
    decided = [[line for line in lines if line.verdict in ("passed", "failed")] for lines in repeats]
    decided = [lines for lines in decided if len(lines) > 1]
    if not decided:
        return f"not known: no two samples of {plural(len(repeats), 'datapoint')} were decided"
    flaky = [lines for lines in decided if len({line.verdict for line in lines}) > 1]
    open_ones = f" ({len(repeats) - len(decided)} not known)" if len(decided) < len(repeats) else ""
    told = [f"{len(flaky)} of {plural(len(decided), 'datapoint')} pass in some samples only{open_ones}"]
    for lines in flaky[:_MOST_FLAKY]:
        passed = sum(line.verdict == "passed" for line in lines)
        rows = " ".join(f"[{line.index}]" for line in lines[:10]) + (" …" if len(lines) > 10 else "")
        told.append(f"{passed} of {len(lines)}: {one_line(f'{lines[0].persona} · {lines[0].scenario}', 60)} {rows}")
    more = len(flaky) - _MOST_FLAKY
    return "\n".join([*told, *([f"and {more} more: evaluatorq sim samples"] if more > 0 else [])])


def _mean(summary: Summary, name: str) -> str:
    mean, undecided = summary.scores.get(name), summary.undecided[name]
    unknown = f", goal undecided in {undecided}" if undecided else ""
    left_out = _left_out(summary.total - undecided - (mean.count if mean else 0))
    return (f"{mean.value:.2f} mean of {mean.count}" if mean else "unknown") + unknown + left_out


def _left_out(count: int) -> str:
    return f", {count} left out" if count else ""


def _rate(rate: Rate, verb: str) -> str:
    if rate.share is None or rate.worst is None or rate.best is None:
        return f"none of {rate.total} decided"
    text = f"{rate.yes} of {rate.decided} {verb} ({percent(rate.share)})"
    if rate.unknown:
        text += f"; {rate.unknown} undecided, so {percent(rate.worst)} to {percent(rate.best)} of {rate.total}"
    return text


def percent(share: float) -> str:
    """Never rounded up to 100 % or down to 0 %."""
    rounded = round(share * 100)
    if rounded == 100 and share < 1:
        return "over 99 %"
    return "under 1 %" if rounded == 0 and share > 0 else f"{rounded} %"


def _finding(finding: Finding, width: int) -> list[RenderableType]:
    line = finding.line
    head = styled(f"  {MARKS[line.verdict]} [{line.index}] ", STYLES[line.verdict])
    head.append(one_line(f"{line.persona} · {line.scenario}", width - 12), style="bold")
    parts: list[RenderableType] = [head, columns([[one_line(line.why, 300)]], indent=6)]
    if line.quote:
        turn = f" (turn {line.quote_turn})" if line.quote_turn else ""
        words = one_line(line.quote, 200) if line.by_check else f"“{one_line(line.quote, 200)}”"
        parts.append(columns([[words + turn]], indent=6))
    if finding.like:
        others = " ".join(f"[{index}]" for index in finding.like[:12]) + (" …" if len(finding.like) > 12 else "")
        parts.append(columns([[styled(f"the same in {len(finding.like)} more: {others}", "dim")]], indent=6))
    return parts


def _further(findings: Sequence[Finding]) -> list[RenderableType]:
    """How much more there is to look at."""
    if not findings:
        return []
    count = sum(1 + len(finding.like) for finding in findings)
    kinds = plural(len(findings), "more kind") + " of trouble"
    return [styled(f"  and {kinds}, in {plural(count, 'conversation')}", "dim")]


def _criteria(tallies: Sequence[CriterionTally]) -> list[RenderableType]:
    """Criteria that were broken or not audited, by scenario; those that held everywhere are only counted."""
    if not tallies:
        return []
    broken = sorted((tally for tally in tallies if tally.rate.no), key=lambda tally: -tally.rate.no)
    unknown = [tally for tally in tallies if tally.rate.unknown and not tally.rate.no]
    shown = broken[:_MOST_BROKEN] + unknown[:_MOST_UNKNOWN]
    parts: list[RenderableType] = ["", styled("Criteria", "bold")]
    for scenario in dict.fromkeys(tally.scenario for tally in shown):
        parts.append(columns([[one_line(scenario, 160)]]))
        parts.append(columns([_tally_row(tally) for tally in shown if tally.scenario == scenario], indent=4))
    left_out = len(broken) + len(unknown) - len(shown)
    if left_out:
        parts.append(f"  and {left_out} more that were broken or not audited")
    held = len(tallies) - len(broken) - len(unknown)
    if held:
        parts.append(f"  {held} of {len(tallies)} held in every conversation")
    return parts


def _tally_row(tally: CriterionTally) -> list[str | Text]:
    rate = tally.rate
    state: State = "fail" if rate.no else "unknown"
    said = f"{rate.no} of {rate.total} broken" if rate.no else f"{rate.unknown} of {rate.total} not audited"
    if rate.no and rate.unknown:
        said += f", {rate.unknown} not audited"
    rule = f"{tally.type.replace('_', ' ')}: {one_line(tally.description, 200)}"
    return [styled(f"{STATE_MARKS[state]} {said}", STYLES[state]), rule]


def _facts(summary: Summary, about: About) -> list[list[str | Text]]:
    rows: list[list[str | Text]] = []
    count = plural(summary.total, "conversation")
    if about.planned is not None and about.planned != summary.total:
        count = f"{summary.total} of {plural(about.planned, 'conversation')}"
    done = f"{count}, {plural(summary.turns, 'turn')}"
    rows.append(["Done", done + (f" in {_duration(about.duration_s)}" if about.duration_s is not None else "")])
    rows.append(["Tokens", _tokens(summary, about)])
    models = about.models or summary.usage_by_model
    if len(models) > 1:
        rows.append(["Models", "; ".join(_by_model(name, spent) for name, spent in models.items())])
    if about.suggestions:
        rows.append(["Advice", f"{plural(about.suggestions, 'suggestion')} for the agent's prompt"])
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


def _by_model(name: str, spent: Usage) -> str:
    return f"{one_line(name, 60)} {spent.total_tokens:,}{_cost(spent)}"


def _cost(spent: Usage) -> str:
    """The cost in words, nothing where nobody knows it."""
    if spent.total_cost is None:
        return ""
    return f", {spent.total_cost:.4f} USD" + (" (part of the calls)" if spent.cost_is_partial else "")


def _tokens(summary: Summary, about: About) -> str:
    usage = sum(about.spent.values(), summary.usage)
    unknown = f"; {plural(summary.usage_unknown, 'conversation')} did not tell all" if summary.usage_unknown else ""
    if not usage.total_tokens:
        return ("none reported" if unknown else about.no_tokens) + unknown
    parts = {party(role): spent for role, spent in summary.usage_by_role.items()}
    parts |= {category.replace("_", " "): spent for category, spent in about.spent.items()}
    roles = ", ".join(f"{name} {spent.total_tokens:,}" for name, spent in parts.items() if spent.total_tokens)
    return f"{usage.total_tokens:,}" + (f" ({roles})" if roles else "") + _cost(usage) + unknown


def render_conversations(lines: Sequence[ConversationLine], *, width: int = 80, color: bool = False) -> str:
    """A table of conversations with their numbers."""
    page = Page(width, color)
    rows: list[list[str | Text]] = [["", "#", "turns", "ended by", "conversation"]]
    for line in lines:
        who = one_line(f"{line.persona} · {line.scenario}", 120)
        what = "" if line.verdict == "passed" else f"\n{one_line(line.why, 160)}"
        mark = styled(MARKS[line.verdict], STYLES[line.verdict])
        rows.append([mark, f"{line.index:>3}", f"{line.turns:>5}", line.ended, who + what])
    page.add(columns(rows, indent=0))
    return page.text()
