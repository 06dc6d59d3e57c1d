"""One HTTP client for a whole run: httpx decides how a URL is reached, what goes to its host directly goes without it.

httpx's pool searches its connections one by one, so its cost per request grows with what is in flight. A request that
needs nothing of httpx (no proxy from the environment, no mock) takes a connection of our own (``DirectSession``), at a
fraction of the cost; everything else takes the transport that httpx picks, which is why
``respx.mock(using="httpx")`` works as it is. While no proxy is set and nobody has imported httpx, there is nothing to
decide, and it is not loaded: it takes six MiB. ``plain=True`` and trio use httpx's own transport; respx's default
mocker needs ``plain=True``.

Redirects are not followed and no cookies are kept: conversations must not meet through them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.request import getproxies

from evaluatorq.llm.certificates import Certificates
from evaluatorq.llm.exchange import Answer, Call

if TYPE_CHECKING:
    from evaluatorq.llm.direct import DirectSession
    from evaluatorq.llm.through_httpx import HttpxClient


class Wire:
    """Sends requests and returns whole answers, whatever their status; a failure of the network is a ``CallError``."""

    def __init__(
        self, connections: int, timeout_s: float, certificates: Certificates, direct: DirectSession | None
    ) -> None:
        self._connections = connections
        self._timeout_s = timeout_s
        self._certificates = certificates
        self._direct = direct
        self._client: HttpxClient | None = None
        self.closed = False
        proxies = getproxies()
        self._may_be_proxied = any(proxies.get(scheme) for scheme in ("http", "https", "all"))

    async def send(self, call: Call, timeout_s: float | None = None) -> Answer:
        """The answer to one request. The timeout covers all of it, to the last byte."""
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        if self._direct is not None and (self._needs_no_httpx() or self._httpx().goes_straight(call.url)):
            return await self._direct.send(call, timeout_s)
        return await self._httpx().send(call, timeout_s)

    def _needs_no_httpx(self) -> bool:
        """Nobody can have asked httpx to reach anything otherwise."""
        return not self._may_be_proxied and "httpx" not in sys.modules

    def _httpx(self) -> HttpxClient:
        if self._client is None:
            from evaluatorq.llm.through_httpx import HttpxClient  # noqa: PLC0415  loads httpx

            self._client = HttpxClient(self._connections, self._certificates.context())
        return self._client

    async def aclose(self) -> None:
        """Closes all connections."""
        self.closed = True
        if self._client is not None:
            await self._client.aclose()
        if self._direct is not None:
            await self._direct.aclose()


@asynccontextmanager
async def open_wire(connections: int, timeout_s: float, *, plain: bool = False) -> AsyncIterator[Wire]:
    """The HTTP client of one run; its connections are closed at the end. ``timeout_s`` is for each request.

    Proxies and certificates come from the environment as httpx reads it (``HTTPS_PROXY``, ``SSL_CERT_FILE``, …).
    """
    certificates = Certificates()
    wire = Wire(connections, timeout_s, certificates, None if plain else _direct_session(certificates))
    try:
        yield wire
    finally:
        await wire.aclose()


def _direct_session(certificates: Certificates) -> DirectSession | None:
    """A session of our own, where the event loop is asyncio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return None
    from evaluatorq.llm.direct import DirectSession  # noqa: PLC0415  loads asyncio's parts, which trio does not need

    return DirectSession(certificates)
