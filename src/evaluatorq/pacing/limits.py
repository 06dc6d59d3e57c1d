"""How many calls one endpoint gets at a time, and how fast: a limit that gives way when the endpoint says so.

One refusal among many answers is the caller's own business, who waits and asks again. When a quarter of the recent
answers are refusals, the endpoint is overloaded and everybody gives way: the limit is halved once for all calls that
were under way, and nobody new goes out before the endpoint's Retry-After has passed. Each good answer then gives a
little back, so that the maximum is reached within ten clean rounds (a round is as many answers as the limit).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType

import anyio

from evaluatorq.errors import CallError, ConfigError

OVERLOADED = 0.25
"""The share of refusals among recent answers from which on everybody gives way."""
PATIENCE_S = 300.0
"""A longer Retry-After is waited for by nobody: whoever drives the calls has to stop instead."""
ROUNDS_TO_MAXIMUM = 10
"""Clean rounds after which the limit is at its maximum again, from wherever it fell to."""
_GAIN = 1 / 7


@dataclass(frozen=True, slots=True)
class LimiterOptions:
    """What one endpoint may be asked for. ``None`` sets no limit.

    Requests are spaced evenly. Tokens are booked when an answer arrives, so the calls in flight may overshoot once.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is a number above 0, or left out for no limit, not {value}")


class EndpointLimiter:
    """Slots for calls to one endpoint; first come, first served. ``cap`` is the most that ever run at once.

    ``clock`` gives seconds and ``sleep`` waits them; both are anyio's unless given.
    """

    def __init__(
        self,
        cap: int,
        options: LimiterOptions | None = None,
        *,
        clock: Callable[[], float] = anyio.current_time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        options = options or LimiterOptions()
        self._cap = max(1, cap)
        self._limit = float(self._cap)
        self._clock = clock
        self._sleep = sleep
        self._in_flight = 0
        self._waiters: deque[anyio.Event] = deque()
        self._burst = 0
        self._refused_share = 0.0
        self._asked_until = self._paused_until = float("-inf")
        self._request_gap = 60.0 / options.requests_per_minute if options.requests_per_minute else 0.0
        self._request_due = float("-inf")
        self._token_gap = 60.0 / options.tokens_per_minute if options.tokens_per_minute else 0.0
        self._tokens_due = float("-inf")
        self._held = bool(self._request_gap or self._token_gap)

    @property
    def limit(self) -> int:
        """How many calls may be under way now."""
        return max(1, int(self._limit))

    @property
    def cap(self) -> int:
        """The most calls that ever run at once."""
        return self._cap

    @property
    def in_flight(self) -> int:
        """How many slots are taken, those that wait out a pause included."""
        return self._in_flight

    def lower_cap(self, cap: int) -> None:
        """Takes away slots for good, as when file handles are scarce."""
        self._cap = max(1, min(self._cap, cap))
        self._limit = min(self._limit, self._cap)

    def slot(self) -> Slot:
        """``async with limiter.slot():`` around one request; a ``CallError`` that leaves it says if it was refused."""
        return Slot(self)

    def spend(self, tokens: int) -> None:
        """Books the tokens of one answer against ``tokens_per_minute``."""
        if self._token_gap:
            self._tokens_due = max(self._tokens_due, self._clock()) + tokens * self._token_gap

    async def acquire(self) -> int:
        """Takes a slot, waiting as long as it must. Returns what ``release`` wants back; prefer ``slot()``."""
        if self._in_flight < self._limit and not self._waiters:
            self._in_flight += 1
        else:
            await self._queue()
        if self._held:
            try:
                await self._hold()
            except BaseException:
                self._leave()
                raise
        return self._burst

    def release(self, burst: int, error: BaseException | None = None) -> None:
        """Gives a slot back; ``error`` is what the call ended in, if it failed."""
        if error is None:
            self._answered()
        elif isinstance(error, CallError) and _gives_way(error):
            self._refused(burst, error.retry_after)
        self._leave()

    async def _queue(self) -> None:
        turn = anyio.Event()
        self._waiters.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self._leave()
            else:
                self._waiters.remove(turn)
            raise

    async def _hold(self) -> None:
        """Waits out a pause, the tokens already spent and the spacing of requests, holding the slot."""
        while True:
            now = self._clock()
            due = max(self._paused_until, self._tokens_due)
            if due > now:
                await self._sleep(due - now)
                continue
            if not self._request_gap:
                self._held = bool(self._token_gap)
                return
            turn = max(now, self._request_due)
            self._request_due = turn + self._request_gap
            if turn > now:
                await self._sleep(turn - now)
            if self._paused_until <= self._clock():
                return

    def _leave(self) -> None:
        self._in_flight -= 1
        while self._waiters and self._in_flight < self._limit:
            self._in_flight += 1
            self._waiters.popleft().set()

    def _answered(self) -> None:
        if self._refused_share:
            self._refused_share *= 1.0 - self._weight()
        if self._limit < self._cap:
            self._limit = min(self._cap, self._limit + self._cap * _GAIN / self._limit)

    def _refused(self, burst: int, retry_after: float | None) -> None:
        if retry_after and retry_after <= PATIENCE_S:
            self._asked_until = max(self._asked_until, self._clock() + retry_after)
        if burst == self._burst:
            self._refused_share += self._weight() * (1.0 - self._refused_share)
            if self._refused_share < OVERLOADED:
                return
            self._burst += 1
            self._refused_share = 0.0
            self._limit = max(1.0, self._limit / 2)
        self._paused_until = max(self._paused_until, self._asked_until)
        self._held = True

    def _weight(self) -> float:
        """The weight of one answer: recent means the last 16 to 64 answers, more the more are under way."""
        return 1.0 / min(64.0, max(16.0, self._limit / 4))


class Slot:
    """One place among the calls under way."""

    __slots__ = ("_burst", "_limiter")

    def __init__(self, limiter: EndpointLimiter) -> None:
        self._limiter = limiter
        self._burst = 0

    async def __aenter__(self) -> None:
        self._burst = await self._limiter.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter.release(self._burst, error)


def _gives_way(error: CallError) -> bool:
    """The endpoint asked for fewer calls: a rate limit, or an overloaded server that says when to come back."""
    return error.code == "rate_limit" or (error.code == "server_error" and error.retry_after is not None)
