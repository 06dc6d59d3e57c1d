"""Answers that are longer than anything worth reading, over real sockets: what is read of them, and what is said."""

from __future__ import annotations

import gzip
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import pytest
import trio

from evaluatorq.errors import CallError
from evaluatorq.llm.client import open_models
from evaluatorq.llm.encode import encode_message
from evaluatorq.llm.endpoint import Endpoint
from evaluatorq.llm.exchange import Answer, Call
from evaluatorq.llm.reading import MOST_BYTES
from evaluatorq.llm.transport import open_wire
from evaluatorq.ports import ChatPrefix, ChatRequest

Saying = Callable[[Callable[[bytes], int]], object]
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"content-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
PATIENCE_S = 30.0


@contextmanager
def serving(say: Saying) -> Iterator[tuple[str, list[int]]]:
    """A server that answers one request with what ``say`` sends; its address, and how many bytes went out."""
    sent = [0]

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            asked = b""
            while not asked.endswith(b"{}") and b'"messages"' not in asked:
                asked += connection.recv(65536)

            def send(piece: bytes) -> int:
                connection.sendall(piece)
                sent[0] += len(piece)
                return len(piece)

            try:
                say(send)
            except OSError:
                return  # nobody reads any more

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", sent
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def without_end(send: Callable[[bytes], int]) -> None:
    send(CHUNKED)
    while True:
        send(b"10000\r\n" + b"x" * 65536 + b"\r\n")


def a_line_without_end(send: Callable[[bytes], int]) -> None:
    send(OK + b"content-type: text/event-stream\r\n\r\ndata: ")
    while True:
        send(b"x" * 65536)


def a_bomb(send: Callable[[bytes], int]) -> None:
    body = gzip.compress(bytes(100_000_000))
    send(OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


async def ask(url: str, plain: bool) -> Answer:
    with anyio.fail_after(PATIENCE_S):
        async with open_wire(1, PATIENCE_S, plain=plain) as wire:
            return await wire.send(Call(url, {}, b"{}", "it"))


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("say", [without_end, a_line_without_end, a_bomb])
async def test_an_answer_without_end_is_read_into_memory_until_that_is_full(say: Saying, plain: bool) -> None:
    with serving(say) as (url, sent):
        answer = await ask(url, plain)
    assert (answer.status, len(answer.body), answer.whole) == (200, MOST_BYTES, False)
    assert sent[0] < 5 * MOST_BYTES


def test_an_answer_without_end_is_read_no_further_under_trio() -> None:
    with serving(without_end) as (url, _):
        assert trio.run(ask, url, False).whole is False


@pytest.mark.parametrize("plain", [False, True])
async def test_a_model_that_never_stops_is_a_named_failure(plain: bool) -> None:
    with serving(without_end) as (url, _):
        async with open_models(1, PATIENCE_S, plain=plain) as pool:
            request = ChatRequest(ChatPrefix("You help."), (encode_message("user", "Hi"),))
            with pytest.raises(CallError, match="answered more than 8,000,000 bytes") as failed:
                await pool.model("m", Endpoint(url, "k")).complete(request)
    assert failed.value.code == "malformed_response"


def _raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


WORDS = b"words and words " * 40_000


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(WORDS)),
        ("GZIP", gzip.compress(WORDS[:100_000]) + gzip.compress(WORDS[100_000:])),
        ("deflate", zlib.compress(WORDS)),
        ("deflate", _raw(WORDS)),
        ("identity", WORDS),
    ],
)
async def test_a_packed_answer_comes_out_whole(encoding: str, packed: bytes, plain: bool) -> None:
    head = OK + f"content-encoding: {encoding}\r\ncontent-length: {len(packed)}\r\n\r\n".encode()
    with serving(lambda send: [send(piece) for piece in (head + packed[:1], packed[1:])]) as (url, _):
        assert (await ask(url, plain))[2:] == (WORDS, True)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("encoding", "body", "code"),
    [
        ("gzip", gzip.compress(WORDS)[:-20], "truncated_response"),
        ("gzip", b"not packed at all", "truncated_response"),
        ("br", b"\x8b\x02\x80hello\x03", "malformed_response"),
    ],
)
async def test_an_answer_that_cannot_be_unpacked_is_named(encoding: str, body: bytes, code: str, plain: bool) -> None:
    head = OK + f"content-encoding: {encoding}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with serving(lambda send: send(head + body)) as (url, _), pytest.raises(CallError, match=encoding) as failed:
        await ask(url, plain)
    assert (failed.value.code, failed.value.retryable) == (code, True)
