"""Where a text is cut for a message or a record, no half of a credential is left that nothing would recognise."""

from __future__ import annotations

import pytest

from evaluatorq.llm.credentials import query_credentials
from evaluatorq.llm.errors import MESSAGE_LENGTH, RAW_LENGTH, clean_message, clean_raw
from evaluatorq.llm.tags import beginning

KEY = 'mk+Qz7Rw4Tn9Xb2Lk5/"x'


@pytest.mark.parametrize(
    ("text", "most", "start"),
    [
        ("one two three", 9, "one two "),
        ("one two three", 7, "one two"),
        ("one two", 7, "one two"),
        ('{"token":"abcdefgh"}', 14, '{"token":"'),
        ("abcdefgh", 5, ""),
        ("\u4e00\u4e01\u4e02\u4e03", 3, "\u4e00\u4e01\u4e02"),
    ],
)
def test_a_text_is_cut_between_words(text: str, most: int, start: str) -> None:
    assert beginning(text, most) == start


@pytest.mark.parametrize("before", range(0, 40, 3))
def test_an_error_is_cut_after_its_credentials_were_hidden(before: int) -> None:
    body = "x" * before + f" {KEY}" * 1000
    message, raw = clean_message(body, [KEY]), clean_raw(body.encode(), [KEY])
    assert len(message) <= MESSAGE_LENGTH
    assert raw is not None
    assert len(raw) <= RAW_LENGTH
    for part in ("Qz7R", "b2Lk5"):
        assert part not in message + raw


def test_parameters_named_like_credentials_are_secret() -> None:
    assert query_credentials("api-key=a%2Fb&page=2&sig=c&max_tokens=4&token={{thread_id}}") == ("a/b", "c")
