"""What a person writes about a request: JSON and text with ``{{placeholders}}`` and environment ``${VARIABLES}``.

A string that is one placeholder becomes its value (``"{{messages}}"`` a list); inside other text it becomes text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from pydantic import JsonValue, ValidationError

from evaluatorq.errors import ConfigError
from evaluatorq.llm.encode import encode_json
from evaluatorq.model.base import Strict
from evaluatorq.model.messages import Message
from evaluatorq.model.rules import Misfit, Problem, dotted
from evaluatorq.model.type_rules import type_problems
from evaluatorq.ports import ToolSpec

PLACEHOLDERS = ("messages", "last_message", "thread_id", "session_id", "tools", "tools_url")
Values = Mapping[str, JsonValue]
_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")


class TargetSpec(Strict):
    """A target as a person describes it, and what such a description is called."""

    noun: ClassVar[str]

    @classmethod
    def problems(cls, options: Mapping[str, object]) -> list[Problem]:
        """Everything in a description that does not fit."""
        try:
            cls.model_validate(options)
        except ValidationError as error:
            return list(type_problems(error, options, cls.noun, sorted(cls.model_fields), flat=True))
        return []

    @classmethod
    def parse(cls, options: Mapping[object, object]) -> Self:
        """The description in ``options``; ``ConfigError`` names all that does not fit."""
        written = {str(key): value for key, value in options.items()}
        problems = cls.problems(written)
        if problems:
            told = (f"{dotted(problem.keys)}: {problem.reason}" for problem in problems)
            raise ConfigError(f"target: {'; '.join(told)}")
        return cls.model_validate(written)


def expanded(text: str, place: str, *keys: str) -> tuple[str, tuple[str, ...]]:
    """``text`` with its ``${VARIABLES}`` filled in now, and the values that were put in, which are secrets.

    ``Misfit`` at ``keys`` of the description for a variable that is not set.
    """
    values: list[str] = []

    def fill(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if not value:
            raise Misfit.at(f"{place} needs the environment variable {match[1]}, which is not set", *keys)
        values.append(value)
        return value

    return _VARIABLE.sub(fill, text), tuple(values)


def check_placeholders(template: JsonValue) -> None:
    """Refuses placeholders that nothing would fill with a ``ValueError``."""
    for name in placeholders_in(template):
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{{{known}}}}}" for known in PLACEHOLDERS)
            raise ValueError(f"nothing fills {{{{{name}}}}}; there is {known}")


def placeholders_in(template: JsonValue) -> set[str]:
    """The names of all placeholders in a template."""
    match template:
        case str():
            return set(_PLACEHOLDER.findall(template))
        case list():
            return {name for item in template for name in placeholders_in(item)}
        case dict():
            return {name for key, item in template.items() for name in placeholders_in(key) | placeholders_in(item)}
    return set()


def rendered(template: JsonValue, values: Values) -> JsonValue:
    """The template with its placeholders filled."""
    match template:
        case str():
            whole = _PLACEHOLDER.fullmatch(template)
            return values[whole[1]] if whole else rendered_text(template, values)
        case list():
            return [rendered(item, values) for item in template]
        case dict():
            return {rendered_text(key, values): rendered(item, values) for key, item in template.items()}
    return template


def rendered_text(template: str, values: Values) -> str:
    """A text with its placeholders filled by text; lists and objects as JSON, ``null`` as nothing."""
    return _PLACEHOLDER.sub(lambda match: _as_text(values[match[1]]), template)


def _as_text(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode_json(value).decode()


def request_values(
    messages: Sequence[Message],
    *,
    thread_id: str,
    session_id: str | None,
    tools: Sequence[ToolSpec] = (),
    tools_url: str | None = None,
    only_last: bool = False,
) -> dict[str, JsonValue]:
    """What the placeholders stand for in one request. ``only_last`` leaves out all up to the agent's last row."""
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user"), None)
    own = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "assistant"), -1)
    told = messages[own + 1 :] if only_last else messages
    return {
        "messages": [message.to_chat_completion() for message in told],
        "last_message": "" if last is None else messages[last].text,
        "thread_id": thread_id,
        "session_id": session_id,
        "tools": [_tool(tool) for tool in tools],
        "tools_url": tools_url,
    }


def _tool(tool: ToolSpec) -> JsonValue:
    function: JsonValue = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
