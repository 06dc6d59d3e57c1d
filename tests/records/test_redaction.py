"""Credentials never stay, rules find what they say, pseudonyms are stable, and nothing is redacted twice."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluatorq.errors import ConfigError
from evaluatorq.model.events import Scored, TargetReplied, TurnJudged, UserSpoke
from evaluatorq.model.judgments import CriterionVerdict, Judgment
from evaluatorq.model.messages import Message, tool_call
from evaluatorq.records.redaction import BUILT_IN, HIDDEN, Redactor, parse_rules
from evaluatorq.testing import FakeClock, a_datapoint, a_persona, a_plan

NOW = FakeClock().now()
ALL = Redactor(parse_rules(list(BUILT_IN)), key=b"k")
PLAIN = Redactor()

CREDENTIALS = [
    "sk-abcdefghij1234567890",
    "sk_live_51Habcdefghijk",
    "Bearer abcdef0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "ghp_abcdefghijklmnopqrst0123",
    "xoxb-123456789012-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "password: hunter22",
    "api_key=abc123def",
    "accessToken=abc123def",
    "DB_PASSWORD='hunter22'",
    "Cookie: session=abcdefghij; theme=abc123",
    "set-cookie: sid=abc123def; Path=/",
    "https://pat:pa55word@host/x",
    "https://host/x?access_token=abc123&b=1",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
]
HARMLESS = [
    "the token is unclear to me",
    "bearer certificates and basic questions",
    "my password does not work",
    "Cookie: the one with chocolate",
    "maxTokens=4096 and tokens: 123456",
    "see https://host.example/path?page=2",
    "sk-ateboard",
    "The key: order A1 was refunded",
]


@pytest.mark.parametrize("text", CREDENTIALS)
def test_a_credential_is_hidden_wherever_it_stands(text: str) -> None:
    for around in (text, f"so {text} there", json.dumps({"note": text}), json.dumps([[text]])):
        clean = PLAIN.value(around)
        assert isinstance(clean, str)
        assert HIDDEN in clean
        for secret in ("abcdefghij", "hunter22", "abc123", "pa55word", "IOSFODNN", "MIIB", "c2lnbmF0", "abcdef0123"):
            assert secret not in clean
        assert PLAIN.value(clean) == clean


@pytest.mark.parametrize("text", HARMLESS)
def test_words_that_only_speak_of_credentials_stay(text: str) -> None:
    assert PLAIN.text(text) == text


@pytest.mark.parametrize(
    "name", ["password", "api_key", "apiKey", "x-api-key", "Authorization", "accessToken", "clientSecret", "cookie"]
)
def test_what_a_tool_is_given_under_such_a_name_is_hidden_whatever_it_looks_like(name: str) -> None:
    arguments = json.dumps({name: "plain", "inner": [{name: {"user": "pat"}}], "count": 3})
    assert json.loads(str(PLAIN.value(arguments))) == {name: HIDDEN, "inner": [{name: {"user": HIDDEN}}], "count": 3}


def test_names_that_only_contain_such_a_word_hide_nothing() -> None:
    value = {"token_count": "12", "total_tokens": "3", "keyboard": "qwerty", "secretary": "Pat"}
    assert PLAIN.value(value) == value  # type: ignore[arg-type]


def test_a_value_that_is_known_to_be_secret_is_hidden_in_any_spelling() -> None:
    redactor = Redactor(secrets=['pass"word\\1', "plainword"])
    assert redactor.text('x pass"word\\1 y plainword') == f"x {HIDDEN} y {HIDDEN}"
    line = json.dumps({"a": 'pass"word\\1'}).encode()
    assert redactor.may_change(line)
    assert not redactor.may_change(b'{"a": "nothing"}')


@pytest.mark.parametrize(
    ("rule", "found", "kept"),
    [
        ("email", ["jane.doe+x@mail.example.com", "JANE@example.de"], ["jane at example", "@handle", "a@b"]),
        ("iban", ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"], ["DE00 3704 0044 0532 0130 00"]),
        ("card", ["4111 1111 1111 1111", "5500-0000-0000-0004"], ["4111 1111 1111 1112", "1234567890"]),
        ("phone", ["+49 30 1234567", "(555) 123-4567", "0049 170 1234567"], ["order 12345", "2026-01-31", "10.5"]),
        ("ip", ["10.0.0.1", "2001:0db8:0000:0000:0000:ff00:0042:8329"], ["version 1.2.3", "1.2.3.4.5"]),
    ],
)
def test_each_rule_finds_its_own_and_nothing_else(rule: str, found: list[str], kept: list[str]) -> None:
    redactor = Redactor(parse_rules([rule]), key=b"k")
    for value in found:
        clean = redactor.text(f"it is {value}.")
        assert clean.startswith(f"it is [{rule}:"), value
        assert clean.endswith("]."), value
    for value in kept:
        assert redactor.text(f"it is {value}.") == f"it is {value}."


def test_a_card_is_found_among_other_numbers() -> None:
    assert "4111" not in ALL.text("no 12 4111 1111 1111 1111 34, thanks")
    assert "DE89" not in ALL.text("DE89370400440532013000 4111")
    two = ALL.text("4111 1111 1111 1111 5500 0000 0000 0004")
    assert not {"4111", "0004"} & set(two.split())


def test_one_value_has_one_pseudonym_and_another_key_another() -> None:
    assert ALL.text("jane@example.com") == ALL.text("JANE@Example.com") != ALL.text("joe@example.com")
    assert ALL.text("4111111111111111") == ALL.text("4111 1111 1111 1111")
    assert ALL.text("jane@example.com") != Redactor(parse_rules(["email"]), key=b"other").text("jane@example.com")


def test_ones_own_rule_goes_first_and_has_its_own_name() -> None:
    redactor = Redactor(parse_rules(["phone", r"order=ORD-[\d-]+"]), key=b"k")
    assert redactor.text("ORD-555-123-4567").startswith("[order:")


@pytest.mark.parametrize("spec", ["e-mail", "=x", "name=", "bad=[", "empty=x*", "email=.+"])
def test_a_rule_that_is_none_is_one_sentence(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"^redact: "):
        parse_rules([spec])


PIECES = st.sampled_from([
    *CREDENTIALS, *HARMLESS, "jane@example.com", "+49 30 1234567", "4111 1111 1111 1111", "DE89370400440532013000",
    "10.0.0.1", " ", "\n", "hello", "[email:00000000]", '{"password": "x"}', "12", "\u2028",
    r'{"url": "https:\/\/admin:hunter2xyz@example.com\/x"}', r'{"url": "https://x.test/?a=1\u0026key=abc123"}',
    r'{"p\u0061ssword": "hunter2xyz"}', r'{"q": "sv\u003d2020\u0026sig\u003dAbC12345"}',
])  # fmt: skip
TEXTS = st.lists(PIECES, max_size=6).map(" ".join) | st.text(max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_redacting_twice_changes_nothing_more(value: object) -> None:
    once = ALL.value(value)  # type: ignore[arg-type]
    assert ALL.value(once) == once


@given(VALUES)
def test_what_the_quick_look_lets_pass_has_nothing_to_hide(value: object) -> None:
    if not PLAIN.may_change(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")):
        assert PLAIN.value(value) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        r'{"url":"https:\/\/admin:hunter2xyz@example.com\/x"}',
        r'{"url":"https://x.test/?a=1\u0026key=hunter2xyz"}',
        r'{"sas":"sv\u003d2020\u0026sig\u003dhunter2xyz"}',
        r'{"p\u0061ssword":"hunter2xyz"}',
    ],
)
def test_json_in_a_text_is_looked_at_however_it_is_escaped(text: str) -> None:
    assert "hunter2xyz" in json.loads(json.dumps(text))
    assert PLAIN.may_change(json.dumps({"content": text}).encode())
    assert "hunter2xyz" not in str(PLAIN.value({"content": text}))


# ---------------------------------------------------------------- records


def test_an_event_without_anything_to_hide_is_the_same_object() -> None:
    event = UserSpoke(at=NOW, text="Where is my parcel?", digest="4111111111111111", model="gpt")
    assert ALL.event(event) is event


def test_an_event_keeps_its_facts_and_loses_its_secrets() -> None:
    said = Message(
        role="assistant", content="Mail jane@example.com", tool_calls=[tool_call("c1", "login", {"password": "pw"})]
    )
    event = TargetReplied(
        at=NOW,
        messages=(said,),
        digest="4111111111111111",
        response_id="r1",
        state={"jane@example.com": 1},
        state_changed=True,
    )
    clean = ALL.event(event)
    assert isinstance(clean, TargetReplied)
    text = clean.model_dump_json()
    assert "jane@" not in text
    assert '"pw\\"' not in text
    assert (clean.digest, clean.response_id, clean.at) == (event.digest, "r1", NOW)
    assert clean.messages[0].tool_calls is not None
    assert clean.messages[0].tool_calls[0].id == "c1"


def test_quotes_and_reasons_are_redacted_like_what_they_quote() -> None:
    verdicts = [CriterionVerdict(criterion_id="criteria_0", occurred=True, evidence="write to jane@example.com")]
    judgment = Judgment(
        should_terminate=True, reason="gave jane@example.com", goal_achieved=True, criteria_verdicts=verdicts
    )
    clean = ALL.event(TurnJudged(at=NOW, judgment=judgment))
    assert isinstance(clean, TurnJudged)
    pseudonym = ALL.text("jane@example.com")
    assert clean.judgment.reason == f"gave {pseudonym}"
    assert clean.judgment.criteria_verdicts is not None
    assert clean.judgment.criteria_verdicts[0].evidence == f"write to {pseudonym}"


def test_a_score_keeps_its_evaluator() -> None:
    clean = ALL.event(Scored(at=NOW, evaluator="mine", score=1.0, details={"who": "jane@example.com"}))
    assert isinstance(clean, Scored)
    assert (clean.evaluator, clean.score) == ("mine", 1.0)


def test_a_plan_says_whether_its_cases_are_as_they_were_given() -> None:
    plain = a_plan(a_datapoint())
    assert ALL.plan(plain) is plain
    private = a_plan(a_datapoint(), a_datapoint(persona=a_persona(background="jane@example.com"), id="dp_2"))
    clean = ALL.plan(private)
    assert clean.redacted
    assert clean.datapoints[0] is private.datapoints[0]
    assert "jane@" not in clean.model_dump_json()
