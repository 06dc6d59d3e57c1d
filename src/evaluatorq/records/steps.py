"""What the agent did, piece by piece, off a transcript: words and tool calls in order, each with its turn.

``turn`` counts what the user said before. A row with words and calls is the words, then the calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from evaluatorq.conversation.checks import was_rejected
from evaluatorq.model.messages import Message, ToolCall


@dataclass(frozen=True, slots=True)
class Step:
    """Words of the agent (``call`` is ``None``), or one call with the row that answers it, if one does."""

    turn: int
    row: int
    text: str = ""
    call: ToolCall | None = None
    answer: Message | None = None
    answer_row: int | None = None

    @property
    def tool(self) -> str | None:
        """The tool that was called."""
        return None if self.call is None else self.call.function.name

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """What the tool was given; empty where that was no JSON object."""
        return {} if self.call is None else self.call.parsed_arguments() or {}

    @property
    def done(self) -> bool:
        """The call was answered, and not by a refusal."""
        return self.answer is not None and not was_rejected(self.answer)


def steps_of(messages: Sequence[Message]) -> Iterator[Step]:
    """The agent's steps, in order."""
    answers = answers_in(messages)
    turn = 0
    for index, row in enumerate(messages):
        if row.role == "user":
            turn += 1
        elif row.role == "assistant":
            if row.is_spoken:
                yield Step(turn, index, text=row.text)
            for call in row.tool_calls or ():
                at = answers.get(call.id)
                yield Step(turn, index, call=call, answer=None if at is None else messages[at], answer_row=at)


def answers_in(messages: Sequence[Message]) -> Mapping[str, int]:
    """The row that answers each call, by the call's id."""
    return {
        row.tool_call_id: index
        for index, row in enumerate(messages)
        if row.role == "tool" and row.tool_call_id is not None
    }


def turn_at(messages: Sequence[Message], row: int) -> int:
    """How often the user spoke before a row."""
    return sum(message.role == "user" for message in messages[:row])
