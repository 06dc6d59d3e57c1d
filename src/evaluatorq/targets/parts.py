"""What the parts of a reply are read with, wherever it came from, and the errors for what does not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from evaluatorq.errors import CallError
from evaluatorq.llm.errors import clean_message
from evaluatorq.llm.tags import beginning
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.messages import ToolCall
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.usage import Usage

R = TypeVar("R", bound=BaseModel)


def unfit(message: str, *, usage: Usage | None = None) -> CallError:
    """The error for an answer that does not fit the protocol; asking the same again would not help."""
    return CallError("target_protocol", message, usage=usage, component="target")


def broken(message: str) -> CallError:
    """The error for an answer that was damaged on its way: the next one may be whole."""
    return CallError("malformed_response", message, component="target", retryable=True)


def empty(message: str, *, usage: Usage | None = None) -> CallError:
    """The error for an agent that said nothing."""
    return CallError("empty_reply", message, usage=usage, component="target", retryable=True)


def start_of(body: bytes) -> str:
    """How an answer begins, for a message: credentials are hidden before it is cut."""
    return beginning(clean_message(body[:400].decode("utf-8", "replace")), 80)


def assessment_of(value: object) -> Assessment | None:
    """What the agent holds as it answers, where it says so beside its words. Raises ``CallError``."""
    told = _record("assessment", Assessment, value)
    return None if told is None else told.model_copy(update={"source": "structured_output"})


def report_of(value: object) -> TurnReport | None:
    """What the agent tells of its turn: how it understood it, what it did. Raises ``CallError``."""
    return _record("report", TurnReport, value)


def _record(name: str, kind: type[R], value: object) -> R | None:
    try:
        return None if value is None else kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in (name, *first["loc"]))
        why = "it is no object" if first["type"] == "model_type" else first["msg"]
        raise unfit(f"The agent's {name} does not fit: {place}: {why}.") from None


def call_of(value: object, index: int) -> ToolCall:
    """A tool call in the shape of chat completions, or flat: ``{name, arguments}``. A missing id stays empty."""
    call = value if isinstance(value, Mapping) else {}
    inner = call.get("function")
    function: Mapping[str, object] = inner if isinstance(inner, Mapping) else call
    name = function.get("name") or function.get("toolName")
    if not isinstance(name, str) or not name:
        raise unfit(f"Tool call {index} of the reply has no name.")
    given = next((function[key] for key in ("arguments", "args", "input") if function.get(key) is not None), "{}")
    try:
        arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise unfit(f"The arguments of tool call {index} ({name}) are not JSON.") from None
    call_id = call.get("id") or call.get("toolCallId") or call.get("call_id")
    return ToolCall.model_validate(
        {
            "id": call_id if isinstance(call_id, str) else "",
            "function": {"name": name, "arguments": arguments},
        }
    )
