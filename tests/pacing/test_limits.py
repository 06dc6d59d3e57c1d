"""The limiter on a virtual clock: trio's, which jumps to the next deadline when nothing else can run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.pacing.limits import PATIENCE_S, ROUNDS_TO_MAXIMUM, EndpointLimiter, LimiterOptions


def on_virtual_clock(test: Callable[[], Awaitable[None]]) -> None:
    trio.run(test, clock=MockClock(autojump_threshold=0))


def too_many(retry_after: float | None = None) -> CallError:
    return CallError("rate_limit", "too many", retryable=True, retry_after=retry_after)


class Provider:
    """Answers each call after ``latency`` seconds; ``refuses`` decides by the time of arrival."""

    def __init__(self, limiter: EndpointLimiter, latency: float = 1.0) -> None:
        self.limiter = limiter
        self.latency = latency
        self.refuses: Callable[[float], CallError | None] = lambda now: None
        self.at_once = self.most_at_once = 0
        self.arrivals: list[float] = []

    async def call(self) -> bool:
        """Whether the call was answered."""
        try:
            async with self.limiter.slot():
                self.arrivals.append(anyio.current_time())
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
                refusal = self.refuses(anyio.current_time())
                try:
                    await anyio.sleep(self.latency)
                finally:
                    self.at_once -= 1
                if refusal is not None:
                    raise refusal
        except CallError:
            return False
        return True

    async def round(self, calls: int) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(calls):
                group.start_soon(self.call)


def test_no_more_calls_than_the_cap_run_at_once_and_all_run() -> None:
    async def scene() -> None:
        provider = Provider(EndpointLimiter(5))
        start = anyio.current_time()
        await provider.round(23)
        assert provider.most_at_once == 5
        assert anyio.current_time() - start == pytest.approx(5.0)
        assert provider.limiter.in_flight == 0

    on_virtual_clock(scene)


def test_a_burst_of_refusals_cuts_once_everybody_waits_and_the_maximum_comes_back() -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(100)
        provider = Provider(limiter)
        start = anyio.current_time()
        provider.refuses = lambda now: too_many(60) if now < start + 10 else None
        await provider.round(100)
        assert limiter.limit == 50

        await provider.round(100)
        assert all(at >= start + 61 for at in provider.arrivals[100:])
        assert limiter.limit > 50

        rounds = 0
        while limiter.limit < 100:
            await provider.round(limiter.limit)
            rounds += 1
        assert rounds <= ROUNDS_TO_MAXIMUM

    on_virtual_clock(scene)


def test_a_refusal_for_longer_than_anybody_waits_holds_no_call_back() -> None:
    async def scene() -> None:
        provider = Provider(EndpointLimiter(20))
        start = anyio.current_time()
        provider.refuses = lambda now: too_many(PATIENCE_S + 1)
        await provider.round(40)
        assert max(provider.arrivals) < start + 20

    on_virtual_clock(scene)


@pytest.mark.parametrize("cap", [1, 2, 3, 20, 1000])
def test_from_the_lowest_limit_the_maximum_is_reached_within_the_stated_rounds(cap: int) -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(cap)
        provider = Provider(limiter)
        provider.refuses = lambda now: too_many()
        while limiter.limit > 1:
            await provider.round(2 * cap)
        provider.refuses = lambda now: None
        for _ in range(ROUNDS_TO_MAXIMUM):
            await provider.round(limiter.limit)
        assert limiter.limit == cap

    on_virtual_clock(scene)


def test_single_refusals_among_many_answers_slow_nobody_else_down() -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(20)
        provider = Provider(limiter)
        calls = iter(range(10_000))
        provider.refuses = lambda now: too_many(60) if next(calls) % 20 == 7 else None
        start = anyio.current_time()
        await provider.round(2000)
        assert limiter.limit == 20
        assert anyio.current_time() - start == pytest.approx(100.0)

    on_virtual_clock(scene)


def test_a_longer_wait_said_later_in_the_burst_counts() -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(40)
        provider = Provider(limiter)
        waits = iter([5.0] * 39 + [90.0])
        start = anyio.current_time()
        provider.refuses = lambda now: too_many(next(waits))
        await provider.round(40)
        provider.refuses = lambda now: None
        await provider.call()
        assert provider.arrivals[-1] == pytest.approx(start + 91)
        assert limiter.limit >= 20

    on_virtual_clock(scene)


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (CallError("server_error", "overloaded", retry_after=5.0), 10),
        (CallError("server_error", "broken"), 20),
        (CallError("quota", "spent"), 20),
        (CallError("timeout", "late"), 20),
    ],
)
def test_only_an_endpoint_that_asks_for_fewer_calls_gets_fewer(error: CallError, limit: int) -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(20)
        provider = Provider(limiter)
        provider.refuses = lambda now: error
        await provider.round(20)
        assert limiter.limit == limit

    on_virtual_clock(scene)


def test_a_cancelled_waiter_gives_its_turn_to_the_next() -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(1)
        provider = Provider(limiter, latency=10)
        async with anyio.create_task_group() as group:
            group.start_soon(provider.call)
            await anyio.sleep(1)
            with anyio.move_on_after(2):
                await provider.call()
            await provider.call()
        assert limiter.in_flight == 0
        assert len(provider.arrivals) == 2

    on_virtual_clock(scene)


def test_a_call_cancelled_while_it_waits_out_a_pause_frees_its_slot() -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(20)
        provider = Provider(limiter)
        provider.refuses = lambda now: too_many(100)
        await provider.round(20)
        with anyio.move_on_after(5):
            await provider.call()
        assert limiter.in_flight == 0

    on_virtual_clock(scene)


@settings(max_examples=40)
@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(1, 12), st.booleans()), max_size=25),
)
def test_whatever_is_cancelled_or_refused_no_slot_is_lost_and_none_is_given_twice(
    cap: int, calls: list[tuple[int, int, int, bool]]
) -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(cap)
        provider = Provider(limiter, latency=2)

        async def one(start: int, patience: int, refused: bool) -> None:
            await anyio.sleep(start)
            with anyio.move_on_after(patience):
                provider.refuses = lambda now: too_many(1) if refused else None
                await provider.call()

        async with anyio.create_task_group() as group:
            for start, _, patience, refused in calls:
                group.start_soon(one, start, patience, refused)
        assert limiter.in_flight == 0
        assert provider.most_at_once <= cap
        provider.refuses = lambda now: None
        await provider.round(3 * cap)
        assert limiter.in_flight == 0

    on_virtual_clock(scene)


def test_requests_per_minute_are_spaced_evenly() -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(50, LimiterOptions(requests_per_minute=30))
        provider = Provider(limiter)
        await provider.round(10)
        gaps = [b - a for a, b in zip(provider.arrivals, provider.arrivals[1:], strict=False)]
        assert gaps == pytest.approx([2.0] * 9)
        await anyio.sleep(600)
        await provider.round(3)
        assert provider.arrivals[-1] - provider.arrivals[-3] == pytest.approx(4.0)

    on_virtual_clock(scene)


def test_tokens_that_were_spent_are_waited_for() -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(1, LimiterOptions(tokens_per_minute=600))
        provider = Provider(limiter, latency=0)
        start = anyio.current_time()
        for _ in range(4):
            await provider.call()
            limiter.spend(100)
        assert provider.arrivals[-1] - start == pytest.approx(30.0)

    on_virtual_clock(scene)


def test_a_pause_holds_for_spaced_requests_too() -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(100, LimiterOptions(requests_per_minute=6000))
        provider = Provider(limiter)
        start = anyio.current_time()
        provider.refuses = lambda now: too_many(60) if now < start + 30 else None
        await provider.round(100)
        await provider.round(100)
        gaps = [b - a for a, b in zip(provider.arrivals[100:], provider.arrivals[101:], strict=False)]
        assert min(provider.arrivals[100:]) >= start + 60
        assert min(gaps) >= 0.01 - 1e-9

    on_virtual_clock(scene)


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_that_lets_nothing_through_is_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        LimiterOptions(**{name: value})


def test_a_lowered_cap_stays_low() -> None:
    async def scene() -> None:
        limiter = EndpointLimiter(10)
        limiter.lower_cap(3)
        provider = Provider(limiter)
        await provider.round(20)
        assert (provider.most_at_once, limiter.limit, limiter.cap) == (3, 3, 3)

    on_virtual_clock(scene)


async def test_it_works_on_asyncio_as_well() -> None:
    provider = Provider(EndpointLimiter(3), latency=0)
    await provider.round(30)
    assert provider.most_at_once <= 3
    assert len(provider.arrivals) == 30
