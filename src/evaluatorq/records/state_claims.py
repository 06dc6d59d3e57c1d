"""Claims about states by JSON pointer, and about how many members something has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import JsonValue

from evaluatorq.conversation.checks import same_json, value_at
from evaluatorq.model.expectations import CountClaim, StateClaim
from evaluatorq.model.observation import Change, Observation

Found = tuple[str, str, str, str]
"""Name, expected, actual and subject of a failure."""


@dataclass(frozen=True, slots=True)
class World:
    """A state before and after; or, where no environment shows one, the resources that a store reported."""

    before: JsonValue
    after: JsonValue
    reported: Mapping[str, Change]

    @classmethod
    def of(cls, before: JsonValue, after: JsonValue, seen: Observation) -> Self:
        """The world around what was seen."""
        return cls(before, after, seen.states or {})

    def at(self, pointer: str) -> Change | None:
        """The value before and after, ``None`` where nobody observed it; a missing value is ``None`` as well."""
        if self.after is not None:
            return Change(before=value_at(self.before, pointer), after=value_at(self.after, pointer))
        for resource, change in self.reported.items():
            if pointer == resource or pointer.startswith(f"{resource}/"):
                rest = pointer[len(resource) :]
                return Change(before=value_at(change.before, rest), after=value_at(change.after, rest))
        return None


def check_state(claims: Sequence[StateClaim], world: World) -> Iterator[Found]:
    """The claims that do not hold."""
    for claim in claims:
        found = world.at(claim.pointer)
        if found is None:
            yield "state", _wanted(claim, None), "not observed", claim.pointer or "/"
        elif not _holds(claim, found):
            yield "state", _wanted(claim, found), _json(found.after), claim.pointer or "/"


def _holds(claim: StateClaim, found: Change) -> bool:
    if claim.unchanged:
        return same_json(found.before, found.after)
    if claim.absent:
        return found.after is None
    options = claim.one_of if claim.one_of is not None else [claim.equals]
    if claim.ignore_case:
        return any(same_json(_folded(found.after), _folded(option)) for option in options)
    return any(same_json(found.after, option) for option in options)


def _folded(value: JsonValue) -> JsonValue:
    return value.casefold() if isinstance(value, str) else value


def _wanted(claim: StateClaim, found: Change | None) -> str:
    if claim.unchanged:
        return "no change" if found is None else f"unchanged {_json(found.before)}"
    if claim.absent:
        return "absent"
    return " or ".join(map(_json, claim.one_of)) if claim.one_of is not None else _json(claim.equals)


def _json(value: JsonValue) -> str:
    text = "absent" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:197]}..."


def check_counts(claims: Mapping[str, CountClaim], world: World) -> Iterator[Found]:
    """The claims about numbers of members that do not hold; what is absent has none."""
    for pointer, claim in claims.items():
        found = world.at(pointer)
        if found is None:
            yield "counts", claim.text, "not observed", pointer or "/"
            continue
        value = found.after
        if value is not None and not isinstance(value, dict | list):
            yield "counts", claim.text, f"{_json(value)}, which has no members", pointer or "/"
        elif not claim.holds(len(value or ())):
            yield "counts", claim.text, str(len(value or ())), pointer or "/"
