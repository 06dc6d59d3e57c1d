"""The lower bound in a process of its own: the requests of a run, sent by aiohttp with next to nothing around them.

Prompts are the package's own, so the requests are the same to the byte; a line is encoded once for each reader and a
body is a join; of an answer only the words or the verdict are read, and nothing is checked or written.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import time
from collections.abc import Iterator

import aiohttp
from pydantic import JsonValue
from pydantic_core import from_json, to_json
from workload import PERSONA, agent_line, first_line, scenario

from evaluatorq.llm.handles import room_for
from evaluatorq.ports import AnswerSpec
from evaluatorq.roles.prompts_judge import judge_system, judge_tail, verdict_spec
from evaluatorq.roles.prompts_user import OPENING, USER_MESSAGE, user_system, user_tail

IDS = ("criteria_0", "criteria_1", "criteria_2")


def line(role: str, content: str) -> bytes:
    return to_json({"role": role, "content": content})


def head(model: str, system: str, answer: AnswerSpec) -> bytes:
    function: dict[str, JsonValue] = {
        "name": answer.name,
        "description": answer.description,
        "parameters": answer.schema,
    }
    fixed: dict[str, JsonValue] = {
        "model": model,
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": answer.name}},
    }
    return to_json(fixed)[:-1] + b',"messages":[' + line("system", system)


class Conversation:
    def __init__(self, session: aiohttp.ClientSession, url: str, number: int) -> None:
        self.session, self.url, self.number = session, url, number
        about = scenario(number)
        self.user = [head("mock-user", user_system(PERSONA, about), USER_MESSAGE), OPENING]
        self.judge = [head("mock-judge", judge_system(about), verdict_spec(IDS))]
        self.target: list[bytes] = []

    async def ask(self, body: bytes) -> dict[str, JsonValue]:
        async with self.session.post(self.url, data=body) as answer:
            return from_json(await answer.read())["choices"][0]["message"]

    async def hold(self, turns: int, here: bool) -> None:
        for turn in range(turns):
            said = first_line(self.number) if turn == 0 else await self.user_line()
            self.user.append(line("assistant", said))
            self.target.append(line("user", said))
            self.judge.append(line("user", f"<user_said>{said}</user_said>"))
            said = agent_line(first_line(self.number), turn + 1) if here else await self.agent_line()
            self.user.append(line("user", said))
            self.target.append(line("assistant", said))
            self.judge.append(line("user", f"<agent_said>{said}</agent_said>"))
            tail = line("user", judge_tail(IDS, final=turn + 1 == turns))
            verdict = await self.ask(b",".join([*self.judge, tail]) + b"]}")
            from_json(verdict["tool_calls"][0]["function"]["arguments"])

    async def user_line(self) -> str:
        message = await self.ask(b",".join([*self.user, line("user", user_tail(first=False))]) + b"]}")
        return from_json(message["tool_calls"][0]["function"]["arguments"])["reply"]

    async def agent_line(self) -> str:
        return (await self.ask(b'{"model":"mock-target","messages":[' + b",".join(self.target) + b"]}"))["content"]


async def hold_all(args: argparse.Namespace) -> None:
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:
        numbers = iter(range(args.conversations))

        async def worker(numbers: Iterator[int]) -> None:
            for number in numbers:
                await Conversation(session, url, number).hold(args.turns, args.target == "here")

        async with asyncio.TaskGroup() as group:
            for _ in range(min(args.in_flight, args.conversations)):
                group.create_task(worker(numbers))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, required=True)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--in-flight", type=int, default=10)
    parser.add_argument("--target", choices=["model", "here"], default="model")
    args = parser.parse_args()
    room_for(args.in_flight)
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    asyncio.run(hold_all(args))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(json.dumps({"cpu_s": cpu, "wall_s": wall, "turns": args.conversations * args.turns}))


if __name__ == "__main__":
    main()
