"""Requests over httpx: what goes through proxies and mocks, and everything under trio."""

from __future__ import annotations

import ssl
from functools import lru_cache

import anyio
import httpx

from evaluatorq.errors import CallError
from evaluatorq.llm.errors import network_error
from evaluatorq.llm.exchange import ALWAYS_SENT, KEEPALIVE_S, Answer, Call
from evaluatorq.llm.reading import read_body
from evaluatorq.llm.request import request_head
from evaluatorq.model.usage import NO_USAGE


@lru_cache(maxsize=1024)
def _url(url: str) -> httpx.URL:
    """Raises ``CallError`` for one that leads nowhere."""
    request_head("GET", url, ())
    try:
        return httpx.URL(url)
    except httpx.InvalidURL as error:
        raise CallError("bad_request", f"the URL cannot be asked: {error}", usage=NO_USAGE) from error


class HttpxClient:
    """One httpx client for a whole run; proxies come from the environment."""

    def __init__(self, connections: int, tls: ssl.SSLContext) -> None:
        limits = httpx.Limits(
            max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=KEEPALIVE_S
        )
        self._client = httpx.AsyncClient(verify=tls, limits=limits)

    def goes_straight(self, url: str) -> bool:
        """Whether httpx would send a request to its host, past no proxy and no mock."""
        return self._transport(url) is self._client._transport  # noqa: SLF001  that for all without a proxy

    def _transport(self, url: str) -> httpx.AsyncBaseTransport:
        return self._client._transport_for_url(_url(url))  # noqa: SLF001  knows the proxies; mocks step in here

    async def send(self, call: Call, timeout_s: float) -> Answer:
        """The answer to one request. Raises ``CallError`` for every failure of the network."""
        request_head(call.method, call.url, tuple(call.headers.items()))  # refuses what cannot be sent
        headers = {**ALWAYS_SENT, **call.headers}
        request = httpx.Request(
            call.method,
            _url(call.url),
            content=call.body,
            headers=[(name.encode(), value.encode(errors="replace")) for name, value in headers.items()],
            extensions={"timeout": httpx.Timeout(timeout_s).as_dict()},
        )
        reading = False
        try:
            with anyio.fail_after(timeout_s):
                response = await self._transport(call.url).handle_async_request(request)
                reading = True
                try:
                    stream = response.stream
                    assert isinstance(stream, httpx.AsyncByteStream)
                    data, whole = await read_body(stream, response.headers.get("content-encoding"), call.where)
                finally:
                    await response.aclose()
        except (httpx.HTTPError, OSError) as exc:
            raise network_error(exc, call.where, reading=reading) from exc
        return Answer(response.status_code, response.headers, data, whole)

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._client.aclose()
