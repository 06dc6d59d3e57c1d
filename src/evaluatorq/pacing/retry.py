"""When a failed call is asked again: exponential backoff with full jitter, ``Retry-After`` honoured, one owner.

Only the driver retries. An answer that came but was unusable (``reask``) is asked again at once; the participant
decides how often by raising an error that is not retryable when it gives up. Backoff with full jitter draws each wait
from 0 to ``base * 2**n`` (M. Brooker, "Exponential Backoff And Jitter", 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import anyio
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from evaluatorq.errors import CallError

MOST_REASKS = 8

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
    patience_s: float = 300.0
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
        longest: float = min(self.cap_s, self.base_s * 2.0 ** (unlucky - 1))
        return asked + chance * longest

    def retrying(self, random: Random, on_failure: FailedAttempt) -> AsyncRetrying:
        """A controller that carries this policy out; one may serve many calls, one after the other."""
        tally = _Tally(self, random)
        return AsyncRetrying(
            sleep=anyio.sleep,
            stop=tally.stop,
            wait=tally.wait,
            retry=retry_if_exception(lambda error: isinstance(error, CallError)),
            before_sleep=lambda state: on_failure(_error(state), state.attempt_number, tally.pause),
            reraise=True,
        )


class _Tally:
    """Counts the failures of one call by kind; starts again with each call's first attempt."""

    def __init__(self, policy: RetryPolicy, random: Random) -> None:
        self.policy = policy
        self.random = random
        self.unlucky = self.reasked = 0
        self.pause = 0.0

    def stop(self, state: RetryCallState) -> bool:
        if state.attempt_number == 1:
            self.unlucky = self.reasked = 0
        error = _error(state)
        self.reasked += error.reask
        self.unlucky += not error.reask
        pause = self.policy.delay(error, unlucky=self.unlucky, reasked=self.reasked, chance=self.random.random())
        self.pause = pause or 0.0
        return pause is None

    def wait(self, _state: RetryCallState) -> float:
        return self.pause


def _error(state: RetryCallState) -> CallError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, CallError), "only call errors are retried"
    return error
