"""One HTTP client for a whole run: httpx decides how a URL is reached, aiohttp's pool carries what goes there directly.

httpx's own pool searches its connections one by one, so its cost per request grows with what is in flight. A request
that needs nothing of httpx (no proxy from the environment, no mock) is handed to an aiohttp session without building
httpx objects; everything else takes the transport that httpx picks, which is why ``respx.mock(using="httpx")`` works as
it is. ``plain=True``, trio, and an installation without aiohttp use httpx's own transport; respx's default mocker needs
``plain=True``.

Redirects are not followed and no cookies are kept: conversations must not meet through them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import anyio
import httpx

from evaluatorq.llm.errors import network_error
from evaluatorq.llm.exchange import USER_AGENT, Answer, Call

if TYPE_CHECKING:
    from evaluatorq.llm.direct import DirectSession

KEEPALIVE_S = 30.0
_url = lru_cache(maxsize=1024)(httpx.URL)


class Wire:
    """Sends requests and returns whole answers, whatever their status; a failure of the network is a ``CallError``."""

    def __init__(self, client: httpx.AsyncClient, direct: DirectSession | None, timeout_s: float) -> None:
        self._client = client
        self._direct = direct
        self._timeout_s = timeout_s
        self._failures = (httpx.HTTPError, OSError, *(direct.failures if direct is not None else ()))

    async def send(self, call: Call, timeout_s: float | None = None) -> Answer:
        """The answer to one request. The timeout covers all of it, to the last byte."""
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        url = _url(call.url)
        transport = self._client._transport_for_url(url)  # noqa: SLF001  knows the proxies; mocks step in here
        if self._direct is not None and self._direct.carries(transport):
            return await self._direct.send(call, timeout_s)
        request = httpx.Request(
            call.method,
            url,
            content=call.body,
            headers={**USER_AGENT, **call.headers},
            extensions={"timeout": httpx.Timeout(timeout_s).as_dict()},
        )
        reading = False
        try:
            with anyio.fail_after(timeout_s):
                response = await transport.handle_async_request(request)
                reading = True
                try:
                    data = await response.aread()
                finally:
                    await response.aclose()
        except self._failures as exc:
            raise network_error(exc, call.where, reading=reading) from exc
        return Answer(response.status_code, response.headers, data)


@asynccontextmanager
async def open_wire(connections: int, timeout_s: float, *, plain: bool = False) -> AsyncIterator[Wire]:
    """The HTTP client of one run; its connections are closed at the end. ``timeout_s`` is for each request.

    Proxies and certificates come from the environment as httpx reads it (``HTTPS_PROXY``, ``SSL_CERT_FILE``, …).
    """
    tls = httpx.create_ssl_context()
    limits = httpx.Limits(
        max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=KEEPALIVE_S
    )
    if not plain and _on_asyncio():
        try:
            from evaluatorq.llm import direct  # noqa: PLC0415  loads aiohttp, which only this path needs
        except ImportError:
            pass
        else:
            session = direct.DirectSession(tls, KEEPALIVE_S)
            try:
                async with direct.aiohttp_client(tls, limits) as client:
                    yield Wire(client, session, timeout_s)
            finally:
                await session.aclose()
            return
    async with httpx.AsyncClient(verify=tls, limits=limits) as client:
        yield Wire(client, None, timeout_s)


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
