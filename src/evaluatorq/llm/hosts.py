"""Where hosts are: each name is looked up once for all connections, and again when minutes have passed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass

KNOWN_FOR_S = 300.0
AddressInfo = tuple[
    socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
]
"""What ``getaddrinfo`` says of one address."""


@dataclass(slots=True, eq=False)
class _LookUp:
    task: asyncio.Task[Sequence[AddressInfo]]
    until: float


class Hosts:
    """The addresses of host names; however many ask at once, a name is looked up once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _LookUp] = {}

    async def addresses(self, host: str, port: int) -> Sequence[AddressInfo]:
        """All addresses, the preferred first. Raises ``OSError`` when there are none; that is not remembered."""
        loop, key = asyncio.get_running_loop(), (host, port)
        known = self._known.get(key)
        if known is None or known.until < loop.time():
            task = loop.create_task(_look_up(loop, host, port))
            task.add_done_callback(lambda done: self._forget_failure(key, done))
            known = self._known[key] = _LookUp(task, loop.time() + KNOWN_FOR_S)
        await asyncio.wait((known.task,))
        if known.task.cancelled():
            raise ConnectionError("the run has closed its connections")
        return known.task.result()

    def forget(self, host: str, port: int) -> None:
        """Looks the name up again the next time: nobody answered where it was said to be."""
        known = self._known.get((host, port))
        if known is not None and known.task.done():
            del self._known[host, port]

    def close(self) -> None:
        """Ends what is still looked up."""
        for known in self._known.values():
            known.task.cancel()

    def _forget_failure(self, key: tuple[str, int], task: asyncio.Task[Sequence[AddressInfo]]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._known.pop(key, None)


async def _look_up(loop: asyncio.AbstractEventLoop, host: str, port: int) -> Sequence[AddressInfo]:
    return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
