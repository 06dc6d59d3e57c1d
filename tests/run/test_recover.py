"""A conversation that is taken up in its middle goes on as if nobody had stopped: no more re-asks, nothing open."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from evaluatorq.errors import CallError
from evaluatorq.model.events import CallFailed, Event, TargetReplied
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import ChatReply, ChatRequest, Seat
from evaluatorq.roles.judge import model_judge
from evaluatorq.roles.user import model_user
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, resume_plan, run_plan
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.store.manifests import read_manifests, write_manifest
from evaluatorq.store.paths import journals_dir
from evaluatorq.store.runs import list_runs
from evaluatorq.testing import ScriptedTarget, a_datapoint, a_plan, crew_of, verdict

REASKS = 3
UNREADABLE = ChatReply(text="sorry, no JSON today", usage=NO_USAGE)
NO_WORDS = {"reply": " ", "end_conversation": False}


class StopAfter:
    """Cancels everything after so many events of one kind."""

    def __init__(self, kind: type[Event], count: int) -> None:
        self.kind, self.left = kind, count
        self.scope = anyio.CancelScope()

    def append(self, thread_id: str, event: Event) -> None:
        self.left -= isinstance(event, self.kind)
        if self.left <= 0:
            self.scope.cancel()

    def finished(self, result: SimulationResult) -> None:
        pass


class Asked:
    """A model that gives one answer for ever and keeps what it was asked."""

    name = "model"

    def __init__(self, reply: ChatReply | dict[str, object]) -> None:
        self.reply = reply if isinstance(reply, ChatReply) else ChatReply(answer=reply, usage=NO_USAGE, raw="{}")
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        return self.reply


def plan(turns: int = 1) -> RunPlan:
    return a_plan(a_datapoint(), limits=Limits(max_turns=turns))


async def stopped_and_resumed(folder: Path, crew: Crew, kind: type[Event], count: int, turns: int = 1) -> RunOutcome:
    stop, options = StopAfter(kind, count), RunOptions(runs_dir=folder, keep=True)
    with stop.scope:
        await run_plan(plan(turns), crew, options, [stop])
    assert stop.scope.cancelled_caught
    return await resume_plan(journals_dir(folder) / plan().run_id, crew, options)


@pytest.mark.parametrize("failures", [1, 2, 3])
async def test_a_judge_is_not_asked_again_more_often_because_the_run_was_stopped(tmp_path: Path, failures: int) -> None:
    model = Asked(UNREADABLE)
    crew = replace(crew_of(target=["Hello there you"]), judge=model_judge(model))
    outcome = await stopped_and_resumed(tmp_path, crew, CallFailed, failures)
    assert [(dropped.component, dropped.code) for dropped in outcome.dropped] == [("judge", "malformed_response")]
    assert len(model.requests) == 1 + REASKS
    assert all("refused" in request.tail for request in model.requests[1:]), "each is told what was wrong before"


async def test_a_simulated_user_is_asked_again_once_whether_or_not_the_run_was_stopped(tmp_path: Path) -> None:
    model = Asked(NO_WORDS)
    crew = replace(crew_of(target=["Hello there you"]), user=model_user(model))
    outcome = await stopped_and_resumed(tmp_path, crew, CallFailed, 1)
    assert [(dropped.component, dropped.code) for dropped in outcome.dropped] == [("user_simulator", "empty_reply")]
    assert len(model.requests) == 2


async def test_the_next_question_has_all_its_re_asks_again(tmp_path: Path) -> None:
    """What was wrong with one turn's verdict does not shorten the patience with the next one's."""
    model = Asked(UNREADABLE)
    crew = replace(crew_of(user=["one", "two"], target=["Hello there you"]), judge=model_judge(model))
    await stopped_and_resumed(tmp_path, crew, CallFailed, 2, turns=2)
    assert len(model.requests) == 2 * (1 + REASKS)


async def test_a_call_that_met_bad_luck_is_no_unusable_answer(tmp_path: Path) -> None:
    """A refused connection before the stop leaves all re-asks for unusable answers after it."""
    model = Asked(UNREADABLE)
    unlucky, seated = [CallError("server_error", "503", retryable=True, retry_after=0.01)], model_judge(model)

    class Unlucky:
        def __init__(self, seat: Seat) -> None:
            self.role = seated(seat)

        async def judge(self, *args: object, **more: object) -> object:
            if unlucky:
                raise unlucky.pop()
            return await self.role.judge(*args, **more)

        def remind(self, failures: object) -> None:
            self.role.remind(failures)

    crew = replace(crew_of(target=["Hello there you"]), judge=Unlucky)
    await stopped_and_resumed(tmp_path, crew, CallFailed, 1)
    assert len(model.requests) == 1 + REASKS


# ---------------------------------------------------------------- what is held


class Held:
    """Targets that count how many of them are open."""

    def __init__(self, *, stateful: bool) -> None:
        self.stateful, self.made, self.closed = stateful, 0, 0

    def __call__(self, seat: Seat) -> ScriptedTarget:
        held = self

        class Closing(ScriptedTarget):
            async def aclose(self) -> None:
                held.closed += 1

        self.made += 1
        return Closing(["Hello there you", "Yes of course"], stateful=self.stateful)


@pytest.mark.parametrize("stateful", [True, False])
async def test_participants_that_a_restart_does_not_need_are_given_back(tmp_path: Path, stateful: bool) -> None:
    targets = Held(stateful=stateful)
    crew = replace(crew_of(judge=[verdict(stop=True)]), target=targets)
    outcome = await stopped_and_resumed(tmp_path, crew, TargetReplied, 1, turns=2)
    assert outcome.finished == 1
    assert targets.made == (3 if stateful else 2)
    assert targets.closed == targets.made


async def test_participants_are_given_back_when_one_that_comes_after_them_cannot_be_made(tmp_path: Path) -> None:
    targets = Held(stateful=False)

    def broken(seat: Seat) -> object:
        raise RuntimeError("no judge today")

    crew = replace(crew_of(), target=targets, judge=broken)
    outcome = await run_plan(plan(), crew, RunOptions(runs_dir=tmp_path, keep=True))
    assert [(dropped.component, dropped.code) for dropped in outcome.dropped] == [("judge", "internal_error")]
    assert (targets.made, targets.closed) == (1, 1)


def test_the_journal_says_why_each_call_was_made_again(tmp_path: Path) -> None:
    """Every repeated question stands behind a recorded failure or a recorded stop."""
    model = Asked(UNREADABLE)
    crew = replace(crew_of(target=["Hello there you"]), judge=model_judge(model))
    anyio.run(stopped_and_resumed, tmp_path, crew, CallFailed, 2)
    parts = sorted((journals_dir(tmp_path) / plan().run_id).glob("*.jsonl"))
    lines = [json.loads(line) for part in parts for line in part.read_bytes().splitlines()]
    failed = [line for line in lines if line["kind"] == "call_failed"]
    assert len(failed) == len(model.requests)
    assert [line.get("final", False) for line in failed] == [False] * REASKS + [True]
    assert len({line["digest"] for line in failed}) == 1


async def test_a_run_whose_process_died_before_it_said_that_it_was_done_is_listed_once(tmp_path: Path) -> None:
    outcome = await run_plan(plan(), crew_of(judge=[verdict(stop=True)]), RunOptions(runs_dir=tmp_path))
    (manifest,) = read_manifests(tmp_path)
    write_manifest(manifest.model_copy(update={"status": "running", "report_path": None, "pid": 2**22 + 1}), tmp_path)
    (row,) = list_runs(tmp_path)
    assert (row.status, row.file) == ("completed", str(outcome.path))
