"""How a case says what its agent believed is to be read, and the record that comes of it.

The rules are data, so that a saved run can be read again, by today's rules or by better ones. They name tools by which
an agent assesses, puts facts on record, asks for readings and ends; and patterns that are looked for in words.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from evaluatorq.model.assessments import Scale, StepAssessment
from evaluatorq.model.base import Record, Strict
from evaluatorq.model.belief import NO_BELIEFS, BeliefGraph, Certainty

Name = Annotated[str, Field(min_length=1)]
Pointer = Annotated[str, Field(pattern=r"^(/([^~]|~[01])*)?$")]
Normal = Literal["lower", "strip", "collapse"]
Refusal = Literal["blank", "duplicate", "cap", "not_text"]


# ---------------------------------------------------------------- rules


class AcceptPolicy(Strict):
    """Which proposed items of a list are accepted. ``normalise`` is how two spellings are compared; ``keep`` is what an
    accepted one is written as. ``unique`` within a call or the whole run; at most ``cap`` per call, turn or run.
    """

    normalise: tuple[Normal, ...] = ("lower", "strip", "collapse")
    keep: Literal["original", "normalised"] = "original"
    unique: Literal["call", "run"] | None = "run"
    cap: Annotated[int, Field(ge=1)] | None = None
    per: Literal["call", "turn", "run"] = "call"


FIVE_A_CALL = AcceptPolicy(cap=5)
"""Items are compared without regard to case and white space, kept in their first spelling, at most five new ones by
one call; what is blank is none."""
PRESETS = {"five_a_call": FIVE_A_CALL}


def _preset(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in PRESETS:
        raise ValueError(f"no policy is called {value!r}; there is {', '.join(PRESETS)}, or give its keys")
    return PRESETS[value]


class ListRule(Strict):
    """A list of facts that the agent puts on record by an argument of a tool. ``expected`` points into the truth;
    accepted items are also beliefs in ``slot``.
    """

    tool: Name
    argument: Name
    policy: Annotated[AcceptPolicy, BeforeValidator(_preset)] = AcceptPolicy()
    expected: Pointer | None = None
    slot: Name | None = None


class ReadingRule(Strict):
    """A tool that reads something out: the argument that names the reading, and the key of its answer's value."""

    tool: Name
    name: Name = "name"
    value: Name = "value"


class AssessmentRule(Strict):
    """Where assessments are: under these arguments of tool calls (of ``tools``, or of any that has the first), and in
    words that ``says`` matches, with groups called ``value``, ``confidence`` and ``rationale``.

    ``proposes`` maps lists of facts to arguments that put items forward.
    """

    value: Name = "level"
    confidence: Name = "confidence"
    rationale: Name = "rationale"
    proposes: dict[str, Name] = Field(default_factory=dict)
    tools: tuple[Name, ...] | None = None
    says: str | None = None

    @model_validator(mode="after")
    def _has_a_value(self) -> Self:
        if self.says is not None and "value" not in compiled(self.says).groupindex:
            raise ValueError("says needs a group called value, such as level (?P<value>[1-5])")
        return self


class Detector(Strict):
    """Finds values for a slot in words: a pattern (its group ``value``, else all it matched), or words by value.

    Words are found whole, without regard to case. What stands behind a denial in the same clause is not found.
    """

    slot: Name
    pattern: str | None = None
    words: dict[str, tuple[Name, ...]] | None = None
    about: Literal["user", "agent"] = "user"
    certainty: Certainty = "explicit"
    even_denied: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.pattern is None) == (self.words is None):
            raise ValueError(f"the detector of {self.slot} gives exactly one of pattern, words")
        if self.pattern is not None and compiled(self.pattern).match("") is not None:
            raise ValueError(f"the pattern of {self.slot} also finds nothing at all, so it always holds")
        return self


class Cognition(Strict):
    """How to read what the agent of this case believed. ``decides`` points to the right level in the truth.

    ``ends`` are tools by which the agent ends the conversation. ``slots`` are those that it should come to fill.
    ``agent`` names who the agent is told to be.
    """

    scale: Scale | None = None
    decides: Pointer = "/level"
    assess: AssessmentRule = AssessmentRule()
    lists: dict[str, ListRule] = Field(default_factory=dict)
    reads: ReadingRule | None = None
    ends: tuple[Name, ...] = ()
    detectors: tuple[Detector, ...] = ()
    slots: tuple[Name, ...] | None = None
    agent: str | None = None


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, without regard to case; ``ValueError`` for what is none."""
    try:
        return re.compile(pattern, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None


# ---------------------------------------------------------------- the record


class Decided(Record):
    """An item that was put forward for a list: accepted as ``stored``, or refused with the reason."""

    turn: int
    row: int
    call: str
    value: JsonValue
    stored: str | None = None
    refused: Refusal | None = None

    @property
    def accepted(self) -> bool:
        """It is on the list."""
        return self.refused is None


class Reading(Record):
    """A value that a tool read out; ``None`` for one that could not be measured."""

    turn: int
    row: int
    call: str
    name: str
    value: JsonValue = None


class Leak(Record):
    """A hidden value in words of somebody who cannot have known it: where in the truth, whose words, which row."""

    pointer: str
    said_by: Literal["user", "agent"]
    row: int


class Secrecy(Record):
    """Places of the truth: those whose values were searched for, those that anybody may write by chance (only the way
    prompts are made keeps them), those that the case itself tells its user, those that a tool read out, and the leaks.
    """

    searched: tuple[str, ...] = ()
    not_distinctive: tuple[str, ...] = ()
    told_by_the_case: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    leaks: tuple[Leak, ...] = ()


class CognitionRecord(Record):
    """What the agent of one conversation believed and why, read off its transcript.

    ``truth`` is the case's, so that the file needs no other to be scored; ``rules`` are those that were applied,
    without the detectors.
    """

    truth: JsonValue = None
    rules: Cognition | None = None
    assessments: tuple[StepAssessment, ...] = ()
    lists: dict[str, tuple[Decided, ...]] = Field(default_factory=dict)
    readings: tuple[Reading, ...] = ()
    belief: BeliefGraph = NO_BELIEFS
    secrecy: Secrecy | None = None


__all__ = [
    "FIVE_A_CALL", "PRESETS", "AcceptPolicy", "AssessmentRule", "Cognition", "CognitionRecord", "Decided", "Detector",
    "Leak", "ListRule", "Reading", "ReadingRule", "Refusal", "Secrecy", "compiled",
]  # fmt: skip
