"""Tools and environments that cases name are held to those that there are, and outputs to where they shall go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Inside

PERSONA = """
name: Ann
patience: 0.5
assertiveness: 0.5
politeness: 0.5
technical_level: 0.5
communication_style: casual
background: She bought a kettle.
"""
SCENARIO = """name: Refund
goal: Get a refund
environment: orders
goal_check: {tool_called: refund_order}
tools: {weather: {mocks: [{returns: fine}]}}
criteria:
  - must_happen: refunded
    check: {tool_called: refund_ordr}
  - must_not_happen: forecast
    check: {tool_called: {name: weather}}
claims:
  - says: I noted it
    requires: {tool_called: {name: add_notes}}
expect:
  tools:
    exact:
      - find_order
      - {name: find_ordr}
  calls: {find_order: 1, read_polcy: 0}
  forbid: {tools: [escalate]}
  turns:
    - turn: 1
      tools: [get_order]
events:
  - before_turn: 2
    call: {name: change_adress}
redact: [user, tool:add_nots]
"""
WRONG = {
    8: "refund_ordr", 13: "add_notes", 18: "find_ordr", 19: "read_polcy", 20: "escalate", 23: "get_order",
    26: "change_adress", 27: "add_nots",
}  # fmt: skip


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def test_a_tool_that_the_environment_lacks_is_a_warning_with_its_place_and_a_near_name(inside: Inside, folder: Path):
    ran = inside("sim", "validate", written(folder, "refund.yaml", SCENARIO))
    assert (ran.code, ran.out) == (0, f"1 scenario: all right, {len(WRONG)} warnings\n")
    told = ran.err.splitlines()
    assert len(told) == len(WRONG)
    for line, (number, name) in zip(told, WRONG.items(), strict=True):
        assert line.startswith(f"Warning: refund.yaml:{number}: ")
        assert f"{name!r} is no tool of environment orders; " in line
    assert "did you mean refund_order?" in told[0]


def test_a_scenario_inside_a_datapoint_is_looked_at_too(inside: Inside, folder: Path):
    check = {"type": "must_happen", "description": "refunded", "check": {"tool_called": "refund_ordr"}}
    scenario = {"name": "R", "goal": "g", "environment": "orders", "criteria": [check]}
    persona = {
        "name": "Ann", "patience": 0.5, "assertiveness": 0.5, "politeness": 0.5, "technical_level": 0.5,
        "communication_style": "casual", "background": "x",
    }  # fmt: skip
    rows = [
        {"id": "a", "persona": persona, "scenario": scenario},
        {"inputs": {"persona": json.dumps(persona), "scenario": json.dumps({**scenario, "name": "S"})}},
    ]
    ran = inside("sim", "validate", written(folder, "rows.jsonl", "\n".join(map(json.dumps, rows))))
    assert ran.code == 0
    assert [line.split(": ")[1] for line in ran.err.splitlines()] == ["rows.jsonl:1", "rows.jsonl:2"]


def test_an_agent_without_an_environment_may_call_what_it_likes(inside: Inside, folder: Path):
    text = "name: R\ngoal: g\ncriteria: [{must_happen: x, check: {tool_called: anything}}]\n"
    ran = inside("sim", "validate", written(folder, "own.yaml", text))
    assert (ran.code, ran.out, ran.err) == (0, "1 scenario: all right\n", "")


def test_an_unknown_environment_is_a_mistake_for_validate_as_it_is_for_a_run(inside: Inside, folder: Path):
    ran = inside("sim", "validate", written(folder, "a.yaml", "name: A\ngoal: g\nenvironment: ordes\n"))
    said = "a.yaml:3: environment: no environment is called 'ordes' here; did you mean orders?\n"
    assert (ran.code, ran.err) == (2, f"{said}Error: 1 problem; no case is right\n")
    written(folder, "ann.yaml", PERSONA)
    ran = inside("sim", "simulate", "--offline", "--personas", "ann.yaml", "--scenarios", "a.yaml", "--target", "demo")
    assert ran.code == 2
    assert "names environment 'ordes'; did you mean orders?" in ran.err


MISFIT = """name: B
goal: g
environment: orders
setup:
  order: {}
  orders:
    A1: {customer: Ann, email: a@b.example, item: Cup, status: sent, ordered_on: "2026-01-02"}
tools:
  find_order: {max_calls: 1}
  find_ordr: {max_calls: 1}
  weathr: {max_calls: 1}
"""


def test_every_misfit_of_setup_and_tools_is_told_in_its_own_line_with_a_near_name(inside: Inside, folder: Path):
    ran = inside("sim", "validate", written(folder, "b.yaml", MISFIT))
    assert ran.code == 2
    told = [line.split(": ", 2) for line in ran.err.splitlines()]
    assert [(place, field) for place, field, *_ in told[:-1]] == [
        ("b.yaml:5", "setup.order"), ("b.yaml:7", "setup.orders.A1.total"), ("b.yaml:7", "setup.orders.A1.status"),
        ("b.yaml:10", "tools.find_ordr"), ("b.yaml:11", "tools.weathr"),
    ]  # fmt: skip
    assert "did you mean orders?" in told[0][2]
    assert "did you mean find_order?" in told[3][2]
    assert ran.err.endswith("Error: 5 problems; no case is right\n")


def test_a_state_that_no_environment_has_is_a_warning_because_it_can_never_be_decided(inside: Inside, folder: Path):
    text = """name: R
goal: g
tools: {weather: {mocks: [{returns: fine}]}}
goal_state: [{pointer: /orders/A1/status, equals: refunded}]
criteria:
  - must_happen: x
    check: {state: {pointer: /a, equals: 1}}
"""
    ran = inside("sim", "validate", written(folder, "own.yaml", text))
    assert (ran.code, ran.out) == (0, "1 scenario: all right, 2 warnings\n")
    assert [line.split(": ")[1:3] for line in ran.err.splitlines()] == [
        ["own.yaml:4", "goal_state"], ["own.yaml:7", "criteria[0].check.state"],
    ]  # fmt: skip
    assert "without an environment there is none; name one, such as environment: orders" in ran.err
    (folder / ".evaluatorq").mkdir()
    written(folder / ".evaluatorq", "config.toml", '[simulate]\nenvironment = "orders"\n')
    assert "without an environment" not in inside("sim", "validate", "own.yaml").err


def test_tools_are_held_to_the_environment_also_where_something_else_is_wrong(inside: Inside, folder: Path):
    text = "name: R\ngoal: g\nmood: bad\nenvironment: orders\ngoal_check: {tool_called: refund_ordr}\n"
    ran = inside("sim", "validate", written(folder, "r.yaml", text))
    assert ran.code == 2
    assert "r.yaml:3: mood: is no key of a scenario" in ran.err
    assert "r.yaml:5: goal_check.tool_called: 'refund_ordr' is no tool of environment orders; did you mean" in ran.err


def test_without_a_path_the_cases_of_the_folder_are_checked_in_its_environment(inside: Inside, folder: Path):
    ran = inside("sim", "validate")
    assert ran.code == 2
    assert "config.toml" in ran.err
    (folder / ".evaluatorq").mkdir()
    (folder / "people").mkdir()
    written(folder / "people", "ann.yaml", PERSONA)
    written(folder, "r.yaml", "name: R\ngoal: g\ngoal_check: {tool_called: refund_ordr}\n")
    settings = '[simulate]\npersonas = "people"\nscenarios = ["r.yaml"]\nenvironment = "orders"\n'
    written(folder / ".evaluatorq", "config.toml", settings)
    ran = inside("sim", "validate")
    assert (ran.code, ran.out) == (0, "1 persona, 1 scenario: all right, 1 warning\n")
    assert "r.yaml:3: goal_check.tool_called: 'refund_ordr' is no tool of this scenario's environment" in ran.err


@pytest.mark.parametrize("words", [("sim", "simulate", "--offline", "--environment", "nope"), ("env", "list", "nope")])
def test_an_environment_that_is_not_there_is_refused_with_those_that_are(inside: Inside, words: tuple[str, ...]):
    ran = inside(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "no environment is called 'nope'; there is incident, orders, triage" in ran.err


def test_environments_are_listed_with_their_tools_as_they_are_called(inside: Inside, folder: Path):
    ran = inside("env", "list")
    assert ran.code == 0
    assert "orders: 8 tools\n" in ran.out
    assert "  escalate_to_human(reason, order_id?)\n" in ran.out
    assert inside("env", "list", "triage").out.startswith("triage: 4 tools\n")
    ran = inside("env", "list", "--scenario", written(folder, "refund.yaml", SCENARIO))
    assert ran.out.startswith("Refund in orders: 9 tools\n")
    assert "  weather()" in ran.out


SHOP = """
from pydantic import BaseModel
from evaluatorq.environments.toolbox import Toolbox, tool

class Shop(BaseModel):
    sold: list[str] = []

@tool
def sell(state: Shop, what: str) -> str:
    "Sells something."
    state.sold.append(what)
    return "sold"

def shop() -> Toolbox[Shop]:
    return Toolbox(Shop(), [sell])
"""


def test_a_world_of_ones_own_is_listed_and_a_scenario_that_asks_for_it_is_no_doubt(inside: Inside, folder: Path):
    written(folder, "a_shop_to_list.py", SHOP)
    assert inside("env", "list", "a_shop_to_list:shop").out.startswith("a_shop_to_list:shop: 1 tool\n  sell(what)\n")
    text = "name: S\ngoal: g\nenvironment: own\ngoal_check: {tool_called: sel}\n"
    case = written(folder, "own.yaml", text)
    assert inside("sim", "validate", case).err == ""
    (folder / ".evaluatorq").mkdir()
    written(folder / ".evaluatorq", "config.toml", '[simulate]\nenvironment = "a_shop_to_list:shop"\n')
    ran = inside("sim", "validate", case)
    assert ran.code == 0
    assert "'sel' is no tool of environment own; did you mean sell?" in ran.err


def test_a_name_that_two_files_give_is_told_with_both(inside: Inside, folder: Path):
    for name in ("p1.yaml", "p2.yaml"):
        written(folder, name, PERSONA)
    scenario = written(folder, "s.yaml", "name: S\ngoal: g\n")
    ran = inside(
        "sim", "simulate", "--offline", "--target", "demo", "--personas", "p1.yaml", "p2.yaml", "--scenarios", scenario
    )
    assert ran.code == 2
    assert "p2.yaml:2: name: 'Ann' is also a persona at p1.yaml:2" in ran.err


@pytest.mark.parametrize("flag", ["--report", "--report-md", "--results"])
def test_where_nothing_can_be_written_nothing_is_begun(inside: Inside, folder: Path, flag: str):
    written(folder, "file", "no folder")
    ran = inside("sim", "simulate", "--offline", "--only", "refund within*", flag, "file/run.txt")
    assert (ran.code, ran.out) == (2, "")
    assert "file/run.txt: Not a directory" in ran.err or "cannot create file" in ran.err
    assert not (folder / ".evaluatorq").exists()


def test_a_path_that_was_tried_is_left_as_it_was(inside: Inside, folder: Path):
    """The run is refused after its outputs were tried: no empty file may stay behind."""
    ran = inside("sim", "simulate", "--offline", "--only", "no such case", "--report", "out/run.json")
    assert ran.code == 2
    assert [path.name for path in (folder / "out").iterdir()] == []
