"""An answer of a Responses endpoint is a reply, whether it comes as a mapping or as an object."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from evaluatorq.contracts import AgentResponse
from evaluatorq.model.usage import Usage

ANSWER = {
    "id": "resp_1",
    "model": "m",
    "status": "completed",
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "let me look"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "found"},
        {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "wait", "arguments": "{}"},
        {
            "type": "message",
            "content": [{"type": "output_text", "text": "Hello "}, {"type": "output_text", "text": "you"}],
        },
        {"type": "something_new"},
    ],
    "usage": {
        "input_tokens": 3,
        "output_tokens": 4,
        "total_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
    },
}


def as_object(value: object) -> object:
    if isinstance(value, dict):
        return SimpleNamespace(**{key: as_object(item) for key, item in value.items()})
    return [as_object(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("shape", [dict, as_object])
def test_words_calls_results_and_cost_are_read(shape):
    reply = AgentResponse.from_openresponses(shape(ANSWER))
    assert reply.text == "Hello you"
    assert [(call.id, call.function.name, call.function.arguments) for call in reply.tool_calls] == [
        ("call_1", "look", '{"a":1}'),
        ("call_2", "wait", "{}"),
    ]
    assert [item.result for item in reply.output if item.type == "function_call"] == ["found", None]
    assert (reply.response_id, reply.model, reply.finish_reason, reply.error) == ("resp_1", "m", "completed", None)
    assert reply.usage == Usage(input_tokens=3, output_tokens=4, total_tokens=7, reasoning_tokens=2, calls=1)


def test_a_refusal_is_said_and_named():
    content = [{"type": "refusal", "refusal": "I cannot do that"}]
    reply = AgentResponse.from_openresponses({"output": [{"type": "message", "content": content}]})
    assert (reply.text, reply.refusal, reply.usage) == ("I cannot do that", "I cannot do that", None)


def test_an_answer_that_failed_is_an_error_and_no_silence():
    failed = {"status": "failed", "output": [], "error": {"code": "server_error", "message": "boom"}}
    reply = AgentResponse.from_openresponses(failed)
    assert reply.error is not None
    assert (reply.error.message, reply.error.code) == ("boom", "server_error")
    silent = AgentResponse.from_openresponses({"status": "failed"})
    assert silent.error is not None
    assert silent.error.message


@pytest.mark.parametrize("nothing", [{}, None, "text", {"output": "text"}, {"output": [None, 3]}])
def test_what_says_nothing_is_an_empty_reply(nothing: object):
    reply = AgentResponse.from_openresponses(nothing)
    assert (reply.output, reply.text, reply.usage, reply.error) == ([], "", None, None)
