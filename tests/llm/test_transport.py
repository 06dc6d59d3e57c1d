from __future__ import annotations

import json
import os
import socket
import sys

import anyio
import httpx
import pytest
import respx
import trio
from fake_endpoint import FakeEndpoint, Served, completion

from evaluatorq.errors import CallError
from evaluatorq.llm.client import open_models
from evaluatorq.llm.encode import encode_message
from evaluatorq.llm.endpoint import Endpoint
from evaluatorq.llm.exchange import Call
from evaluatorq.llm.transport import open_wire
from evaluatorq.ports import ChatPrefix, ChatRequest

ASK = ChatRequest(ChatPrefix("You help."), (encode_message("user", "Hi"),))
OUTSIDE = "http://llm.example.test/v1"
UNPROXIED = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


async def ask(base_url: str, *, plain: bool = False, timeout_s: float = 5.0) -> str:
    async with open_models(4, timeout_s, plain=plain) as pool:
        return (await pool.model("m", Endpoint(base_url, "k")).complete(ASK)).text


def call(url: str, where: str = "it") -> Call:
    return Call(url, {}, b"{}", where)


@pytest.mark.parametrize("plain", [False, True])
async def test_both_transports_give_the_same_answer_and_keep_the_connection(fake: FakeEndpoint, plain: bool) -> None:
    async with open_models(4, 5.0, plain=plain) as pool:
        model = pool.model("m", Endpoint(fake.base_url))
        for _ in range(3):
            assert (await model.complete(ASK)).text == "Hello."
    assert fake.connections == 1


def test_trio_takes_the_plain_transport(fake: FakeEndpoint) -> None:
    assert trio.run(ask, fake.base_url) == "Hello."


def test_a_pool_can_be_opened_in_one_loop_after_another(fake: FakeEndpoint) -> None:
    assert [anyio.run(ask, fake.base_url) for _ in range(2)] == ["Hello.", "Hello."]


async def test_respx_steps_in_through_its_httpx_mocker() -> None:
    with respx.mock(using="httpx") as router:
        route = router.post(f"{OUTSIDE}/chat/completions").respond(json=json.loads(completion().body))
        assert await ask(OUTSIDE) == "Hello."
    assert json.loads(route.calls.last.request.content)["model"] == "m"


async def test_respx_as_it_is_needs_the_plain_transport() -> None:
    with respx.mock() as router:
        router.post(f"{OUTSIDE}/chat/completions").respond(json=json.loads(completion().body))
        assert await ask(OUTSIDE, plain=True) == "Hello."


@pytest.mark.parametrize("plain", [False, True])
async def test_a_proxy_from_the_environment_is_used_except_where_it_says_no(
    fake: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    monkeypatch.setenv("HTTP_PROXY", fake.base_url.removesuffix("/v1"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert await ask(OUTSIDE, plain=plain) == "Hello."
    assert await ask(fake.base_url, plain=plain) == "Hello."
    assert [seen.path for seen in fake.seen] == [f"{OUTSIDE}/chat/completions", "/v1/chat/completions"]


@pytest.mark.parametrize("plain", [False, True])
async def test_cookies_of_one_conversation_do_not_reach_another(fake: FakeEndpoint, plain: bool) -> None:
    fake.answers(Served(b"{}", headers={"set-cookie": "session=1; Path=/"}))
    async with open_wire(2, 5.0, plain=plain) as wire:
        for _ in range(2):
            await wire.send(call(fake.base_url.replace("127.0.0.1", "localhost")))
    assert all("cookie" not in seen.headers for seen in fake.seen)


@pytest.mark.parametrize("plain", [False, True])
async def test_requests_say_whose_they_are(fake: FakeEndpoint, plain: bool) -> None:
    await ask(fake.base_url, plain=plain)
    assert fake.seen[0].headers["user-agent"] == "evaluatorq"


@pytest.mark.parametrize("plain", [False, True])
async def test_redirects_are_answers(fake: FakeEndpoint, plain: bool) -> None:
    fake.answers(Served(b"", 307, headers={"location": "http://elsewhere.test/"}))
    async with open_wire(2, 5.0, plain=plain) as wire:
        answer = await wire.send(call(fake.base_url))
    assert (answer.status, answer.headers["location"]) == (307, "http://elsewhere.test/")


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("served", "code"),
    [
        (Served(hang=True), "timeout"),
        (Served(drop=True), "network_error"),
        (Served(b'{"id"', cut=True), "truncated_response"),
        (Served(b"{}", 500), "server_error"),
    ],
)
async def test_both_transports_fail_with_the_same_code(
    fake: FakeEndpoint, served: Served, code: str, plain: bool
) -> None:
    fake.answers(served)
    with pytest.raises(CallError) as caught:
        await ask(fake.base_url, plain=plain, timeout_s=0.2 if code == "timeout" else 5.0)
    assert caught.value.code == code
    assert caught.value.retryable


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("proxied", [False, True])
async def test_garbage_instead_of_http_is_a_network_error(
    plain: bool, proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def babble(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"220 mail.example.test ready\r\n\r\n")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", family=socket.AddressFamily.AF_INET)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, babble)
        url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        if proxied:
            monkeypatch.setenv("HTTP_PROXY", url)
        with pytest.raises(CallError) as caught:
            await ask(OUTSIDE if proxied else f"{url}/v1", plain=plain)
        group.cancel_scope.cancel()
    assert caught.value.code == "network_error"


async def test_an_answer_that_trickles_is_held_to_the_whole_time_limit() -> None:
    async def trickle(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            while True:
                await stream.send(b" ")
                await anyio.sleep(0.02)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", family=socket.AddressFamily.AF_INET)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    for plain in (False, True):
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, trickle)
            with pytest.raises(CallError) as caught:
                await ask(f"http://127.0.0.1:{port}/v1", plain=plain, timeout_s=0.2)
            group.cancel_scope.cancel()
        assert caught.value.code == "timeout"
    await listener.aclose()


@pytest.mark.parametrize("plain", [False, True])
async def test_a_compressed_answer_is_unpacked(fake: FakeEndpoint, plain: bool) -> None:
    import gzip

    body = gzip.compress(completion().body)
    fake.answers(Served(body, headers={"content-encoding": "gzip"}))
    assert await ask(fake.base_url, plain=plain) == "Hello."


@pytest.mark.parametrize("plain", [False, True])
async def test_a_cancelled_call_leaves_the_pool_usable(fake: FakeEndpoint, plain: bool) -> None:
    fake.answers(Served(hang=True), completion())
    async with open_models(1, 5.0, plain=plain) as pool:
        model = pool.model("m", Endpoint(fake.base_url))
        async with anyio.create_task_group() as group:
            group.start_soon(model.complete, ASK)
            while not fake.seen:  # noqa: ASYNC110  the server is a thread of its own
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        assert (await model.complete(ASK)).text == "Hello."


async def test_no_more_requests_are_under_way_than_allowed(fake: FakeEndpoint) -> None:
    async with open_models(3, 5.0) as pool, anyio.create_task_group() as group:
        model = pool.model("m", Endpoint(fake.base_url))
        for _ in range(12):
            group.start_soon(model.complete, ASK)
    assert fake.most_at_once <= 3
    assert len(fake.seen) == 12


async def test_the_shared_client_is_closed_with_the_run(fake: FakeEndpoint) -> None:
    async with open_wire(2, 5.0) as wire:
        await wire.send(call(fake.base_url))
    with pytest.raises((RuntimeError, httpx.HTTPError, CallError)):
        await wire.send(call(fake.base_url))


async def test_over_plain_http_without_a_proxy_httpx_is_not_loaded(fake: FakeEndpoint) -> None:
    script = """
import asyncio, sys
from evaluatorq.llm.exchange import Call
from evaluatorq.llm.transport import open_wire

async def main():
    async with open_wire(2, 5.0) as wire:
        await wire.send(Call(sys.argv[1], {}, b"{}", "it"))
    print("httpx" in sys.modules)

asyncio.run(main())
"""
    for proxies, loaded in (({}, "False"), ({"HTTPS_PROXY": "http://127.0.0.1:9"}, "True")):
        done = await anyio.run_process([sys.executable, "-c", script, fake.base_url], env={**UNPROXIED, **proxies})
        assert done.stdout.decode().strip() == loaded


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", "http://[::1/", "http://a\0b/", "http://127.0.0.1/\ud800"])
async def test_a_url_that_leads_nowhere_is_a_bad_request(url: str, plain: bool) -> None:
    async with open_wire(2, 5.0, plain=plain) as wire:
        with pytest.raises(CallError) as caught:
            await wire.send(call(url))
    assert (caught.value.code, caught.value.retryable) == ("bad_request", False)


@pytest.mark.parametrize("plain", [False, True])
async def test_headers_in_any_script_are_sent(fake: FakeEndpoint, plain: bool) -> None:
    async with open_wire(2, 5.0, plain=plain) as wire:
        await wire.send(Call(fake.base_url, {"x-who": "Zoë 中"}, b"{}", "it"))
    assert fake.seen[0].headers["x-who"].encode("latin-1").decode() == "Zoë 中"
