"""Calls outside of conversations, where no driver does: retried by the same policy, and every attempt on the bill."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Protocol, TypeVar

import anyio

from evaluatorq.errors import CallError
from evaluatorq.model.spending import Bill, Category
from evaluatorq.model.usage import Usage
from evaluatorq.pacing.retry import RetryPolicy


class Paid(Protocol):
    """An answer that says what it cost and whose it is, ``None`` when nobody knows."""

    @property
    def usage(self) -> Usage | None:
        """Its cost."""
        ...

    @property
    def model(self) -> str | None:
        """The model that gave it."""
        ...


R = TypeVar("R", bound=Paid)


class PaidCalls:
    """A retry policy and a bill; serves any number of calls at once."""

    def __init__(self, retry: RetryPolicy, bill: Bill, *, seed: int = 0) -> None:
        self.bill = bill
        self._retry = retry
        self._random = Random(seed)  # noqa: S311  jitter, not secrets

    async def make(self, category: Category, call: Callable[[], Awaitable[R]], *, reask: bool = False) -> R:
        """The answer, after as many attempts as the policy allows; else the last ``CallError``.

        An answer that came and cannot be used is raised at once, for whoever asked to ask better; with ``reask`` the
        call sees to that by itself, and is repeated until it gives up.
        """

        async def once() -> R:
            try:
                answer = await call()
            except CallError as error:
                self.bill.failed(category, error)
                raise
            except anyio.get_cancelled_exc_class():
                self.bill.answered(category, None)
                raise
            self.bill.answered(category, answer.usage, answer.model)
            return answer

        policy = self._retry if reask else replace(self._retry, most_reasks=0)
        answer: R = await policy.retrying(self._random, lambda _error, _attempt, _pause: None)(once)
        return answer
