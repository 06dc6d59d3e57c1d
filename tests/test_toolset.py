"""Tools for Python agents: awaited by name, errors as exceptions, every call on record."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest

from evaluatorq.environments.toolbox import Toolbox
from evaluatorq.model.messages import assistant, open_calls, tool_call, user
from evaluatorq.toolset import Recorder, ToolRefused, Toolset


def find(order_id: str, part: str = "status") -> dict[str, str]:
    """Finds an order."""
    if order_id != "A1":
        raise ToolRefused(f"there is no order {order_id}", code="not_found")
    return {part: "shipped"}


def recorder() -> Recorder:
    return Recorder(Toolbox({}, [find]))


async def test_a_tool_is_awaited_by_name_and_gives_its_decoded_result() -> None:
    tools = Toolset(recorder())
    assert await tools.find(order_id="A1") == {"status": "shipped"}
    assert await tools["find"]("A1", part="place") == {"place": "shipped"}


async def test_a_refusal_is_an_exception_with_the_tools_own_code() -> None:
    with pytest.raises(ToolRefused, match="there is no order B2") as caught:
        await Toolset(recorder()).find("B2")
    assert caught.value.code == "not_found"
    with pytest.raises(ToolRefused) as caught:
        await Toolset(recorder()).find()
    assert caught.value.code == "bad_arguments"


async def test_every_call_is_recorded_as_rows_with_nothing_left_open() -> None:
    seen = recorder()
    tools = Toolset(seen)
    await tools.find("A1")
    with pytest.raises(ToolRefused):
        await tools.find("B2")
    rows = seen.drain()
    assert [row.role for row in rows] == ["assistant", "tool", "assistant", "tool"]
    assert [row.tool_call_id for row in rows] == [None, "call_1", None, "call_2"]
    assert open_calls(rows) == ()
    assert seen.drain() == ()


async def test_a_resumed_conversation_does_not_repeat_call_ids() -> None:
    seen = recorder()
    seen.begin([user("hi"), assistant(None, [tool_call("x", "find", {}), tool_call("y", "find", {})])])
    await Toolset(seen).find("A1")
    assert seen.drain()[1].tool_call_id == "call_3"


async def test_a_sync_agent_in_a_worker_thread_calls_the_same_tools() -> None:
    seen = recorder()
    tools = Toolset(seen)

    def agent() -> object:
        return tools.sync.find(order_id="A1"), tools.sync["find"]("A1")

    assert await anyio.to_thread.run_sync(agent) == ({"status": "shipped"}, {"status": "shipped"})
    assert len(seen.drain()) == 4


def test_an_unknown_tool_names_the_near_ones() -> None:
    tools = Toolset(recorder())
    with pytest.raises(AttributeError, match=r"no tool is called 'fnd'; did you mean find\? There is find"):
        _ = tools.fnd
    with pytest.raises(KeyError, match="There is find"):
        _ = tools["fnd"]
    assert "find" in tools
    assert "fnd" not in tools


def test_a_toolset_lists_what_a_framework_needs_to_offer_it() -> None:
    tools = Toolset(recorder())
    assert [(tool.name, tool.description) for tool in tools] == [("find", "Finds an order.")]
    assert next(iter(tools)).parameters["required"] == ["order_id"]
    assert len(tools) == 1
    assert dir(tools) == ["find", "sync"]


async def test_too_many_or_doubled_arguments_are_the_callers_mistake() -> None:
    tools = Toolset(recorder())
    with pytest.raises(TypeError, match="takes 2 arguments, 3 were given"):
        await tools.find("A1", "status", "now")
    with pytest.raises(TypeError, match="got order_id twice"):
        await tools.find("A1", order_id="A1")
