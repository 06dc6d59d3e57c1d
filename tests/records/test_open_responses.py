"""A conversation as an OpenResponses document: every row in its place, nothing invented."""

from __future__ import annotations

import json

import pytest

from evaluatorq.model.results import SimulationResult
from evaluatorq.records.open_responses import open_response

ROWS = [
    {"role": "system", "content": "sys"},
    {"role": "developer", "content": "dev"},
    {"role": "user", "content": "u1"},
    {
        "role": "assistant",
        "content": "text and calls",
        "tool_calls": [
            {"id": "c1", "function": {"name": "f", "arguments": '{"a":1}'}},
            {"id": "c2", "function": {"name": "g", "arguments": "bad"}, "incomplete": True},
        ],
    },
    {"role": "tool", "content": "res", "tool_call_id": "c1", "name": "f"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c3", "function": {"name": "h", "arguments": ""}}]},
    {"role": "tool", "content": "orphan", "tool_call_id": "zz"},
    {"role": "assistant", "content": ""},
    {"role": "user", "content": [{"type": "input_text", "text": "p1"}, {"type": "input_text", "text": "p2"}]},
    {"role": "assistant", "content": "end"},
]


def result(**fields: object) -> SimulationResult:
    values: dict[str, object] = {
        "messages": ROWS, "terminated_by": "max_turns", "reason": "R", "goal_achieved": False,
        "goal_completion_score": 0.5, "rules_broken": [], "turn_count": 1, "token_usage": {}, "turn_metrics": [],
    }  # fmt: skip
    return SimulationResult.model_validate({**values, **fields})


def test_rows_become_items_in_order():
    document = open_response(result(), "m", 7)
    assert [item["role"] for item in document["input"]] == ["system", "user", "user"]
    assert [item["type"] for item in document["output"]] == [
        "message", "function_call", "function_call", "function_call_output", "function_call", "function_call_output",
        "message", "message",
    ]  # fmt: skip
    assert [item["status"] for item in document["output"][1:3]] == ["completed", "incomplete"]
    metadata = document["metadata"]
    assert metadata["assistant_turn_order"] == [3, 3, 3, None, 5, None, 7, 9]
    assert metadata["item_order"] == ["input", "input", *["output"] * 7, "input", "output"]


def test_what_a_result_does_not_have_is_left_out():
    document = open_response(result(), "m", 7)
    assert document["usage"] is None
    assert "turn_metrics" not in document["metadata"]
    assert "criteria_results" not in document["metadata"]


@pytest.mark.parametrize(
    ("ending", "status", "why", "error", "done"),
    [
        ("judge", "completed", None, None, 7),
        ("max_turns", "incomplete", {"reason": "max_turns: R"}, None, None),
        ("timeout", "incomplete", {"reason": "timeout: R"}, None, None),
        ("error", "failed", None, {"message": "R"}, None),
    ],
)
def test_the_status_says_how_it_ended(ending: str, status: str, why: object, error: object, done: int | None):
    document = open_response(result(terminated_by=ending), "m", 7)
    told = (document["status"], document["incomplete_details"], document["error"], document["completed_at"])
    assert told == (status, why, error, done)


def test_usage_and_metadata_stand_where_readers_look():
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7, "cached_tokens": 1, "reasoning_tokens": 1}
    metadata = {"datapoint_id": "d", "criteria_errors": ["x"], "other": 1}
    document = open_response(result(token_usage=usage, token_usage_known=False, metadata=metadata), "m", 7)
    assert document["usage"] == {
        "input_tokens": 5, "output_tokens": 2, "total_tokens": 7, "input_tokens_details": {"cached_tokens": 1},
        "output_tokens_details": {"reasoning_tokens": 1},
    }  # fmt: skip
    assert document["token_usage_known"] is False
    assert document["metadata"]["framework"] == "simulation"
    assert (document["metadata"]["datapoint_id"], document["metadata"]["criteria_errors"]) == ("d", ["x"])
    assert "other" not in document["metadata"]


def test_two_exports_differ_in_their_times_only():
    first, second = open_response(result(), "m", 1), open_response(result(), "m", 2)
    times = {"created_at": 0, "completed_at": 0}
    assert {**first, **times} == {**second, **times}
    ids = [item["id"] for item in (*first["input"], *first["output"])]
    assert len(set(ids)) == len(ids)
    json.dumps(first)
