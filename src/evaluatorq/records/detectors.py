"""Values for slots, found in words by patterns and word lists. The same words always give the same values.

The evidence is the sentence. A clause that denies ("no fever", "without pain") yields nothing, unless a detector asks
for it. The words for denying are English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from evaluatorq.model.belief import BeliefUpdate
from evaluatorq.model.cognition import Detector, compiled
from evaluatorq.model.messages import Message

_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
_CLAUSE = re.compile(r"[,;:]|\b(?:but|although|though|however|except|yet|and now)\b", re.IGNORECASE)
_DENIAL = re.compile(
    r"\b(?:no|not|never|none|without|nor|neither|den(?:y|ies|ied)|\w+n't|cannot|isnt|dont|havent|free of)\b",
    re.IGNORECASE,
)
_ROLES = {"user": "user", "assistant": "agent"}


def detect(detectors: Sequence[Detector], messages: Sequence[Message]) -> Iterator[BeliefUpdate]:
    """Everything that the detectors find, in the order of the transcript and then of the detectors.

    The turn of a value is that of its row: how often the user spoke before it.
    """
    turn = 0
    for index, row in enumerate(messages):
        who = _ROLES.get(row.role)
        if who is not None and row.is_spoken:
            for detector in detectors:
                if detector.about == who:
                    yield from _found(detector, row.text, turn, index)
        turn += row.role == "user"


def _found(detector: Detector, text: str, turn: int, row: int) -> Iterator[BeliefUpdate]:
    told: set[str] = set()
    for sentence in _SENTENCE.split(text.replace("\u2019", "'")):
        for value in _values(detector, sentence):
            if value.casefold() not in told:
                told.add(value.casefold())
                yield BeliefUpdate(
                    slot=detector.slot,
                    value=value,
                    source=detector.about,
                    turn=turn,
                    certainty=detector.certainty,
                    evidence=sentence.strip(),
                    row=row,
                )


def _values(detector: Detector, sentence: str) -> Iterator[str]:
    for pattern, value in _patterns(detector):
        for match in pattern.finditer(sentence):
            if not detector.even_denied and _denied(sentence, match.start()):
                continue
            found = value or match.groupdict().get("value") or match.group()
            if found.strip():
                yield found.strip().rstrip(".,;")


def _patterns(detector: Detector) -> tuple[tuple[re.Pattern[str], str | None], ...]:
    if detector.pattern is not None:
        return ((compiled(detector.pattern), None),)
    return _word_patterns(tuple((detector.words or {}).items()))


@lru_cache(maxsize=256)
def _word_patterns(words: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[tuple[re.Pattern[str], str | None], ...]:
    return tuple(
        (re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(phrase) for phrase in phrases)})(?!\w)", re.IGNORECASE), value)
        for value, phrases in words
    )


def _denied(sentence: str, at: int) -> bool:
    """A denial stands before this place in the same clause."""
    clause = _CLAUSE.split(sentence[:at])[-1]
    return _DENIAL.search(clause) is not None
