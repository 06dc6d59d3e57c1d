"""How a request body is put together: everything that stays is encoded once, then bodies are joins.

Order is tools, system, transcript, and last the one volatile instruction, so that each request begins with the one
before it and provider caches hit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from evaluatorq.llm.abilities import Abilities, AnswerForm
from evaluatorq.llm.encode import decode_json, encode_json, encode_message
from evaluatorq.llm.endpoint import Sampling
from evaluatorq.ports import AnswerSpec, ChatPrefix, ChatRequest, ToolSpec

_IN_WORDS = (
    "Answer with one JSON object and nothing else: no code fence, no comment, no text around it. "
    "The object is called {name}: {description}\nIt has to match this JSON schema:\n{schema}"
)


@dataclass(frozen=True, slots=True)
class Head:
    """What precedes the transcript in every request of one prefix, and which optional fields it holds."""

    version: int
    form: AnswerForm | None
    opening: bytes
    fields: frozenset[str]
    has_system: bool
    roles: dict[str, str]


def make_head(
    model: str,
    prefix: ChatPrefix,
    sampling: Sampling,
    abilities: Abilities,
    form: AnswerForm | None,
    roles: Mapping[str, str],
) -> Head:
    """Encodes the head of all requests of ``prefix``, without what the endpoint refused and with ``roles`` renamed."""
    options: dict[str, JsonValue] = {}
    for field, value in _options(sampling).items():
        name = abilities.sent_as(field)
        if name is not None:
            options[name] = value
    fixed: dict[str, JsonValue] = {"model": model, **options}
    system = prefix.system
    if prefix.tools:
        fixed["tools"] = [_tool(tool) for tool in prefix.tools]
    if prefix.answer is not None and form is not None:
        fixed.update(_answer_fields(prefix, prefix.answer, form))
        if form <= AnswerForm.JSON_OBJECT:
            system = "\n\n".join(part for part in (system, _in_words(prefix.answer)) if part)
    opening = encode_json(fixed)[:-1] + b',"messages":['
    if system:
        opening += _renamed(encode_message("system", system), roles)
    return Head(abilities.version, form, opening, frozenset(options), bool(system), dict(roles))


def make_body(head: Head, request: ChatRequest) -> bytes:
    """The whole request body."""
    parts = list(request.lines) if not head.roles else [_renamed(line, head.roles) for line in request.lines]
    if request.tail is not None:
        parts.append(encode_message("user", request.tail))
    if parts and head.has_system:
        parts[0] = b"," + parts[0]
    return head.opening + b",".join(parts) + b"]}"


def role_at(head: Head, request: ChatRequest, index: int) -> str | None:
    """The role under which message ``index`` of the body was sent, ``None`` when there is no such line."""
    own: JsonValue = "system"
    if not (head.has_system and index == 0):
        index -= head.has_system
        if not 0 <= index < len(request.lines):
            return None
        row = decode_json(request.lines[index])
        own = row.get("role") if isinstance(row, dict) else None
    return head.roles.get(own, own) if isinstance(own, str) else None


def _renamed(line: bytes, roles: Mapping[str, str]) -> bytes:
    """An encoded message under the role that the endpoint takes; a line begins with its role."""
    for own, sent in roles.items():
        start = b'{"role":"%s"' % own.encode()
        if line.startswith(start):
            return b'{"role":"%s"%s' % (sent.encode(), line[len(start) :])
    return line


def _options(sampling: Sampling) -> dict[str, JsonValue]:
    options: dict[str, JsonValue] = {
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "reasoning_effort": sampling.reasoning_effort,
        "stream": True if sampling.stream else None,
        "stream_options": {"include_usage": True} if sampling.stream else None,
    }
    return {**{name: value for name, value in options.items() if value is not None}, **(sampling.extra_body or {})}


def _tool(tool: ToolSpec) -> JsonValue:
    function: JsonValue = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _answer_fields(prefix: ChatPrefix, answer: AnswerSpec, form: AnswerForm) -> dict[str, JsonValue]:
    if form is AnswerForm.TOOL:
        wanted = ToolSpec(answer.name, answer.description, answer.schema)
        return {
            "tools": [_tool(tool) for tool in (*prefix.tools, wanted)],
            "tool_choice": {"type": "function", "function": {"name": answer.name}},
        }
    if form is AnswerForm.JSON_SCHEMA:
        schema: JsonValue = {"name": answer.name, "description": answer.description, "schema": answer.schema}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    if form is AnswerForm.JSON_OBJECT:
        return {"response_format": {"type": "json_object"}}
    return {}


def _in_words(answer: AnswerSpec) -> str:
    schema = encode_json(answer.schema).decode()
    return _IN_WORDS.format(name=answer.name, description=answer.description, schema=schema)
