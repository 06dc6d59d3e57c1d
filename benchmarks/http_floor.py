"""CPU of one model request: ``OpenAIChat`` against a bare aiohttp client sending the same bytes, interleaved.

Needs an OpenAI-compatible server on loopback, in another process:

    python benchmarks/http_floor.py --base-url http://127.0.0.1:8900/v1 [--in-flight 20 200 1000] [--plain]

Prints milliseconds of CPU (user and system, this process) per request, the least of all rounds, and their ratio.
``text`` is a reply in words, ``verdict`` a forced tool call; the bare client decodes the JSON and reads no field.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial

import aiohttp
from pydantic_core import from_json

from evaluatorq.llm.body import make_body, make_head
from evaluatorq.llm.chat import OpenAIChat
from evaluatorq.llm.client import open_models
from evaluatorq.llm.encode import encode_message
from evaluatorq.llm.endpoint import Endpoint
from evaluatorq.llm.handles import room_for
from evaluatorq.ports import AnswerSpec, ChatPrefix, ChatRequest

Ask = Callable[[], Awaitable[object]]
SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "goal_completion_score": {"type": "number", "minimum": 0, "maximum": 1},
        "should_terminate": {"type": "boolean"},
    },
    "required": ["reason", "goal_completion_score", "should_terminate"],
}
VERDICT = AnswerSpec("verdict", "Your verdict.", SCHEMA)
LINES = [encode_message("user", "A phone case came instead of the headphones I paid for. Can you help?")]
REQUESTS = {
    "text": ("mock-target", ChatRequest(ChatPrefix("You are a helpful support agent."), LINES)),
    "verdict": (
        "mock-judge",
        ChatRequest(
            ChatPrefix("You judge.", answer=AnswerSpec("verdict", "Your verdict.", SCHEMA)), LINES, "Judge now."
        ),
    ),
}


def bare(session: aiohttp.ClientSession, chat: OpenAIChat, request: ChatRequest) -> Ask:
    """The same request with nothing around it."""
    form = chat.abilities.form if request.prefix.answer else None
    body = make_body(make_head(chat.name, request.prefix, chat.sampling, chat.abilities, form, {}), request)
    url, headers = chat.endpoint.chat_url, chat.endpoint.request_headers()

    async def ask() -> object:
        async with session.post(url, data=body, headers=headers) as answer:
            return from_json(await answer.read())

    return ask


async def worker(ask: Ask, turns: Iterator[int]) -> None:
    for _ in turns:
        await ask()


async def cpu_ms(ask: Ask, requests: int, in_flight: int) -> float:
    turns = iter(range(requests))
    start = time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker(ask, turns))
    return (time.process_time() - start) / requests * 1000


async def measure(args: argparse.Namespace, in_flight: int) -> None:
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_models(in_flight, 600, plain=args.plain))
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=600))
        )
        for kind, (name, request) in REQUESTS.items():
            chat = pool.model(name, Endpoint(args.base_url, "no-key-needed"))
            asks: dict[str, Ask] = {"bare": bare(session, chat, request), "ours": partial(chat.complete, request)}
            best = dict.fromkeys(asks, float("inf"))
            for round_number in range(args.rounds + 1):
                for who, ask in asks.items():
                    spent = await cpu_ms(ask, args.requests, in_flight)
                    if round_number:  # the first round opens the connections
                        best[who] = min(best[who], spent)
            ratio = best["ours"] / best["bare"]
            print(f"{in_flight:6}  {kind:8} {best['bare']:8.3f} {best['ours']:8.3f} {ratio:7.2f}", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", default="http://127.0.0.1:8900/v1")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[20, 200, 1000])
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--plain", action="store_true", help="httpx's own transport")
    args = parser.parse_args()
    room_for(2 * max(args.in_flight))
    print("in flight  kind    bare ms  ours ms   ratio")
    for in_flight in args.in_flight:
        await measure(args, in_flight)


if __name__ == "__main__":
    asyncio.run(main())
