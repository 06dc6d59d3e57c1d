"""A patient without a model: answers what a nurse asks from the facts of the case, in the manner of a persona.

Everything is read off the transcript, so the same transcript gives the same words. The first answer is the complaint;
what is not understood is met with the next fact that has not been told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluatorq.model.messages import Message
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.packs.triage.cases import personas
from evaluatorq.ports import Seat, UserReply, UserSimulator

_TOPICS = {
    "chief_complaint": r"what brings|what is wrong|what happened|what can (?:i|we) do|why are you here",
    "onset": r"\bwhen\b|how long|since when|start|begin|began",
    "pain": r"how bad|scale|0 to 10|out of (?:10|ten)|how strong|rate",
    "location": r"\bwhere\b|which part|location|point to",
    "symptoms": r"anything else|other symptoms|also feel|what else|besides",
    "history": r"histor|illness|conditions|medic|before this|happened before|known",
}
_PLAYS_DOWN = {"stoic": -2, "loud": 2}


class TriagePatient:
    """One patient. Costs nothing, and that is known: usage is zero."""

    def __init__(self, seat: Seat) -> None:
        self._knows = dict(seat.datapoint.scenario.knows or {})
        known = personas()[0].get(seat.datapoint.persona.name)
        self._traits = {} if known is None else known.traits

    async def speak(self, messages: Sequence[Message]) -> UserReply:
        """The next words."""
        said = [row.text for row in messages if row.role == "user"]
        asked = next((row.text for row in reversed(messages) if row.role == "assistant" and row.is_spoken), "")
        if not said:
            return UserReply(self._opening(), usage=NO_USAGE)
        topics = [name for name, pattern in _TOPICS.items() if re.search(pattern, asked, re.IGNORECASE)]
        topics = [name for name in topics if name in self._knows] or self._untold(said)[:1]
        words = " ".join(self._answer(name) for name in topics)
        return UserReply(words or "I have told you all that I know.", usage=NO_USAGE)

    def _opening(self) -> str:
        words = _sentence(self._knows.get("chief_complaint", "I do not feel well"))
        return f"{words} Is it something bad?" if self._traits.get("mood") == "anxious" else words

    def _untold(self, said: Sequence[str]) -> list[str]:
        told = " ".join(said).casefold()
        return [name for name, value in self._knows.items() if value.casefold() not in told and name != "pain"]

    def _answer(self, name: str) -> str:
        value = self._knows[name]
        if name == "pain":
            return self._pain(value)
        if name == "onset" and self._traits.get("recall") == "vague":
            return f"I am not sure, maybe {value}."
        if name == "history" and self._traits.get("trust") == "guarded" and value != "none":
            return "Nothing special, I think."
        return _sentence(value)

    def _pain(self, value: str) -> str:
        shift = _PLAYS_DOWN.get(self._traits.get("pain_expression", ""), 0) if value.isdigit() and int(value) else 0
        felt = min(10, max(0, int(value) + shift)) if value.isdigit() else value
        return f"The pain is {felt} out of 10." if felt else "There is no pain at all."


def triage_patient(seat: Seat) -> UserSimulator:
    """Makes a patient without a model."""
    return TriagePatient(seat)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
