"""What is learnt of a conversation besides its words: from the store behind the agent, and by detectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from evaluatorq.model.belief import BeliefUpdate
from evaluatorq.model.findings import FoundClaim
from evaluatorq.model.messages import Message
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.usage import Usage


@dataclass(frozen=True, slots=True)
class ObservedTurn:
    """The turn that a store is asked about: conversation, number, rows, and the id that the agent gave its reply."""

    thread_id: str
    number: int
    messages: tuple[Message, ...]
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """One event of a store's ledger; ``belongs`` says that this turn committed it."""

    type: str
    belongs: bool = True


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events after a cursor, oldest first, and the cursor of the next page. A page without events is the end."""

    events: tuple[LedgerEvent, ...]
    cursor: str | None = None


@runtime_checkable
class ObservationSource(Protocol):
    """The store behind an agent, asked after each of its turns what the turn left. The ledger is paged to its end."""

    async def collect(self, turn: ObservedTurn) -> TurnReport:
        """Everything but the events; what is not known stays ``None``."""
        ...

    async def page(self, turn: ObservedTurn, after: str | None) -> EventPage:
        """The ledger's next events, from its start where ``after`` is ``None``."""
        ...


@dataclass(frozen=True, slots=True)
class BeliefReply:
    """Values that somebody put forward for slots. ``usage`` of ``None`` means unknown."""

    updates: tuple[BeliefUpdate, ...]
    usage: Usage | None = None
    model: str | None = None


class BeliefDetector(Protocol):
    """Notes what can be known from what the user says. What it raises is noted and ends nothing."""

    async def detect(self, messages: Sequence[Message]) -> BeliefReply:
        """The values that the last message of the user gives."""
        ...


@dataclass(frozen=True, slots=True)
class ClaimReply:
    """What an agent said that it did. ``usage`` of ``None`` means unknown."""

    claims: tuple[FoundClaim, ...]
    usage: Usage | None = None
    model: str | None = None


class ClaimFinder(Protocol):
    """Finds in the agent's words, once at the end, what it says that it did. What it raises is noted, no more."""

    async def find(self, messages: Sequence[Message]) -> ClaimReply:
        """The statements, each with its words."""
        ...
