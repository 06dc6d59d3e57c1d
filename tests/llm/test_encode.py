from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluatorq.llm.encode import LineCache, decode_json, encode_message, encode_row
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY_TEXT)
def test_every_text_can_be_encoded_and_stays_what_it_was_where_it_is_text(text: str) -> None:
    decoded = json.loads(encode_message("user", text))
    assert decoded["role"] == "user"
    try:
        text.encode()
    except UnicodeEncodeError:
        decoded["content"].encode()
        assert "\ufffd" in decoded["content"]
    else:
        assert decoded["content"] == text


def test_a_lone_surrogate_becomes_the_replacement_character_and_a_pair_its_character() -> None:
    assert json.loads(encode_message("user", "price \ud83d only"))["content"] == "price \ufffd only"
    assert json.loads(encode_message("user", "a\ud83d b\ud83d\ude00"))["content"] == "a\ufffd b😀"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": "price \\ud83d only"}', {"a": "price \ufffd only"}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        ('{"a": "ß😀"}'.encode(), {"a": "ß😀"}),
    ],
)
def test_half_a_character_from_outside_becomes_the_replacement_character(data: bytes, value: object) -> None:
    assert decode_json(data) == value


@pytest.mark.parametrize("data", [b"", b"{", b"<html>", b'{"a": 1} x'])
def test_what_is_no_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_json(data)


def test_tool_rows_are_encoded_as_chat_completions_want_them() -> None:
    call = tool_call("t1", "track", {"id": "P1"})
    line = encode_message("assistant", None, tool_calls=[call])
    assert json.loads(line) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "track", "arguments": '{"id": "P1"}'}}],
    }
    assert json.loads(encode_message("tool", "at depot", tool_call_id="t1")) == {
        "role": "tool",
        "content": "at depot",
        "tool_call_id": "t1",
    }
    assert line == encode_row(assistant(None, [call]))


def spoken(row: Message) -> bytes | None:
    return encode_message(row.role, row.text) if row.is_spoken else None


def test_a_growing_transcript_is_encoded_row_by_row_once() -> None:
    encoded: list[Message] = []

    def view(row: Message) -> bytes | None:
        encoded.append(row)
        return spoken(row)

    cache = LineCache(view)
    rows = [user("a"), assistant("b"), user("c")]
    for n in range(4):
        lines = cache.lines(rows[:n])
        assert [json.loads(line)["content"] for line in lines] == ["a", "b", "c"][:n]
    assert encoded == rows


def test_rows_that_a_reader_must_not_see_have_no_line() -> None:
    call = tool_call("t1", "track", {})
    rows = [user("where?"), assistant(None, [call]), tool_result("t1", "depot"), assistant("At the depot.")]
    assert [json.loads(line)["content"] for line in LineCache(spoken).lines(rows)] == ["where?", "At the depot."]


def test_a_transcript_that_shrank_or_begins_otherwise_is_encoded_anew() -> None:
    cache = LineCache(spoken)
    first = [user("a"), assistant("b"), user("c")]
    cache.lines(first)
    assert cache.lines(first[:1]) == (spoken(first[0]),)
    other = [user("x"), *first[1:]]
    assert cache.lines(other) == tuple(spoken(row) for row in other)


@given(st.lists(st.lists(st.sampled_from([user("a"), user("b"), assistant("c")]), max_size=5), max_size=6))
def test_whatever_was_asked_before_the_lines_are_those_of_the_rows(transcripts: list[list[Message]]) -> None:
    cache = LineCache(spoken)
    for rows in transcripts:
        assert cache.lines(rows) == tuple(spoken(row) for row in rows)
