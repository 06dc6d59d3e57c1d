"""What a simulated user without a model makes of an agent's words: a question, an offer, a refusal, a deed, or nothing.

Sentence by sentence, by plain patterns. It has to make something of any agent, so what it does not understand is
simply not heard; the user then says the wish in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_KINDS: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(pattern, re.IGNORECASE)
    for kind, pattern in {
        "refund": r"refund|money back|reimburs|pay.{0,10} back",
        "replacement": r"replac|exchange|swap|send .{0,30}again|new one",
        "address": r"(?<!mail )\baddress|redirect",
        "human": r"\bhuman\b|(live|real|another) (agent|person)|manager|supervisor|colleague|specialist|representative"
        r"|escalat",
        "cancel": r"\bcancel",
        "news": r"\bwhere\b|track|\bstatus\b|\bwhen\b.{0,30}arriv",
    }.items()
}
_TOPICS: Mapping[str, str] = {
    "order_number": r"order (number|id|no\b|#|reference)|which order|number of (the|your) order|reference number",
    "email": r"e-?mail",
    "address": r"(?<!mail )\baddress|where (should|shall|do you want|would you like)",
    "reason": r"\bwhy\b|reason|what (happened|went wrong)|what('s| is| seems).{0,20}(wrong|problem|issue|matter)"
    r"|(describe|details|tell me more|explain)",
    "name": r"\b(your|full|last) name",
    "phone": r"phone|telephone",
    "date": r"\bwhen\b|\bdate\b",
}
_ALSO: Mapping[str, str] = {"problem": "reason", "new_address": "address", "delivery_address": "address"}
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
_REQUEST = re.compile(
    r"[?\uff1f]|\bplease (give|provide|share|tell|send|enter|confirm|describe|let)|\bi('ll)? need (to know|your|the|a)"
    r"|let me know|could you|can you (give|tell|share|send|check)",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(
    r"\b(shall|should|may) (i|we)\b(?! (have|ask|get|know))|(would you like|do you want|want) (me|us) to"
    r"|would you like (a|an|to)\b"
    r"|go ahead\?|proceed\?|yes or no|do you confirm|is (that|this|it) (right|correct|ok)|(right|correct|ok|okay)\?$"
    r"|please confirm\W*$|confirm (that|this|with)|can you confirm",
    re.IGNORECASE,
)
_OPEN_QUESTION = re.compile(
    r"(how|what) (can|may|could) (i|we)|what would you like|how would you like|what do you (need|want)|anything else"
    r"|which (one|option)|what are you looking for",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"\b(can't|cannot|can not|couldn't|could not|unable|not able|won't|will not|not possible|impossible|not allowed"
    r"|no longer|not eligible|outside (of )?(the|our)|against (the|our)|unfortunately|decline)\b",
    re.IGNORECASE,
)
_DID = re.compile(
    r"\b(i|we|i've|i have|we've|we have|has been|have been|is|are|was|were|been) "
    r"((now|just|already|successfully|fully) )*"
    r"(refunded|issued|processed|sent|replaced|created|arranged|changed|updated|handed|escalated|forwarded|passed"
    r"|credited|resolved|cancelled|canceled|approved|completed|initiated|done)\b|on (its|the) way\b",
    re.IGNORECASE,
)
_NEWS = re.compile(
    r"tracking|in transit|has shipped|was shipped|out for delivery|last seen|at the (depot|hub)|on its way"
    r"|(expected|due|arrives?|arriving|delivered) (on|by|at|tomorrow|today)",
    re.IGNORECASE,
)
_ORDER = re.compile(r"(?<![\w@.])[A-Z]{1,3}-?\d{3,8}(?![\w@])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Heard:
    """What one agent turn amounts to. ``offers`` is ``None`` where nothing waits for a yes or no."""

    asks: tuple[str, ...] = ()
    open_question: bool = False
    offers: frozenset[str] | None = None
    orders: frozenset[str] = frozenset()
    refuses: bool = False
    did: frozenset[str] | None = None
    news: bool = False
    said: int = 0

    @property
    def nothing(self) -> bool:
        """No question, no offer, no refusal, no deed, no news."""
        return not (
            self.asks
            or self.open_question
            or self.offers is not None
            or self.refuses
            or self.did is not None
            or self.news
        )


def kinds(text: str) -> tuple[str, ...]:
    """The kinds of deed that a text speaks of, in the order of their first mention."""
    found = [(match.start(), kind) for kind, pattern in _KINDS.items() if (match := pattern.search(text))]
    return tuple(kind for _, kind in sorted(found))


def hear(text: str, known: Iterable[str]) -> Heard:
    """Reads an agent's turn; ``known`` are the keys of what the user could tell."""
    keys = list(known)
    even = text.replace("\u2019", "'").strip()
    asks: dict[str, None] = {}
    offers: frozenset[str] | None = None
    did: frozenset[str] | None = None
    open_question = refuses = news = False
    for sentence in _SENTENCE.split(even):
        spoken_of = frozenset(kinds(sentence))
        if _YES_OR_NO.search(sentence) and not _OPEN_QUESTION.search(sentence) and len(spoken_of) <= 1:
            offers = (offers or frozenset()) | spoken_of
        elif _REQUEST.search(sentence):
            topics = [key for key in keys if _about(key, sentence)]
            asks.update(dict.fromkeys(topics))
            open_question = open_question or not topics
        elif _REFUSES.search(sentence):
            refuses = True
        else:
            did = (did or frozenset()) | spoken_of if _DID.search(sentence) else did
            news = news or bool(_NEWS.search(sentence))
    orders = frozenset(found.upper() for found in _ORDER.findall(even))
    return Heard(tuple(asks), open_question, offers, orders, refuses, did, news, len(even))


def _about(key: str, sentence: str) -> bool:
    pattern = _TOPICS.get(_ALSO.get(key, key))
    if pattern is not None:
        return bool(re.search(pattern, sentence, re.IGNORECASE))
    return all(re.search(rf"\b{re.escape(word)}", sentence, re.IGNORECASE) for word in key.split("_") if word)
