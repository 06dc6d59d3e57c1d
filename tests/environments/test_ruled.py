"""Limits and mocks that a case declares, and what other people do to a world meanwhile."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from evaluatorq.environments.registry import Environments, environment_for
from evaluatorq.environments.ruled import Ruled
from evaluatorq.environments.toolbox import Toolbox, tool
from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.messages import Message, assistant, tool_call, user
from evaluatorq.model.runs import Limits
from evaluatorq.model.worlds import ToolRules
from evaluatorq.testing import a_datapoint, a_scenario, converse, crew_of, verdict


@tool
def add(state: dict[str, int], by: int = 1) -> int:
    """Adds."""
    state["n"] += by
    return state["n"]


@tool(idempotent=True)
def read(state: dict[str, int]) -> int:
    """Reads."""
    return state["n"]


def case(**scenario: object) -> SimulationDatapoint:
    return a_datapoint(a_scenario(**scenario))


def ruled(seed: int = 0, **rules: dict[str, object]) -> Ruled:
    made = {name: ToolRules.model_validate(rule) for name, rule in rules.items()}
    return Ruled(Toolbox({"n": 0}, [add, read]), made, seed)


async def use(world: Ruled, name: str, **arguments: JsonValue) -> JsonValue:
    (row,) = (await world.run([tool_call("c", name, arguments)])).messages
    value: JsonValue = json.loads(row.text)
    return value["error"]["code"] if isinstance(value, dict) and "error" in value else value  # type: ignore[index,call-overload]


async def test_a_tool_is_refused_past_its_limit_and_others_are_not() -> None:
    world = ruled(add={"max_calls": 2})
    assert [await use(world, "add") for _ in range(3)] == [1, 2, "limit_reached"]
    assert await use(world, "read") == 2


async def test_a_limit_of_a_turn_begins_anew_with_each_turn_and_counts_on_after_a_resume() -> None:
    rows: list[Message] = []
    world = ruled(add={"max_calls_per_turn": 1, "max_calls": 2})
    for number in range(1, 4):
        rows.append(user("again"))
        world.attend(rows)
        call = tool_call(f"c{number}", "add", {})
        reply = await world.run([call, tool_call(f"d{number}", "add", {})])
        assert "limit_reached" in reply.messages[1].text
        rows += [assistant(None, [call]), reply.messages[0]]
    assert "limit_reached" in rows[-1].text
    other = ruled(add={"max_calls": 2})
    other.attend(rows)
    assert await use(other, "add") == "limit_reached"


async def test_mocks_answer_by_match_by_number_and_in_general_in_their_order() -> None:
    world = ruled(
        add={"mocks": [{"on_call": 2, "fails": "unavailable"}, {"when": {"by": 7}, "returns": {"lucky": True}}]},
        read={"mocks": [{"returns": "fixed"}]},
        weather={"mocks": [{"when": {"city": "Velm"}, "returns": None}], "description": "Tells the weather."},
    )
    assert [await use(world, "add", by=by) for by in (1, 7, 7, 1)] == [1, "unavailable", {"lucky": True}, 2]
    assert (await world.run([tool_call("c", "read", {})])).messages[0].text == "fixed"
    assert [await use(world, "weather", city=city) for city in ("Velm", "Graum")] == [None, "no_answer"]
    assert [(spec.name, spec.description) for spec in world.tools][-1] == ("weather", "Tells the weather.")


async def test_chance_is_drawn_from_the_seed() -> None:
    async def drawn(seed: int) -> list[JsonValue]:
        world = ruled(seed, add={"mocks": [{"chance": 0.5, "fails": "unlucky"}]})
        return [await use(world, "add") for _ in range(20)]

    assert await drawn(1) == await drawn(1) != await drawn(2)
    assert 3 < sum(answer == "unlucky" for answer in await drawn(1)) < 17


def test_rules_for_a_tool_that_is_not_there_are_refused_with_the_scenario() -> None:
    with pytest.raises(ConfigError, match=r"scenario .Refund.: tools: find_ordr is no tool .* did you mean find_order"):
        environment_for(case(environment="orders", tools={"find_ordr": {"max_calls": 1}}), 0)
    with pytest.raises(ConfigError, match="has events but names no environment"):
        environment_for(case(events=[{"before_turn": 1, "patch": {}}]), 0)


async def test_mocked_tools_need_no_environment() -> None:
    world = environment_for(case(tools={"ping": {"mocks": [{"returns": "pong"}]}}), 0)
    assert world is not None
    assert [spec.name for spec in world.tools] == ["ping"]
    assert (await world.run([tool_call("c", "ping", {})])).messages[0].text == "pong"


async def test_limits_mocks_and_outside_events_show_in_the_observations() -> None:
    factory = Environments({"counter": lambda _seed: Toolbox({"n": 0}, [add, read])})
    scenario = a_scenario(
        environment="counter",
        tools={"add": {"max_calls": 1}, "read": {"mocks": [{"returns": 99}]}},
        events=[{"before_turn": 2, "call": {"name": "add", "arguments": {"by": 5}}}],
        expect={"calls": {"add": 2}, "turns": [{"turn": 2, "state": [{"pointer": "/n", "unchanged": True}]}]},
    )
    asks = [assistant(None, [tool_call(f"c{i}", name, {})]) for i, name in enumerate(["add", "read", "add"])]
    from dataclasses import replace

    crew = crew_of(target=[asks[0], asks[1], "One.", asks[2], "Two."], judge=[verdict(), verdict()])
    result = await converse(a_datapoint(scenario), replace(crew, environment=factory), Limits(max_turns=2))
    one, two = result.observations
    assert [(call.name, call.outcome) for call in one.tool_calls or ()] == [("add", "accepted"), ("read", "accepted")]
    assert one.commands == ("add",)
    assert [(call.outcome, call.reason) for call in two.tool_calls or ()] == [("rejected", "limit_reached")]
    assert (two.states, result.final_state) == ({}, {"n": 6})
    assert two.outside is not None
    assert result.expectations is not None
    assert result.expectations.met
