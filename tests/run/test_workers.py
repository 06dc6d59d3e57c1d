"""How many conversations are open at once, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
import trio
from trio.testing import MockClock

from evaluatorq.run.workers import Workers


class Conversations:
    """Each takes ten seconds; those in ``waiting`` wait a second more, as for an endpoint that sent them away."""

    def __init__(self, count: int, at_once: int, waiting: Callable[[int], bool]) -> None:
        self.begun: list[int] = []
        self.open = self.most_open = 0
        self.stopped = False
        self._waiting = waiting
        self.workers = Workers(range(count), at_once, self.converse, lambda: self.stopped)

    async def converse(self, row: int) -> None:
        self.begun.append(row)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        await anyio.sleep(5)
        if self._waiting(row):
            self.workers.one_waits()
            await anyio.sleep(1)
        await anyio.sleep(5)
        self.open -= 1


def took(conversations: Conversations) -> float:
    async def scene() -> float:
        start = anyio.current_time()
        await conversations.workers.work()
        return anyio.current_time() - start

    return trio.run(scene, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), (3, 3), (8, 10), (10, 12), (100, 125)])
def test_a_quarter_more_is_open_where_conversations_wait_and_none_more(at_once: int, most: int) -> None:
    conversations = Conversations(300, at_once, lambda _: True)
    took(conversations)
    assert conversations.most_open == most
    assert conversations.begun == list(range(300))


def test_where_nobody_waits_no_more_are_open_than_were_asked_for() -> None:
    conversations = Conversations(40, 8, lambda _: False)
    assert took(conversations) == pytest.approx(50)
    assert conversations.most_open == 8


def test_places_of_those_who_wait_are_lent_again_and_again() -> None:
    some = Conversations(80, 8, lambda row: row % 8 == 0)
    alone = Conversations(80, 8, lambda row: row % 8 == 0)
    alone.workers.one_waits = lambda: None  # type: ignore[method-assign]  # as if there were no places to lend
    assert took(some) < took(alone)


def test_nothing_begins_once_the_run_stops() -> None:
    conversations = Conversations(40, 4, lambda _: True)

    async def scene() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(conversations.workers.work)
            await anyio.sleep(1)
            conversations.stopped = True

    trio.run(scene, clock=MockClock(autojump_threshold=0))
    assert conversations.begun == [0, 1, 2, 3]


def test_what_one_raises_ends_the_others() -> None:
    async def broken(row: int) -> None:
        if row == 2:
            raise RuntimeError("the disk is full")
        await anyio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as raised:
        trio.run(Workers(range(5), 5, broken, lambda: False).work)
    assert raised.group_contains(RuntimeError, match="the disk is full")
