"""File handle limits are the process's, so each case runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fake_endpoint import FakeEndpoint

resource = pytest.importorskip("resource", reason="no file handle limits on this system")


def python(code: str, *args: str, soft: int, hard: int) -> str:
    limit = f"import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
    command = [sys.executable, "-c", limit + code, *args]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


ROOM = """
from evaluatorq.llm.handles import room_for
room, notice = room_for(200)
print(room, resource.getrlimit(resource.RLIMIT_NOFILE)[0], notice)
"""


def test_the_soft_limit_is_raised_as_far_as_needed() -> None:
    room, soft, notice = python(ROOM, soft=64, hard=1024).split(" ", 2)
    assert (room, notice) == ("200", "None")
    assert 264 <= int(soft) < 400


def test_a_generous_limit_is_left_alone() -> None:
    assert python(ROOM, soft=1024, hard=1024) == "200 1024 None"


def test_where_the_hard_limit_is_too_low_fewer_connections_are_kept_and_a_sentence_says_so() -> None:
    room, soft, notice = python(ROOM, soft=128, hard=128).split(" ", 2)
    assert 1 <= int(room) < 64
    assert soft == "128"
    assert f"Only {room} of 200 connections fit" in notice
    assert "ulimit -n" in notice


CALLS = """
import logging

import anyio
from evaluatorq.llm.client import open_models
from evaluatorq.llm.encode import encode_message
from evaluatorq.llm.endpoint import Endpoint
from evaluatorq.ports import ChatPrefix, ChatRequest
ASK = ChatRequest(ChatPrefix(""), (encode_message("user", "Hi"),))

async def main():
    async with open_models(200, 20) as pool:
        model = pool.model("m", Endpoint(sys.argv[1]))
        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(model.complete, ASK)

logging.basicConfig(stream=sys.stdout, format="%(message)s")
anyio.run(main)
"""


def test_more_calls_than_handles_wait_their_turn_and_none_fails(fake: FakeEndpoint) -> None:
    assert "connections fit under this process's limit of 110 open files" in python(
        CALLS, fake.base_url, soft=110, hard=110
    )
    assert len(fake.seen) == 200


EXHAUSTED = """
import anyio
from evaluatorq.errors import CallError
from evaluatorq.llm.exchange import Call
from evaluatorq.llm.transport import open_wire

async def main():
    async with open_wire(4, 20, plain=sys.argv[2] == "plain") as wire:
        try:
            await wire.send(Call(sys.argv[1], {}, b"{}", "it"))
            taken = []
            while True:
                taken.append(open("/dev/null"))
        except OSError:
            pass
        try:
            await wire.send(Call(sys.argv[1].replace("127.0.0.1", "127.0.0.2"), {}, b"{}", "it"))
        except CallError as error:
            print(error.code, error.component, error.retryable)

anyio.run(main)
"""


@pytest.mark.parametrize("transport", ["direct", "plain"])
def test_no_handle_left_is_named_as_such(fake: FakeEndpoint, transport: str) -> None:
    assert python(EXHAUSTED, fake.base_url, transport, soft=64, hard=64) == "file_handles infrastructure False"
