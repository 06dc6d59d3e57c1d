"""One conversation as turns: what was said and called, and beside it the verdicts that rest on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.results import SimulationResult, TurnMetrics
from evaluatorq.reports.view import ConversationLine, CriterionView, criteria_of, goal_of, line_of, turn_of

Speaker = Literal["user", "agent", "tool", "system"]
_SPEAKERS: dict[str, Speaker] = {"user": "user", "assistant": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Row:
    """Something said or called. ``marks`` are criteria whose evidence stands in it."""

    speaker: Speaker
    text: str
    marks: tuple[CriterionView, ...] = ()


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
    completion: float
    judge_goal: bool | None
    reason: str
    turns: tuple[TurnView, ...]
    criteria: tuple[CriterionView, ...]
    result: SimulationResult


def conversation_view(result: SimulationResult, index: int) -> ConversationView:
    """The view of a result; ``index`` counts from 0."""
    criteria = criteria_of(result)
    return ConversationView(
        line=line_of(result, index),
        goal=str(result.metadata.get("scenario_goal") or ""),
        goal_achieved=goal_of(result),
        completion=result.goal_completion_score,
        judge_goal=result.judge_goal_achieved,
        reason=result.reason,
        turns=tuple(_turns(result, criteria)),
        criteria=tuple(criteria),
        result=result,
    )


def _turns(result: SimulationResult, criteria: Sequence[CriterionView]) -> Iterable[TurnView]:
    metrics = {turn.turn_number: turn for turn in result.turn_metrics}
    turns: dict[int, TurnView] = {}
    for index, message in enumerate(result.messages):
        number = turn_of(result.messages, index)
        turn = turns.setdefault(number, TurnView(number))
        marks = tuple(criterion for criterion in criteria if criterion.message_index == index)
        turn.rows += _rows(message, marks)
    for number, measured in metrics.items():
        turns.setdefault(number, TurnView(number)).metrics = measured
    return (turns[number] for number in sorted(turns))


def _rows(message: Message, marks: tuple[CriterionView, ...]) -> list[Row]:
    """The rows of a message: its words, then its calls; the marks stand under the last of them."""
    speaker = _SPEAKERS.get(message.role, "system")
    rows = []
    if message.text.strip() or not message.tool_calls:
        prefix = "→ " if speaker == "tool" else ""
        rows.append((speaker, prefix + message.text))
    rows += [("tool", call_text(call)) for call in message.tool_calls or ()]
    return [Row(who, text, marks if i == len(rows) - 1 else ()) for i, (who, text) in enumerate(rows)]


def call_text(call: ToolCall) -> str:
    """A tool call as it would be written in code."""
    arguments = call.parsed_arguments()
    if arguments is None:
        inside = call.function.arguments
    else:
        inside = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{call.function.name}({inside}){'  (no result)' if call.incomplete else ''}"
