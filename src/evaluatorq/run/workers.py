"""The conversations of a run: so many at once, and whoever is done takes the next.

A conversation that an endpoint sent away for a while (429) does nothing until it may ask again. Another one begins in
its place, so that refusals do not leave the line idle: at most a quarter more are open than were asked for, and never
more calls are under way at an endpoint than its limiter lets through.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import anyio
from anyio.abc import TaskGroup


class Workers:
    """Has the conversations ``rows``, ``at_once`` at a time, begun in their order, until ``stops`` says so."""

    def __init__(
        self, rows: Iterable[int], at_once: int, converse: Callable[[int], Awaitable[None]], stops: Callable[[], bool]
    ) -> None:
        self._rows = iter(rows)
        self._at_once = at_once
        self._converse = converse
        self._stops = stops
        self._spare = at_once // 4
        self._group: TaskGroup | None = None

    async def work(self) -> None:
        """Ends when the last conversation does. What one of them raises ends the others."""
        async with anyio.create_task_group() as self._group:
            for _ in range(self._at_once):
                self._group.start_soon(self._work)

    def one_waits(self) -> None:
        """Lets another conversation begin beside one that has to wait, where there is a place to spare."""
        if self._spare and self._group is not None:
            self._spare -= 1
            self._group.start_soon(self._stand_in)

    async def _work(self) -> None:
        while await self._next():
            pass

    async def _stand_in(self) -> None:
        await self._next()
        self._spare += 1

    async def _next(self) -> bool:
        row = None if self._stops() else next(self._rows, None)
        if row is None:
            return False
        await self._converse(row)
        return True
