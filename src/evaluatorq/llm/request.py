"""A request as bytes: HTTP/1.1, its head made once for all requests that differ in nothing but their body."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from evaluatorq.errors import CallError
from evaluatorq.llm.exchange import ALWAYS_SENT, Call
from evaluatorq.model.usage import NO_USAGE

_IN_URLS = "!#$%&'()*+,/:;=?@[]~"
"""What is kept as it is in paths and queries; everything else that is not a letter or a digit is quoted."""
_OURS = frozenset({"content-length", "transfer-encoding", "connection"})
"""Headers that say where a request ends: nobody else sets them."""


class Origin(NamedTuple):
    """Whom a connection reaches."""

    secure: bool
    host: str
    port: int


@lru_cache(maxsize=256)
def request_head(method: str, url: str, headers: tuple[tuple[str, str], ...]) -> tuple[Origin, bytes]:
    """Whom a request goes to, and its head up to where the length of its body follows.

    Header names count in any case. Raises ``CallError`` for a URL that leads nowhere, and for a header that would break
    the request in two.
    """
    try:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        usual = 443 if secure else 80
        origin = Origin(secure, _in_ascii(parts.hostname or ""), parts.port or usual)
        path, query = (quote(text, safe=_IN_URLS) for text in (parts.path or "/", parts.query))
    except ValueError as error:  # of a host, a port or a character
        raise CallError("bad_request", f"the URL cannot be asked: {error}", usage=NO_USAGE) from error
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    named = host if origin.port == usual else f"{host}:{origin.port}"
    fields = {"host": named, **ALWAYS_SENT, **{name.lower(): value for name, value in headers}}
    lines = [f"{method} {path}?{query} HTTP/1.1" if query else f"{method} {path} HTTP/1.1"]
    for name, value in fields.items():
        if any(ord(character) < 32 for character in name + value):
            text = f"{named}: the header {name!r} holds characters that no header can have"
            raise CallError("bad_request", text, usage=NO_USAGE)
        if name not in _OURS:
            lines.append(f"{name}: {value}")
    return origin, "\r\n".join(lines).encode(errors="replace")


def request_bytes(head: bytes, call: Call) -> bytes:
    """The whole request. A ``GET`` without a body says nothing of its length."""
    if call.body is None and call.method == "GET":
        return head + b"\r\n\r\n"
    body = call.body or b""
    return b"%b\r\ncontent-length: %d\r\n\r\n%b" % (head, len(body), body)


def _in_ascii(host: str) -> str:
    """The host as it is looked up. ``UnicodeError`` for what can be no name."""
    if host.isascii():
        return host.encode("idna").decode()
    import idna  # noqa: PLC0415  takes its time, and few need it

    return idna.encode(host).decode()
