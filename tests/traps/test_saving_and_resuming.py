"""Symptoms that people met when runs are saved, stopped and resumed, each as small as it can be."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from evaluatorq.errors import CallError, StoreError
from evaluatorq.model.events import Event, TargetReplied
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits, RunPlan, SimulationRun
from evaluatorq.model.usage import Usage
from evaluatorq.ports import TargetReply, UserReply
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, resume_plan, run_plan
from evaluatorq.store.atomic import create_file, replace_file
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.paths import journals_dir
from evaluatorq.store.runs import read_run
from evaluatorq.testing import ScriptedTarget, a_datapoint, a_plan, crew_of, verdict

HUNDRED = Usage(input_tokens=100, total_tokens=100, calls=1)


def plan(n: int = 1, **fields: object) -> RunPlan:
    return a_plan(*(a_datapoint(id=f"dp_{i}") for i in range(n)), limits=Limits(max_turns=2), **fields)


def crew() -> Crew:
    return crew_of(
        user=[UserReply("one", usage=HUNDRED)], target=["Hello there you"], judge=[verdict(stop=True, goal=True)]
    )


class StopAfter:
    def __init__(self, replies: int) -> None:
        self.left = replies
        self.scope = anyio.CancelScope()

    def append(self, thread_id: str, event: Event) -> None:
        self.left -= isinstance(event, TargetReplied)
        if self.left <= 0:
            self.scope.cancel()

    def finished(self, result: SimulationResult) -> None:
        pass


async def test_half_a_surrogate_pair_crashes_the_writer_and_the_sample_is_lost(tmp_path: Path) -> None:
    outcome = await run_plan(
        plan(), replace(crew(), target=crew_of(target=["price \ud83d only"]).target), RunOptions(runs_dir=tmp_path)
    )
    assert outcome.path is not None
    assert json.loads(outcome.path.read_bytes())["results"][0]["messages"][1]["content"] == "price \ufffd only"
    assert read_run(outcome.path).results[0].messages[1].text == "price \ufffd only"


def test_a_checkpoint_is_removed_before_the_new_one_is_written(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    replace_file(file, [b"first"])

    def full() -> Iterator[bytes]:
        yield b"sec"
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="No space left"):
        replace_file(file, full())
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("run.json", b"first")]


def test_a_file_system_without_hard_links_loses_the_run_at_its_very_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*paths: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    names = [create_file(tmp_path / "run.json", [b"%d" % number]).name for number in range(3)]
    assert names == ["run.json", "run_001.json", "run_002.json"]
    assert [(path.name, path.read_bytes()) for path in sorted(tmp_path.iterdir())] == [
        ("run.json", b"0"), ("run_001.json", b"1"), ("run_002.json", b"2"),
    ]  # fmt: skip


async def test_the_next_run_replaces_the_last_one(tmp_path: Path) -> None:
    for number in range(3):
        await run_plan(plan(run_id=f"{number:032x}"), crew(), RunOptions(runs_dir=tmp_path))
    runs = [read_run(path) for path in tmp_path.glob("*.json")]
    assert len({run.run_id for run in runs}) == 3


async def test_after_a_resume_totals_show_only_the_second_part(tmp_path: Path) -> None:
    stop = StopAfter(5)
    options = RunOptions(runs_dir=tmp_path, parallelism=1)
    with stop.scope:
        await run_plan(plan(10), crew(), options, [stop])
    resumed = await resume_plan(journals_dir(tmp_path) / plan().run_id, crew(), options)
    assert resumed.header is not None
    assert resumed.header.token_usage_total == Usage(input_tokens=1000, total_tokens=1000, calls=10)
    assert resumed.header.created_at == plan().created_at
    assert (resumed.header.duration_s or -1) >= 0


def test_times_that_end_in_z_and_times_without_a_zone_are_misread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    fields = {
        "run_name": "x", "mode": "simulate", "target_kind": "callback", "evaluator_names": [], "total_results": 0,
        "scorer_averages": {}, "results": [],
    }  # fmt: skip
    half_past = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    for text in ("2026-03-29T01:30:00Z", "2026-03-29T03:30:00+02:00", "2026-03-29T01:30:00"):
        run = SimulationRun.model_validate({**fields, "created_at": text})
        assert run.created_at == half_past
        assert json.loads(run.model_dump_json())["created_at"] == "2026-03-29T01:30:00Z"
    nanoseconds = SimulationRun.model_validate({**fields, "created_at": "2026-03-29T01:30:00.123456789+00:00"})
    assert nanoseconds.created_at.replace(microsecond=0) == half_past


async def test_a_retried_sample_writes_its_record_twice(tmp_path: Path) -> None:
    flaky = crew_of(
        target=[CallError("server_error", "500", retryable=True), "Hello there you"], judge=[verdict(stop=True)]
    )
    outcome = await run_plan(plan(), flaky, RunOptions(runs_dir=tmp_path))
    assert outcome.path is not None
    assert len(read_run(outcome.path).results) == 1
    kinds = [line.event.kind for line in JournalReader(journals_dir(tmp_path) / plan().run_id).lines()]
    assert (kinds.count("target_replied"), kinds.count("call_failed"), kinds.count("ended")) == (1, 1, 1)


async def test_infrastructure_failures_vanish_from_the_denominator(tmp_path: Path) -> None:
    broken = CallError("server_error", "500")
    mixed = replace(
        crew_of(judge=[verdict(stop=True, goal=True)]),
        user=lambda seat: crew_of(user=["one"] if seat.datapoint.id == "dp_0" else [broken]).user(seat),
    )

    class Always:
        name, version = "always", "1"

        def evaluate(self, result: SimulationResult) -> object:
            from evaluatorq.ports import Score

            return Score(1.0)

    scored = replace(mixed, evaluators=(Always(),))
    outcome = await run_plan(plan(4, evaluator_names=("always",)), scored, RunOptions(runs_dir=tmp_path))
    assert outcome.header is not None
    assert outcome.header.scorer_averages == {"always": 1.0}
    counts = outcome.header.score_counts["always"]
    assert (counts.scored, counts.left_out) == (1, 3)


async def test_memory_of_a_failed_attempt_is_kept_alive_during_the_next(tmp_path: Path) -> None:
    import gc
    import weakref

    held: list[weakref.ref[object]] = []
    alive: list[int] = []

    class Big:
        pass

    class Flaky(ScriptedTarget):
        async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
            gc.collect()
            alive.append(sum(ref() is not None for ref in held))
            big = Big()
            held.append(weakref.ref(big))
            if len(held) < 3:
                raise CallError("server_error", f"{id(big)}", retryable=True)
            return await super().respond(messages, thread_id=thread_id)

    outcome = await run_plan(
        plan(), replace(crew(), target=lambda _seat: Flaky(["Hello there you"])), RunOptions(runs_dir=tmp_path)
    )
    assert outcome.finished == 1
    assert max(alive) <= 1, "at most the attempt that just failed"
