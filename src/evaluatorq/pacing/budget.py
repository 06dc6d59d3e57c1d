"""What a run may spend: tokens and money, counted as answers arrive. Unknown is not zero.

An answer whose price nobody knows makes the cost of everything unknown, so a limit on cost then cannot be held and
says so, instead of spending on.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluatorq.errors import ConfigError
from evaluatorq.model.usage import NO_USAGE, Usage


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may spend before nothing new begins; ``None`` sets no limit. Cost is in US dollars."""

    max_total_tokens: int | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_total_tokens", "max_cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is a number above 0, or left out for no limit, not {value}")

    def exceeded_by(self, spent: Usage) -> str | None:
        """Why nothing new may begin after ``spent``; ``None`` while there is something left."""
        tokens, cost = spent.total_tokens, spent.total_cost
        if self.max_total_tokens is not None and tokens >= self.max_total_tokens:
            return f"its budget of {self.max_total_tokens:,} tokens: {tokens:,} are spent (more: --max-total-tokens)"
        if self.max_cost is None:
            return None
        if cost is not None and cost >= self.max_cost:
            return f"its budget of ${self.max_cost:g}: ${cost:.4f} are spent (more: --max-cost)"
        if spent.calls > spent.priced_calls and tokens:
            unknown = spent.calls - spent.priced_calls
            return (
                f"its budget of ${self.max_cost:g}, which cannot be held: nobody knows the price of {unknown} of its "
                "calls (the extra evaluatorq[prices] knows many models; --max-total-tokens counts tokens instead)"
            )
        return None


NO_LIMIT = Budget()


class Purse:
    """A budget, and what was taken from it so far."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._limited = budget != NO_LIMIT
        self.spent = NO_USAGE

    def spend(self, usage: Usage | None) -> str | None:
        """Books what an answer cost; returns why nothing new may begin, if so."""
        if not self._limited:
            return None
        if usage is not None and usage.calls:
            self.spent += usage
        return self.budget.exceeded_by(self.spent)
