"""Whether a judge's quote is really in the transcript.

A quote confirms something only if it has at least three words or is a whole message, starts and ends on word
boundaries, and stands in a spoken message of the party that the criterion is about. White space, case and typographic
quotation marks do not matter. Scripts written without spaces count each character as a word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from evaluatorq.model.cases import Party
from evaluatorq.model.messages import Message

LEAST_WORDS = 3
_TYPOGRAPHY = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "`": "'", "\u00b4": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u00ab": '"', "\u00bb": '"',
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u00a0": " ", "\u2026": "...",
    "\u200b": None, "\u200c": None, "\u200d": None, "\ufeff": None, "\u00ad": None,
})  # fmt: skip
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+(?:'[^\W_]+)*")
_UNSPACED_CHAR = re.compile(rf"[{_UNSPACED}]")
_ROLE = {"agent": "assistant", "user": "user"}


@lru_cache(maxsize=256)
def fold(text: str) -> str:
    """The text with white space, case and typographic marks evened out."""
    return " ".join(text.translate(_TYPOGRAPHY).casefold().split())


def words(text: str) -> int:
    """How many words a folded text has."""
    return sum(1 for _ in _WORD.finditer(text))


def _bare(quote: str) -> str:
    """A folded quote without the marks that people put around quotes."""
    return fold(quote).strip("\"' ").removeprefix("...").removesuffix("...").strip("\"' ")


def _joins(left: str, right: str) -> bool:
    """Two neighbouring characters belong to one word."""
    return left.isalnum() and right.isalnum() and not (_UNSPACED_CHAR.match(left) or _UNSPACED_CHAR.match(right))


def _stands_in(quote: str, text: str) -> bool:
    at = text.find(quote)
    while at >= 0:
        end = at + len(quote)
        before = at == 0 or not _joins(text[at - 1], quote[0])
        after = end == len(text) or not _joins(quote[-1], text[end])
        if before and after:
            return True
        at = text.find(quote, at + 1)
    return False


def find_quote(quote: str, messages: Sequence[Message], party: Party = "agent") -> int | None:
    """The index of the latest spoken message of ``party`` that holds ``quote``, ``None`` when no message does."""
    bare = _bare(quote)
    if not bare:
        return None
    long_enough = words(bare) >= LEAST_WORDS
    role = _ROLE[party]
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role != role or not message.is_spoken:
            continue
        text = fold(message.text)
        if (long_enough and _stands_in(bare, text)) or bare == text.strip("\"' "):
            return index
    return None
