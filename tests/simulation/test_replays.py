"""Saved runs of any age give their cases back, or say in one sentence why they cannot."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluatorq.errors import ReplayError, RunNotFound
from evaluatorq.simulation.replay import load_simulation_replay
from evaluatorq.store.run_facts import read_facts
from evaluatorq.store.runs import find_run

GOLDEN = Path(__file__).parents[1] / "golden" / "kettle_20260329-013000.json"
RUN_ID = "c0ffee00c0ffee00c0ffee00c0ffee00"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "sim-runs"
    folder.mkdir()
    shutil.copy(GOLDEN, folder)
    return folder


def saved(
    folder: Path, name: str, change: Callable[[dict[str, object]], object] = dict, indent: int | None = 2
) -> Path:
    run = json.loads(GOLDEN.read_text())
    changed = change(run)
    path = folder / name
    path.write_text(json.dumps(run if changed is None else changed, indent=indent))
    return path


@pytest.mark.filterwarnings("ignore:.*Olaf")
@pytest.mark.parametrize(
    "reference",
    ["latest", "LATEST", " kettle ", GOLDEN.name, GOLDEN.stem, RUN_ID, RUN_ID[:8], str(GOLDEN)],
)
def test_a_run_of_the_earlier_format_replays_by_any_of_its_names(store: Path, reference: str) -> None:
    replay = load_simulation_replay(reference, store)
    assert [datapoint.id for datapoint in replay.datapoints] == ["dp_a0000000000a", "dp_b0000000000b"]
    assert [datapoint.first_message for datapoint in replay.datapoints] == ["The kettle leaks.", "My kettle is dead!"]
    assert (replay.max_turns, replay.source) == (3, RUN_ID)


def test_a_trait_that_no_case_file_may_have_is_taken_as_saved_with_a_warning(store: Path) -> None:
    with pytest.warns(UserWarning, match=r"persona 'Olaf' has patience outside 0\.\.1"):
        replay = load_simulation_replay("kettle", store)
    assert replay.datapoints[1].persona.patience == 2.5


@pytest.mark.filterwarnings("ignore:.*Olaf")
@pytest.mark.parametrize("turns", [None, "three", True, 0, 2.5])
def test_a_turn_cap_that_is_none_is_left_to_the_default(store: Path, turns: object) -> None:
    saved(store, "odd.json", lambda run: run.update(max_turns=turns))
    assert load_simulation_replay("odd", store).max_turns is None


@pytest.mark.filterwarnings("ignore:.*Olaf")
def test_any_layout_and_results_that_nobody_can_read_still_replay(store: Path) -> None:
    saved(store, "compact.json", lambda run: run.update(results=["?"]), indent=None)
    saved(store, "narrow.json", lambda run: run.pop("scorer_averages") and None, indent=1)
    for name in ("compact", "narrow"):
        assert len(load_simulation_replay(name, store).datapoints) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: run.update(datapoints=None), "without its datapoints"),
        (lambda run: run.update(datapoints=[]), "without its datapoints"),
        (lambda run: run.update(replay_version=2), "newer version.*upgrade"),
        (lambda run: run.update(pipeline="x"), "red-team run"),
        (lambda run: run["datapoints"][1].pop("persona") and None, r"datapoints\.1\.persona"),
        (lambda _: [1], "no JSON object"),
    ],
)
def test_what_cannot_be_replayed_says_why(
    store: Path, change: Callable[[dict[str, object]], object], said: str
) -> None:
    saved(store, "bad.json", change)
    with pytest.raises(ReplayError, match=said):
        load_simulation_replay("bad", store)


def test_what_is_no_json_says_so(store: Path) -> None:
    (store / "torn.json").write_text(GOLDEN.read_text()[:500])
    with pytest.raises(ReplayError, match="is not JSON"):
        load_simulation_replay("torn", store)


def test_nothing_found_lists_near_names_and_the_newest(store: Path) -> None:
    for i in range(7):
        os.utime(saved(store, f"other_{i}.json"), (i, i))
    with pytest.raises(RunNotFound, match="did you mean kettle") as caught:
        load_simulation_replay("kettel", store)
    assert "the newest are kettle_20260329-013000.json, other_6.json" in str(caught.value)
    assert "other_1" not in str(caught.value)


def test_an_empty_reference_and_an_empty_store_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="name a run"):
        load_simulation_replay("  ", tmp_path)
    with pytest.raises(ReplayError, match="no saved runs in"):
        load_simulation_replay("latest", tmp_path)
    with pytest.raises(ReplayError, match="there are none in"):
        load_simulation_replay("kettle", tmp_path)


def test_a_prefix_of_two_run_ids_is_ambiguous_even_if_a_file_has_that_name(store: Path) -> None:
    saved(store, "second.json", lambda run: run.update(run_id=RUN_ID[:-1] + "1"))
    saved(store, f"{RUN_ID[:8]}_x.json", lambda run: run.update(run_id="f" * 32))
    with pytest.raises(RunNotFound, match="ambiguous"):
        find_run(RUN_ID[:8], store)


def test_an_old_run_compares_with_what_it_recorded_and_nothing_more(store: Path) -> None:
    facts = read_facts(find_run("kettle", store))
    assert [talk.verdict for talk in facts.conversations] == ["passed", "failed"]
    assert [talk.goal for talk in facts.conversations] == [True, False]
    assert facts.conversations[0].criteria[0].turn == 1
    assert facts.evaluators == ["goal_achieved", "criteria_met"]
