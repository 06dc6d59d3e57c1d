"""How a simulated user without a model puts things: wording by persona, the same for the same seed.

Traits show: style decides between bare facts and whole sentences, politeness adds or spares a please, low patience and
high assertiveness sharpen what is said after a refusal, the starting emotion colours the first words.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from evaluatorq.model.cases import (
    CommunicationStyle,
    CulturalContext,
    EmotionalArc,
    Persona,
    Scenario,
    StartingEmotion,
)

_LABELS = {"order_number": "order number", "email": "e-mail address"}
_PREAMBLE = re.compile(
    r"^(the )?(customer|user|caller|they)( (wants?|would like|tries|is trying|needs?|hopes?))? to ", re.IGNORECASE
)
_THING = re.compile(r"(an?|the|my|some|help|information|advice)\b", re.IGNORECASE)
_MINE = (
    (re.compile(r"\btheir own\b", re.IGNORECASE), "my own"),
    (re.compile(r"\b(their|the customer's|the user's)\b", re.IGNORECASE), "my"),
    (re.compile(r"\b(they|the customer|the user)\b", re.IGNORECASE), "I"),
    (re.compile(r"\bthem\b", re.IGNORECASE), "me"),
)
_HELLO = {
    CommunicationStyle.FORMAL: ("Good day.", "Good day to you."),
    CommunicationStyle.CASUAL: ("Hi!", "Hey there!"),
    CommunicationStyle.VERBOSE: ("Hello, I hope you can help me.", "Hello, thank you for taking my message."),
}
_FEELING = {
    StartingEmotion.FRUSTRATED: ("I'm really frustrated.", "This has been very frustrating."),
    StartingEmotion.CONFUSED: ("I'm a bit confused here.", "I don't quite understand what happened."),
    StartingEmotion.HAPPY: ("I hope you're having a lovely day!", "Lovely to reach you!"),
    StartingEmotion.URGENT: ("This is urgent.", "I need this sorted out quickly."),
}
_TEMPER = {
    EmotionalArc.ESCALATING: ("This is getting ridiculous.", "I am losing my patience."),
    EmotionalArc.HOSTILE: ("What kind of shop is this?", "You people are useless."),
    EmotionalArc.MANIPULATIVE: ("After all the money I spent with you?", "I would hate to write a bad review."),
    EmotionalArc.DE_ESCALATING: ("All right, I see.", "I do understand your side."),
    EmotionalArc.VOLATILE: ("Sorry, I know it's not your fault.", "Are you even listening?"),
}
_ASIDES = (
    "By the way, do you sell gift cards too?",
    "Oh, and is your shop in town open on Sundays?",
    "Another thing: your website was slow yesterday.",
)


def first_person(goal: str) -> str:
    """A goal as the user would say it: "Get their money back." becomes "get my money back"."""
    wish = _PREAMBLE.sub("", goal.strip().split("\n")[0]).rstrip(" .!")
    for pattern, word in _MINE:
        wish = pattern.sub(word, wish)
    if _THING.match(wish):
        return f"get {wish[:1].lower()}{wish[1:]}"
    return wish[:1].lower() + wish[1:] if wish[1:2].islower() else wish


@dataclass(frozen=True, slots=True)
class Voice:
    """One persona in one scenario. ``turn`` varies the wording, so that nobody repeats a sentence for ever."""

    persona: Persona
    scenario: Scenario
    seed: int
    turn: int

    def opening(self, wish: str | None, facts: Sequence[tuple[str, str]]) -> str:
        """The first words: a feeling, a wish (or, where there is none, only that something is wrong), and facts."""
        feeling = _FEELING.get(self.scenario.starting_emotion or StartingEmotion.NEUTRAL)
        hello: Sequence[str] | None = _HELLO.get(self._style)
        if self.persona.cultural_context is CulturalContext.HIERARCHICAL:
            hello = ("Good day, Sir or Madam.",)
        wanted = self._wish(wish) if wish else "Something went wrong and I don't know what to do about it."
        return self._join(self._pick(hello), self._pick(feeling), wanted, _told(facts), self._please())

    def answer(self, facts: Sequence[tuple[str, str]], *, again: bool = False) -> str:
        """What was asked for; ``again`` when all of it was said before."""
        if again:
            return self._join(self._pick(("I told you already.", "As I wrote:", "Once more:")), _told(facts))
        if self._style is CommunicationStyle.TERSE:
            return ", ".join(value for _, value in facts)
        formal = self._style is CommunicationStyle.FORMAL or self.persona.politeness < 0.4
        ahead = "" if formal else self._pick(("Sure.", "Here you are.", "Of course."))
        behind = "I hope that is what you mean." if self.persona.technical_level < 0.25 else ""
        return self._join(ahead, _told(facts), behind)

    def yes(self) -> str:
        """Agreement to what was offered."""
        if self._style is CommunicationStyle.TERSE:
            return self._pick(("Yes.", "Yes, do it."))
        plain = self._pick(("Yes, go ahead.", "Yes, that's right.", "Yes, do that."))
        return plain if self.persona.politeness < 0.6 else plain.replace("Yes,", "Yes, please,", 1)

    def no(self, instead: str | None) -> str:
        """Refusal of what was offered, and what it should be."""
        if instead is None:
            return "No, wait. I'm not so sure about that."
        return self._pick((f"No, wait. I'd rather have {instead}.", f"No. What I want is {instead}."))

    def insist(self, wish: str) -> str:
        """What comes after a refusal."""
        temper = _TEMPER.get(self.persona.emotional_arc or EmotionalArc.STABLE)
        if temper is None and self.persona.assertiveness > 0.7:
            temper = ("I don't accept that.", "That is not good enough.")
        firm = self._pick(
            (f"I still want to {wish}.", f"Surely you can help me {wish}.", f"I insist. I want to {wish}.")
        )
        soft = self._pick(
            (f"Is there really nothing you can do? I'd like to {wish}.", f"I was hoping to {wish}, though.")
        )
        return self._join(self._pick(temper), firm if self.persona.assertiveness >= 0.5 else soft)

    def repeat(self, wish: str, facts: Sequence[tuple[str, str]]) -> str:
        """The wish in other words, with a fact more, for an agent that said nothing of use."""
        again = self._pick((
            f"What I need is this: {wish}.", f"Let me put it differently. I'd like to {wish}.",
            f"So, can you help me {wish}?", f"I came here to {wish}.",
        ))  # fmt: skip
        sharp = "Are you listening?" if self.persona.patience < 0.3 else ""
        return self._join(sharp, again, _told(facts))

    def correct(self, key: str, wrong: str, right: str) -> str:
        """Taking back something said before."""
        return self._join("Sorry, I mixed that up.", f"The {_label(key)} is {right}, not {wrong}.")

    def unknown(self) -> str:
        """An answer to a question that this user cannot answer."""
        return self._pick(("I don't know that, sorry.", "I'm not sure what you mean.", "I couldn't tell you."))

    def dodge(self) -> str:
        """An answer that tells nothing."""
        return self._pick(("Why do you need that?", "Can't you just look it up?", "Is that really necessary?"))

    def thanks(self) -> str:
        """The last words of a user who got what was wanted."""
        if self.persona.politeness < 0.3:
            return self._pick(("Finally. Goodbye.", "About time. Goodbye."))
        return self._pick(
            ("Thank you, that's all.", "Great, thank you. Goodbye!", "That's everything, thank you. Bye!")
        )

    def give_up(self) -> str:
        """The last words of a user who did not."""
        if self.persona.politeness < 0.3:
            return self._pick(("This is useless. Goodbye.", "Forget it. Goodbye."))
        return self._pick(("Then I'll leave it at that. Goodbye.", "All right, I'll leave it there. Goodbye."))

    def aside(self) -> str:
        """Something that has nothing to do with it."""
        return _ASIDES[self.turn % len(_ASIDES)]

    @property
    def _style(self) -> CommunicationStyle:
        return self.persona.communication_style

    def _wish(self, wish: str) -> str:
        if self._style is CommunicationStyle.TERSE:
            return f"{wish[:1].upper()}{wish[1:]}."
        if self.persona.cultural_context in (CulturalContext.INDIRECT, CulturalContext.HIGH_CONTEXT):
            return f"I was wondering whether it might be possible to {wish}."
        if self._style is CommunicationStyle.FORMAL:
            return f"I would like to {wish}."
        return f"I want to {wish}." if self.persona.politeness < 0.5 else f"I'd like to {wish}."

    def _please(self) -> str:
        if self.persona.politeness < 0.2:
            return "And be quick about it."
        polite = self.persona.politeness >= 0.6 and self._style is not CommunicationStyle.TERSE
        return self._pick(("Could you help me, please?", "I'd be grateful for your help.")) if polite else ""

    def _pick(self, options: Sequence[str] | None) -> str:
        """One of several wordings: the seed says where to begin, and each turn takes the next."""
        if not options:
            return ""
        return options[(zlib.crc32(f"{self.seed}/{options[0]}".encode()) + self.turn) % len(options)]

    @staticmethod
    def _join(*parts: str) -> str:
        return " ".join(part for part in parts if part)


def _label(key: str) -> str:
    return _LABELS.get(key, key.replace("_", " "))


def _told(facts: Sequence[tuple[str, str]]) -> str:
    """Facts as sentences. What has many words already is one, addresses apart."""
    whole = [value for key, value in facts if len(value.split()) > 3 and "address" not in key]
    named = " and ".join(f"my {_label(key)} is {value}" for key, value in facts if value not in whole)
    return " ".join(f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in (named, *whole) if text)
