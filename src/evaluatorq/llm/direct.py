"""aiohttp beneath httpx: a pool whose cost per request does not grow with what is in flight. asyncio only."""

from __future__ import annotations

import ssl
from functools import lru_cache

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport, HttpxAiohttpClient

from evaluatorq.llm.errors import network_error
from evaluatorq.llm.exchange import USER_AGENT, Answer, Call

DNS_CACHE_S = 300
_timeout = lru_cache(maxsize=64)(lambda seconds: aiohttp.ClientTimeout(total=seconds))


class DirectSession:
    """One aiohttp session for a whole run. It keeps no cookies and follows no redirects.

    ``failures`` are what a request can raise here, also through ``aiohttp_client``.
    """

    failures = (aiohttp.ClientError, OSError, TimeoutError)

    def __init__(self, tls: ssl.SSLContext, keepalive_s: float) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=tls, ttl_dns_cache=DNS_CACHE_S, keepalive_timeout=keepalive_s)
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=USER_AGENT
        )

    def carries(self, transport: httpx.AsyncBaseTransport) -> bool:
        """Whether httpx would send the request straight to its host over aiohttp, as this session does."""
        return isinstance(transport, AiohttpTransport) and transport.proxy is None

    async def send(self, call: Call, timeout_s: float) -> Answer:
        """The answer to one request. Raises ``CallError`` for every failure of the network."""
        try:
            response = await self._session.request(
                call.method,
                call.url,
                data=call.body,
                headers=call.headers,
                allow_redirects=False,
                timeout=_timeout(timeout_s),
            )
        except self.failures as exc:
            raise network_error(exc, call.where) from exc
        try:
            async with response:
                data = await response.read()
        except self.failures as exc:
            raise network_error(exc, call.where, reading=True) from exc
        return Answer(response.status, response.headers, data)

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._session.close()


def aiohttp_client(tls: ssl.SSLContext, limits: httpx.Limits) -> httpx.AsyncClient:
    """An httpx client whose transports, proxies from the environment included, are aiohttp's."""
    return HttpxAiohttpClient(verify=tls, limits=limits)
