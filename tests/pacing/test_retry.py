"""Calls made again by policy, on a virtual clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

import anyio
import pytest
import trio
from trio.testing import MockClock

from evaluatorq.errors import CallError
from evaluatorq.pacing.retry import MOST_REASKS, RetryPolicy

BAD_LUCK = CallError("server_error", "down", retryable=True)
UNUSABLE = CallError("malformed_response", "no object", reask=True)


def on_virtual_clock(test: Callable[[], Awaitable[None]]) -> None:
    trio.run(test, clock=MockClock(autojump_threshold=0))


class Failing:
    """Raises the errors in order, then answers; remembers what it was told."""

    def __init__(self, *errors: CallError) -> None:
        self.errors = list(errors)
        self.calls = 0
        self.told: list[tuple[int, float]] = []

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= len(self.errors):
            raise self.errors[self.calls - 1]
        return "well"

    def noted(self, _error: CallError, attempt: int, pause: float) -> None:
        self.told.append((attempt, pause))


def test_an_answer_at_once_is_one_attempt_and_nobody_is_told() -> None:
    async def scene() -> None:
        ask = Failing()
        retrying = RetryPolicy().retrying(Random(0), ask.noted)
        assert await retrying(ask) == "well"
        assert (ask.calls, retrying.attempts, ask.told) == (1, 1, [])

    on_virtual_clock(scene)


def test_every_failed_attempt_is_counted_and_told_before_its_wait() -> None:
    async def scene() -> None:
        ask = Failing(BAD_LUCK, BAD_LUCK)
        retrying = RetryPolicy(attempts=3).retrying(Random(0), ask.noted)
        start = anyio.current_time()
        assert await retrying(ask) == "well"
        assert (ask.calls, retrying.attempts) == (3, 3)
        assert [attempt for attempt, _ in ask.told] == [1, 2]
        assert anyio.current_time() - start == pytest.approx(sum(pause for _, pause in ask.told))

    on_virtual_clock(scene)


def test_the_last_error_comes_out_once_the_attempts_are_used_up() -> None:
    async def scene() -> None:
        last = CallError("server_error", "still down", retryable=True)
        ask = Failing(BAD_LUCK, last, BAD_LUCK)
        retrying = RetryPolicy(attempts=2).retrying(Random(0), ask.noted)
        with pytest.raises(CallError) as raised:
            await retrying(ask)
        assert raised.value is last
        assert (ask.calls, retrying.attempts) == (2, 2)

    on_virtual_clock(scene)


def test_what_would_fail_again_is_not_asked_again() -> None:
    async def scene() -> None:
        ask = Failing(CallError("auth", "who are you"))
        with pytest.raises(CallError):
            await RetryPolicy().retrying(Random(0), ask.noted)(ask)
        assert (ask.calls, ask.told) == (1, [])

    on_virtual_clock(scene)


def test_unusable_answers_use_up_no_attempts_and_are_not_waited_for() -> None:
    async def scene() -> None:
        ask = Failing(UNUSABLE, UNUSABLE, BAD_LUCK)
        assert await RetryPolicy(attempts=2).retrying(Random(0), ask.noted)(ask) == "well"
        assert [pause for _, pause in ask.told[:2]] == [0.0, 0.0]

    on_virtual_clock(scene)


def test_unusable_answers_are_not_asked_again_for_ever() -> None:
    async def scene() -> None:
        ask = Failing(*[UNUSABLE] * 100)
        with pytest.raises(CallError):
            await RetryPolicy().retrying(Random(0), ask.noted)(ask)
        assert ask.calls == MOST_REASKS

    on_virtual_clock(scene)


def test_one_controller_counts_each_of_its_calls_from_the_start() -> None:
    async def scene() -> None:
        retrying = RetryPolicy(attempts=2).retrying(Random(0), lambda *_: None)
        for _ in range(3):
            assert await retrying(Failing(BAD_LUCK)) == "well"
            assert retrying.attempts == 2
        await retrying(Failing())
        assert retrying.attempts == 1

    on_virtual_clock(scene)


@pytest.mark.parametrize("asked", [0.2, 1.0, 60.0])
def test_calls_that_were_told_when_to_come_back_come_after_that_and_not_all_at_once(asked: float) -> None:
    refused = CallError("rate_limit", "slow down", retryable=True, retry_after=asked)

    def waits(unlucky: int) -> list[float]:
        drawn = [RetryPolicy().delay(refused, unlucky=unlucky, reasked=0, chance=n / 100) for n in range(100)]
        return [wait for wait in drawn if wait is not None]

    first, second = waits(1), waits(2)
    assert min(first) == asked
    assert asked < max(first) <= asked * 1.1
    assert len(set(first)) == 100
    assert max(second) - asked == pytest.approx(2 * (max(first) - asked))  # not enough: the next time over more
