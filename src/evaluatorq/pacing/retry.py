"""When a failed call is asked again: exponential backoff with full jitter, ``Retry-After`` honoured, one owner.

Only the driver retries. An answer that came but was unusable (``reask``) is asked again at once; the participant
decides how often by raising an error that is not retryable when it gives up. Backoff with full jitter draws each wait
from 0 to ``base * 2**n`` (M. Brooker, "Exponential Backoff And Jitter", 2015). Where a refusal says when to come
back, ``base`` is a tenth of that time: the refused are spread already, as their calls were.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeVar

import anyio

from evaluatorq.errors import CallError
from evaluatorq.pacing.limits import PATIENCE_S

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

T = TypeVar("T")
MOST_REASKS = 8
SPREAD = 0.1
"""Calls that were told when to come back spread over this share of the time they waited, and over twice it the next."""

FailedAttempt = Callable[[CallError, int, float], None]
"""Called before each wait with the error, the number of the attempt that failed, and the seconds to wait."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """``attempts`` calls in all for bad luck; waits are drawn from 0 to ``base_s * 2**n``, at most ``cap_s`` seconds.

    A ``Retry-After`` longer than ``patience_s`` is not waited for: the call fails with its own error. ``most_reasks``
    stops participants that would ask for ever; ours give up far earlier by themselves.
    """

    attempts: int = 5
    base_s: float = 0.5
    cap_s: float = 30.0
    patience_s: float = PATIENCE_S
    most_reasks: int = MOST_REASKS

    def delay(self, error: CallError, *, unlucky: int, reasked: int, chance: float) -> float | None:
        """Seconds to wait before the next attempt, ``None`` to give up.

        ``unlucky`` and ``reasked`` count the failures of either kind so far, this one included; ``chance`` is uniform
        in [0, 1).
        """
        if not error.retryable:
            return None
        if error.reask:
            return 0.0 if reasked < self.most_reasks else None
        asked = error.retry_after or 0.0
        if unlucky >= self.attempts or asked > self.patience_s:
            return None
        base_s = min(self.base_s, asked * SPREAD) if asked else self.base_s
        longest: float = min(self.cap_s, base_s * 2.0 ** (unlucky - 1))
        return asked + chance * longest

    def retrying(self, random: Random, on_failure: FailedAttempt) -> Retrying:
        """What makes calls as this policy says; one may serve many calls, one after the other."""
        return Retrying(self, random, on_failure)


class Retrying:
    """Makes calls as a policy says. ``attempts`` is how many the last one took.

    The first attempt is made without tenacity: nearly every call ends there, and a controller costs as much as all
    else that is done for a call. One that fails goes to a controller, which counts it as its own first.
    """

    def __init__(self, policy: RetryPolicy, random: Random, on_failure: FailedAttempt) -> None:
        self.attempts = 0
        self._policy = policy
        self._random = random
        self._on_failure = on_failure

    async def __call__(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The first answer, or the last ``CallError``."""
        self.attempts = 1
        failed: CallError | None
        try:
            return await ask()
        except CallError as error:
            failed = error

        async def again() -> T:
            nonlocal failed
            if failed is not None:
                first, failed = failed, None
                raise first
            self.attempts += 1
            return await ask()

        return await self._controller()(again)

    def _controller(self) -> AsyncRetrying:
        from tenacity import AsyncRetrying, retry_if_exception  # noqa: PLC0415  a run without failures needs none

        tally = _Tally(self._policy, self._random)
        return AsyncRetrying(
            sleep=anyio.sleep,
            stop=tally.stop,
            wait=tally.wait,
            retry=retry_if_exception(lambda error: isinstance(error, CallError)),
            before_sleep=lambda state: self._on_failure(_error(state), state.attempt_number, tally.pause or 0.0),
            reraise=True,
        )


class _Tally:
    """Counts the failures of one call by kind. tenacity asks how long to wait first, and only then whether to stop."""

    def __init__(self, policy: RetryPolicy, random: Random) -> None:
        self.policy = policy
        self.random = random
        self.unlucky = self.reasked = 0
        self.pause: float | None = None

    def wait(self, state: RetryCallState) -> float:
        error = _error(state)
        self.reasked += error.reask
        self.unlucky += not error.reask
        chance = self.random.random()
        self.pause = self.policy.delay(error, unlucky=self.unlucky, reasked=self.reasked, chance=chance)
        return self.pause or 0.0

    def stop(self, _state: RetryCallState) -> bool:
        return self.pause is None


def _error(state: RetryCallState) -> CallError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, CallError), "only call errors are retried"
    return error
