"""Whether hidden values were said, however they were written; a leak is not made smaller by what is tied to it."""

from __future__ import annotations

import pytest

from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.records.secrecy import holds, secrecy_of
from evaluatorq.testing import a_datapoint, a_scenario

SECRET = "the caf\u00e9 closes at nine"


@pytest.mark.parametrize(
    ("said", "value", "expected"),
    [
        ("Is it SRV-2291?", "srv-2291", True),
        ("Is it SRV\u20112291?", "SRV-2291", True),
        ("Is it SRV-2291-b?", "SRV-2291", True),
        ("Is it SRV-22910?", "SRV-2291", False),
        ("So the  cafe\u0301\ncloses at nine.", SECRET, True),
        ("We don\u2019t know about it", "don't know about it", True),
    ],
)
def test_a_hidden_value_is_found_however_it_is_written(said: str, value: str, expected: bool) -> None:
    assert holds(said, value) is expected


@pytest.mark.parametrize(
    ("rows", "leaks", "released"),
    [
        ([user("Hm"), assistant("So the cafe\u0301 closes at nine?")], ["agent"], ()),
        ([user("Hm"), assistant(None, [tool_call("c", "note", {"text": SECRET})])], ["agent"], ()),
        ([user("Hm"), tool_result("c", '{"note": "the caf\\u00e9 closes at nine"}')], [], ("/when",)),
    ],
)
def test_what_was_said_in_json_counts_unescaped(rows: list[Message], leaks: list[str], released: tuple[str]) -> None:
    secrecy = secrecy_of(a_datapoint(a_scenario(truth={"when": SECRET})), rows)
    assert ([leak.said_by for leak in secrecy.leaks], secrecy.released) == (leaks, released)
