"""Requests straight to their host over aiohttp: its pool costs the same however much is in flight. asyncio only."""

from __future__ import annotations

from functools import lru_cache

import aiohttp

from evaluatorq.llm.certificates import Certificates
from evaluatorq.llm.errors import network_error
from evaluatorq.llm.exchange import KEEPALIVE_S, USER_AGENT, Answer, Call

DNS_CACHE_S = 300
_timeout = lru_cache(maxsize=64)(lambda seconds: aiohttp.ClientTimeout(total=seconds))
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError)


class DirectSession:
    """One aiohttp session for a whole run. It keeps no cookies and follows no redirects."""

    def __init__(self, certificates: Certificates) -> None:
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=DNS_CACHE_S, keepalive_timeout=KEEPALIVE_S)
        self._certificates = certificates
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=USER_AGENT
        )

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
                ssl=True if call.url.startswith("http:") else self._certificates.context(),
            )
        except _FAILURES as exc:
            raise network_error(exc, call.where) from exc
        try:
            async with response:
                data = await response.read()
        except _FAILURES as exc:
            raise network_error(exc, call.where, reading=True) from exc
        return Answer(response.status, response.headers, data)

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._session.close()
