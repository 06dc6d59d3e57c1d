"""Runs an agent's blocking code in a thread of its own, which may be left behind.

A thread for each call instead of a pool: a call that hangs then takes no place from the others, and how many there
are is bounded by the conversations in flight. The threads are daemons, so a hanging agent keeps no process alive.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Generic, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from evaluatorq.errors import CallError

T = TypeVar("T")


class _Outcome(Generic[T]):
    """What the thread came to."""

    __slots__ = ("error", "value")

    def __init__(self) -> None:
        self.value: list[T] = []
        self.error: BaseException | None = None

    def get(self) -> T:
        error, self.error = self.error, None
        if error is None:
            return self.value.pop()
        try:
            if isinstance(error, Exception | SystemExit):
                raise error
            raise RuntimeError(f"the agent's thread ended with {type(error).__name__}") from error
        finally:
            del error  # its traceback holds this frame: without the cycle, what the agent held is freed at once


async def in_thread(call: Callable[[BlockingPortal], T]) -> T:
    """Runs ``call`` in a new thread and returns what it returns.

    Through the portal the thread reaches this event loop. When the wait is cancelled the thread is abandoned and its
    portal closes: whatever it asks for later is refused.
    """
    outcome: _Outcome[T] = _Outcome()
    done = anyio.Event()
    context = copy_context()
    async with BlockingPortal() as portal:

        def work() -> None:
            try:
                outcome.value.append(context.run(call, portal))
            except BaseException as error:  # noqa: BLE001  raised again where it is awaited
                outcome.error = error
            with suppress(RuntimeError):
                portal.start_task_soon(done.set)

        try:
            Thread(target=work, name="evaluatorq target", daemon=True).start()
        except RuntimeError as error:
            message = "no thread is left for the agent's blocking code; lower the parallelism"
            raise CallError("internal_error", message, retryable=True, component="infrastructure") from error
        await done.wait()
    return outcome.get()
