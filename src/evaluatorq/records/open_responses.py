"""One conversation as an OpenResponses document: what the user said is ``input``, what the agent did is ``output``.

Ids come from the conversation and the place in it, so that two exports of one result differ in their times only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal

from pydantic import JsonValue

from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.results import SimulationResult, TerminatedBy
from evaluatorq.model.usage import Usage

Item = dict[str, JsonValue]
Side = Literal["input", "output"]
_ENDED_BY_ITSELF = TerminatedBy.JUDGE


def open_response(result: SimulationResult, model: str, now: int) -> Item:
    """The document. ``now`` is its time in seconds since 1970; developer rows are not part of a response."""
    items = [item for place, row in enumerate(result.messages) for item in _items(result, place, row)]
    completed = result.terminated_by is _ENDED_BY_ITSELF
    failed = result.terminated_by is TerminatedBy.ERROR
    why = f"{result.terminated_by.value}: {result.reason}"
    return {
        "id": _id("resp", result, "response"),
        "object": "response",
        "created_at": now,
        "completed_at": now if completed else None,
        "status": "completed" if completed else "failed" if failed else "incomplete",
        "incomplete_details": None if completed or failed else {"reason": why},
        "model": model,
        "previous_response_id": None,
        "instructions": None,
        "input": [item for side, _, item in items if side == "input"],
        "output": [item for side, _, item in items if side == "output"],
        "error": {"message": result.reason} if failed else None,
        **_UNUSED,
        "usage": _usage(result.token_usage),
        "token_usage_known": result.token_usage_known,
        "metadata": _metadata(
            result,
            order=[side for side, _, _ in items],
            turns=[place for side, place, _ in items if side == "output"],
        ),
    }


_UNUSED: Item = {
    "tools": [], "tool_choice": "auto", "truncation": "disabled", "parallel_tool_calls": False,
    "text": {"format": {"type": "text"}}, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "top_logprobs": 0,
    "temperature": 1, "reasoning": None, "user": None, "max_output_tokens": None, "max_tool_calls": None,
    "store": False, "background": False, "service_tier": "default", "safety_identifier": None, "prompt_cache_key": None,
}  # fmt: skip
"""What a response must have and a simulation has nothing to say about."""


def _items(result: SimulationResult, place: int, row: Message) -> Iterator[tuple[Side, int | None, Item]]:
    """The items of one row, with the row's place where it is the agent's."""
    match row.role:
        case "user" | "system":
            part: Item = {"type": "input_text", "text": row.text}
            yield "input", None, _message(_id("msg", result, place), row.role, part)
        case "assistant":
            if row.text or (row.content is not None and not row.tool_calls):
                spoken: Item = {"type": "output_text", "text": row.text, "annotations": [], "logprobs": []}
                yield "output", place, _message(_id("msg", result, place), row.role, spoken)
            for call in row.tool_calls or ():
                yield "output", place, _call(result, place, call)
        case "tool":
            item: Item = {
                "type": "function_call_output",
                "id": _id("fco", result, place),
                "call_id": row.tool_call_id,
                "output": row.text,
                "status": "completed",
            }
            yield "output", None, item


def _message(identity: str, role: str, part: Item) -> Item:
    return {"type": "message", "id": identity, "status": "completed", "role": role, "content": [part]}


def _call(result: SimulationResult, place: int, call: ToolCall) -> Item:
    return {
        "type": "function_call",
        "id": _id("fc", result, f"{place}/{call.id}"),
        "call_id": call.id,
        "name": call.function.name,
        "arguments": call.function.arguments,
        "status": "incomplete" if call.incomplete else "completed",
        "result": None,
    }


def _usage(usage: Usage) -> JsonValue:
    if not usage.total_tokens:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _metadata(result: SimulationResult, order: list[Side], turns: list[int | None]) -> Item:
    kept = {
        name: result.metadata.get(name)
        for name in ("criteria_meta", "criteria_errors", "scorer_errors", "datapoint_id")
    }
    metadata: Item = {
        "framework": "simulation",
        "goal_achieved": result.goal_achieved,
        "goal_completion_score": result.goal_completion_score,
        "terminated_by": result.terminated_by.value,
        "reason": result.reason,
        "turn_count": result.turn_count,
        "rules_broken": [*result.rules_broken],
        "criteria_verified": result.criteria_verified,
        **kept,
        "assistant_turn_order": [*turns],
        "item_order": [*order],
    }
    if result.criteria_results is not None:
        metadata["criteria_results"] = {**result.criteria_results}
    if result.turn_metrics:
        metadata["turn_metrics"] = [turn.model_dump(mode="json") for turn in result.turn_metrics]
    return metadata


def _id(kind: str, result: SimulationResult, place: object) -> str:
    said = result.thread_id or "\x1f".join(row.text for row in result.messages)
    digest = hashlib.blake2b(f"{said}\x1e{place}".encode(errors="surrogatepass"), digest_size=12)
    return f"{kind}_{digest.hexdigest()}"
