"""Requests straight to their host over aiohttp: its pool costs the same however much is in flight. asyncio only."""

from __future__ import annotations

from functools import lru_cache

import aiohttp

from evaluatorq.llm.certificates import Certificates
from evaluatorq.llm.errors import network_error
from evaluatorq.llm.exchange import ALWAYS_SENT, KEEPALIVE_S, Answer, Call
from evaluatorq.llm.reading import MOST_BYTES, read_body

DNS_CACHE_S = 300
_timeout = lru_cache(maxsize=64)(lambda seconds: aiohttp.ClientTimeout(total=seconds))
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError)


class DirectSession:
    """One aiohttp session for a whole run. It keeps no cookies and follows no redirects."""

    def __init__(self, certificates: Certificates) -> None:
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=DNS_CACHE_S, keepalive_timeout=KEEPALIVE_S)
        self._certificates = certificates
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=ALWAYS_SENT, auto_decompress=False
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
                encoding = response.headers.get("content-encoding")
                if encoding is None and (response.content_length or MOST_BYTES + 1) <= MOST_BYTES:
                    data, whole = await response.read(), True  # most answers, and the quickest way
                else:
                    data, whole = await read_body(response.content.iter_any(), encoding, call.where)
                if not whole:
                    response.close()
        except _FAILURES as exc:
            raise network_error(exc, call.where, reading=True) from exc
        return Answer(response.status, response.headers, data, whole)

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._session.close()
