"""A sliding window over jobs: as many at once as allowed, and whoever is done takes the next.

No job waits for the slowest of a batch, and only what is under way holds memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

import anyio

T = TypeVar("T")


async def work_through(jobs: Iterable[T], at_once: int, do: Callable[[T], Awaitable[None]]) -> None:
    """Does every job, ``at_once`` at a time, begun in their order. What a job raises ends the others."""
    waiting = iter(jobs)
    async with anyio.create_task_group() as group:
        for _ in range(max(1, at_once)):
            group.start_soon(_work, waiting, do)


async def _work(waiting: Iterator[T], do: Callable[[T], Awaitable[None]]) -> None:
    for job in waiting:
        await do(job)
