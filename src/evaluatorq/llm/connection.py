"""One connection to a host, which carries one HTTP/1.1 request after the other; llhttp reads what comes back.

A request is one write and its answer one wake-up, however many pieces it comes in. What the other side may send is
bounded, and a connection that brought anything that was not asked for is closed: what is left of one answer must never
be taken for the next.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol, runtime_checkable

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from evaluatorq.llm.exchange import Answer
from evaluatorq.llm.reading import MOST_BYTES

MOST_RECEIVED = MOST_BYTES + 1_000_000
"""So many bytes may come for one answer, its head and its framing included."""
MOST_OF_A_HEAD = 262_144
"""So many may come before the body begins: as much as the event loop hands over at once."""
_ALERT = b"\x15\x03"
_SPEAKS_TLS = "it speaks TLS, so its address begins with https://"
_UNREADABLE = (HttpParserError, HttpParserUpgrade)


@runtime_checkable
class Writable(Protocol):
    """What is asked of a transport; those of uvloop are not asyncio's by type."""

    def write(self, data: bytes) -> None:
        """Sends it, now or as soon as there is room."""
        ...

    def abort(self) -> None:
        """Closes at once."""
        ...

    def get_extra_info(self, name: str) -> object:
        """What is known of it, ``None`` what is not."""
        ...

    def get_write_buffer_size(self) -> int:
        """How many bytes are written and not yet sent."""
        ...


class Connection(asyncio.Protocol):
    """At most one request is under way. ``usable`` says whether another may follow.

    ``answering`` is true from the end of an answer's head on. Bodies stay as they come, compressed or not.
    """

    def __init__(self) -> None:
        self.usable = False
        self.answering = False
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(  # what other clients read too: folded headers, "\n", "5 \r\n"
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._transport: Writable = asyncio.WriteTransport()
        self._waiting: asyncio.Future[Answer] | None = None
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._received = 0
        self._ended = False

    async def ask(self, request: bytes) -> Answer:
        """The answer to a whole request. Raises ``OSError`` when none comes or it breaks off; never asks twice."""
        self.answering = self.usable = False
        self._received = 0
        self._waiting = self._loop.create_future()
        self._transport.write(request)
        return await self._waiting

    def now(self) -> float:
        """Seconds on the clock that ``idle_since`` is of."""
        return self._loop.time()

    def close(self) -> None:
        """Ends it at once, whatever is under way."""
        self.usable = False
        self._transport.abort()

    # ---------------------------------------------------------------- what the event loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Requests may be written from now on."""
        assert isinstance(transport, Writable)
        self._transport = transport
        self.usable = True

    def data_received(self, data: bytes) -> None:
        """A piece of the answer; without a question it ends the connection."""
        if self._waiting is None:
            self.close()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except _UNREADABLE as error:
            self._fail(_SPEAKS_TLS if data.startswith(_ALERT) else f"what it answers is no HTTP ({error})")
        if self._received > MOST_OF_A_HEAD and not self.answering:
            self._fail("the head of its answer has no end")
        elif self._received > MOST_BYTES and (self._received > MOST_RECEIVED or len(self._body) > MOST_BYTES):
            self._end(complete=False)

    def eof_received(self) -> None:
        """The other side said that it is done: what was under way ends with ``connection_lost``, unsent or not."""
        tls = self._transport.get_extra_info("ssl_object")
        self._ended = not isinstance(tls, ssl.SSLObject) or _said_so(tls)
        self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """The end of an answer whose length nobody said, or of hope for one. TLS that only stops has said no end."""
        self.usable = False
        if self.answering and self._ended and not self._headers.keys() & {"content-length", "transfer-encoding"}:
            self._end(complete=True)
        else:
            how = "reset" if isinstance(error, ConnectionResetError) else "closed"
            self._fail(f"the connection was {how} " + ("within an answer" if self.answering else "without an answer"))

    # ---------------------------------------------------------------- what the parser says

    def on_message_begin(self) -> None:
        """A second answer to one request ends the connection."""
        if self._waiting is None:
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; what comes twice is a list. What follows the body (trailers) is left out."""
        if self.answering:
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = self._headers.get(key)
        self._headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """From here on it is a cut answer that breaks."""
        self.answering = True

    def on_body(self, body: bytes) -> None:
        """A piece of the body, without its framing."""
        self._body += body

    def on_message_complete(self) -> None:
        """The answer, unless it is one of those that announce another."""
        if self._parser.get_status_code() < 200:
            self.answering = False
            self._headers = {}
        elif self._waiting is not None:
            self.usable = self._parser.should_keep_alive() and not self._transport.get_write_buffer_size()
            self._end(complete=True)

    # ---------------------------------------------------------------- how a request ends

    def _end(self, *, complete: bool) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            whole = complete and len(self._body) <= MOST_BYTES
            body = bytes(self._body if whole else self._body[:MOST_BYTES])
            waiting.set_result(Answer(self._parser.get_status_code(), self._headers, body, whole))
        self._headers, self._body = {}, bytearray()
        if not self.usable:
            self._transport.abort()

    def _fail(self, why: str) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(ConnectionError(why))
        self.close()


def _said_so(tls: ssl.SSLObject) -> bool:
    """Whether the other side ended the stream itself, so that nobody can have cut it."""
    try:
        return not tls.read(1)
    except ssl.SSLError:
        return False
