"""What an agent under test may return besides a string: text, tool calls it made, usage, ids, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluatorq.model.assessments import Assessment
from evaluatorq.model.base import Record
from evaluatorq.model.messages import FunctionCall, Message, ToolCall
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.open_answers import fields_of
from evaluatorq.model.usage import Usage


class AgentResponseError(Record):
    """The agent answered that it could not answer."""

    message: str
    error_type: str = "target_error"
    code: str | None = None


class OutputText(Record):
    """Something the agent said."""

    type: Literal["output_text"] = "output_text"
    text: str


class OutputFunctionCall(Record):
    """A tool call that the agent made, with the result where it already ran."""

    type: Literal["function_call"] = "function_call"
    id: str
    name: str
    arguments: str = "{}"
    result: str | None = None


class OutputReasoning(Record):
    """Thinking that is not part of what was said."""

    type: Literal["reasoning"] = "reasoning"
    text: str = ""


OutputItem = Annotated[OutputText | OutputFunctionCall | OutputReasoning, Field(discriminator="type")]


class AgentResponse(Record):
    """One reply of an agent: ``output`` items, or ``text=`` as a shorthand (not both).

    ``report`` is what the agent tells of how it understood the turn and what it did, ``assessment`` what it holds now.
    """

    output: list[OutputItem] = Field(default_factory=list)
    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    error: AgentResponseError | None = None
    report: TurnReport | None = None
    assessment: Assessment | None = None

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913  the fields, and the shorthand that a type checker cannot see in a validator
            self,
            *,
            text: str | None = None,
            output: Sequence[OutputItem] = (),
            usage: Usage | None = None,
            model: str | None = None,
            response_id: str | None = None,
            trace_id: str | None = None,
            span_id: str | None = None,
            finish_reason: str | None = None,
            refusal: str | None = None,
            error: AgentResponseError | None = None,
            report: TurnReport | None = None,
            assessment: Assessment | None = None,
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _text_shorthand(cls, value: object) -> object:
        if isinstance(value, dict) and "text" in value:
            if value.get("output"):
                raise ValueError("give output or text, not both")
            rest = {key: item for key, item in value.items() if key != "text"}
            text = value["text"]
            return {**rest, "output": [] if text is None else [{"type": "output_text", "text": text}]}
        return value

    @classmethod
    def of(cls, text: str, *, usage: Usage | None = None, model: str | None = None) -> Self:
        """A plain spoken reply."""
        return cls(output=[OutputText(text=text)], usage=usage, model=model)

    @classmethod
    def from_openresponses(cls, response: object) -> Self:
        """A reply out of an answer of a Responses endpoint, given as a mapping or as a vendor's object."""
        return cls.model_validate(fields_of(response))

    @property
    def text(self) -> str:
        """What was said, ``""`` for a reply that only calls tools."""
        return "".join(item.text for item in self.output if isinstance(item, OutputText))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls in order."""
        return [
            ToolCall(id=item.id, function=FunctionCall(name=item.name, arguments=item.arguments))
            for item in self.output
            if isinstance(item, OutputFunctionCall)
        ]

    def to_messages(self) -> tuple[Message, ...]:
        """The reply as transcript rows: calls with their results first, the spoken text last."""
        rows: list[Message] = []
        calls = self.tool_calls
        results = [item for item in self.output if isinstance(item, OutputFunctionCall) and item.result is not None]
        text = self.text or (self.refusal or "")
        pending = bool(calls) and len(results) < len(calls)
        if calls:
            rows.append(Message(role="assistant", content=(text or None) if pending else None, tool_calls=calls))
            rows.extend(
                Message(role="tool", content=item.result, tool_call_id=item.id, name=item.name) for item in results
            )
        if not pending:
            rows.append(Message(role="assistant", content=text))
        return tuple(rows)


def spoken(messages: Sequence[Message]) -> str:
    """The text of the last agent row that has any."""
    return next((m.text for m in reversed(messages) if m.role == "assistant" and m.text.strip()), "")
