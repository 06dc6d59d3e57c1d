"""What must be true of a conversation, or of one of its turns, decided by code over observations.

A claim that is absent asserts nothing; an empty list asserts that there was none. Unknown keys are refused.
Short forms: a tool is its name, a list of tools or acts is the exact list, a number is an exact count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from evaluatorq.model.base import Strict
from evaluatorq.model.observation import CallOutcome, ResolutionName


def _given(record: Strict, names: Iterable[str]) -> list[str]:
    return [name for name in names if getattr(record, name) is not None]


def _under(key: str) -> BeforeValidator:
    """A short form: a plain value stands for a mapping with one key."""
    return BeforeValidator(lambda value: value if isinstance(value, dict | Strict) else {key: value})


Pointer = Annotated[str, Field(pattern=r"^(/([^~]|~[01])*)?$")]
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]


class FailsWith(Strict):
    """The turn, or the conversation, fails with this code."""

    fails_with: Name


class ToolClaim(Strict):
    """A tool call. ``arguments`` are a subset that must be equal; without ``outcome`` any will do."""

    name: Name
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    outcome: CallOutcome | None = None


Tool = Annotated[ToolClaim, _under("name")]
Tools = tuple[Tool, ...]


class ToolsClaim(Strict):
    """The calls: exactly these, these in this order with others between, these somewhere, or one of several lists."""

    exact: Tools | None = None
    in_order: Tools | None = None
    subset: Tools | None = None
    any_of: Annotated[tuple[Tools, ...] | None, Field(min_length=1)] = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not _given(self, type(self).model_fields):
            raise ValueError("claims nothing; give exact, in_order, subset or any_of")
        return self

    @property
    def required(self) -> set[str]:
        """Names that every fitting list of calls holds."""
        lists = [claims for claims in (self.exact, self.in_order, self.subset) if claims is not None]
        return {claim.name for claims in lists for claim in claims}


class Forbidden(Strict):
    """What must not occur: tools (called with any outcome unless one is named), commands, events."""

    tools: Tools = ()
    commands: tuple[Name, ...] = ()
    events: tuple[Name, ...] = ()


class StateClaim(Strict):
    """A value by JSON pointer: exactly one claim about it. ``ignore_case`` is for texts."""

    pointer: Pointer
    equals: JsonValue = None
    one_of: Annotated[list[JsonValue] | None, Field(min_length=1)] = None
    unchanged: Literal[True] | None = None
    absent: Literal[True] | None = None
    ignore_case: bool = False

    @model_validator(mode="after")
    def _one_claim(self) -> Self:
        claims = _given(self, ("one_of", "unchanged", "absent"))
        if self.equals is not None or ("equals" in self.model_fields_set and not claims):
            claims.append("equals")
        if len(claims) != 1:
            found = " and ".join(claims) or "nothing"
            raise ValueError(f"gives {found}; give exactly one of equals, one_of, unchanged, absent")
        if self.ignore_case and claims[0] not in ("equals", "one_of"):
            raise ValueError("ignore_case goes with equals or one_of")
        return self


class CountClaim(Strict):
    """How many: exactly so many, or at least, or at most."""

    exactly: Count | None = None
    at_least: Count | None = None
    at_most: Count | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not _given(self, type(self).model_fields):
            raise ValueError("claims nothing; give a number, at_least or at_most")
        return self

    @property
    def text(self) -> str:
        """The claim in words."""
        words = {"exactly": self.exactly, "at least": self.at_least, "at most": self.at_most}
        told = [f"{word} {number}" for word, number in words.items() if number is not None]
        return " and ".join(told).removeprefix("exactly ")

    def holds(self, count: int) -> bool:
        """Whether ``count`` is as claimed."""
        return (
            (self.exactly is None or count == self.exactly)
            and (self.at_least is None or count >= self.at_least)
            and (self.at_most is None or count <= self.at_most)
        )


Counted = Annotated[CountClaim, _under("exactly")]


class ActClaim(Strict):
    """An act as it was understood; what is not named may be anything."""

    kind: Name
    operation: Name | None = None
    outcome: Name | None = None


Acts = tuple[Annotated[ActClaim, _under("kind")], ...]


class ActsClaim(Strict):
    """The acts: exactly these, position by position, or one of several whole lists."""

    exact: Acts | None = None
    any_of: Annotated[tuple[Acts, ...] | None, Field(min_length=1)] = None

    @model_validator(mode="after")
    def _one_claim(self) -> Self:
        if len(_given(self, ("exact", "any_of"))) != 1:
            raise ValueError("give exactly one of exact, any_of")
        return self


class ResolutionClaim(Strict):
    """How the target of act number ``act`` (from 0) was found; a resource only where exactly one was."""

    act: Count
    resolution: ResolutionName
    resource: Name | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.resource is not None and self.resolution not in ("exact", "stale"):
            raise ValueError(f"a target that is {self.resolution} names no resource")
        return self


class ArgumentClaim(Strict):
    """An argument that was understood: its value, or that none was given."""

    equals: JsonValue = None
    not_given: Literal[True] | None = None


class UnitClaim(Strict):
    """A part of a message as it should be understood. Scored by task, never a failure."""

    kind: Name
    words: str | None = None
    operation: Name | None = None
    record: Name | None = None
    arguments: dict[str, Annotated[ArgumentClaim, _under("equals")]] | None = None


class Claims(Strict):
    """Everything that can be claimed of a turn, or of all turns together."""

    outcome: Literal["succeeds", "fails"] | FailsWith | None = None
    tools: Annotated[ToolsClaim, _under("exact")] | None = None
    calls: dict[str, Counted] | None = None
    forbid: Forbidden | None = None
    commands: tuple[Name, ...] | None = None
    events: tuple[Name, ...] | None = None
    state: tuple[StateClaim, ...] | None = None
    counts: dict[Pointer, Counted] | None = None
    revisions: dict[Name, Count] | None = None
    interactions: dict[Name, tuple[Name, ...]] | None = None
    blocks: tuple[Name, ...] | None = None
    phase: Name | None = None
    acts: Annotated[ActsClaim, _under("exact")] | None = None
    resolutions: tuple[ResolutionClaim, ...] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        forbidden = self.forbid or Forbidden()
        both = set() if self.tools is None else self.tools.required & {c.name for c in forbidden.tools if _plain(c)}
        both |= set(self.commands or ()) & set(forbidden.commands)
        both |= set(self.events or ()) & set(forbidden.events)
        if both:
            raise ValueError(f"{', '.join(sorted(both))}: expected and forbidden at once")
        return self


def _plain(claim: ToolClaim) -> bool:
    return claim.outcome is None and not claim.arguments


class TurnClaims(Claims):
    """Claims about one turn: its number from 1 (0 is what an agent says before the user), or the last one."""

    turn: Count | Literal["last"]
    understanding: tuple[UnitClaim, ...] | None = None


class Expectations(Claims):
    """The ``expect:`` of a scenario: claims about the whole conversation, and about single turns."""

    turns: tuple[TurnClaims, ...] = ()

    @model_validator(mode="after")
    def _each_turn_once(self) -> Self:
        numbers = [claims.turn for claims in self.turns]
        if len(set(numbers)) < len(numbers):
            raise ValueError("turns: a turn is described twice; say everything about it in one place")
        return self
