"""Observations do not depend on interruptions: a journal cut at any line is resumed to the same facts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import anyio

from evaluatorq.environments.registry import Environments
from evaluatorq.environments.toolbox import Toolbox, tool
from evaluatorq.model.messages import assistant, tool_call
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.ports import EventPage, LedgerEvent, ObservedTurn
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, resume_plan, run_plan
from evaluatorq.store.paths import journals_dir
from evaluatorq.testing import a_datapoint, a_plan, a_scenario, crew_of, verdict


@tool
def add(state: dict[str, int]) -> int:
    """Adds one."""
    state["n"] += 1
    return state["n"]


class Store:
    """Tells of each turn what it was asked."""

    async def collect(self, turn: ObservedTurn) -> TurnReport:
        await anyio.lowlevel.checkpoint()
        return TurnReport(commands=tuple(row.text for row in turn.messages if row.role == "assistant" and row.text))

    async def page(self, turn: ObservedTurn, after: str | None) -> EventPage:
        return EventPage((LedgerEvent(f"event {turn.number}"),) if after is None else (), "end")


SCENARIO = a_scenario(
    environment="counter",
    tools={"add": {"max_calls": 2, "mocks": [{"on_call": 2, "fails": "unavailable"}]}},
    events=[
        {"before_turn": 1, "patch": {"n": 10}},
        {"before_turn": 2, "call": {"name": "add"}},
        {"before_turn": 2, "patch": {"n": 20}},
    ],
    expect={"events": ["event 1", "event 2"], "state": [{"pointer": "/n", "equals": 20}], "calls": {"add": 3}},
)


def the_plan() -> RunPlan:
    return a_plan(a_datapoint(SCENARIO), limits=Limits(max_turns=2))


def the_crew() -> Crew:
    calls = [assistant(None, [tool_call(f"c{i}", "add", {})]) for i in range(3)]
    crew = crew_of(
        user=["one", "two"], target=[calls[0], calls[1], "First.", calls[2], "Second."], judge=[verdict(), verdict()]
    )
    worlds = Environments({"counter": lambda _seed: Toolbox({"n": 0}, [add])})
    return replace(crew, environment=worlds, source=lambda _seat: Store())


async def test_a_journal_cut_at_any_line_is_resumed_to_the_same_observations(tmp_path: Path) -> None:
    whole = await run_plan(the_plan(), the_crew(), RunOptions(runs_dir=tmp_path / "whole"))
    (expected,) = whole.read().results
    assert expected.expectations is not None
    assert [failure.text for failure in expected.expectations.failures] == []
    assert [[(call.outcome, call.reason) for call in seen.tool_calls or ()] for seen in expected.observations] == [
        [("accepted", None), ("rejected", "unavailable")],
        [("rejected", "limit_reached")],
    ]
    assert [seen.commands for seen in expected.observations] == [("First.",), ("Second.",)]
    folder = journals_dir(tmp_path / "whole") / the_plan().run_id
    lines = (folder / "0001.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines) + 1):
        store = tmp_path / f"cut{cut}"
        target = journals_dir(store) / the_plan().run_id
        shutil.copytree(folder, target)
        (target / "0001.jsonl").write_bytes(b"".join(lines[:cut]))
        resumed = await resume_plan(target, the_crew(), RunOptions(runs_dir=store))
        (result,) = resumed.read().results
        assert result.observations == expected.observations, f"cut after line {cut}"
        assert result.expectations == expected.expectations
        assert result.final_state == expected.final_state
