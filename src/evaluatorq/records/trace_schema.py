"""The JSON Schemas of a trace and of its envelope, made from the models: no ``null`` anywhere, and every tag required.

The published copies are in ``evaluatorq/_schemas``; they are frozen, as the versions are.
"""

from __future__ import annotations

from pydantic import BaseModel, JsonValue

from evaluatorq.model.integration import INTEGRATION_SCHEMA, IntegrationTrace
from evaluatorq.model.trace import TRACE_SCHEMA, Trace

_NULL: JsonValue = {"type": "null"}


def trace_schema() -> dict[str, JsonValue]:
    """The schema of a trace as a JSON document (draft 2020-12)."""
    return _published(Trace, TRACE_SCHEMA)


def integration_schema() -> dict[str, JsonValue]:
    """The schema of the envelope; the trace in it has its own."""
    return _published(IntegrationTrace, INTEGRATION_SCHEMA)


def _published(model: type[BaseModel], tag: str) -> dict[str, JsonValue]:
    made: JsonValue = model.model_json_schema(by_alias=True)
    plain = _without_nulls(made)
    assert isinstance(plain, dict), "a model's schema is an object"
    head: dict[str, JsonValue] = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": tag}
    return {**head, **{key: value for key, value in plain.items() if key != "title"}}


def _without_nulls(node: JsonValue) -> JsonValue:
    if isinstance(node, list):
        return [_without_nulls(item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("properties"), dict):
        node = _with_tags_required(node)
    options = node.get("anyOf")
    if isinstance(options, list) and _NULL in options:
        rest = [option for option in options if option != _NULL]
        others = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
        return _without_nulls(
            {**others, **rest[0]} if len(rest) == 1 and isinstance(rest[0], dict) else {**others, "anyOf": rest}
        )
    return {key: _without_nulls(value) for key, value in node.items() if not _is_noise(key, value, node)}


def _is_noise(key: str, value: JsonValue, node: dict[str, JsonValue]) -> bool:
    """Titles that repeat names, and defaults, which are not part of the format."""
    return (key == "title" and isinstance(value, str)) or (key == "default" and "properties" not in node)


def _with_tags_required(node: dict[str, JsonValue]) -> dict[str, JsonValue]:
    properties, required = node["properties"], node.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return node
    tags: list[JsonValue] = [name for name, one in properties.items() if isinstance(one, dict) and "const" in one]
    return {**node, "required": [*tags, *(name for name in required if name not in tags)]}
