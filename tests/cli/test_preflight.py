"""A world that cannot be made is told in one sentence before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Cli

SCENARIO = """
name: Refund
goal: Get a refund
environment: {environment}
setup: {setup}
"""


@pytest.mark.parametrize(
    ("environment", "setup", "says"),
    [
        ("order", "{}", "scenario 'Refund' names environment 'order'; did you mean orders?"),
        ("orders", "{orders: {A1: {}}}", "its setup does not fit environment 'orders': /orders/A1/customer"),
    ],
)
def test_a_scenario_whose_world_cannot_be_made_is_a_mistake_and_no_run(
    cli: Cli, environment: str, setup: str, says: str
) -> None:
    (cli.folder / "case.yaml").write_text(SCENARIO.format(environment=environment, setup=setup))
    personas = Path(__file__).parents[2] / "personas"
    ran = cli(
        "sim", "simulate", "--offline", "--personas", str(personas), "--scenarios", "case.yaml", "--target", "demo"
    )
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert list(cli.folder.rglob("*.jsonl")) == []


def test_an_own_environment_that_breaks_is_named_with_what_it_raised(cli: Cli) -> None:
    (cli.folder / "world.py").write_text("def make():\n    raise OSError('no database')\n")
    (cli.folder / "case.yaml").write_text("name: Refund\ngoal: Get a refund\n")
    personas = Path(__file__).parents[2] / "personas"
    cases = ("--personas", str(personas), "--scenarios", "case.yaml")
    ran = cli("sim", "simulate", "--offline", *cases, "--target", "demo", "--environment", "world:make")
    assert ran.code == 2
    assert "scenario 'Refund': its environment cannot be made: OSError: no database" in " ".join(ran.err.split())
