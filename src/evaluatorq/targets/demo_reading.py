"""What the demo agent understands of a customer's words: intent, order number, e-mail, address, yes or no.

Plain patterns, read newest message first: what a customer says last counts, and what stands after "not" does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from evaluatorq.model.messages import Message

T = TypeVar("T")
Intent = Literal["refund", "replacement", "address", "human", "status"]

_INTENTS: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    ("refund", re.compile(r"refund|money back|reimburse|pay (me|it) back", re.IGNORECASE)),
    ("replacement", re.compile(r"replace|exchange|swap|(right|correct|new) one|send .{0,30}again", re.IGNORECASE)),
    ("address", re.compile(r"(?<!mail )\baddress\b|redirect|deliver(ed)? (it )?(to|somewhere)", re.IGNORECASE)),
    ("human", re.compile(r"\b(human|person|manager|supervisor|colleague|someone else)\b", re.IGNORECASE)),
    (
        "status",
        re.compile(r"where\b.{0,30}\b(parcel|order|package|is it)|track|status|when .{0,30}arriv", re.IGNORECASE),
    ),
    ("replacement", re.compile(r"wrong (item|thing|product|size|colou?r)", re.IGNORECASE)),
)
_NEGATED = re.compile(
    r"\b(not|no|instead of|rather than|without)( about)? (an? |the |any |my )?([\w-]+)", re.IGNORECASE
)
_COMPLAINT = re.compile(
    r"broken|broke|damaged|cracked|defect|faulty|wrong|third time|again|promised|nobody|late\b|ridiculous|fed up|"
    r"unacceptable|stopped working|instead of",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_ORDER = re.compile(r"(?<![\w@.])[A-Z]{1,3}-?\d{3,8}(?![\w@])", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ADDRESS = re.compile(r"\d+[a-z]? [A-Z]\w+(?: \w+){0,6}?,[^.?!\n]+|[A-Z]\w+(?: \w+)? \d+[a-z]?,[^.?!\n]+")
_YES = re.compile(
    r"\b(yes|yeah|yep|sure|please do|go ahead|correct|that's right|that is right|ok|okay|agreed|of course|do that)\b",
    re.IGNORECASE,
)
_NO = re.compile(r"\b(no|nope|don't|do not|wait|not yet|rather not|stop)\b", re.IGNORECASE)
_BYE = re.compile(
    r"goodbye|\bbye\b|that('s| is) (all|everything)|leave it (there|at that)|nothing else|all sorted", re.IGNORECASE
)
_THANKS = re.compile(r"\bthank", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the customer has said so far. ``complaint`` is one sentence; ``agrees`` and ``leaves`` are about the last
    message alone.
    """

    intent: Intent | None = None
    order_id: str | None = None
    email: str | None = None
    address: str | None = None
    complaint: str | None = None
    agrees: bool | None = None
    leaves: bool = False


def read(messages: Sequence[Message]) -> Reading:
    """The customer's side of a transcript."""
    said = [message.text for message in messages if message.role == "user"]
    if not said:
        return Reading()
    newest_first = said[::-1]
    last = newest_first[0]
    return Reading(
        intent=_newest(_intent(text) for text in newest_first),
        order_id=_newest(_last(_ORDER, _affirmed(text).upper()) for text in newest_first),
        email=_newest(_last(_EMAIL, text) for text in newest_first),
        address=_newest(_last(_ADDRESS, text) for text in newest_first),
        complaint=_newest(_complaint(text) for text in newest_first),
        agrees=_agreement(last),
        leaves=_leaves(last),
    )


def _newest(found: Iterable[T | None]) -> T | None:
    return next((item for item in found if item is not None), None)


def _complaint(text: str) -> str | None:
    return next((sentence for sentence in _SENTENCE.split(text) if _COMPLAINT.search(sentence)), None)


def _affirmed(text: str) -> str:
    """The text without what it denies: "not a refund" says nothing about refunds."""
    return _NEGATED.sub(" ", text)


def _intent(text: str) -> Intent | None:
    affirmed = _affirmed(text)
    return next((intent for intent, pattern in _INTENTS if pattern.search(affirmed)), None)


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found = [match.group() for match in pattern.finditer(text)]
    return found[-1] if found else None


def _agreement(text: str) -> bool | None:
    if _NO.search(text):
        return False
    return True if _YES.search(text) else None


def _leaves(text: str) -> bool:
    if _intent(text) or _ORDER.search(text) or _EMAIL.search(text):
        return False
    return bool(_BYE.search(text)) or (bool(_THANKS.search(text)) and len(text.split()) <= 8)
