"""Whether a judge's quote is really in the transcript.

A quote confirms something only if it has at least three words or is a whole message, starts and ends on word
boundaries, and stands in a spoken message of the party that the criterion is about. White space, case, typographic
quotation marks and how accents are encoded do not matter. Scripts written without spaces count each character as a
word. What turns a word or a number into another one belongs to it: combining marks, the apostrophe of ``can't``, the
hyphen of ``non-refundable``, the separators of ``1,000.50`` and ``10:30``, a minus, a percent or currency sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from unicodedata import category, normalize

from evaluatorq.model.cases import Party
from evaluatorq.model.messages import Message

LEAST_WORDS = 3
_TYPOGRAPHY = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "\u02bc": "'", "`": "'", "\u00b4": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u00ab": '"', "\u00bb": '"',
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2212": "-", "\u00a0": " ", "\u2026": "...",
    "\u200b": None, "\u200c": None, "\u200d": None, "\ufeff": None, "\u00ad": None,
})  # fmt: skip
_DASH = "\u2014"
_UNSPACED_CHAR = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")
_PLAIN_WORDS = re.compile("[a-z] [a-z]+ [a-z]")
"""Three words in a folded text, seen at a glance."""
_IN_WORDS = "'-_"
_IN_NUMBERS = ".,:/"
_PERCENT = "%\u2030"
_SPACED = re.compile(
    rf"(?<=\d) [{_PERCENT}]|(?:(?<=\b\d)|(?<=\b\d\d)|(?<=\b\d\d\d)) \d\d\d(?!\d)"  # ``5 %``, ``1 000``
)
_ROLE = {"agent": "assistant", "user": "user"}


@lru_cache(maxsize=256)
def fold(text: str) -> str:
    """The text with white space, case, accents and typographic marks evened out, but for long dashes."""
    return " ".join(_evened(text).split())


def _evened(text: str) -> str:
    if text.isascii():
        return text.replace("`", "'").lower()
    return normalize("NFC", normalize("NFC", text).translate(_TYPOGRAPHY).casefold())


def words(text: str, at_most: int = LEAST_WORDS) -> int:
    """How many words a folded text has, counted up to ``at_most``."""
    count, fresh = 0, True
    for at, char in enumerate(text):
        fresh = fresh or _is_edge(text, at)
        if fresh and _in_word(char):
            count, fresh = count + 1, False
            if count == at_most:
                break
    return count


def _bare(quote: str) -> str:
    """A folded quote without the marks that people put around quotes."""
    return fold(quote).strip("\"' ").removeprefix("...").removesuffix("...").strip("\"' ")


# ---------------------------------------------------------------- word boundaries


def _is_mark(char: str) -> bool:
    return not char.isascii() and category(char)[0] == "M"


def _in_word(char: str) -> bool:
    return char.isalnum() or _is_mark(char)


def _is_edge(text: str, at: int) -> bool:
    """Between the characters before and at ``at`` no word and no number of a folded text goes on."""
    if not 0 < at < len(text):
        return True
    left, right = text[at - 1], text[at]
    if _is_mark(right) or (left.isdigit() and right.isdigit()):
        return False
    if _in_word(left) and _in_word(right):
        return bool(_UNSPACED_CHAR.match(left) or _UNSPACED_CHAR.match(right))
    tied = _tied(text, at) or _tied(text, at - 1) or _measured(left, right)
    return not tied and not _SPACED.match(text, at) and not _SPACED.match(text, at - 1)


def _tied(text: str, at: int) -> bool:
    """The character at ``at`` holds its two neighbours together."""
    tie = text[at]
    if tie not in _IN_WORDS and tie not in _IN_NUMBERS:
        return False
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if tie in _IN_NUMBERS:
        return before.isdigit() and after.isdigit()
    spaced = _UNSPACED_CHAR.match(before) is None and _UNSPACED_CHAR.match(after) is None
    return bool(before and after) and spaced and _in_word(before) and _in_word(after)


def _measured(left: str, right: str) -> bool:
    """A number and the sign before or after it."""
    if right.isdigit():
        return left == "-" or category(left) == "Sc"
    return left.isdigit() and (right in _PERCENT or category(right) == "Sc")


# ---------------------------------------------------------------- finding


def _place(quote: str, text: str) -> int | None:
    """Where a bare quote stands in a folded text, from edge to edge."""
    plain, quote = text.replace(_DASH, "-"), quote.replace(_DASH, "-")
    at = plain.find(quote)
    if at < 0 or (_is_edge(text, at) and _is_edge(text, at + len(quote))):
        return at if at >= 0 else None
    places = _occurrences(quote, plain)
    return next((at for at in places if _is_edge(text, at) and _is_edge(text, at + len(quote))), None)


def _occurrences(quote: str, text: str) -> Iterator[int]:
    """Where ``quote`` stands, overlaps included, in time linear in both (Knuth, Morris and Pratt)."""
    borders, length = [0], 0
    for char in quote[1:]:
        while length and char != quote[length]:
            length = borders[length - 1]
        length += char == quote[length]
        borders.append(length)
    length = 0
    for at, char in enumerate(text):
        while length and (length == len(quote) or char != quote[length]):
            length = borders[length - 1]
        length += char == quote[length]
        if length == len(quote):
            yield at + 1 - length


def find_quote(quote: str, messages: Sequence[Message], party: Party = "agent") -> int | None:
    """The index of the latest spoken message of ``party`` that holds ``quote``, ``None`` when no message does."""
    bare = _bare(quote)
    if not bare:
        return None
    long_enough = _PLAIN_WORDS.search(bare) is not None or words(bare) >= LEAST_WORDS
    role = _ROLE[party]
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role != role or not message.is_spoken:
            continue
        text = fold(message.text)
        if (long_enough and _place(bare, text) is not None) or _same(bare, text.strip("\"' ")):
            return index
    return None


def _same(quote: str, text: str) -> bool:
    return len(quote) == len(text) and quote.replace(_DASH, "-") == text.replace(_DASH, "-")


def is_quoted(quote: str, text: str) -> bool:
    """``quote`` stands in ``text`` by the same rule, however few its words."""
    bare = _bare(quote)
    return bool(bare) and _place(bare, fold(text)) is not None


def quote_span(quote: str, text: str) -> tuple[int, int] | None:
    """From where to where ``quote`` stands in ``text``, by the same rule but however few its words."""
    bare = _bare(quote)
    place = _place(bare, fold(text)) if bare else None
    origins = _origins(text) if place is not None else []
    if place is None or len(origins) != len(fold(text)):
        return None
    return origins[place][0], origins[place + len(bare) - 1][1]


def _origins(text: str) -> list[tuple[int, int]]:
    """From where to where in ``text`` each character of its folded form comes from."""
    spans: list[tuple[int, int]] = []
    parts: list[str] = []
    for at, char in enumerate(text):
        if _TYPOGRAPHY.get(ord(char), "") is None:
            continue
        if parts and parts[-1].isspace() == char.isspace() and (_is_mark(char) or char.isspace()):
            spans[-1], parts[-1] = (spans[-1][0], at + 1), parts[-1] + char
        elif parts or not char.isspace():
            spans.append((at, at + 1))
            parts.append(char)
    if parts and parts[-1].isspace():
        del spans[-1], parts[-1]
    pairs = zip(spans, parts, strict=True)
    return [span for span, part in pairs for _ in (" " if part.isspace() else _evened(part))]
