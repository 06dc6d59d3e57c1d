"""The orders world: what the back office lets an agent do, and how a scenario sets it up."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from evaluatorq.environments.orders import Order, OrdersWorld, orders_environment
from evaluatorq.environments.registry import Environments, environment_for, merge_patch
from evaluatorq.environments.toolbox import Toolbox
from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.messages import tool_call
from evaluatorq.records.states import revisions_in

PERSONA = Persona.model_validate({
    "name": "p", "patience": 0.5, "assertiveness": 0.5, "politeness": 0.5, "technical_level": 0.5,
    "communication_style": "casual", "background": "b",
})  # fmt: skip


def case(**scenario: object) -> SimulationDatapoint:
    made = Scenario.model_validate({"name": "s", "goal": "g", **scenario})
    return SimulationDatapoint(id="d", persona=PERSONA, scenario=made)


def shop() -> Toolbox[OrdersWorld]:
    old = {"customer": "A", "email": "a@example.com", "item": "Lamp", "total": 20.0, "ordered_on": "2025-11-01"}
    orders: dict[str, JsonValue] = {
        "A100": {**old, "status": "delivered", "delivered_on": "2025-11-05"},
        "B200": {**old, "status": "shipped", "address": "1 Old Road"},
    }
    return orders_environment(OrdersWorld(orders={k: Order.model_validate(v) for k, v in orders.items()}))


async def use(world: Toolbox[OrdersWorld], name: str, **arguments: JsonValue) -> JsonValue:
    reply = await world.run([tool_call("c", name, arguments)])
    text = reply.messages[0].text
    return json.loads(text) if text.startswith(("{", "[")) else text


async def test_the_back_office_pays_late_refunds_and_the_books_show_it() -> None:
    world = shop()
    assert await use(world, "refund_order", order_id="A100", reason="r") == {"order_id": "A100", "refunded": 20.0}
    assert world.state.refunds["A100"].days_since_delivery == 117
    assert world.state.orders["A100"].status == "refunded"
    assert world.state.events == ["refunded_late:A100"]


async def test_the_back_office_changes_the_address_of_a_parcel_that_has_left() -> None:
    world = shop()
    await use(world, "change_address", order_id="B200", address="2 New Road")
    assert world.state.orders["B200"].address == "2 New Road"
    assert world.state.events == ["address_changed_after_shipping:B200"]


async def test_an_order_counts_its_revisions_and_looking_it_up_does_not_tell_them() -> None:
    world = shop()
    assert "revision" not in await use(world, "find_order", order_id="A100")
    await use(world, "change_address", order_id="A100", address="2 New Road")
    await use(world, "refund_order", order_id="A100", reason="r")
    await use(world, "refund_order", order_id="A100", reason="again")
    await use(world, "add_note", order_id="A100", text="kept apart")
    assert revisions_in(world.snapshot()) == {"/orders/A100": 3, "/orders/B200": 1}


@pytest.mark.parametrize("name", ["find_order", "refund_order", "create_replacement", "change_address", "add_note"])
async def test_an_order_that_does_not_exist_is_refused_by_every_tool(name: str) -> None:
    more = {"refund_order": {"reason": "r"}, "create_replacement": {"reason": "r"}, "change_address": {"address": "a"}}
    answer = await use(shop(), name, order_id="Z9", **{"add_note": {"text": "t"}, **more}.get(name, {}))
    assert answer == {"error": {"code": "not_found", "message": "there is no order Z9"}}


async def test_money_goes_back_once() -> None:
    world = shop()
    await use(world, "refund_order", order_id="A100", reason="r")
    again = await use(world, "refund_order", order_id="A100", reason="r")
    assert again == {"error": {"code": "already_refunded", "message": "order A100 was refunded already"}}


async def test_a_lookup_tells_the_age_of_the_delivery() -> None:
    found = await use(shop(), "find_order", order_id="A100")
    assert isinstance(found, dict)
    assert found["days_since_delivery"] == 117
    assert found["email"] == "a@example.com"


async def test_reading_changes_nothing_and_says_so_in_the_schema() -> None:
    world = shop()
    before = world.snapshot()
    for spec in world.tools:
        if spec.idempotent:
            await use(world, spec.name, order_id="A100", email="a@example.com", topic="refunds")
    assert world.snapshot() == before
    assert [spec.name for spec in world.tools if spec.idempotent] == [
        "find_order",
        "get_customer_orders",
        "read_policy",
    ]


async def test_customer_orders_policies_notes_and_escalations_are_answered() -> None:
    world = shop()
    listed = await use(world, "get_customer_orders", email="A@EXAMPLE.com")
    assert isinstance(listed, list)
    assert len(listed) == 2
    assert "30 days" in str(await use(world, "read_policy", topic="refunds"))
    await use(world, "add_note", order_id="A100", text="called")
    await use(world, "escalate_to_human", reason="r")
    await use(world, "escalate_to_human", reason="r", order_id="A100")
    assert world.state.notes == {"A100": ["called"]}
    assert sorted(world.state.escalations) == ["A100", "unknown"]


def test_a_setup_is_laid_over_the_empty_shop() -> None:
    order = {
        "customer": "A",
        "email": "a@b.c",
        "item": "i",
        "total": 1,
        "status": "shipped",
        "ordered_on": "2026-01-01",
    }
    world = environment_for(case(environment="orders", setup={"orders": {"A1": order}, "refund_days": 14}), 0)
    assert world is not None
    state = world.snapshot()
    assert isinstance(state, dict)
    assert state["refund_days"] == 14
    assert state["today"] == "2026-03-02"
    assert list(state["orders"]) == ["A1"]  # type: ignore[arg-type]


def test_each_conversation_gets_a_world_of_its_own() -> None:
    one, two = (environment_for(case(environment="orders"), 0) for _ in range(2))
    assert one is not None
    assert one is not two


def test_a_scenario_without_an_environment_has_none() -> None:
    assert environment_for(case(), 0) is None


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        ({"environment": "order"}, "scenario 's' names environment 'order'; did you mean orders"),
        ({"setup": {}}, "has a setup but names no environment"),
        ({"environment": "orders", "setup": {"orders": {"A1": {}}}}, "does not fit environment 'orders': /orders/A1"),
        ({"environment": "orders", "setup": {"order": {}}}, "/order: is no key here in .*; did you mean orders"),
    ],
)  # fmt: skip
def test_a_world_that_cannot_be_made_is_named_with_the_scenario(scenario: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        environment_for(case(**scenario), 0)


def test_own_environments_are_found_by_the_name_given_in_python() -> None:
    seeds: list[int] = []

    def counter(seed: int) -> Toolbox[dict[str, int]]:
        seeds.append(seed)
        return Toolbox({"n": seed}, [])

    made = Environments({"counter": counter})(case(environment="counter", setup={"m": 1}), 7)
    assert made is not None
    assert made.snapshot() == {"n": 7, "m": 1}
    assert seeds == [7]


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, 5, 5),
        (5, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
)
def test_a_merge_patch_follows_the_rfc(target: JsonValue, patch: JsonValue, result: JsonValue) -> None:
    before = json.dumps(target)
    assert merge_patch(target, patch) == result
    assert json.dumps(target) == before
