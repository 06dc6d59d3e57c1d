"""The same cases again: a new agent on an old run's cases, and each case several times."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import Message
from evaluatorq.records.samples import sample_report
from evaluatorq.simulation.api import SimulationResults, simulate
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.store.run_facts import read_facts
from evaluatorq.testing import a_datapoint, a_persona, a_scenario

GOLDEN = Path(__file__).parents[1] / "golden" / "kettle_20260329-013000.json"


def points(n: int = 2):
    return [
        a_datapoint(a_scenario(), persona=a_persona(f"P{i}", background="b"), id=f"dp_{i}", first_message="Hi")
        for i in range(n)
    ]


async def offline(**options: object) -> SimulationResults:
    return await simulate(offline=True, **{"target": "demo", **options})  # type: ignore[arg-type]


def ids(results: SimulationResults) -> list[object]:
    return [result.metadata["datapoint_id"] for result in results]


async def test_a_replay_has_the_cases_and_the_turn_cap_and_names_its_run() -> None:
    first = await offline(datapoints=points(), max_turns=2, save=True, run_name="before")
    for reference in ("before", "latest", first.run.run_id, str(first.path)):
        again = await offline(previous_run=reference)
        assert ids(again) == ids(first)
        assert again.run.datapoints == first.run.datapoints
        assert (again.run.max_turns, again.run.replayed_from) == (2, first.run.run_id)
        assert again.run.run_id != first.run.run_id


async def test_a_turn_cap_that_is_given_wins_over_the_replayed_one() -> None:
    await offline(datapoints=points(), max_turns=2, save=True, run_name="before")
    assert (await offline(previous_run="before", max_turns=1)).run.max_turns == 1


async def test_the_same_seed_on_the_same_cases_gives_the_same_conversations() -> None:
    first = await offline(datapoints=points(3), save=True)
    again = await offline(previous_run="latest", only="P1")
    assert again[0].messages == first[1].messages


@pytest.mark.filterwarnings("ignore:.*Olaf")
async def test_a_run_of_the_published_package_is_replayed() -> None:
    get_sim_runs_dir().mkdir(parents=True)
    shutil.copy(GOLDEN, get_sim_runs_dir())
    again = await offline(previous_run="kettle")
    assert ids(again) == ["dp_a0000000000a", "dp_b0000000000b"]
    assert again[0].messages[0].text == "The kettle leaks."
    assert again.run.max_turns == 3
    assert again.run.replayed_from == "c0ffee00c0ffee00c0ffee00c0ffee00"


def test_a_replay_beside_another_input_is_refused() -> None:
    from evaluatorq.simulation.config import SimulationConfig

    with pytest.raises(ConfigError, match="more than one input: datapoints, previous_run"):
        SimulationConfig.parse({"datapoints": points(), "previous_run": "latest", "target": "demo"})


# ---------------------------------------------------------------- samples


class Counting:
    """An agent that says how often it was asked, in all conversations together."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, messages: Sequence[Message]) -> str:
        self.asked += 1
        return f"This is answer {self.asked} of mine"


async def test_repeats_are_asked_each_for_itself() -> None:
    agent = Counting()
    results = await offline(datapoints=points(1), samples=3, target=agent, max_turns=1, datapoint_parallelism=1)
    assert [result.messages[-1].text for result in results] == [f"This is answer {n} of mine" for n in (1, 2, 3)]
    assert agent.asked == 3


async def test_samples_share_the_id_and_are_numbered_each_with_a_seed_of_its_own() -> None:
    results = await offline(datapoints=[p.model_copy(update={"first_message": ""}) for p in points(2)], samples=4)
    assert ids(results) == ["dp_0"] * 4 + ["dp_1"] * 4
    assert [datapoint.sample for datapoint in results.run.datapoints or []] == [0, 1, 2, 3] * 2
    openings = {result.messages[0].text for result in results}
    assert len(openings) > 1, "eight samples do not all open alike"


async def test_one_sample_is_the_first_of_many() -> None:
    one = await offline(datapoints=points(2))
    three = await offline(datapoints=points(2), samples=3)
    assert [result.messages for result in one] == [three[0].messages, three[3].messages]


async def test_a_replay_keeps_the_samples_unless_told_otherwise() -> None:
    await offline(datapoints=points(2), samples=3, save=True, run_name="three")
    assert len(await offline(previous_run="three")) == 6
    five = await offline(previous_run="three", samples=5)
    assert Counter(ids(five)) == {"dp_0": 5, "dp_1": 5}
    assert len(await offline(previous_run="three", samples=1)) == 2


async def test_a_saved_run_is_counted_by_datapoint() -> None:
    results = await offline(datapoints=points(2), samples=3, save=True)
    assert results.path is not None
    report = sample_report(read_facts(results.path), "decided")
    assert (report.k, report.run.samples, report.run.datapoints) == (3, 6, 2)


def test_fewer_than_one_sample_is_refused() -> None:
    from evaluatorq.simulation.config import SimulationConfig

    with pytest.raises(ConfigError, match="samples"):
        SimulationConfig.parse({"datapoints": points(), "target": "demo", "samples": 0})
