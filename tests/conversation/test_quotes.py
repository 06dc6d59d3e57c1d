"""A quote stands in a message only as whole words and whole numbers, and where it stands is told as it was written."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluatorq.conversation.quotes import find_quote, quote_span
from evaluatorq.model.messages import Message, assistant

CAFE = "go to cafe\u0301 now"

OTHER_WORDS = [
    ("yes we can", "Sorry, but yes we can't refund that."),
    ("yes we can", "Sorry, but yes we can\u2019t refund that."),
    ("t do that", "I can't do that"),
    ("'t do that", "I can't do that"),
    ("refundable fare is yours", "A non-refundable fare is yours"),
    ("refundable fare is yours", "A non\u2011refundable fare is yours"),
    ("we will refund", "we will refund_later"),
    ("the price is 1", "the price is 1,000"),
    ("the price is 1,", "the price is 1,000"),
    ("the price is 1", "the price is 1 000 euros"),
    ("the price is 1", "the price is 1'000 euros"),
    ("a refund of 5", "a refund of 5.00"),
    ("00 for your order", "5.00 for your order"),
    ("come back at 10", "come back at 10:30"),
    ("due on 12", "due on 12/05/2026"),
    ("within just 5", "within just 5\u201310 days"),
    ("a discount of 5", "a discount of 5%"),
    ("a discount of 5", "a discount of 5 %"),
    ("5 on your account", "-5 on your account"),
    ("5 on your account", "\u22125 on your account"),
    ("5 on your account", "$5 on your account"),
    ("it costs 5", "it costs 5\u20ac"),
    ("go to cafe", CAFE),
    ("go to cafe", normalize("NFC", CAFE)),
    ("\u0939\u092e \u0927\u0928 \u0935\u093e\u092a\u0938", "\u0939\u092e \u0927\u0928 \u0935\u093e\u092a\u0938\u0940"),
    ("\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u092e \u0939\u093f\u0928\u094d\u0926\u0940 \u0939\u0948\u0902"),
    ("refunded 1,000", "We refunded 1,000 in full"),
]
SAME_WORDS = [
    ("yes we can", "Of course: yes we can! Today."),
    ("we refunded you", "He said 'we refunded you' today."),
    ("we refunded you", "*we refunded you*, _we refunded you_"),
    ("we refunded you", "We refunded you\u2014that is all."),
    ("you-that is all", "We refunded you\u2014that is all."),
    ("the users' data", "It is the users\u2019 data."),
    ("we can't refund", "No, we can\u2019t refund that."),
    ("the price is 1,000", "the price is 1,000."),
    ("is 1, and that", "the price is 1, and that is all"),
    ("a discount of 5%", "a discount of 5%, today"),
    ("we refunded $5", "So we refunded $5."),
    ("come back at 10", "come back at 10: then we are open"),
    ("please wait... we look", "please wait\u2026 we look"),
    ("we will look", "One moment...we will look"),
    ("go to caf\u00e9", CAFE),
    (CAFE, normalize("NFC", CAFE)),
    ("refund was made", "a non-refund was made-up; the refund was made"),
    ("\u8fd4\u91d1\u3057", "\u306f\u3044\u3001\u8fd4\u91d1\u3057\u307e\u3057\u305f"),
    ("a a b", "a a a b"),
]


@pytest.mark.parametrize(("quote", "said"), OTHER_WORDS)
def test_a_quote_that_cuts_a_word_or_a_number_confirms_nothing(quote: str, said: str) -> None:
    assert find_quote(quote, [assistant(said)]) is None


@pytest.mark.parametrize(("quote", "said"), SAME_WORDS)
def test_a_quote_of_whole_words_confirms_however_it_is_set(quote: str, said: str) -> None:
    assert find_quote(quote, [assistant("Hello."), assistant(said), Message(role="user", content=said)]) == 1


TEXTS = st.text(alphabet="ab \n'\u2019-.,:15%$e\u0301\u0939\u0940\u2026\u2014\u4e00_\u200b\u00a0`", max_size=30)


@given(TEXTS, TEXTS, TEXTS)
@example("\u200b", "11", "")
@example("", "11", " \u0301")
def test_a_quote_stands_where_its_words_stand_alone(before: str, quote: str, after: str) -> None:
    """Between spaces and full stops nothing joins; next to letters everything does."""
    if not any(char.isalnum() for char in quote.strip("'\"`\u2019 ")):
        return
    inner = quote.strip(" \n\u00a0\u200b'`\u2019\u2026.\u2014-,:_%$\u0301\u0940")
    if len(inner) > 1:
        assert quote_span(inner, f"{before} ; {inner} ; {after}") is not None
        span = quote_span(inner, f"{before} ; x{inner}x ; y")
        assert span is None or "\u4e00" in inner or inner in before


@given(TEXTS)
def test_how_accents_are_encoded_makes_no_difference(text: str) -> None:
    said = [assistant(normalize("NFD", text))]
    assert find_quote(normalize("NFC", text), said) == find_quote(normalize("NFD", text), said)


@pytest.mark.parametrize(
    ("quote", "said", "shown"),
    [
        ("go to CAF\u00c9", f"Yes: {CAFE}.", "go to cafe\u0301"),
        ("we can't do", "  So \u201cwe \n can\u2019t do\u201d it", "we \n can\u2019t do"),
        ("one... two three", "x\u2026 one\u2026 two  three", "one\u2026 two  three"),
        ("yes we can", "yes we can't, but yes we can", "yes we can"),
        ("strasse ist", "Die Stra\u00dfe ist frei", "Stra\u00dfe ist"),
    ],
)
def test_where_a_quote_stands_is_told_in_the_text_as_it_was_written(quote: str, said: str, shown: str) -> None:
    span = quote_span(quote, said)
    assert span is not None
    assert said[slice(*span)] == shown
    assert span[0] == said.rindex(shown)


def test_a_message_that_nearly_matches_everywhere_is_searched_once() -> None:
    said = "ab c d " * 20_000
    assert find_quote("b c d " + "ab c d " * 10_000, [assistant(said)]) is None
