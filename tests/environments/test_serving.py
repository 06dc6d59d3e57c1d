"""Worlds over MCP, spoken to by a real MCP client: by themselves, and as the tools of an agent in another process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import httpx
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

from evaluatorq.environments.orders import orders_environment
from evaluatorq.environments.serving import tools_over_http
from evaluatorq.environments.toolbox import Toolbox, tool
from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import Message
from evaluatorq.simulation.api import simulate
from evaluatorq.testing import a_persona, a_scenario
from evaluatorq.toolset import TOOLS_URL, Recorder

AGENT = """
import asyncio, json, os, sys
from mcp import Client

async def main():
    for line in sys.stdin:
        words = json.loads(line)["messages"][-1]["content"]
        async with Client(os.environ["EVALUATORQ_TOOLS_URL"]) as tools:
            names = [tool.name for tool in (await tools.list_tools()).tools]
            assert "refund_order" in names, names
            await tools.call_tool("find_order", {"order_id": "A1"})
            late = await tools.call_tool("refund_order", {"order_id": "Z9", "reason": "x"})
            assert late.is_error
            await tools.call_tool("refund_order", {"order_id": "A1", "reason": "asked"})
        print(json.dumps("I have refunded order A1."), flush=True)

asyncio.run(main())
"""
ORDER = {
    "customer": "Mara", "email": "m@example.com", "item": "Kettle", "total": 5.0, "status": "delivered",
    "ordered_on": "2026-02-17", "delivered_on": "2026-02-20",
}  # fmt: skip
EXPECTED = {
    "tools": [
        "find_order", {"name": "refund_order", "outcome": "rejected"}, {"name": "refund_order", "outcome": "accepted"},
    ],
    "commands": ["refund_order"],
    "events": ["refunded"],
    "state": [{"pointer": "/orders/A1/status", "equals": "refunded"}],
}  # fmt: skip


def served_orders() -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "evaluatorq", "env", "serve", "orders", "--stdio"])


def text_of(result: types.CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, types.TextContent)
    return part.text


async def test_a_client_lists_and_calls_tools_over_http_and_the_world_remembers() -> None:
    world = Recorder(orders_environment(), prefix="mcp")
    async with tools_over_http() as urls:
        url = urls.url_for(world)
        async with Client(url) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "Pays an order back" in (listed["refund_order"].description or "")
            assert listed["find_order"].input_schema["required"] == ["order_id"]
            escalated = await client.call_tool("escalate_to_human", {"reason": "vague"})
            assert json.loads(text_of(escalated)) == {"case": "unknown", "answer_within": "one working day"}
            assert not escalated.is_error
            refused = await client.call_tool("find_order", {"order_id": "Z9"})
            assert refused.is_error
            assert "there is no order Z9" in text_of(refused)
        async with httpx.AsyncClient() as http:
            state = (await http.get(f"{url}/state")).json()
            assert state["escalations"] == {"unknown": {"reason": "vague", "status": "open"}}
            assert (await http.post(url + "x", json={})).status_code == 404
    rows = world.drain()
    assert [call.id for row in rows for call in row.tool_calls or ()] == ["mcp_1", "mcp_2"]


async def test_a_world_that_nobody_holds_is_served_no_more() -> None:
    async with tools_over_http() as urls, httpx.AsyncClient() as http:
        url = urls.url_for(Recorder(orders_environment()))
        assert (await http.get(f"{url}/state")).status_code == 404


async def test_a_port_that_is_taken_is_told() -> None:
    async with tools_over_http() as urls:
        port = int(urls.base.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"cannot listen on port {port}"):
            async with tools_over_http(port):
                pass


async def test_a_separate_process_serves_a_world_over_stdio(tmp_path: Path) -> None:
    async with Client(served_orders()) as client:
        assert "refund_order" in {tool.name for tool in (await client.list_tools()).tools}
        assert "30 days" in text_of(await client.call_tool("read_policy", {"topic": "refunds"}))


async def test_over_stdio_a_process_can_join_the_world_of_a_run() -> None:
    world = Recorder(orders_environment())
    async with tools_over_http() as urls:
        server = served_orders().model_copy(update={"env": {TOOLS_URL: urls.url_for(world)}})
        async with Client(server) as client:
            assert "refund_order" in {tool.name for tool in (await client.list_tools()).tools}
            await client.call_tool("escalate_to_human", {"reason": "joined"})
    assert "joined" in json.dumps(world.snapshot())


async def test_an_agent_in_another_process_is_observed_in_its_conversations_world(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    scenario = a_scenario(environment="orders", setup={"orders": {"A1": ORDER}}, expect=EXPECTED)
    results = await simulate(
        target={"command": [sys.executable, str(tmp_path / "agent.py")]},
        personas=[a_persona("Ann", background="x"), a_persona("Ben", background="x")],
        scenarios=[scenario], offline=True, serve_tools=True, max_turns=1, evaluator_names=["expectations_met"],
    )  # fmt: skip
    for result in results:
        assert [failure.text for failure in result.expectations.failures] == []  # type: ignore[union-attr]
        assert [call.id for row in result.messages for call in row.tool_calls or ()] == ["mcp_1", "mcp_2", "mcp_3"]
        assert result.metadata["evaluator_scores"] == {"expectations_met": 1.0}


async def test_a_function_is_told_the_url_and_calls_before_a_failure_are_seen() -> None:
    @tool
    def ping(state: dict[str, int]) -> str:
        """Pings."""
        state["n"] += 1
        return "pong"

    asked: list[str] = []

    async def agent(messages: list[Message], tools_url: str) -> str:
        asked.append(tools_url)
        async with Client(tools_url) as client:
            await client.call_tool("ping", {})
        if len(asked) == 1:
            return "Pong."
        raise RuntimeError("broken after all")

    results = await simulate(
        target=agent, personas=[a_persona(background="x")], scenarios=[a_scenario()], offline=True, serve_tools=True,
        environment=lambda: Toolbox({"n": 0}, [ping]), max_turns=2, max_target_retries=0,
        raise_on_execution_failure=False,
    )  # fmt: skip
    one, two = results[0].observations
    assert ([call.name for call in one.tool_calls or ()], one.commands) == (["ping"], ("ping",))
    assert ([call.name for call in two.tool_calls or ()], two.error_code) == (["ping"], "target_error")
    assert results[0].final_state == {"n": 2}
    assert len(set(asked)) == 1
