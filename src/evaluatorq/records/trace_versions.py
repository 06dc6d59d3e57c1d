"""Traces of every version as the present one: a chain of pure converters, one for each older version.

A version never changes its meaning, so a converter is written once and never edited. Newer versions are refused: what
cannot be understood is not relabelled. ``evaluatorq.trace/0`` was a prototype that no release wrote: the agent's tool
calls stood inside its step, a mask was a weight (1 is trained on), every state was written out, unknown was ``null``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pydantic import JsonValue, ValidationError

from evaluatorq.errors import SchemaError
from evaluatorq.model.trace import TRACE_SCHEMA, Trace
from evaluatorq.records.trace_case import content_hash

Document = dict[str, JsonValue]
Converter = Callable[[Document], Document]

_TAG = re.compile(r"evaluatorq\.trace/(\d+)")
PRESENT = int(TRACE_SCHEMA.rpartition("/")[2])


def upgrade(document: Mapping[str, JsonValue]) -> Document:
    """The document as the present version. ``SchemaError`` for a newer version and for what is no trace at all."""
    current = dict(document)
    while (version := version_of(current)) < PRESENT:
        current = CONVERTERS[version](current)
    return current


def read_trace(document: Mapping[str, JsonValue]) -> Trace:
    """The trace that a document of any known version holds. ``SchemaError`` says what does not fit and where."""
    current = upgrade(document)
    try:
        return Trace.model_validate(current)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        raise SchemaError(f"{current.get('thread_id', 'a trace')}: {place}: {first['msg']}") from None


def version_of(document: Mapping[str, JsonValue]) -> int:
    """The number in the document's tag."""
    tag = document.get("schema")
    found = _TAG.fullmatch(tag) if isinstance(tag, str) else None
    if found is None:
        raise SchemaError(f"this is no trace: its schema is {tag!r}, not {TRACE_SCHEMA!r}")
    version = int(found.group(1))
    if version > PRESENT:
        raise SchemaError(f"{tag} is newer than this version reads ({TRACE_SCHEMA}); upgrade evaluatorq")
    return version


# ---------------------------------------------------------------- 0 -> 1

_KINDS_0 = {"simulator": "user", "agent": "target", "verdict": "judge", "decision": "rule", "event": "note"}


def _from_0(old: Document) -> Document:
    """Names, masks, nested tool calls and written-out states of the prototype."""
    document = _object(_without_nulls(old))
    states: Document = {}
    snapshots: Document = {}
    steps: list[JsonValue] = []
    _keep_state(document.pop("initial_state", None), 0, snapshots, states)
    for step in _list(document.pop("steps", [])):
        one = _object(step)
        state = one.pop("state", None)
        tools = _list(one.pop("tools", []))
        steps.append(_step_from_0(one))
        steps += [_tool_from_0(_object(tool), one) for tool in tools]
        _keep_state(state, len(steps), snapshots, states)
    outcome = _object(document.pop("outcome", {}))
    labels = _object(outcome.pop("labels", {}))
    labels["workflow_completed"] = labels.pop("completed", False)
    renamed: Document = {"schema": "evaluatorq.trace/1", "thread_id": document.pop("thread", "")}
    rest = {key: value for key, value in document.items() if key != "schema"}
    worlds: Document = {"snapshots": snapshots, "states": states} if states else {}
    return {**renamed, **rest, "steps": steps, "outcome": {**outcome, "labels": labels}, **worlds}


def _step_from_0(old: Document) -> JsonValue:
    kind = old.pop("type", "event")
    return {"kind": _KINDS_0.get(str(kind), "note"), **_masked(old)}


def _tool_from_0(tool: Document, step: Document) -> JsonValue:
    shared: Document = {name: step[name] for name in ("event", "turn", "at") if name in step}
    return {"kind": "tool", **shared, **tool, "ran_by": "target", "loss_mask": True}


def _masked(old: Document) -> Document:
    weight = old.pop("train_weight", 0)
    return {**old, "loss_mask": not weight}


def _keep_state(state: JsonValue, step: int, snapshots: Document, states: Document) -> None:
    if state is not None:
        reference = content_hash(state)
        snapshots[f"s{step}"], states[reference] = reference, state


def _without_nulls(node: JsonValue) -> JsonValue:
    """Absent instead of ``null``; what tools were given and what they hold is data and stays."""
    if isinstance(node, list):
        return [_without_nulls(item) for item in node]
    if not isinstance(node, dict):
        return node
    data = ("state", "initial_state", "arguments", "input")
    return {key: value if key in data else _without_nulls(value) for key, value in node.items() if value is not None}


def _object(value: JsonValue) -> Document:
    return dict(value) if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return list(value) if isinstance(value, list) else []


CONVERTERS: Mapping[int, Converter] = {0: _from_0}
"""From each older version to the next one."""

__all__ = ["CONVERTERS", "PRESENT", "read_trace", "upgrade", "version_of"]
