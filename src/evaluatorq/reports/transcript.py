"""One conversation as turns: what was said and called, and beside it the verdicts that rest on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.results import SimulationResult, TurnMetrics
from evaluatorq.records.behaviour import flow_of
from evaluatorq.records.expectations import expectation_failures
from evaluatorq.records.verdicts import CriterionView, State, criteria_of, goal_of, turn_of
from evaluatorq.reports.held import Line, lines_beside, path_of
from evaluatorq.reports.progress import MARKS
from evaluatorq.reports.terminal import STATE_MARKS, STYLES, Page, columns, percent, styled
from evaluatorq.reports.text import one_line, plural, printable
from evaluatorq.reports.view import ConversationLine, line_of, party

if TYPE_CHECKING:
    from rich.text import Text

_LONGEST_TOOL_TEXT = 300
NOT_DONE = "said to be done and was not"
_FLOW = (
    ("dead end", "the agent did nothing and left nothing to go on from, no question and no offer"),
    ("asked again", "the agent asked what it had just asked"),
    ("offer refused", "what the agent had offered was then refused"),
)
"""Where a conversation got stuck, each with what that means."""
Speaker = Literal["user", "agent", "tool", "system"]
_SPEAKERS: dict[str, Speaker] = {"user": "user", "assistant": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Row:
    """Something said or called. ``marks`` are criteria whose evidence stands in it, ``beside`` what was held and learnt
    there, ``untrue`` words that say something was done that was not.
    """

    speaker: Speaker
    text: str
    marks: tuple[CriterionView, ...] = ()
    beside: tuple[Line, ...] = ()
    untrue: tuple[str, ...] = ()


@dataclass(slots=True)
class TurnView:
    """One exchange; number 0 is what the agent says before the user."""

    number: int
    rows: list[Row] = field(default_factory=list)
    metrics: TurnMetrics | None = None


@dataclass(frozen=True, slots=True)
class ConversationView:
    """A whole conversation for a reader."""

    line: ConversationLine
    goal: str
    goal_achieved: bool | None
    completion: float | None
    judge_goal: bool | None
    reason: str
    turns: tuple[TurnView, ...]
    criteria: tuple[CriterionView, ...]
    result: SimulationResult


def conversation_view(result: SimulationResult, index: int) -> ConversationView:
    """The view of a result; ``index`` counts from 0."""
    criteria = criteria_of(result)
    return ConversationView(
        line=line_of(result, index, criteria),
        goal=str(result.metadata.get("scenario_goal") or ""),
        goal_achieved=goal_of(result),
        completion=result.completion,
        judge_goal=result.judge_goal_achieved,
        reason=result.reason,
        turns=tuple(_turns(result, criteria)),
        criteria=tuple(criteria),
        result=result,
    )


def _turns(result: SimulationResult, criteria: Sequence[CriterionView]) -> Iterable[TurnView]:
    metrics = {turn.turn_number: turn for turn in result.turn_metrics}
    turns: dict[int, TurnView] = {}
    beside = lines_beside(result.cognition)
    for index, message in enumerate(result.messages):
        number = turn_of(result.messages, index)
        turn = turns.setdefault(number, TurnView(number))
        marks = tuple(criterion for criterion in criteria if criterion.message_index == index)
        turn.rows += _rows(message, marks, beside.get(index, ()), _untrue_words(result, index))
    for number, measured in metrics.items():
        turns.setdefault(number, TurnView(number)).metrics = measured
    return (turns[number] for number in sorted(turns))


def _untrue_words(result: SimulationResult, index: int) -> tuple[str, ...]:
    """What message ``index`` says was done, and was not."""
    found = [claim.words for claim in result.claims or () if claim.message_index == index and not claim.backed]
    found += [claim.quote for claim in result.prose_claims or () if claim.row == index and claim.standing == "unbacked"]
    return tuple(dict.fromkeys(found))


def _rows(
    message: Message, marks: tuple[CriterionView, ...], beside: tuple[Line, ...], untrue: tuple[str, ...]
) -> list[Row]:
    """The rows of a message: its words, then its calls; what goes with it stands under the last of them."""
    speaker = _SPEAKERS.get(message.role, "system")
    rows = []
    if message.text.strip() or not message.tool_calls:
        prefix = "→ " if speaker == "tool" else ""
        rows.append(Row(speaker, prefix + message.text, untrue=untrue))
    rows += [Row("tool", call_text(call)) for call in message.tool_calls or ()]
    *first, last = rows
    return [*first, replace(last, marks=marks, beside=beside)]


def call_text(call: ToolCall) -> str:
    """A tool call as it would be written in code."""
    arguments = call.parsed_arguments()
    if arguments is None:
        inside = call.function.arguments
    else:
        inside = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{call.function.name}({inside}){'  (no result)' if call.incomplete else ''}"


# ---------------------------------------------------------------- drawn


def render_conversation(view: ConversationView, *, width: int = 80, color: bool = False, full: bool = False) -> str:
    """A transcript with each verdict beside the words it rests on. Long tool results are cut unless ``full``."""
    page = Page(width, color)
    line = view.line
    title = styled(f"Conversation {line.index}: {one_line(f'{line.persona} · {line.scenario}')}  ", "bold")
    page.add(title.append(f"{MARKS[line.verdict]} {line.verdict}", style=STYLES[line.verdict]))
    page.add(columns(_head_rows(view)))
    for turn in view.turns:
        page.add("", styled(f"Turn {turn.number}" if turn.number else "Before turn 1", "bold"))
        page.add(columns([row for said in turn.rows for row in _said(said, full=full)] + _scored(turn)))
    if view.criteria:
        page.add("", styled("Verdicts", "bold"), columns([_verdict_row(criterion) for criterion in view.criteria]))
    facts = facts_of(view.result)
    if facts:
        page.add("", styled("Facts", "bold"), columns([_fact_row(fact) for fact in facts]))
    return page.text()


@dataclass(frozen=True, slots=True)
class Fact:
    """What the world shows of a conversation; ``state`` is ``None`` for what is neither right nor wrong."""

    state: State | None
    word: str
    text: str


def facts_of(result: SimulationResult) -> list[Fact]:
    """Expectations that failed, what the agent said it did without having done it, and where it went in circles."""
    facts: list[Fact] = []
    report = result.expectations
    if report is not None and report.met is not False:
        met = "every expectation was met" if report.met else "broken off, so expectations could not be measured"
        facts.append(Fact("pass" if report.met else "unknown", "expected", met))
    facts += [Fact("fail", "expected", one_line(failure.text, 400)) for failure in expectation_failures(result)]
    for claim in result.claims or ():
        if not claim.backed:
            said = f"turn {claim.turn}: “{one_line(claim.words, 200)}”, without {one_line(claim.requires, 200)}"
            facts.append(Fact("fail", "claimed", said))
    for found in result.prose_claims or ():
        if found.standing != "backed":
            said = f"turn {found.turn}: “{one_line(found.quote, 200)}”: {one_line(found.why, 200)} (found by a model)"
            facts.append(Fact("fail" if found.standing == "unbacked" else "unknown", "claimed", said))
    path = path_of(result.cognition)
    if path is not None:
        facts.append(Fact(None, "held", path))
    flow = flow_of(result)
    for (word, meaning), turns in zip(_FLOW, (flow.dead_ends, flow.loops, flow.refused_offers), strict=True):
        if turns:
            facts.append(Fact(None, word, f"turn {', '.join(map(str, turns))}: {meaning}"))
    return facts


def _fact_row(fact: Fact) -> list[str | Text]:
    return [_state(fact.state, fact.word) if fact.state else styled(f"· {fact.word}", "dim"), fact.text]


def _state(state: State, word: str) -> Text:
    return styled(f"{STATE_MARKS[state]} {word}", STYLES[state])


def _head_rows(view: ConversationView) -> list[list[str | Text]]:
    line, result = view.line, view.result
    known = {True: "achieved", False: "not achieved", None: "nobody could decide"}
    goal = known[view.goal_achieved]
    if view.judge_goal is not None and view.judge_goal != view.goal_achieved:
        goal += f" (decided by code; the judge says {known[view.judge_goal]})"
    if view.completion is not None:
        goal += f", {percent(view.completion)} complete"
    elif view.goal_achieved is not None:
        goal += ", how far is unknown"
    rows: list[list[str | Text]] = [["goal", f"{goal}: {one_line(view.goal, 300)}"]]
    fault = f", the fault of {party(line.fault)}" if line.fault else ""
    rows.append(["ended", f"by {line.ended}{fault} after {plural(line.turns, 'turn')}: {one_line(view.reason, 300)}"])
    tokens = f"{result.token_usage.total_tokens:,}" + ("" if result.token_usage_known else " and more that nobody told")
    rows.append(["tokens", tokens])
    if result.attempts > 1:
        rows.append(["resumed", f"{plural(result.attempts - 1, 'time')}"])
    return rows


def _said(row: Row, *, full: bool) -> list[list[str | Text]]:
    text = printable(row.text)
    if row.speaker == "tool" and not full and len(text) > _LONGEST_TOOL_TEXT:
        text = f"{text[:_LONGEST_TOOL_TEXT]}… ({len(text)} characters)"
    dim = "dim" if row.speaker in ("tool", "system") else ""
    styles = {"user": "cyan", "agent": "bold"}
    said: list[list[str | Text]] = [
        [styled(row.speaker, styles.get(row.speaker, "dim")), styled(text or "(nothing)", dim)]
    ]
    held: list[list[str | Text]] = [[styled(kind, "dim"), styled(told, "dim")] for kind, told in row.beside]
    untrue = [styled(f"✗ {NOT_DONE}: “{one_line(words, 300)}”", STYLES["fail"]) for words in row.untrue]
    return said + held + [["", mark] for mark in (*untrue, *(_mark(criterion, row) for criterion in row.marks))]


def _mark(criterion: CriterionView, row: Row) -> Text:
    """A verdict under the words it rests on; a call need not be repeated."""
    quoted = "" if row.speaker == "tool" and criterion.by_check else f": {_quoted(criterion)}"
    return styled(f"{STATE_MARKS[criterion.state]} {one_line(criterion.rule)}{quoted}", STYLES[criterion.state])


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
    return [[styled("judge" if told else "note", "dim"), styled(text or "not scored", "dim")]]


def _verdict_row(criterion: CriterionView) -> list[str | Text]:
    style = STYLES[criterion.state]
    shown = {"pass": "held", "fail": "broken", "unknown": "not audited"}[criterion.state]
    by = "check" if criterion.by_check else "judge"
    if criterion.state == "unknown":
        why = criterion.refused or "nobody looked"
    elif criterion.evidence:
        place = f" (turn {criterion.turn})" if criterion.turn else ""
        missing = ", which nobody said" if criterion.unverified else ""
        why = f"{by}: {_quoted(criterion)}{place}{missing}"
    else:
        why = f"{by}: never happened"
    text = f"{one_line(criterion.rule)}\n{one_line(why, 400)}"
    return [styled(f"{STATE_MARKS[criterion.state]} {shown}", style), text]
