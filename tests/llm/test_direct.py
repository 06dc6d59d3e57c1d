"""Our own connections against servers that speak byte by byte, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import anyio
import anyio.abc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluatorq.errors import CallError
from evaluatorq.llm.certificates import Certificates
from evaluatorq.llm.direct import DirectSession
from evaluatorq.llm.exchange import KEEPALIVE_S, Answer, Call
from evaluatorq.llm.hosts import Hosts
from evaluatorq.llm.reading import MOST_BYTES
from evaluatorq.llm.request import Origin, request_bytes, request_head
from evaluatorq.model.usage import NO_USAGE

Say = Callable[[anyio.abc.SocketStream, int], Awaitable[None]]
PATIENCE_S = 10.0


class Server:
    """Says what it is told to each request; ``requests`` holds them as they came, ``connections`` is their number."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[bytes] = []
        self.connections = 0


@asynccontextmanager
async def serving(say: Say) -> AsyncIterator[Server]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", family=socket.AddressFamily.AF_INET)
    server = Server(f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/at")

    async def serve(stream: anyio.abc.SocketStream) -> None:
        server.connections += 1
        async with stream:
            try:
                while True:
                    server.requests.append(await stream.receive())
                    await say(stream, len(server.requests))
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield server
        group.cancel_scope.cancel()


@asynccontextmanager
async def session() -> AsyncIterator[DirectSession]:
    direct = DirectSession(Certificates())
    try:
        yield direct
    finally:
        await direct.aclose()


def saying(*pieces: bytes) -> Say:
    async def say(stream: anyio.abc.SocketStream, number: int) -> None:
        for piece in pieces:
            await stream.send(piece)
            await anyio.lowlevel.checkpoint()

    return say


def closing(*pieces: bytes) -> Say:
    async def say(stream: anyio.abc.SocketStream, number: int) -> None:
        await saying(*pieces)(stream, number)
        await stream.aclose()

    return say


async def ask(direct: DirectSession, url: str, timeout_s: float = PATIENCE_S) -> Answer:
    return await direct.send(Call(url, {}, b"{}", "it"), timeout_s)


async def once(say: Say, timeout_s: float = PATIENCE_S) -> Answer:
    async with serving(say) as server, session() as direct:
        return await ask(direct, server.url, timeout_s)


async def failure(say: Say, timeout_s: float = PATIENCE_S) -> CallError:
    async with serving(say) as server, session() as direct:
        with pytest.raises(CallError) as caught:
            await ask(direct, server.url, timeout_s)
    return caught.value


HELLO = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;note=x\r\nhe\r\n3\r\nllo\r\n0\r\nx-trailer: yes\r\n\r\n"
)


# ---------------------------------------------------------------- what an answer is


@pytest.mark.parametrize("whole", [HELLO, CHUNKED])
@settings(max_examples=40)
@given(cuts=st.lists(st.integers(1, 110), max_size=12))
def test_an_answer_is_the_same_in_whatever_pieces_it_comes(whole: bytes, cuts: list[int]) -> None:
    edges = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    pieces = [whole[start:end] for start, end in pairwise(edges)]
    answer = anyio.run(once, saying(*pieces))
    assert (answer.status, answer.body, answer.whole) == (200, b"hello", True)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nserver: old\r\n\r\n"])
async def test_a_body_whose_length_nobody_says_lasts_until_the_end(head: bytes) -> None:
    answer = await once(closing(head + b"hel", b"lo"))
    assert (answer.body, answer.whole) == (b"hello", True)


@pytest.mark.parametrize("early", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"])
async def test_what_only_announces_an_answer_is_none(early: bytes) -> None:
    answer = await once(saying(early + HELLO))
    assert (answer.status, answer.body) == (200, b"hello")
    assert "link" not in answer.headers


@pytest.mark.parametrize(
    "whole",
    [
        HELLO.replace(b"text/plain", b"text/plain;\r\n charset=utf-8"),
        HELLO.replace(b"\r\n", b"\n"),
        CHUNKED.replace(b"3\r\nllo", b"3 \r\nllo"),
        CHUNKED.replace(b"x-trailer: yes", b"content-encoding: gzip"),
    ],
)
async def test_what_other_clients_read_is_read(whole: bytes) -> None:
    answer = await once(saying(whole))
    assert (answer.status, answer.body, answer.whole) == (200, b"hello", True)


@pytest.mark.parametrize("whole", [HELLO, CHUNKED])
async def test_an_answer_that_ends_early_is_never_whole(whole: bytes) -> None:
    ends = iter(range(len(whole)))

    async def cut(stream: anyio.abc.SocketStream, number: int) -> None:
        await stream.send(whole[: next(ends)])
        await stream.aclose()

    async with serving(cut) as server, session() as direct:
        for end in range(len(whole)):
            with pytest.raises(CallError) as caught:
                await ask(direct, server.url)
            within = end >= whole.index(b"\r\n\r\n") + 4
            assert caught.value.code == ("truncated_response" if within else "network_error")


async def test_an_answer_without_a_body_ends_with_its_head() -> None:
    answer = await once(saying(b"HTTP/1.1 204 No Content\r\n\r\n"))
    assert (answer.status, answer.body, answer.whole) == (204, b"", True)


async def test_a_header_that_comes_twice_is_a_list_and_names_are_in_lower_case() -> None:
    answer = await once(saying(b"HTTP/1.1 200 OK\r\nVia: one\r\nvIA: two\r\nContent-Length: 0\r\n\r\n"))
    assert answer.headers == {"via": "one, two", "content-length": "0"}


# ---------------------------------------------------------------- connections


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop has no Windows")
def test_any_event_loop_of_asyncio_will_do() -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(once(saying(HELLO))).body == b"hello"
        assert runner.run(failure(closing(HELLO[:-2]))).code == "truncated_response"


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with serving(saying(HELLO)) as server, session() as direct:
        bodies = [(await ask(direct, server.url)).body for _ in range(3)]
    assert bodies == [b"hello"] * 3
    assert server.connections == 1


@pytest.mark.parametrize(
    "last", [HELLO.replace(b"200 OK\r\n", b"200 OK\r\nconnection: close\r\n"), HELLO.replace(b"HTTP/1.1", b"HTTP/1.0")]
)
async def test_a_connection_that_is_not_to_be_kept_is_not(last: bytes) -> None:
    async with serving(saying(last)) as server, session() as direct:
        for _ in range(2):
            await ask(direct, server.url)
    assert server.connections == 2


async def test_one_that_the_other_side_closed_meanwhile_is_replaced() -> None:
    async with serving(closing(HELLO)) as server, session() as direct:
        for _ in range(2):
            assert (await ask(direct, server.url)).body == b"hello"
            await anyio.sleep(0.05)
    assert server.connections == 2


async def test_one_that_waited_too_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluatorq.llm.direct.KEEPALIVE_S", KEEPALIVE_S / 1000)
    async with serving(saying(HELLO)) as server, session() as direct:
        for _ in range(2):
            await ask(direct, server.url)
            await anyio.sleep(0.05)
    assert server.connections == 2


SECOND = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"


@pytest.mark.parametrize("more", [SECOND, SECOND[:20], b"garbage"])
async def test_a_second_answer_to_one_request_is_never_the_answer_to_the_next(more: bytes) -> None:
    async with serving(saying(HELLO + more)) as server, session() as direct:
        bodies = [(await ask(direct, server.url)).body for _ in range(3)]
    assert bodies == [b"hello"] * 3
    assert server.connections == 3


async def test_nor_is_what_comes_while_nobody_asks() -> None:
    async def late(stream: anyio.abc.SocketStream, number: int) -> None:
        await stream.send(HELLO)
        await anyio.sleep(0.02)
        await stream.send(SECOND)

    async with serving(late) as server, session() as direct:
        for _ in range(2):
            assert (await ask(direct, server.url)).body == b"hello"
            await anyio.sleep(0.06)
    assert server.connections == 2


async def test_a_request_that_was_given_up_does_not_leave_its_answer_to_the_next() -> None:
    async def slow_first(stream: anyio.abc.SocketStream, number: int) -> None:
        if number == 1:
            await anyio.sleep(0.1)
            await stream.send(SECOND)
        else:
            await stream.send(HELLO)

    async with serving(slow_first) as server, session() as direct:
        with pytest.raises(CallError, match="in time"):
            await ask(direct, server.url, timeout_s=0.03)
        await anyio.sleep(0.1)
        assert (await ask(direct, server.url)).body == b"hello"


async def test_a_request_on_a_kept_connection_that_breaks_is_a_failure_and_not_sent_again() -> None:
    async def only_the_first(stream: anyio.abc.SocketStream, number: int) -> None:
        if number == 1:
            await stream.send(HELLO)
        else:
            await stream.aclose()

    async with serving(only_the_first) as server, session() as direct:
        await ask(direct, server.url)
        with pytest.raises(CallError) as caught:
            await ask(direct, server.url)
    assert (caught.value.code, caught.value.retryable, caught.value.usage) == ("network_error", True, None)
    assert len(server.requests) == 2


async def test_an_answer_that_came_before_all_was_sent_is_the_last_of_its_connection() -> None:
    async def refuse(stream: anyio.abc.SocketStream, number: int) -> None:
        await stream.send(HELLO)
        await anyio.sleep(PATIENCE_S)

    async with serving(refuse) as server, session() as direct:
        for _ in range(2):
            call = Call(server.url, {}, b" " * 8_000_000, "it")
            assert (await direct.send(call, PATIENCE_S)).body == b"hello"
    assert server.connections == 2


async def test_the_other_side_is_done_whether_or_not_all_was_sent() -> None:
    async def leave(stream: anyio.abc.SocketStream, number: int) -> None:
        await stream.send_eof()
        await anyio.sleep(PATIENCE_S)

    async with serving(leave) as server, session() as direct:
        with pytest.raises(CallError) as caught:
            await direct.send(Call(server.url, {}, b" " * 8_000_000, "it"), PATIENCE_S)
    assert caught.value.code == "network_error"


async def test_requests_whose_host_is_looked_up_at_the_end_of_a_run_fail_by_name() -> None:
    direct = DirectSession(Certificates())
    asking = [asyncio.create_task(ask(direct, "http://no-such-host.invalid/")) for _ in range(3)]
    await asyncio.sleep(0)
    await direct.aclose()
    for error in await asyncio.gather(*asking, return_exceptions=True):
        assert isinstance(error, CallError)
        assert error.code == "network_error"


async def test_after_the_end_nothing_is_open_and_nothing_more_is_sent() -> None:
    async with serving(saying(HELLO)) as server:
        async with session() as direct:
            await ask(direct, server.url)
        with pytest.raises(CallError, match="closed its connections"):
            await ask(direct, server.url)
    assert len(server.requests) == 1


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("say", "code"),
    [
        (closing(), "network_error"),
        (closing(HELLO[:30]), "network_error"),
        (closing(HELLO[:-2]), "truncated_response"),
        (closing(CHUNKED[:-20]), "truncated_response"),
        (saying(b"220 mail.example.test ready\r\n\r\n"), "network_error"),
        (saying(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"), "network_error"),
        (saying(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\nhello"), "network_error"),
        (saying(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), "truncated_response"),
    ],
)
async def test_an_answer_that_is_none_is_named(say: Say, code: str) -> None:
    error = await failure(say)
    assert (error.code, error.retryable, error.usage) == (code, True, None)
    assert str(error).startswith("it")


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nx-long: ", b"HTTP/1.1 200 OK\r\n"])
async def test_a_head_without_an_end_is_given_up(head: bytes) -> None:
    more = b"y" * 65536 if head.endswith(b" ") else b"x-more: " + b"y" * 65000 + b"\r\n"

    async def for_ever(stream: anyio.abc.SocketStream, number: int) -> None:
        await stream.send(head)
        while True:
            await stream.send(more)

    error = await failure(for_ever)
    assert (error.code, "has no end" in str(error)) == ("network_error", True)


async def test_framing_without_a_body_is_not_read_for_ever() -> None:
    async def for_ever(stream: anyio.abc.SocketStream, number: int) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;x=")
        while True:
            await stream.send(b"y" * 65536)

    answer = await once(for_ever)
    assert not answer.whole
    assert len(answer.body) <= MOST_BYTES


@pytest.mark.parametrize("size", [MOST_BYTES, MOST_BYTES + 1])
async def test_a_body_is_whole_up_to_the_limit(size: int) -> None:
    answer = await once(saying(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size))
    assert (len(answer.body), answer.whole) == (MOST_BYTES, size == MOST_BYTES)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_where_nobody_listens_nothing_was_spent(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with session() as direct:
        with pytest.raises(CallError) as caught:
            await ask(direct, f"http://{host}:{port}/")
    assert caught.value.code == "network_error"
    assert caught.value.usage is not None
    assert caught.value.usage.total_tokens == 0


async def test_a_host_that_is_not_there_is_a_network_error() -> None:
    async with session() as direct:
        with pytest.raises(CallError) as caught:
            await ask(direct, "http://no-such-host.invalid/")
    assert caught.value.code == "network_error"
    assert caught.value.usage is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://two..dots.invalid/",
        f"http://{'ü' * 70}.invalid/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:many/",
        "http://[::1/",
        "http://127.0.0.1/\ud800",
        "http://a\0b/",
    ],
)
async def test_a_url_that_leads_nowhere_is_not_asked_again(url: str) -> None:
    async with session() as direct:
        with pytest.raises(CallError) as caught:
            await ask(direct, url)
    assert (caught.value.code, caught.value.retryable, caught.value.usage) == ("bad_request", False, NO_USAGE)


async def test_a_second_family_of_addresses_is_tried() -> None:
    async with serving(saying(HELLO)) as server, session() as direct:
        assert (await ask(direct, server.url.replace("127.0.0.1", "localhost"))).body == b"hello"


async def test_plain_http_at_a_tls_address_is_named() -> None:
    async with serving(saying(HELLO)) as server, session() as direct:
        with pytest.raises(CallError) as caught:
            await ask(direct, server.url.replace("http:", "https:"))
    assert caught.value.code == "network_error"


# ---------------------------------------------------------------- names of hosts


async def test_a_name_is_looked_up_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    look_up = socket.getaddrinfo

    def counting(*args: object, **more: object) -> object:
        asked.append(args[0])
        return look_up(*args, **more)  # type: ignore[arg-type]  as it was called

    monkeypatch.setattr(socket, "getaddrinfo", counting)
    hosts = Hosts()
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(hosts.addresses, "localhost", 80)
    await hosts.addresses("localhost", 80)
    assert asked == ["localhost"]


async def test_one_that_stops_waiting_does_not_stop_the_others() -> None:
    hosts = Hosts()
    found: list[object] = []

    async def wait() -> None:
        found.append(await hosts.addresses("localhost", 80))

    async with anyio.create_task_group() as group:
        with anyio.move_on_after(0):
            await hosts.addresses("localhost", 80)
        group.start_soon(wait)
    assert found


# ---------------------------------------------------------------- requests


def test_a_request_says_where_it_goes_and_how_long_it_is() -> None:
    call = Call("http://example.test:8080/a b?q=ü%20", {"X-Key": "k", "Content-Length": "0"}, b"{}", "it")
    origin, head = request_head(call.method, call.url, tuple(call.headers.items()))
    lines = request_bytes(head, call).decode().split("\r\n")
    assert origin == Origin(False, "example.test", 8080)
    assert lines[0] == "POST /a%20b?q=%C3%BC%20 HTTP/1.1"
    assert lines[1] == "host: example.test:8080"
    assert lines[-4:] == ["x-key: k", "content-length: 2", "", "{}"]


@pytest.mark.parametrize(
    ("url", "host", "named"),
    [
        ("https://example.test/", Origin(True, "example.test", 443), b"host: example.test\r\n"),
        ("http://[::1]:81/", Origin(False, "::1", 81), b"host: [::1]:81\r\n"),
        ("http://bücher.test", Origin(False, "xn--bcher-kva.test", 80), b"host: xn--bcher-kva.test\r\n"),
    ],
)
def test_hosts_are_named_as_http_wants_it(url: str, host: Origin, named: bytes) -> None:
    origin, head = request_head("POST", url, ())
    assert origin == host
    assert named in head


def test_a_get_without_a_body_says_nothing_of_its_length() -> None:
    call = Call("http://example.test/", {}, None, "it", "GET")
    assert b"content-length" not in request_bytes(request_head("GET", call.url, ())[1], call)


@pytest.mark.parametrize("value", ["a\r\nx-forged: 1", "a\0b", "a\nb"])
def test_a_header_cannot_break_a_request_in_two(value: str) -> None:
    with pytest.raises(CallError, match="no header can have"):
        request_head("POST", "http://example.test/", (("x-key", value),))
