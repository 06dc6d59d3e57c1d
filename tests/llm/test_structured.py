from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluatorq.errors import CallError
from evaluatorq.llm.structured import Unreadable, read_answer, read_object
from evaluatorq.model.messages import FunctionCall, ToolCall
from evaluatorq.model.usage import Usage
from evaluatorq.ports import AnswerSpec, ChatReply

SPEC = AnswerSpec("verdict", "the verdict", {"type": "object"})
USAGE = Usage(input_tokens=3, output_tokens=4, total_tokens=7, calls=1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=4)
PROSE = st.text(st.characters(codec="utf-8", exclude_characters="{}"), max_size=40)


def call(arguments: str, name: str = "verdict", call_id: str = "t1") -> ToolCall:
    return ToolCall(id=call_id, function=FunctionCall(name=name, arguments=arguments))


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"c1": "pass"}\n```',
        '{"c1": "pass" /* ok */}',
        '{\n  // my verdict\n  "c1": "pass"\n}',
        '{"c1": "pass",}',
        'Here is my verdict:\n{"c1": "pass"}\nI hope this helps.',
        '{"c1": "pass"} {"c1": "pass"}',
        '"{\\"c1\\": \\"pass\\"}"',
        'By rule {n} of the policy: {"c1": "pass"}',
    ],
)
def test_a_dressed_up_verdict_is_read_with_a_mark(text: str) -> None:
    found = read_object(text)
    assert found.value == {"c1": "pass"}
    assert found.lenient
    assert found.raw == text


def test_raw_line_breaks_inside_strings_are_kept() -> None:
    found = read_object('{"c1": "pass", "reason": "line1\nline2"}')
    assert found == ({"c1": "pass", "reason": "line1\nline2"}, True, found.raw)


def test_clean_json_is_read_without_a_mark() -> None:
    assert not read_object(' {"c1": "pass", "why": "{braces} // and */ in strings"}\n').lenient


def test_braces_and_comment_marks_in_strings_are_text() -> None:
    text = 'So: {"why": "he wrote } and // and /* \\" {", "c1": "pass"} done'
    assert read_object(text).value == {"why": 'he wrote } and // and /* " {', "c1": "pass"}


@pytest.mark.parametrize(
    "text",
    [
        'The agent wrote {"c1": "pass"} which is not a price. {"c1": "fail"}',
        '{"c1": "fail"} {}',
        'The agent wrote {"c1": "pass"} but {"c1": "fail", "reason": "un"quoted"}',
        'The agent wrote {"c1": "pass"}, so I say {"c1": "fa',
        "The agent wrote {\"c1\": \"pass\"} but {'c1': 'fail'}",
    ],
)
def test_where_two_objects_could_be_the_answer_none_is_taken(text: str) -> None:
    with pytest.raises(Unreadable):
        read_object(text)


@pytest.mark.parametrize("text", ["sorry, no JSON today", "[1, 2]", "true", '["x"]', "42", "null", '{"a": ', '"text"'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_object(text)


@given(OBJECT)
def test_every_object_is_read_as_it_was_written(value: dict[str, object]) -> None:
    found = read_object(json.dumps(value))
    assert found.value == value
    assert not found.lenient


@given(OBJECT, PROSE, PROSE)
def test_every_object_is_found_in_prose_around_it(value: dict[str, object], before: str, after: str) -> None:
    assert read_object(f"{before}{json.dumps(value, indent=1)} .{after}").value == value


@given(OBJECT, OBJECT, PROSE)
def test_two_objects_are_an_answer_only_if_they_are_equal(
    one: dict[str, object], two: dict[str, object], prose: str
) -> None:
    text = f"{json.dumps(one)} .{prose} {json.dumps(two)}"
    if one == two:
        assert read_object(text).value == one
    else:
        with pytest.raises(Unreadable):
            read_object(text)


@given(st.text(st.characters(codec="utf-8") | st.sampled_from('{}"/*\\,'), max_size=60))
def test_no_text_does_anything_but_read_or_be_refused(text: str) -> None:
    with suppress(Unreadable):
        assert isinstance(read_object(text).value, dict)


def test_the_arguments_of_the_wanted_call_are_the_answer_and_the_text_beside_it_is_not() -> None:
    reply = ChatReply(text='{"c1": "pass"}', tool_calls=(call('{"c1": "fail"}'),))
    assert read_answer(reply, SPEC).value == {"c1": "fail"}


def test_a_model_that_answers_in_text_instead_of_a_call_is_heard() -> None:
    assert read_answer(ChatReply(text='{"c1": "fail"}'), SPEC).value == {"c1": "fail"}


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (ChatReply(refusal="I cannot judge this.", usage=USAGE), "refusal"),
        (ChatReply(text='{"c1": "pa', finish_reason="length", usage=USAGE), "truncated_response"),
        (ChatReply(text='{"c1": "pass"}', finish_reason="length", usage=USAGE), "truncated_response"),
        (ChatReply(text="  ", usage=USAGE), "empty_reply"),
        (ChatReply(text="sorry, no JSON today", usage=USAGE), "malformed_response"),
        (ChatReply(tool_calls=(call("{bad"),), usage=USAGE), "malformed_response"),
        (ChatReply(tool_calls=(call("{}", "read_turn"),), usage=USAGE), "malformed_response"),
        (ChatReply(tool_calls=(call('{"a":1}'), call('{"a":2}', call_id="t2")), usage=USAGE), "malformed_response"),
    ],
)
def test_an_unusable_answer_is_asked_again_and_its_cost_is_kept(reply: ChatReply, code: str) -> None:
    with pytest.raises(CallError) as caught:
        read_answer(reply, SPEC)
    assert (caught.value.code, caught.value.reask, caught.value.usage) == (code, True, USAGE)


def test_the_raw_answer_stays_with_the_error() -> None:
    with pytest.raises(CallError) as caught:
        read_answer(ChatReply(text="sorry, no JSON today"), SPEC)
    assert caught.value.raw == "sorry, no JSON today"


def test_a_withheld_answer_is_not_asked_again() -> None:
    with pytest.raises(CallError) as caught:
        read_answer(ChatReply(finish_reason="content_filter", usage=USAGE), SPEC)
    assert (caught.value.code, caught.value.retryable, caught.value.usage) == ("content_filter", False, USAGE)
