"""A run is saved whole, survives being stopped anywhere, and asks only what is missing when it is resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from evaluatorq.errors import StoreError
from evaluatorq.model.cases import Criterion, SimulationDatapoint
from evaluatorq.model.events import Event
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits, RunPlan, SimulationRun
from evaluatorq.ports import Seat, TargetReply
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, resume_plan, run_plan
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.paths import journals_dir
from evaluatorq.store.runs import find_run, iter_results, list_runs, read_run
from evaluatorq.testing import ScriptedTarget, a_datapoint, a_plan, a_scenario, crew_of, verdict

SCENARIO = a_scenario(criteria=[Criterion(description="helps", type="must_happen")])
HELP = "I will help you"
FINISH = verdict({0: HELP}, stop=True, goal=True)


class Asked:
    """Counts what each conversation's target was asked."""

    def __init__(self) -> None:
        self.turns: list[str] = []

    def target(self, seat: Seat) -> ScriptedTarget:
        scripted, turns = ScriptedTarget(["Hello there you", "I will help you"]), self.turns

        class Counting(ScriptedTarget):
            async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
                turns.append(f"{seat.datapoint.id}/{len(messages)}")
                await anyio.lowlevel.checkpoint()
                return await scripted.respond(messages, thread_id=thread_id)

        return Counting(["unused"])


class StopAfter:
    """A watcher that cancels everything after a number of events."""

    def __init__(self, events: int) -> None:
        self.left = events
        self.scope = anyio.CancelScope()

    def append(self, thread_id: str, event: Event) -> None:
        self.left -= 1
        if self.left <= 0:
            self.scope.cancel()

    def finished(self, result: SimulationResult) -> None:
        pass


def points(n: int) -> tuple[SimulationDatapoint, ...]:
    return tuple(a_datapoint(SCENARIO, id=f"dp_{i}") for i in range(n))


def plan_for(n: int, **fields: object) -> RunPlan:
    return a_plan(*points(n), limits=Limits(max_turns=3), **fields)


def crew(asked: Asked | None = None) -> Crew:
    basic = crew_of(user=["one", "two"], target=["Hello there you", HELP], judge=[verdict({0: False}), FINISH])
    return basic if asked is None else replace(basic, target=asked.target)


async def run(plan: RunPlan, crew: Crew, folder: Path, **options: object) -> RunOutcome:
    return await run_plan(plan, crew, RunOptions(runs_dir=folder, **options))  # type: ignore[arg-type]


def facts(run: SimulationRun) -> list[object]:
    """What must not depend on interruptions: everything but times and the count of attempts."""
    ignored = {"attempts"}
    return [json.loads(result.model_dump_json(exclude=ignored)) for result in run.results]


async def test_a_finished_run_is_saved_with_its_datapoints_and_listed(tmp_path: Path) -> None:
    outcome = await run(plan_for(5), crew(), tmp_path)
    assert outcome.path is not None
    saved = read_run(outcome.path)
    assert [result.thread_id for result in saved.results] == [f"{saved.run_id}:{i}" for i in range(5)]
    assert [datapoint.id for datapoint in saved.datapoints or []] == [f"dp_{i}" for i in range(5)]
    assert (saved.replay_version, saved.total_results, saved.max_turns) == (1, 5, 3)
    assert list(iter_results(outcome.path)) == saved.results
    (listed,) = list_runs(tmp_path)
    assert (listed.status, listed.total_results, listed.run_id) == ("completed", 5, saved.run_id)
    for reference in (
        "latest",
        str(outcome.path),
        outcome.path.name,
        outcome.path.stem,
        saved.run_id or "",
        "01234567",
        "test",
    ):
        assert find_run(reference, tmp_path) == outcome.path or find_run(reference, tmp_path).samefile(outcome.path)


async def test_results_do_not_depend_on_how_many_run_at_once(tmp_path: Path) -> None:
    one = await run(plan_for(7), crew(), tmp_path / "one", parallelism=1)
    many = await run(plan_for(7), crew(), tmp_path / "many", parallelism=7)
    assert facts(one.read()) == facts(many.read())


async def test_two_runs_of_one_name_are_two_files(tmp_path: Path) -> None:
    first = await run(plan_for(1), crew(), tmp_path)
    second = await run(plan_for(1, run_id="f" * 32), crew(), tmp_path)
    assert first.path != second.path
    assert len(list(tmp_path.glob("*.json"))) == 2


@pytest.mark.parametrize("stop_after", [1, 2, 3, 7, 12, 20, 30, 37])
async def test_a_stopped_run_is_resumed_without_asking_anything_twice(tmp_path: Path, stop_after: int) -> None:
    undisturbed = await run(plan_for(6), crew(), tmp_path / "whole", parallelism=2)
    asked, stop = Asked(), StopAfter(stop_after)
    folder = tmp_path / "cut"
    with stop.scope:
        await run_plan(plan_for(6), crew(asked), RunOptions(runs_dir=folder, parallelism=2), [stop])
    assert list(folder.glob("*.json")) == []
    before = list(asked.turns)
    resumed = await resume_plan(
        journals_dir(folder) / plan_for(6).run_id, crew(asked), RunOptions(runs_dir=folder, parallelism=2)
    )
    assert facts(resumed.read()) == facts(undisturbed.read())
    repeated = [turn for turn in asked.turns[len(before) :] if turn in before]
    assert len(repeated) <= 2, "only calls that were under way may be asked again"


async def test_a_journal_cut_at_any_line_resumes_to_the_same_run(tmp_path: Path) -> None:
    whole = await run(plan_for(3), crew(), tmp_path / "whole", parallelism=2)
    folder = journals_dir(tmp_path / "whole") / plan_for(3).run_id
    lines = (folder / "0001.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines) + 1):
        store = tmp_path / f"cut{cut}"
        target = journals_dir(store) / plan_for(3).run_id
        shutil.copytree(folder, target)
        (target / "0001.jsonl").write_bytes(b"".join(lines[:cut]) + b'{"row": 1, "kind": "torn')
        resumed = await resume_plan(target, crew(), RunOptions(runs_dir=store, parallelism=2))
        assert facts(resumed.read()) == facts(whole.read()), f"cut after line {cut}"


async def test_a_lost_line_in_the_middle_costs_one_conversation_a_restart(tmp_path: Path) -> None:
    await run(plan_for(2), crew(), tmp_path, parallelism=1, save=False)
    folder = journals_dir(tmp_path) / plan_for(2).run_id
    lines = (folder / "0001.jsonl").read_bytes().splitlines(keepends=True)
    victim = next(i for i, line in enumerate(lines) if b"target_replied" in line)
    (folder / "0001.jsonl").write_bytes(b"".join([*lines[:victim], b"garbage\n", *lines[victim + 1 :]]))
    asked = Asked()
    resumed = await resume_plan(folder, crew(asked), RunOptions(runs_dir=tmp_path))
    assert {turn.split("/")[0] for turn in asked.turns} == {"dp_0"}
    assert [result.terminated_by.value for result in resumed.read().results] == ["judge", "judge"]
    assert (await resume_plan(folder, crew(asked), RunOptions(runs_dir=tmp_path))).finished == 2


async def test_a_stateful_target_is_restarted_and_what_was_spent_is_kept(tmp_path: Path) -> None:
    stop = StopAfter(3)
    stateful = replace(
        crew(), target=lambda _seat: ScriptedTarget(["Hello there you", "I will help you"], stateful=True)
    )
    with stop.scope:
        await run_plan(plan_for(1), stateful, RunOptions(runs_dir=tmp_path), [stop])
    folder = journals_dir(tmp_path) / plan_for(1).run_id
    resumed = await resume_plan(folder, stateful, RunOptions(runs_dir=tmp_path))
    (result,) = resumed.read().results
    assert [message.text for message in result.messages if message.role == "user"] == ["one", "two"]
    assert result.attempts == 2


async def test_one_agent_that_cannot_be_made_fails_alone_and_by_name(tmp_path: Path) -> None:
    def make(seat: Seat) -> ScriptedTarget:
        if seat.datapoint.id == "dp_1":
            raise RuntimeError("no such database")
        return ScriptedTarget(["I will help you"])

    outcome = await run(plan_for(3), replace(crew(), target=make), tmp_path)
    assert [(d.row, d.component, d.code) for d in outcome.dropped] == [(1, "target", "target_error")]
    assert "no such database" in outcome.dropped[0].reason
    assert [r.terminated_by.value for r in outcome.read().results] == ["judge", "error", "judge"]


async def test_the_runs_time_limit_ends_what_is_in_flight_and_leaves_the_rest_resumable(tmp_path: Path) -> None:
    class Slow(ScriptedTarget):
        async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
            await anyio.sleep_forever()
            raise AssertionError

    slow = replace(crew(), target=lambda _seat: Slow(["never"]))
    outcome = await run(plan_for(4), slow, tmp_path, parallelism=2, run_timeout_s=0.05)
    assert outcome.interrupted
    assert (outcome.finished, outcome.total) == (2, 4)
    assert {(d.component, d.code) for d in outcome.dropped} == {("target", "timeout")}
    assert {d.reason.split(",")[0] for d in outcome.dropped} == {"The run's time was up"}
    resumed = await resume_plan(journals_dir(tmp_path) / plan_for(4).run_id, crew(), RunOptions(runs_dir=tmp_path))
    assert resumed.finished == 4


async def test_a_conversation_that_is_out_of_time_says_whose_time_it_was(tmp_path: Path) -> None:
    class Slow(ScriptedTarget):
        async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
            await anyio.sleep_forever()
            raise AssertionError

    slow = replace(crew(), target=lambda _seat: Slow(["never"]), conversation_timeout_s=0.05)
    outcome = await run(plan_for(1), slow, tmp_path, run_timeout_s=600)
    told = ["The conversation's time of 0.05 s was up while waiting for the target."]
    assert [d.reason for d in outcome.dropped] == told


async def test_without_a_journal_nothing_is_left_behind(tmp_path: Path) -> None:
    outcome = await run(plan_for(2), crew(), tmp_path, journal=False, save=False, keep=True)
    assert outcome.read().total_results == 2
    assert list(tmp_path.rglob("*")) == []


async def test_a_store_that_cannot_be_written_stops_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where a folder should be")
    asked = Asked()
    with pytest.raises(StoreError):
        await run(plan_for(2), crew(asked), tmp_path / "store")
    assert asked.turns == []


async def test_the_manifest_tells_progress_while_the_run_is_under_way(tmp_path: Path) -> None:
    seen: list[tuple[str, int | None, bool]] = []

    class Look:
        def append(self, thread_id: str, event: Event) -> None:
            pass

        def finished(self, result: SimulationResult) -> None:
            (row,) = list_runs(tmp_path)
            seen.append((row.status, row.total, row.alive))

    await run_plan(plan_for(2), crew(), RunOptions(runs_dir=tmp_path), [Look()])
    assert seen == [("running", 2, True)] * 2


async def test_every_answer_is_on_disk_before_the_next_question(tmp_path: Path) -> None:
    folder = journals_dir(tmp_path) / plan_for(1).run_id
    on_disk: list[int] = []

    class Checking(ScriptedTarget):
        async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
            kinds = [line.event.kind for line in JournalReader(folder).lines()]
            on_disk.append(kinds.count("user_spoke") + kinds.count("target_replied"))
            assert on_disk[-1] == len(messages)
            return await super().respond(messages, thread_id=thread_id)

    await run(plan_for(1), replace(crew(), target=lambda _seat: Checking(["Hello there you", HELP])), tmp_path)
    assert on_disk == [1, 3]
