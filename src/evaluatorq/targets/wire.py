"""One HTTP client for all conversations with an endpoint, opened when it is first needed, and one pace for all."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import anyio

from evaluatorq.llm.errors import status_error
from evaluatorq.llm.exchange import Answer, Call
from evaluatorq.llm.handles import fitting
from evaluatorq.pacing.limits import EndpointLimiter

if TYPE_CHECKING:
    from evaluatorq.llm.transport import Wire

PATIENCE_S = 3600.0
"""How long an answer may take where nobody said less; whoever drives the conversation has a limit of their own."""


class SharedWire:
    """Sends requests over connections that all share. ``aclose`` closes them; the next request opens them again.

    Where the endpoint asks for fewer requests, all conversations give way. Time limits do not run while a request waits
    for its turn.
    """

    def __init__(self, connections: int, timeout_s: float | None = None) -> None:
        self._limiter = EndpointLimiter(connections)
        self._timeout_s = timeout_s or PATIENCE_S
        self._stack = AsyncExitStack()
        self._wire: Wire | None = None
        self._opening: anyio.Lock | None = None

    async def send(self, call: Call, timeout_s: float | None = None) -> Answer:
        """The answer to one request. Raises ``CallError`` for every failure of the network."""
        wire = self._wire
        if wire is None or wire.closed:  # the end of an event loop closes what was opened in it
            wire = await self._open()
        turn = await self._limiter.acquire()
        failure: BaseException | None = None
        try:
            answer = await wire.send(call, timeout_s)
            if answer.status >= 400:
                failure = status_error(answer, call.where)
        except BaseException as exc:
            failure = exc
            raise
        finally:
            self._limiter.release(turn, failure)
        return answer

    async def _open(self) -> Wire:
        from evaluatorq.llm.transport import open_wire  # noqa: PLC0415  loads an HTTP client

        self._opening = self._opening or anyio.Lock()
        async with self._opening:
            if self._wire is None or self._wire.closed:
                self._limiter.lower_cap(fitting(self._limiter.cap))
                wire = open_wire(self._limiter.cap, self._timeout_s)
                self._wire = await self._stack.enter_async_context(wire)
            return self._wire

    async def aclose(self) -> None:
        """Closes all connections."""
        stack, self._stack = self._stack, AsyncExitStack()
        self._wire = self._opening = None
        await stack.aclose()
