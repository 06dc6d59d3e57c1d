"""Why a run stops before its end, once it does: an empty purse, or an endpoint that nobody may ask for now.

Nothing new begins then. Conversations under way finish their turn and stay in the journal as they are; a later process
goes on with them.
"""

from __future__ import annotations

from math import ceil

from evaluatorq.errors import CallError, Component
from evaluatorq.model.events import Event
from evaluatorq.model.usage import Usage
from evaluatorq.pacing.budget import NO_LIMIT, Budget, Purse
from evaluatorq.pacing.limits import PATIENCE_S

_EVERYBODYS: dict[str, tuple[Component, ...] | None] = {"quota": None, "auth": ("user_simulator", "judge")}
"""Faults that every further call would meet as well, and whose. Whom an agent lets in is the agent's own affair."""


class Brake:
    """Pulled once; the first reason stays."""

    def __init__(self, budget: Budget = NO_LIMIT) -> None:
        self.reason: str | None = None
        self._purse = Purse(budget)

    def pull(self, reason: str) -> None:
        """Nothing new begins from now on."""
        self.reason = self.reason or reason

    def book(self, event: Event) -> None:
        """Counts what an answer or a failed call cost."""
        usage = getattr(event, "usage", None)
        if isinstance(usage, Usage):
            self.spend(usage)

    def spend(self, usage: Usage) -> None:
        """Takes from the purse."""
        reason = self._purse.spend(usage)
        if reason is not None:
            self.pull(reason)

    def stops_for(self, error: CallError, component: Component) -> bool:
        """Whether this failure stops the run instead of ending one conversation; if so the brake is pulled."""
        whom = component.replace("_", " ")
        if error.retryable and (error.retry_after or 0.0) > PATIENCE_S:
            minutes = ceil((error.retry_after or 0.0) / 60)
            self.pull(f"the {whom}, which asks to be left alone for {minutes} minutes: {error.message}")
            return True
        if error.code not in _EVERYBODYS:
            return False
        components = _EVERYBODYS[error.code]
        if components is not None and component not in components:
            return False
        what = "used-up quota" if error.code == "quota" else "refused credentials"
        self.pull(f"the {what} of the {whom}: {error.message}")
        return True
