"""Reads the body of an answer piece by piece, and stops where it is longer than anything that is worth reading.

What is counted is what comes out of the decompression, so a small answer that unpacks to a huge one is not held either.
The HTTP libraries unpack whole pieces at once, a thousandfold: they are told not to.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import contextmanager

import anyio

from evaluatorq.errors import CallError

MOST_BYTES = 8_000_000
"""So much is read of an answer, after decompression."""
ENCODINGS = "gzip, deflate"
"""What may be answered: the value of ``accept-encoding``."""
_PLAIN = {"", "identity"}
_PACKED = {"gzip", "x-gzip", "deflate"}
_GZIP, _ZLIB, _BARE = 31, zlib.MAX_WBITS, -zlib.MAX_WBITS


async def read_body(pieces: AsyncIterable[bytes], encoding: str | None, where: str) -> tuple[bytes, bool]:
    """The body, or its first ``MOST_BYTES``; the second value says whether that is all of it.

    ``encoding`` is the answer's ``content-encoding``. Raises ``CallError`` for one that nobody asked for, and for a
    body that cannot be unpacked; ``where`` names who answered.
    """
    unpacker = _unpacker(encoding, where)
    kept: list[bytes] = []
    room = MOST_BYTES
    stream = aiter(pieces)
    try:
        with _named(encoding, where):
            async for piece in stream:
                plain = piece if unpacker is None else unpacker.unpack(piece, room + 1)
                if len(plain) > room:
                    return b"".join((*kept, plain[:room])), False
                room -= len(plain)
                kept.append(plain)
            if unpacker is not None:
                unpacker.end()
    finally:
        if isinstance(stream, AsyncGenerator):
            await _leave(stream)
    return b"".join(kept), True


def unpacked(body: bytes, encoding: str | None, where: str) -> tuple[bytes, bool]:
    """What a whole body unpacks to, as ``read_body`` has it."""
    unpacker = _unpacker(encoding, where)
    if unpacker is None:
        return body, True
    with _named(encoding, where):
        plain = unpacker.unpack(body, MOST_BYTES + 1)
        if len(plain) > MOST_BYTES:
            return plain[:MOST_BYTES], False
        unpacker.end()
    return plain, True


@contextmanager
def _named(encoding: str | None, where: str) -> Iterator[None]:
    """Says whose answer cannot be unpacked."""
    try:
        yield
    except (zlib.error, EOFError) as error:
        text = f"{where} broke off in the middle of its answer: it cannot be unpacked ({encoding}: {error})"
        raise CallError("truncated_response", text, retryable=True) from error


async def _leave(stream: AsyncGenerator[bytes, None]) -> None:
    """Ends a stream where it is. Closing it would leave open those that it reads from; a cancellation ends them all."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        async for _ in stream:
            pass


def _unpacker(encoding: str | None, where: str) -> _Unpacker | None:
    name = (encoding or "").strip().lower()
    if name in _PLAIN:
        return None
    if name in _PACKED:
        return _Unpacker(name)
    text = f"{where} answered in the encoding {name[:40]!r}; only {ENCODINGS} are read"
    raise CallError("malformed_response", text, retryable=True)


class _Unpacker:
    """Unpacks what comes in pieces: gzip in one or more members, deflate with its frame or without."""

    def __init__(self, name: str) -> None:
        self._bits = None if name == "deflate" else _GZIP
        self._inflater = zlib.decompressobj(_GZIP)
        self._begun = False

    def unpack(self, piece: bytes, most: int) -> bytes:
        """What comes out of one piece, but no more than ``most`` bytes of it: then the rest is lost."""
        out = b""
        while piece and len(out) < most:
            if not self._begun or self._inflater.eof:
                self._begin(piece)
            out += self._inflater.decompress(piece, most - len(out))
            piece = self._inflater.unused_data
        return out

    def _begin(self, piece: bytes) -> None:
        if self._bits is None:
            self._bits = _ZLIB if piece[0] & 15 == zlib.DEFLATED else _BARE
        self._inflater = zlib.decompressobj(self._bits)
        self._begun = True

    def end(self) -> None:
        """``EOFError`` where more should have come."""
        if self._begun and not self._inflater.eof:
            raise EOFError("its end is missing")
