"""Keeps other sites out: a page in somebody else's tab must neither read a run through this server nor change anything.

The Host header must name this machine (a rebound name does not), a request that says where it comes from must come from
here, and whoever writes must know the token that only this process's pages hold.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LARGEST_FORM = 64 * 1024
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses requests under a foreign name or from another site, and adds ``HEADERS`` to every answer."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._names = {*_LOOPBACK, host.lower(), *(() if is_loopback(host) else (socket.gethostname().lower(),))}
        self._by_address = not is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(Headers(scope=scope))

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        app = self._app if refusal is None else PlainTextResponse(refusal, 403)
        await app(scope, receive, guarded)

    def _refusal(self, headers: Headers) -> str | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_here(_name(hosts[0])):
            return "This server answers under its own address only."
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            return "This request comes from another site."
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return "This request comes from another site."
        return None

    def _is_here(self, name: str) -> bool:
        """A name of this machine; where others may reach it, any address in numbers, which nobody can rebind."""
        if name in self._names:
            return True
        try:
            return self._by_address and bool(ipaddress.ip_address(name))
        except ValueError:
            return False


def _name(host: str) -> str:
    """The name in a Host header, without its port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


class Forms:
    """Reads what a page sends. The token is made for this process and stands in every form of its pages."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)

    async def read(self, request: Request) -> Mapping[str, str]:
        """The fields of a form; refused without the token, and where it is too long to be one of ours."""
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_FORM:
                raise HTTPException(413, f"A note may have {LARGEST_FORM // 1024} KiB at most.")
        fields = {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
        if not secrets.compare_digest(fields.get("token", "").encode(), self.token.encode()):
            raise HTTPException(403, "This form is of another viewer; open the page anew and send it again.")
        return fields
