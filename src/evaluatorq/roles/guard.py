"""Whether a simulated user still plays the user: a table of breaches, searched in what it is about to say.

A false alarm costs a good conversation, a miss costs little, so every row is narrow: words that only an agent, a model
or an instruction would use, and never words inside quotation marks, because people quote their agents. The wordings are
English; in other languages only repetition and released values are found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

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


class _Wording(NamedTuple):
    """A plain text that every match contains, which is quick to look for, and the pattern; both in lower case."""

    needle: str
    pattern: str


_AGENT = (
    _Wording(":", r"\A\W{0,8}(?:(?:support |service |customer service )?(?:agent|assistant|representative))\W{0,2}:"),
    _Wording("how ", r"\bhow (?:can|may|could) i (?:help|assist) you\b"),
    _Wording("what ", r"\bwhat (?:can|may|could) i (?:help|assist|do for) you\b"),
    _Wording(
        " to ",
        r"\bi(?:'m| am|(?:'d| would|'ll| will) be) (?:happy|glad|here|more than happy) to (?:help|assist) "
        r"(?:you|with)\b",
    ),
    _Wording("here to ", r"\bi(?:'m| am) (?:always |just )?here to (?:help|assist|support)\b"),
    _Wording("i can ", r"\banything (?:else )?i can (?:help|assist) (?:you )?with\b"),
    _Wording(
        "thank",
        r"\b(?:thank you|thanks) for (?:contacting|choosing|shopping with|calling our|calling us|reaching out to us)\b",
    ),
    _Wording("anything else", r"\banything else (?:that )?(?:i|we) (?:can|could|may) (?:help|assist|do for) you\b"),
    _Wording(
        " your ",
        r"\b(?:i|we)(?:'ve| have|'ll| will)(?: now| just| already| go ahead and)? (?:process|issue|initiate|approve|"
        rf"refund|escalate|arrange|update|cancel|look up)(?:d|ed|led)? {_YOURS}",
    ),
    _Wording(
        "let me ", rf"\blet me (?:quickly |just )?(?:check|pull up|look up|look into|verify|process|review) {_YOURS}"
    ),
    _Wording(
        " your ",
        r"\b(?:can|could|may) (?:i|you)(?: please)? (?:have|get|provide|share|confirm|give)(?: me| us)?(?: with)? your "
        r"(?:order number|account number|date of birth|booking reference|order id|customer number)\b",
    ),
    _Wording("we ", r"\bwe (?:sincerely |deeply |truly )?apologi[sz]e for\b"),
    _Wording("inconvenience", r"\binconvenience this (?:may have|has) caused you\b"),
    _Wording(
        " i", r"\bas (?:an?|your) (?:customer |support |service |virtual )*(?:agent|assistant|representative),? i\b"
    ),
    _Wording("customer", r"\b(?:dear|valued) customer\b"),
    _Wording(
        "understand",
        r"\bi (?:completely |totally )?understand (?:your frustration|how frustrating (?:this|that|it) must be for)\b",
    ),
    _Wording(
        "your ",
        rf"{_STARTS}your (?:\w+ )?(?:refund|return|replacement|request|ticket|claim|order) (?:has been|was) "
        r"(?:processed|approved|issued|submitted|escalated|cancelled|canceled)\b",
    ),
    _Wording("policy", rf"{_STARTS}(?:our|per our) (?:\w+ )?policy (?:allows|does not allow|doesn't allow|states)\b"),
)
_OUT_OF_ROLE = (
    _Wording(" i", r"\bas an? (?:ai(?: language model| assistant)?|(?:large )?language model),? i\b"),
    _Wording(
        "i",
        r"\bi(?:'m| am) (?:just |only |actually )?an? (?:ai(?: language model| assistant)?|(?:large )?language model|"
        r"simulated (?:user|customer))(?=\s*(?:[.,;!?]|and\b|so\b|playing\b|$))",
    ),
    _Wording("my ", r"\bmy (?:system prompt|assigned (?:role|goal|persona)|persona (?:is|as|would|has|says|wants))\b"),
    _Wording(
        "my ",
        r"\b(?:according to|based on|following|as per|consistent with) my (?:persona|prompt|scenario)\b",
    ),
    _Wording(
        "the ",
        r"\b(?:according to|based on|following|as per|consistent with) the (?:persona|scenario|system prompt)\b",
    ),
    _Wording(
        " a",
        r"\b(?:i(?:'m| am) (?:just |only )?|as )(?:a|an|your) (?:chat ?bot|virtual assistant)\b(?! (?:user|customer))",
    ),
    _Wording("designed to ", r"\bi(?:'ve| have|'m| am|) ?(?:been )?designed to (?:help|assist)\b"),
    _Wording(" message", r"\bi(?:'ll| will) (?:now )?write (?:your|the|my) (?:first|next) message\b"),
    _Wording("the ", r"\A\W*the (?:customer|user)(?: (?:wants|says|asks|needs|would like)\b|'s (?:\w+ ){1,2}is\b)"),
    _Wording("instructions", r"\bmy instructions (?:are to|require me to|tell me to)\b"),
    _Wording(
        " to ",
        r"\bi(?: was|'m| am|'ve been| have been) (?:told|instructed|asked|supposed|meant) to (?:act (?:as|like)|"
        r"play the (?:role|part|user|customer)|pretend to be|simulate an? (?:user|customer)|stay in character)\b",
    ),
    _Wording("ing ", r"\bi(?:'m| am) (?:simulating|role-?playing|playing the (?:role|part))\b"),
    _Wording("in this ", r"\bin this (?:role-?play|simulation|simulated conversation|test scenario),? (?:i|my)\b"),
    _Wording("simulated", r"\bsimulated (?:user|customer)\b"),
    _Wording("persona", r"\buser persona\b|</?persona_\w+>"),
    _Wording("scenario_", r"</?scenario_\w+>"),
    _Wording(
        "character",
        r"\bi(?:'ll|'m| am| will| must| should| have to) (?:stay|remain|keep|break)(?:ing)? (?:in )?character\b",
    ),
    _Wording("end_conversation", r"\bend_conversation\b"),
    _Wording("stop", r"#{2,}\s*stop\b|\[stop\]"),
    _Wording("[end", r"\[end(?: of conversation)?\]"),
    _Wording(
        ":",
        r"\A\W{0,8}(?:sure|certainly|okay|of course)?[,!. ]{0,4}(?:here(?:'s| is) )?(?:the |my )?"
        r"(?:(?:user|customer)'s )?(?:next|first) (?:message|reply|response)(?: as .{0,60})?\s*:",
    ),
    _Wording("as the ", r"\bas the (?:user|customer),? i (?:would|should|will) (?:say|reply|respond|write|ask)\b"),
)
_CLOSING = re.compile(
    r"(?:(?:ok(?:ay)?|great|perfect|alright|thanks|thank you|so much|very much|again|a lot|(?:good)?bye(?:-bye)?|"
    r"take care|see you|later|soon|then|you too|for (?:your|the|all(?: your| the)?) (?:help|time|support|assistance)|"
    r"(?:you )?have a (?:\w+ )?(?:day|one|evening|weekend|night|afternoon)|you're welcome|likewise|same to you|cheers|"
    r"farewell|all the best|that's all|nothing else|no|and|now|good ?night)\b[\s,.!;:)-]*)+",
    re.IGNORECASE,
)


def _says(wordings: tuple[_Wording, ...]) -> Callable[[Line], bool]:
    searches = tuple((needle, re.compile(pattern, re.MULTILINE).search) for needle, pattern in wordings)

    def says(line: Line) -> bool:
        text = _unquoted(line.text)
        return any(needle in text and search(text) for needle, search in searches)

    return says


@lru_cache(maxsize=4)
def _unquoted(text: str) -> str:
    """What the line itself says, as the wordings are written; both tables ask for it."""
    return _QUOTED.sub(" ", text.lower().replace("\u2019", "'"))


def _restarts(line: Line) -> bool:
    """The opening comes back after something else was said. Saying the same all the time is repetition, not this."""
    if line.may_repeat or len(line.said) < 2 or not _alike(line.text, line.said[0]):
        return False
    return any(said != line.said[0] and not _alike(said, line.said[0]) for said in line.said[1:])


def _alike(a: str, b: str) -> bool:
    """At least nine in ten of their words are the same, and there are enough of them to tell."""
    ours, theirs = _words(a), _words(b)
    every = len(ours | theirs)
    return every >= _LEAST_OPENING and len(ours & theirs) >= 0.9 * every


@lru_cache(maxsize=256)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


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
