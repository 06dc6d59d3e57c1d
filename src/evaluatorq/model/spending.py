"""What models were paid for beside the conversations: cases made, summaries written, suggestions sought."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluatorq.errors import CallError
from evaluatorq.model.base import Record
from evaluatorq.model.events import REFUSALS
from evaluatorq.model.usage import NO_USAGE, NOT_TOLD, Usage

Category = Literal["generation", "first_messages", "executive_summary", "recommendations", "apply"]
CONVERSATIONS = "conversations"
"""The category of everything that conversations themselves spent, in ``SimulationRun.usage_by_category``."""


class Spending(Record):
    """Usage by category, and again by model. ``unread`` counts the answers whose cost nobody knows: with any, the sums
    are a least.
    """

    usage: dict[str, Usage] = Field(default_factory=dict)
    by_model: dict[str, Usage] = Field(default_factory=dict)
    unread: dict[str, int] = Field(default_factory=dict)

    @property
    def total(self) -> Usage:
        """Everything that is known."""
        return sum(self.usage.values(), NO_USAGE)

    def __add__(self, other: Spending) -> Spending:
        usage, by_model, unread = dict(self.usage), dict(self.by_model), dict(self.unread)
        for category, spent in other.usage.items():
            usage[category] = usage.get(category, NO_USAGE) + spent
        for model, spent in other.by_model.items():
            by_model[model] = by_model.get(model, NO_USAGE) + spent
        for category, count in other.unread.items():
            unread[category] = unread.get(category, 0) + count
        return Spending(usage=usage, by_model=by_model, unread=unread)


NO_SPENDING = Spending()


class Bill:
    """A running ``Spending``."""

    def __init__(self) -> None:
        self.spending = NO_SPENDING

    def answered(self, category: Category, usage: Usage | None, model: str | None = None) -> None:
        """Books an answer of ``model``; a usage of ``None`` is one that did not say what it cost."""
        if usage is None:
            self.spending += Spending(unread={category: 1})
        elif usage != NO_USAGE:
            self.spending += Spending(usage={category: usage}, by_model={model or NOT_TOLD: usage})

    def failed(self, category: Category, error: CallError) -> None:
        """Books a call that brought no answer; one that the server refused cost nothing."""
        if error.usage is not None or error.code not in REFUSALS:
            self.answered(category, error.usage, error.model)


__all__ = ["CONVERSATIONS", "NO_SPENDING", "Bill", "Category", "Spending"]
