"""An index of a journal that is still written: what is new is found, and half a line waits until it is whole."""

from __future__ import annotations

from pathlib import Path

from evaluatorq.model.events import Ended, Started, UserSpoke
from evaluatorq.simulation.unfinished import Unfinished
from evaluatorq.store.journal import Journal
from evaluatorq.store.journal_index import JournalIndex
from evaluatorq.testing import FakeClock, a_datapoint, a_plan

CLOCK = FakeClock()
PLAN = a_plan(a_datapoint(id="dp_1"), a_datapoint(id="dp_2"))
BEGUN = Started(at=CLOCK.now())
SPOKE = UserSpoke(at=CLOCK.now(), text="Hello")
OVER = Ended(at=CLOCK.now(), terminated_by="judge", ended_by="judge", reason="done")


def test_an_index_reads_on_where_the_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Journal.create(folder, PLAN) as journal:
        journal.append(0, BEGUN)
        index = JournalIndex(folder)
        assert (index.rows, index.ended, index.refresh()) == ([0], set(), set())
        journal.append(0, SPOKE)
        journal.append(1, BEGUN)
        assert index.refresh() == {0, 1}
        journal.append(0, OVER)
        assert index.refresh() == {0}
    with Journal.reopen(folder) as journal:
        journal.append(1, SPOKE)
        assert index.refresh() == {1}
    assert index.ended == {0}
    assert [event.kind for event in index.events(0)] == ["started", "user_spoke", "ended"]
    assert [event.kind for event in index.events(1)] == ["started", "user_spoke"]
    assert index.damage == []


def test_half_a_line_is_read_when_its_other_half_came(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Journal.create(folder, PLAN) as journal:
        journal.append(0, BEGUN)
        journal.append(0, SPOKE)
    part = folder / "0001.jsonl"
    whole = part.read_bytes()
    part.write_bytes(whole[:-20])
    index = JournalIndex(folder)
    assert index.refresh() == set()
    part.write_bytes(whole)
    assert index.refresh() == {0}
    assert [event.kind for event in index.events(0)] == ["started", "user_spoke"]
    assert index.damage == []


def test_an_unfinished_run_tells_what_ended_and_what_is_under_way(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Journal.create(folder, PLAN) as journal:
        for event in (BEGUN, SPOKE, OVER):
            journal.append(0, event)
        journal.append(1, BEGUN)
        run = Unfinished.read(folder)
        assert run.running
        assert run.in_flight == [1]
        assert [result.row for result in run.results()] == [0]
        assert run.result(0).reason == "done"
        assert run.result(1).reason == "not finished yet"
    assert not run.running
    assert run.about().next_steps == ((f"evaluatorq sim resume {PLAN.run_id}", "goes on with it"),)
