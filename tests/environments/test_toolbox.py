"""Tools from typed functions: what a model is shown, what a call answers, and what happens to the state."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue, ValidationError

from evaluatorq.conversation.checks import was_rejected
from evaluatorq.environments.toolbox import Toolbox, tool
from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import FunctionCall, Message, ToolCall, tool_call
from evaluatorq.toolset import ToolRefused


class Shop(BaseModel):
    stock: dict[str, int] = {}
    log: list[str] = []


@tool
def take(state: Shop, item: Annotated[str, "What to take."], count: int = 1) -> dict[str, int]:
    """Takes items out of stock."""
    if state.stock.get(item, 0) < count:
        raise ToolRefused(f"there are not {count} of {item}", code="out_of_stock")
    state.stock[item] -= count
    return {"left": state.stock[item]}


@tool(idempotent=True)
async def look(state: Shop, title: Literal["stock", "log"]) -> JsonValue:
    """Reads one part."""
    await anyio.lowlevel.checkpoint()
    return state.model_dump()[title]


def greet(name: str) -> str:
    return f"Hello {name}"


def broken() -> None:
    raise ZeroDivisionError("no luck")


def shop(**stock: int) -> Toolbox[Shop]:
    return Toolbox(Shop(stock=stock), [take, look, greet, broken])


async def answers(box: Toolbox[Shop], *calls: ToolCall) -> list[Message]:
    return list((await box.run(calls)).messages)


async def answer(box: Toolbox[Shop], name: str, **arguments: JsonValue) -> JsonValue:
    row = (await answers(box, tool_call("c1", name, arguments)))[0]
    return json.loads(row.text)


def test_a_model_sees_name_description_and_schema_without_the_state() -> None:
    spec = shop().tools[0]
    assert (spec.name, spec.description, spec.idempotent) == ("take", "Takes items out of stock.", False)
    assert spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "item": {"type": "string", "description": "What to take."},
            "count": {"type": "integer", "default": 1},
        },
        "required": ["item"],
    }


def test_a_parameter_called_title_stays_in_the_schema() -> None:
    spec = shop().tools[1]
    assert spec.idempotent
    assert spec.parameters["properties"] == {"title": {"type": "string", "enum": ["stock", "log"]}}


async def test_sync_and_async_tools_answer_in_the_order_of_the_calls_under_their_ids() -> None:
    box = shop(lamp=3)
    rows = await answers(
        box, tool_call("b", "take", {"item": "lamp"}), tool_call("a", "look", {"title": "stock"}),
        tool_call("c", "greet", {"name": "Ada"}),
    )  # fmt: skip
    assert [(row.tool_call_id, row.name, row.text) for row in rows] == [
        ("b", "take", '{"left":2}'),
        ("a", "look", '{"lamp":2}'),
        ("c", "greet", "Hello Ada"),
    ]


async def test_equal_and_empty_call_ids_still_get_a_row_each() -> None:
    rows = await answers(shop(lamp=3), *(tool_call(id_, "take", {"item": "lamp"}) for id_ in ("x", "x", "")))
    assert [(row.tool_call_id, row.text) for row in rows] == [
        ("x", '{"left":2}'), ("x", '{"left":1}'), ("", '{"left":0}'),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "code", "says"),
    [
        ("takes", "{}", "unknown_tool", "did you mean take? There is broken, "),
        ("take", "{", "bad_arguments", "not a JSON object"),
        ("take", "[1]", "bad_arguments", "not a JSON object"),
        ("take", "{}", "bad_arguments", "item: Field required"),
        ("take", '{"item": "lamp", "count": "many", "colour": 1}', "bad_arguments", "count: Input should be"),
        ("take", '{"item": "sofa"}', "out_of_stock", "there are not 1 of sofa"),
        ("broken", "", "tool_error", "ZeroDivisionError: no luck"),
    ],
)
async def test_a_call_that_fails_answers_with_a_code_and_a_sentence(
    name: str, arguments: str, code: str, says: str
) -> None:
    box = shop(lamp=1)
    row = (await answers(box, ToolCall(id="c", function=FunctionCall(name=name, arguments=arguments))))[0]
    error = json.loads(row.text)["error"]
    assert was_rejected(row)
    assert error["code"] == code
    assert says in error["message"]
    assert "Traceback" not in row.text
    assert box.snapshot() == {"stock": {"lamp": 1}, "log": []}


async def test_bad_arguments_are_all_named_at_once() -> None:
    refused = await answer(shop(), "take", count="many", colour=1)
    assert isinstance(refused, dict)
    assert [place in str(refused) for place in ("item:", "count:", "colour:")] == [True, True, True]


async def test_a_snapshot_is_a_copy_and_can_be_put_back() -> None:
    box = shop(lamp=3)
    before = box.snapshot()
    await answer(box, "take", item="lamp")
    assert before == {"stock": {"lamp": 3}, "log": []}
    assert box.snapshot() == {"stock": {"lamp": 2}, "log": []}
    box.restore(before)
    await answer(box, "take", item="lamp")
    assert before == {"stock": {"lamp": 3}, "log": []}
    assert box.snapshot() == {"stock": {"lamp": 2}, "log": []}


def test_a_snapshot_of_something_else_is_refused() -> None:
    with pytest.raises(ValidationError):
        shop().restore({"stock": "all"})


def test_two_boxes_share_nothing() -> None:
    start = Shop(stock={"lamp": 1})
    one, two = Toolbox(start, [take]), Toolbox(start, [take])
    one.state.stock["lamp"] = 0
    assert two.snapshot() == {"stock": {"lamp": 1}, "log": []}
    assert start.stock == {"lamp": 1}


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(), lambda of: st.lists(of, max_size=3), max_leaves=4
        ),
    )
)
def test_plain_json_states_come_back_as_they_were(state: dict[str, JsonValue]) -> None:
    box = Toolbox(state, [])
    copied = box.snapshot()
    assert copied == state
    box.state["new"] = 1
    box.restore(copied)
    assert box.snapshot() == state


async def test_calls_that_overlap_wait_for_each_other() -> None:
    order: list[str] = []

    async def slow(name: str) -> None:
        order.append(f"{name} in")
        await anyio.lowlevel.checkpoint()
        order.append(f"{name} out")

    box = Toolbox({}, [slow])
    async with anyio.create_task_group() as group:
        for name in ("a", "b"):
            group.start_soon(box.run, [tool_call(name, "slow", {"name": name})])
    assert order in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])


def test_tools_that_cannot_be_called_by_name_are_refused_when_made() -> None:
    def untyped(thing):
        return thing

    def starred(*things: str) -> None: ...

    with pytest.raises(ConfigError, match="parameter thing has no type"):
        _ = Toolbox({}, [untyped]).tools
    with pytest.raises(ConfigError, match="name every parameter"):
        _ = Toolbox({}, [starred]).tools
    with pytest.raises(ConfigError, match="two tools are called 'take'"):
        Toolbox(Shop(), [take, take])
