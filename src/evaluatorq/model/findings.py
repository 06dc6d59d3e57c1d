"""What code found out about a conversation: expectations that failed, and statements that no fact backs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluatorq.model.base import Record

Category = Literal["side effects", "operational claims", "understanding", "clarification", "missing facts"]
_CATEGORIES: dict[str, Category] = {
    "outcome": "operational claims", "blocks": "operational claims", "phase": "operational claims",
    "acts": "understanding", "resolution": "understanding", "interactions": "clarification",
    "unreported_facts": "missing facts", "truncated_ledger": "missing facts", "unreadable_facts": "missing facts",
    "turn": "missing facts",
}  # fmt: skip


class ExpectationFailure(Record):
    """A claim that does not hold: which, about what, and what was found instead. ``turn`` is ``None`` for a claim about
    the whole conversation.
    """

    name: str
    expected: str
    actual: str
    subject: str | None = None
    turn: int | None = None

    @property
    def category(self) -> Category:
        """What kind of fact it is about."""
        return _CATEGORIES.get(self.name, "side effects")

    @property
    def text(self) -> str:
        """The failure as one sentence."""
        place = "" if self.turn is None else f"turn {self.turn}: "
        about = "" if self.subject is None else f" [{self.subject}]"
        return f"{place}{self.name}{about}: expected {self.expected}, got {self.actual}"


class TaskScores(Record):
    """How a message was understood, task by task; ``None`` where nothing was stated or the task was not reached."""

    turn: int
    segment: bool | None = None
    route: bool | None = None
    locate: bool | None = None
    extract: bool | None = None


class ExpectationReport(Record):
    """Whether a conversation met its scenario's expectations; ``met`` is ``None`` where that could not be measured."""

    met: bool | None
    failures: list[ExpectationFailure] = Field(default_factory=list)
    tasks: list[TaskScores] = Field(default_factory=list)


class FoundClaim(Record):
    """A statement of the agent about a deed, as a model found it: the words, their row in the transcript, the tool that
    does such a thing (``None`` where none does), and the values that the words name, by argument.
    """

    quote: str
    row: int
    tool: str | None = None
    arguments: dict[str, str] = Field(default_factory=dict)


class ProseClaim(FoundClaim):
    """Such a statement held against the calls that the agent made. ``unknown`` is what could not be compared."""

    turn: int
    standing: Literal["backed", "unbacked", "unknown"]
    why: str


class ClaimFinding(Record):
    """The agent said that it did something: its words, where they stand, and whether a fact backs them."""

    words: str
    message_index: int
    turn: int
    backed: bool
    requires: str
