"""Requests straight to their host, over connections that are kept: the same cost however many there are. asyncio only.

This is as much of an HTTP client as a run needs: no proxies, no redirects, no cookies. httptools parses and
aiohappyeyeballs connects. Nothing is sent twice: a kept connection that broke is a failure like any other, and the
caller's to retry.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from contextlib import suppress

from aiohappyeyeballs import start_connection

from evaluatorq.llm.certificates import Certificates
from evaluatorq.llm.connection import Connection
from evaluatorq.llm.errors import network_error
from evaluatorq.llm.exchange import KEEPALIVE_S, Answer, Call
from evaluatorq.llm.hosts import Hosts
from evaluatorq.llm.reading import unpacked
from evaluatorq.llm.request import Origin, request_bytes, request_head

SECOND_ADDRESS_AFTER_S = 0.25
"""A host's next address is tried beside one that has not answered for so long (RFC 8305)."""


class DirectSession:
    """The connections of a whole run."""

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self._hosts = Hosts()
        self._kept: dict[Origin, deque[Connection]] = {}
        self._closed = False

    async def send(self, call: Call, timeout_s: float) -> Answer:
        """The answer to one request. Raises ``CallError`` for every failure of the network."""
        connection: Connection | None = None
        try:
            origin, head = request_head(call.method, call.url, tuple(call.headers.items()))
            async with asyncio.timeout(timeout_s):
                connection = self._take(origin) or await self._connect(origin)
                answer = await connection.ask(request_bytes(head, call))
        except OSError as exc:
            answering = connection is not None and connection.answering
            raise network_error(exc, call.where, asked=connection is not None, reading=answering) from exc
        finally:
            if connection is not None:
                self._give_back(origin, connection)
        encoding = answer.headers.get("content-encoding")
        if encoding is None or not answer.whole:
            return answer
        body, whole = unpacked(answer.body, encoding, call.where)
        return answer._replace(body=body, whole=whole)

    async def aclose(self) -> None:
        """Closes all connections."""
        self._closed = True
        self._hosts.close()
        for connection in (connection for kept in self._kept.values() for connection in kept):
            connection.close()
        self._kept.clear()
        await asyncio.sleep(0)  # in which the event loop closes their sockets

    def _take(self, origin: Origin) -> Connection | None:
        """The kept connection that was used last: the other side is the least likely to have closed it."""
        kept = self._kept.get(origin)
        while kept:
            connection = kept.pop()
            if connection.usable and connection.now() < connection.idle_since + KEEPALIVE_S:
                return connection
            connection.close()
        return None

    def _give_back(self, origin: Origin, connection: Connection) -> None:
        if self._closed or not connection.usable:
            connection.close()
            return
        connection.idle_since = connection.now()
        kept = self._kept.setdefault(origin, deque())
        kept.append(connection)
        while kept[0].idle_since + KEEPALIVE_S <= connection.idle_since:
            kept.popleft().close()

    async def _connect(self, origin: Origin) -> Connection:
        if self._closed:
            raise ConnectionError("the run has closed its connections")
        tls = self._certificates.context() if origin.secure else None
        addresses = await self._hosts.addresses(origin.host, origin.port)
        try:
            reached = await start_connection(addresses, happy_eyeballs_delay=SECOND_ADDRESS_AFTER_S)
        except BaseException as exc:  # cancelled by the time limit, too: nobody was there
            self._hosts.forget(origin.host, origin.port)
            if isinstance(exc, RuntimeError):
                raise ConnectionError(str(exc)) from exc  # uvloop has its own word for it
            raise
        with suppress(OSError):  # what is broken already says so when it is used
            reached.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection, sock=reached, ssl=tls, server_hostname=origin.host if tls else None
            )
        except BaseException:
            with suppress(OSError):  # a handshake that was cancelled before it began goes on unless it cannot
                reached.shutdown(socket.SHUT_RDWR)
            raise
        return connection
