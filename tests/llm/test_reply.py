from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluatorq.llm.reply import is_event_stream, read_events, read_reply
from evaluatorq.ports import ChatReply

TEXT = {"type": "text", "text": "greet"}


def read(message: dict[str, object], **more: object) -> ChatReply:
    reply = read_reply({"choices": [{"message": message, "finish_reason": "stop"}], **more})  # type: ignore[dict-item]
    assert reply is not None
    return reply


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "Hello."}, "Hello."),
        ({"content": None}, ""),
        ({}, ""),
        ({"content": ""}, ""),
        ({"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}]}, "Hello."),
        ({"content": [{"type": "output_text", "text": "Hello."}, {"type": "image_url", "image_url": {}}]}, "Hello."),
        ({"content": ["Hello."]}, "Hello."),
        ({"content": 7}, ""),
    ],
)
def test_every_shape_of_content_is_text_or_no_text(message: dict[str, object], text: str) -> None:
    assert read(message).text == text


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "Hi.", "reasoning_content": "greet"}, "Hi.", "greet"),
        ({"content": "Hi.", "reasoning": "greet"}, "Hi.", "greet"),
        ({"content": "Hi.", "reasoning": "greet", "reasoning_content": "greet"}, "Hi.", "greet"),
        ({"content": "<think>\ngreet\n</think>\n\nHi."}, "Hi.", "greet"),
        ({"content": "greet\n</think>\n\nHi."}, "Hi.", "greet"),
        ({"content": "<think>greet, and then"}, "", "greet, and then"),
        ({"content": "<think>a</think>Hi.<think>b</think>"}, "Hi.", "a\nb"),
        ({"content": "<think></think>Hi."}, "Hi.", None),
        ({"content": [{"type": "thinking", "thinking": [TEXT]}, {"type": "text", "text": "Hi."}]}, "Hi.", "greet"),
        ({"content": "I think so."}, "I think so.", None),
        ({"content": "Write <think> first."}, "Write <think> first.", None),
    ],
)  # fmt: skip
def test_reasoning_is_kept_apart_from_what_was_said(
    message: dict[str, object], text: str, reasoning: str | None
) -> None:
    reply = read(message)
    assert (reply.text, reply.reasoning) == (text, reasoning)


def test_tool_calls_with_null_content_are_calls_and_no_text() -> None:
    calls = [{"id": "t1", "type": "function", "function": {"name": "track", "arguments": '{"id": "P1"}'}}]
    reply = read({"content": None, "tool_calls": calls})
    assert reply.text == ""
    assert [(c.id, c.function.name, c.function.arguments) for c in reply.tool_calls] == [
        ("t1", "track", '{"id": "P1"}')
    ]


def test_calls_without_an_id_and_with_the_same_id_get_ids_of_their_own() -> None:
    bare = {"function": {"name": "f", "arguments": "{}"}}
    reply = read({"tool_calls": [bare, {**bare, "id": ""}, {**bare, "id": "x"}, {**bare, "id": "x"}]})
    ids = [call.id for call in reply.tool_calls]
    assert len(set(ids)) == 4
    assert all(ids)
    assert "x" in ids


def test_arguments_that_came_as_an_object_become_their_json() -> None:
    calls = [{"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}, {"id": "2", "function": {"name": "g"}}]
    reply = read({"tool_calls": calls})
    assert [call.function.arguments for call in reply.tool_calls] == ['{"a":1}', "{}"]


def test_cached_and_reasoning_tokens_are_counted_and_no_usage_is_unknown() -> None:
    usage = {
        "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 3},
    }  # fmt: skip
    known = read({"content": "x"}, usage=usage).usage
    assert known is not None
    assert (known.input_tokens, known.cached_tokens, known.reasoning_tokens, known.calls) == (10, 8, 3, 1)
    assert read({"content": "x"}).usage is None
    assert read({"content": "x"}, usage=None).usage is None


@pytest.mark.parametrize(
    "doc", [{}, {"choices": []}, {"choices": [None]}, {"choices": [{"message": None}]}, {"choices": 1}]
)
def test_a_document_without_a_message_is_no_reply(doc: dict[str, object]) -> None:
    assert read_reply(doc) is None  # type: ignore[arg-type]


# ---------------------------------------------------------------- server-sent events


def stream(*chunks: object, done: bool = True, line_end: bytes = b"\n") -> bytes:
    events = [json.dumps(chunk).encode() for chunk in chunks] + [b"[DONE]"] * done
    return b"".join(b"data: " + event + line_end * 2 for event in events)


def chunk(delta: dict[str, object], finish: str | None = None, **more: object) -> dict[str, object]:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


@given(
    st.text(st.characters(codec="utf-8")), st.lists(st.integers(0, 50), max_size=6), st.sampled_from([b"\n", b"\r\n"])
)
def test_a_text_cut_into_pieces_anywhere_is_put_together_again(text: str, cuts: list[int], line_end: bytes) -> None:
    at = [0, *sorted(cuts), len(text)]
    pieces = [chunk({"content": text[a:b]}) for a, b in pairwise(at)]
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    body = stream(
        chunk({"role": "assistant"}), *pieces, chunk({}, "stop"), {"choices": [], "usage": usage}, line_end=line_end
    )
    doc, whole = read_events(body)
    assert whole
    assert doc["choices"][0]["message"]["content"] == (text or None)  # type: ignore[index,call-overload]
    reply = read_reply(doc)
    assert reply is not None
    assert (reply.finish_reason, reply.model, reply.response_id) == ("stop", "m", "c1")
    assert reply.usage is not None


def call_pieces(indexed: bool) -> list[dict[str, object]]:
    """Two calls in fragments; without an index each begins with its id."""
    fragments: list[dict[str, object]] = [
        {"index": 0, "id": "t1", "function": {"name": "track", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"id":'}},
        {"index": 0, "function": {"arguments": '"P1"}'}},
        {"index": 1, "id": "t2", "function": {"name": "refund", "arguments": "{}"}},
    ]
    return fragments if indexed else [{k: v for k, v in piece.items() if k != "index"} for piece in fragments]


@pytest.mark.parametrize("indexed", [True, False])
def test_tool_calls_in_fragments_are_put_together(indexed: bool) -> None:
    pieces = [chunk({"tool_calls": [piece]}) for piece in call_pieces(indexed)]
    doc, whole = read_events(stream(*pieces, chunk({}, "tool_calls")))
    reply = read_reply(doc)
    assert whole
    assert reply is not None
    assert [(c.id, c.function.name, c.function.arguments) for c in reply.tool_calls] == [
        ("t1", "track", '{"id":"P1"}'),
        ("t2", "refund", "{}"),
    ]


def test_streamed_reasoning_and_refusals_stay_apart_from_the_text() -> None:
    deltas = [{"reasoning_content": "th"}, {"reasoning_content": "ink"}, {"content": "Hi."}, {"refusal": "no"}]
    doc, _ = read_events(stream(*[chunk(delta) for delta in deltas]))
    reply = read_reply(doc)
    assert reply is not None
    assert (reply.text, reply.reasoning, reply.refusal) == ("Hi.", "think", "no")


def test_a_stream_without_its_end_is_known_to_be_cut() -> None:
    assert not read_events(stream(chunk({"content": "Hel"}), done=False))[1]
    assert read_events(stream(chunk({"content": "Hello."}, "stop"), done=False))[1]


def test_event_names_ids_comments_and_split_data_are_understood() -> None:
    body = b': ping\n\nevent: x\nid: 7\ndata: {"choices": [{"delta":\ndata: {"content": "Hi."}}]}\n\n'
    assert is_event_stream(body)
    reply = read_reply(read_events(body)[0])
    assert reply is not None
    assert reply.text == "Hi."


@pytest.mark.parametrize("body", [b"", b'{"data": 1}', b"[]", b"<html>"])
def test_json_and_pages_are_no_event_streams(body: bytes) -> None:
    assert not is_event_stream(body)


def test_an_error_in_the_stream_is_handed_on_and_garbage_is_an_error() -> None:
    assert read_events(stream(chunk({"content": "H"}), {"error": {"code": "server_error"}}))[0]["error"]
    with pytest.raises(ValueError, match=r".+"):
        read_events(b"data: {oops\n\n")
