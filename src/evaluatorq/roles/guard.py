"""Whether a simulated user still plays the user: a table of breaches, searched in what it is about to say.

A false alarm costs a good conversation, a miss costs little, so every row is narrow: words that only an agent, a model
or an instruction would use, and never words inside quotation marks, because people quote their agents. The wordings are
English; in other languages only repetition and released values are found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

BreachKind = Literal["speaks_as_agent", "leaves_the_role", "restarts", "reveals", "endless_goodbyes"]


@dataclass(frozen=True, slots=True)
class Breach:
    """What was wrong with a line, and the sentence that tells the simulator."""

    kind: BreachKind
    complaint: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line about to be sent. ``said`` are the user's earlier lines, first one first.

    ``hidden`` are distinctive values that nobody has told this user. ``may_repeat`` allows the opening to come back.
    """

    text: str
    said: Sequence[str] = ()
    hidden: frozenset[str] = frozenset()
    may_repeat: bool = False


def find_breach(line: Line) -> Breach | None:
    """The first row of the table that the line breaks, ``None`` for a line that a user could write."""
    return next((breach for breach, broken_by in _TABLE if broken_by(line)), None)


def distinctive_values(texts: Iterable[str]) -> frozenset[str]:
    """Words that nobody writes by chance: six or more characters with a digit, such as order numbers and codes."""
    return frozenset(
        word.casefold()
        for text in texts
        for word in _VALUE.findall(text)
        if len(word) >= 6 and any(letter.isdigit() for letter in word)
    )


_VALUE = re.compile(r"\w+(?:[-_./@:]\w+)*")
_QUOTED = re.compile(
    r"\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb|(?<!\w)'[^'\n]{3,}'(?!\w)|```.*?```", re.DOTALL
)
_WORD = re.compile(r"\w+(?:'\w+)?")
_LEAST_OPENING = 6
_YOURS = (
    r"your (?:\w+ ){0,2}(?:refund|order|return|replacement|account|request|payment|booking|ticket|case|claim|address)\b"
    r"(?! (?:policy|page|process|form|desk))"
)
_STARTS = r"(?:^|[.!?]\s+)(?:(?:good|great) news[,!:]? )?"

_AGENT = (
    r"\A\W*(?:(?:support |service |customer service )?(?:agent|assistant|representative))\W{0,2}:",
    r"\bhow (?:can|may|could) i (?:help|assist) you\b",
    r"\bi(?:'m| am| would be|'d be) (?:happy|glad|here|more than happy) to (?:help|assist) you\b",
    r"\b(?:thank you|thanks) for (?:contacting|choosing|shopping with|calling our|calling us|reaching out to us)\b",
    r"\banything else (?:that )?(?:i|we) (?:can|could|may) (?:help|assist|do for) you\b",
    (
        r"\b(?:i|we)(?:'ve| have|'ll| will)(?: now| just| already| go ahead and)? (?:process|issue|initiate|approve|"
        rf"refund|escalate|arrange|update|cancel|look up)(?:d|ed|led)? {_YOURS}"
    ),
    rf"\blet me (?:quickly |just )?(?:check|pull up|look up|look into|verify|process|review) {_YOURS}",
    (
        r"\b(?:can|could|may) (?:i|you)(?: please)? (?:have|get|provide|share|confirm|give)(?: me| us)?(?: with)? your "
        r"(?:order number|account number|date of birth|booking reference|order id|customer number)\b"
    ),
    r"\bwe (?:sincerely |deeply |truly )?apologi[sz]e for\b|\binconvenience this (?:may have|has) caused you\b",
    r"\bas (?:an?|your) (?:customer |support |service |virtual )*(?:agent|assistant|representative),? i\b",
    r"\b(?:dear|valued) customer\b",
    r"\bi (?:completely |totally )?understand (?:your frustration|how frustrating (?:this|that|it) must be for you)\b",
    (
        rf"{_STARTS}your (?:\w+ )?(?:refund|return|replacement|request|ticket|claim|order) (?:has been|was) "
        r"(?:processed|approved|issued|submitted|escalated|cancelled|canceled)\b"
    ),
    rf"{_STARTS}(?:our|per our) (?:\w+ )?policy (?:allows|does not allow|doesn't allow|states)\b",
)
_OUT_OF_ROLE = (
    r"\bas an? (?:ai(?: language model| assistant)?|(?:large )?language model),? i\b",
    (
        r"\bi(?:'m| am) (?:just |only |actually )?an? (?:ai(?: language model| assistant)?|(?:large )?language model|"
        r"simulated (?:user|customer))(?=\s*(?:[.,;!?]|and\b|so\b|playing\b|$))"
    ),
    r"\bmy (?:system prompt|assigned (?:role|goal|persona)|persona (?:is|as|would|has|says|wants))\b",
    (
        r"\b(?:according to|based on|following|as per|consistent with) "
        r"(?:my (?:persona|prompt|scenario)|the (?:persona|scenario|system prompt))\b"
    ),
    r"\bmy instructions (?:are to|require me to|tell me to)\b",
    (
        r"\bi(?: was|'m| am|'ve been| have been) (?:told|instructed|asked|supposed|meant) to (?:act (?:as|like)|"
        r"play the (?:role|part|user|customer)|pretend to be|simulate an? (?:user|customer)|stay in character)\b"
    ),
    r"\bi(?:'m| am) (?:simulating|role-?playing|playing the (?:role|part))\b",
    r"\bin this (?:role-?play|simulation|simulated conversation|test scenario),? (?:i|my)\b",
    r"\b(?:simulated (?:user|customer)|user persona)\b",
    r"\bi(?:'ll|'m| am| will| must| should| have to| need to) (?:stay|remain|keep|break)(?:ing)? (?:in )?character\b",
    r"\bend_conversation\b|#{2,}\s*stop\b|\[(?:stop|end|end of conversation)\]|</?(?:scenario|persona)_\w+>",
    (
        r"\A\W*(?:sure|certainly|okay|of course)?[,!. ]*(?:here(?:'s| is) )?(?:the |my )?(?:user's |customer's )?"
        r"(?:next|first) (?:message|reply|response)(?: as .{0,60})?\s*:"
    ),
    r"\bas the (?:user|customer),? i (?:would|should|will) (?:say|reply|respond|write|ask)\b",
)
_CLOSING = re.compile(
    r"(?:(?:ok(?:ay)?|great|perfect|alright|thanks|thank you|so much|very much|again|a lot|(?:good)?bye(?:-bye)?|"
    r"take care|see you|later|soon|then|you too|for (?:your|the|all(?: your| the)?) (?:help|time|support|assistance)|"
    r"(?:you )?have a (?:\w+ )?(?:day|one|evening|weekend|night|afternoon)|you're welcome|likewise|same to you|cheers|"
    r"farewell|all the best|that's all|nothing else|no|and|now|good ?night)\b[\s,.!;:)-]*)+",
    re.IGNORECASE,
)


def _says(patterns: tuple[str, ...]) -> Callable[[Line], bool]:
    search = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE | re.MULTILINE).search

    def says(line: Line) -> bool:
        return search(_QUOTED.sub(" ", line.text.replace("\u2019", "'"))) is not None

    return says


def _restarts(line: Line) -> bool:
    """The opening comes back after something else was said. Saying the same all the time is repetition, not this."""
    if line.may_repeat or len(line.said) < 2 or not _alike(line.text, line.said[0]):
        return False
    return any(not _alike(said, line.said[0]) for said in line.said[1:])


def _alike(a: str, b: str) -> bool:
    """At least nine in ten of their words are the same."""
    ours, theirs = (frozenset(_WORD.findall(text.casefold())) for text in (a, b))
    return len(ours | theirs) >= _LEAST_OPENING and len(ours & theirs) >= 0.9 * len(ours | theirs)


def _reveals(line: Line) -> bool:
    return bool(line.hidden) and not line.hidden.isdisjoint(distinctive_values((line.text,)))


def _never_leaves(line: Line) -> bool:
    """The third line in a row that only says goodbye."""
    last = (*line.said[-2:], line.text)
    return len(last) == 3 and all(_CLOSING.fullmatch(text.strip().replace("\u2019", "'")) for text in last)


_TABLE: tuple[tuple[Breach, Callable[[Line], bool]], ...] = (
    (
        Breach("leaves_the_role", "it spoke about the task or the role; you are simply this person."),
        _says(_OUT_OF_ROLE),
    ),
    (
        Breach("speaks_as_agent", "it was what the agent would say; you are the one who asks for something."),
        _says(_AGENT),
    ),
    (Breach("reveals", "it gave a value that nobody told you."), _reveals),
    (Breach("restarts", "it began the conversation anew; react to what the agent said last."), _restarts),
    (
        Breach("endless_goodbyes", "goodbyes were said already; set end_conversation to true."),
        _never_leaves,
    ),
)
