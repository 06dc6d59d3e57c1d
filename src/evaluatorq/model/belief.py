"""What an agent could know: slots with competing values, who said each, when, how surely, and the words that show it.

Nothing is resolved: a slot keeps every value, and the same value again from another source is another item. ``edges``
stand beside ``slots``: for each item the ids of the evidence for it, none where somebody only said so.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from evaluatorq.model.base import Record

Certainty = Literal["explicit", "inferred", "suspected"]
BeliefSource = Literal["user", "agent", "tool", "other"]


class BeliefUpdate(Record):
    """A value that somebody put forward for a slot. ``row`` is a place in the transcript, ``evidence`` its words."""

    slot: str
    value: JsonValue
    source: BeliefSource = "user"
    turn: int | None = None
    certainty: Certainty = "explicit"
    evidence: str | None = None
    row: int | None = None


class Evidence(Record):
    """Words of the conversation that speak for a value."""

    evidence_id: str
    text: str
    source: BeliefSource
    turn: int
    row: int | None = None


class BeliefItem(Record):
    """One value of a slot, from one source. ``turn`` is when it came up first."""

    value: JsonValue
    source: BeliefSource
    turn: int
    certainty: Certainty


class BeliefGraph(Record):
    """All slots with what speaks for each of their values."""

    evidence: dict[str, Evidence] = Field(default_factory=dict)
    slots: dict[str, tuple[BeliefItem, ...]] = Field(default_factory=dict)
    edges: dict[str, tuple[tuple[str, ...], ...]] = Field(default_factory=dict)

    def evidence_for(self, slot: str, index: int) -> tuple[Evidence, ...]:
        """What speaks for item ``index`` (from 0) of a slot, earliest first."""
        return tuple(self.evidence[key] for key in self.edges[slot][index])


NO_BELIEFS = BeliefGraph()
