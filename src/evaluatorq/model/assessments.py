"""What an agent held at one step, and the scale that it is held on.

A step is a piece of what the agent did: words, or one tool call. The scale says which end is graver, so that a level
beside the right one is too grave or too slight in any domain.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from evaluatorq.model.base import Record, Strict

AssessmentSource = Literal["structured_output", "tool", "extractor"]
Level = int | str


class Assessment(Record):
    """A value on the declared scale, how sure the agent was (a word of the scale, or 0 to 1), and its reasons.

    ``proposed`` are the items that it put forward at this step for lists of facts, before anything was accepted.
    ``source`` says where this was read: what the agent returned beside its words, a tool's arguments, or its words.
    """

    value: JsonValue = None
    confidence: str | float | None = None
    rationale: str | None = None
    proposed: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    source: AssessmentSource = "structured_output"


class StepAssessment(Record):
    """An assessment with its place: row of the transcript, call where it belongs to one, user turns before it."""

    turn: int
    row: int
    call: str | None = None
    assessment: Assessment


class Scale(Strict):
    """Levels in order; ``gravest`` says at which end. ``confidences`` are the words for being sure, least first, each
    with the probability of being right that it stands for, ``None`` where nobody declared one.
    """

    name: Annotated[str, Field(min_length=1)]
    levels: Annotated[tuple[Level, ...], Field(min_length=2)]
    gravest: Literal["first", "last"] = "first"
    confidences: dict[str, Annotated[float, Field(ge=0, le=1)] | None] = Field(
        default_factory=lambda: dict.fromkeys(("low", "medium", "high"))
    )

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len({_plain(level) for level in self.levels}) < len(self.levels):
            raise ValueError(f"the levels of {self.name} are not distinct")
        return self

    def place(self, value: JsonValue) -> int | None:
        """How far from the gravest level a value is, 0 being the gravest; ``None`` for what is no level."""
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        plain = [_plain(level) for level in self.levels]
        if _plain(value) not in plain:
            return None
        index = plain.index(_plain(value))
        return index if self.gravest == "first" else len(plain) - 1 - index

    def level(self, value: JsonValue) -> Level | None:
        """The level that a value names, as the scale spells it."""
        place = self.place(value)
        if place is None:
            return None
        return self.levels[place if self.gravest == "first" else len(self.levels) - 1 - place]

    def probability(self, confidence: str | float | None) -> float | None:
        """The probability of being right that a confidence stands for; ``None`` where none was declared."""
        if isinstance(confidence, str):
            return self.confidences.get(confidence.strip().lower())
        return confidence if confidence is not None and 0 <= confidence <= 1 else None


def _plain(value: float | str) -> str:
    """``2``, ``2.0`` and ``"2"`` are one level, and so are ``SEV1`` and ``sev1``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().casefold()
