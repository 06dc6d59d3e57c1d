"""A value that is known to be secret is found however often it was escaped, and no record with it looks harmless."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from evaluatorq.model.events import TargetReplied
from evaluatorq.model.messages import assistant, tool_call
from evaluatorq.records.known_secrets import KnownSecrets
from evaluatorq.records.redaction import HIDDEN, Redactor, parse_rules
from evaluatorq.store.journal import encode_line
from evaluatorq.testing import FakeClock, a_datapoint, a_plan

NOW = FakeClock().now()
QUOTED = 'pa\\ssWord"quoteXYZ'
SECRETS = st.text(alphabet='aBn7u\\"/\n\té\U0001f600€ <_-.', min_size=6, max_size=16) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=6, max_size=12
)
FORMS = st.lists(st.booleans(), max_size=4)


def escaped(text: str, forms: list[bool]) -> str:
    """JSON in JSON, a level for each of ``forms``, which say whether it is kept to ASCII."""
    for ascii_only in forms:
        text = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    return text


def leaks(secret: str, written: str) -> bool:
    """The value in the text, or in what reading it as JSON, again and again, would bring."""
    for _ in range(7):
        if secret in written:
            return True
        try:
            written = json.loads(f'"{written}"', strict=False)
        except ValueError:
            written = written.replace('\\"', '"').replace("\\\\", "\\")
    return secret in written


@given(SECRETS, FORMS, st.booleans())
@example(QUOTED, [True, False, True], False)
@example("umläut-umläut", [True], True)
@example('a\\\\\\"\nb\\', [True, True], False)
@example('"""""""', [True, True, True], False)
def test_no_escaping_hides_a_secret_from_the_redactor(secret: str, forms: list[bool], prefixed: bool) -> None:
    redactor = Redactor(secrets=[secret])
    told = f"{'prefix ' if prefixed else ''}{{{escaped(json.dumps({'a': secret}), forms)[1:-1]}}}"
    event = TargetReplied(
        at=NOW,
        messages=(assistant(told), assistant(None, [tool_call("c", "log", {"deep": json.dumps({"x": told})})])),
        trace_id=secret,
        model=secret,
    )
    if not secret.isspace() and secret not in HIDDEN:
        assert redactor.may_change(encode_line(0, event, 0))
        clean = redactor.event(event)
        assert isinstance(clean, TargetReplied)
        assert not leaks(secret, clean.messages[0].text)
        assert not leaks(secret, (clean.messages[1].tool_calls or [])[0].function.arguments)
        assert secret not in clean.model_dump_json()


ENCODERS = st.lists(st.sampled_from([quote, quote_plus, html.escape, lambda text: quote(text, safe="")]), max_size=3)


@given(SECRETS, ENCODERS)
@example("a b/c%d&e'f\"g<h>1", [quote_plus, quote, html.escape])
@example("caf\u00e9+\u20ac/1", [quote, quote])
def test_no_url_and_no_html_hides_a_secret(secret: str, encoders: list[Callable[[str], str]]) -> None:
    if not any(map(str.isalnum, secret)):
        return
    spelled = [secret]
    for encode in encoders:
        spelled.append(encode(spelled[-1]))
    kinds = {"html" if encode is html.escape else "url" for encode in encoders}
    if len(kinds) <= 1:
        assert KnownSecrets([secret]).hidden(f"({spelled[-1]})", HIDDEN) == f"({HIDDEN})"


def test_a_secret_in_a_name_that_json_has_twice_is_hidden() -> None:
    assert "hunter-2-hunter" not in str(Redactor(secrets=["hunter-2-hunter"]).value('{"a": "hunter-2-hunter", "a": 1}'))


@pytest.mark.parametrize("around", ["x{}y", "{}", '"{}"', "\\{}"])
def test_what_stands_around_a_secret_stays(around: str) -> None:
    known = KnownSecrets([QUOTED])
    assert known.hidden(around.format(QUOTED), HIDDEN) == around.format(HIDDEN)
    assert known.hidden(around.format("password"), HIDDEN) == around.format("password")


def test_long_rows_of_backslashes_cost_no_more_than_their_length() -> None:
    row = "\\" * 200_000
    assert KnownSecrets(['""""a\\b"', 'x\\"y']).hidden(row, HIDDEN) == row


def test_the_options_in_a_plan_hold_no_known_secret_and_what_describes_the_agent_no_personal_data() -> None:
    redactor = Redactor(parse_rules(["email"]), key=b"k", secrets=["planted-0-secret"])
    config: dict[str, JsonValue] = {
        "agent_description": "Uses planted-0-secret, ask jane@example.com",
        "target": {"url": "http://host/", "body": {"k": ["planted-0-secret"]}},
        "redact": ["own=jane@example.com"],
        "headers": {"authorization": "Bearer ${TOKEN_1}"},
    }
    plan = a_plan(a_datapoint()).model_copy(update={"config": config, "target": "http://planted-0-secret/"})
    clean = redactor.plan(plan)
    assert "planted-0-secret" not in clean.model_dump_json()
    assert "jane" not in str(clean.config["agent_description"])
    assert (clean.config["redact"], clean.config["headers"]) == (config["redact"], config["headers"])
    assert not clean.redacted, "the cases are as they were given"
