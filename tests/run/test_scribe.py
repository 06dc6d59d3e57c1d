"""What must not be written is written nowhere, and verdicts, resumes and records are as if it had been."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from evaluatorq.conversation.machine import apply, begin, request_digest
from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import Check, Criterion, SimulationDatapoint
from evaluatorq.model.events import RECORDED, REDACTED, Event, Noted, Resumed, TargetReplied
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.ports import Score, Seat, TargetReply
from evaluatorq.records.redaction import Redactor, parse_rules
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, resume_plan, run_plan
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.paths import journals_dir
from evaluatorq.testing import ScriptedTarget, a_datapoint, a_persona, a_plan, a_scenario, crew_of, verdict

MAIL = "jane@example.com"
REDACTOR = Redactor(parse_rules(["email"]), key=b"k")
CRITERIA = [
    Criterion(description="gives an address", type="must_happen"),
    Criterion(description="says the address", type="must_happen", check=Check(agent_says=r"jane@example\.com")),
]
SCENARIO = a_scenario(criteria=CRITERIA)
QUOTE = "write to jane@exa"
"""Ends in the middle of the address: after redaction it is in no message."""


class Mentions:
    """An evaluator that quotes what it saw."""

    name, version = "mentions", "1"

    def evaluate(self, result: SimulationResult) -> Score:
        text = " ".join(message.text for message in result.messages)
        return Score(float(MAIL in text), {"saw": text})


def points(n: int) -> tuple[SimulationDatapoint, ...]:
    return tuple(a_datapoint(SCENARIO, id=f"dp_{i}") for i in range(n))


def plan(n: int = 3) -> RunPlan:
    return a_plan(*points(n), limits=Limits(max_turns=3), evaluator_names=("mentions",))


def crew() -> Crew:
    basic = crew_of(
        user=[f"My address is {MAIL}", "Thanks"],
        target=[f"Please write to {MAIL} for that", "Goodbye to you"],
        judge=[verdict({0: "please write to jane@example.com"}), verdict(stop=True, goal=True)],
    )
    return replace(basic, evaluators=(Mentions(),))


def options(folder: Path, **more: object) -> RunOptions:
    return RunOptions(runs_dir=folder, redactor=REDACTOR, keep=True, parallelism=2, **more)  # type: ignore[arg-type]


def written(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


def events(folder: Path, run: RunPlan) -> list[Event]:
    return [line.event for line in JournalReader(journals_dir(folder) / run.run_id).lines()]


async def test_nothing_is_written_of_what_a_rule_names_and_verdicts_are_as_without_it(tmp_path: Path) -> None:
    plain = await run_plan(plan(), crew(), RunOptions(runs_dir=tmp_path / "plain", keep=True))
    outcome = await run_plan(plan(), crew(), options(tmp_path / "redacted"))
    assert MAIL in written(tmp_path / "plain")
    assert MAIL not in written(tmp_path / "redacted")
    assert MAIL not in outcome.read().model_dump_json()
    for before, after in zip(plain.results, outcome.results, strict=True):
        assert [a.model_dump() for a in after.criteria_audit] == [b.model_dump() for b in before.criteria_audit]
        assert after.metadata["evaluator_scores"] == before.metadata["evaluator_scores"] == {"mentions": 1.0}
        assert after.messages == REDACTOR.result(before).messages
        assert (after.token_usage, after.ended_by, after.goal_achieved) == (
            before.token_usage,
            before.ended_by,
            before.goal_achieved,
        )


async def test_a_quote_is_verified_before_it_is_redacted(tmp_path: Path) -> None:
    cut = replace(crew(), judge=crew_of(judge=[verdict({0: QUOTE}, stop=True)]).judge)
    cut = replace(cut, target=crew_of(target=[f"Please write to jane@exa {MAIL}"]).target)
    outcome = await run_plan(plan(1), cut, options(tmp_path))
    (result,) = outcome.results
    assert (result.criteria_audit[0].occurred, result.criteria_audit[0].evidence_verified) == (True, True)


async def test_participants_are_told_everything(tmp_path: Path) -> None:
    heard: list[str] = []

    class Hears(ScriptedTarget):
        async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
            heard.extend(message.text for message in messages)
            return await super().respond(messages, thread_id=thread_id)

    await run_plan(plan(1), replace(crew(), target=lambda _seat: Hears([f"Write to {MAIL}"])), options(tmp_path))
    assert any(MAIL in text for text in heard)


async def test_digests_are_over_what_is_written(tmp_path: Path) -> None:
    run = plan(1)
    await run_plan(run, crew(), options(tmp_path))
    state = begin(run.datapoints[0], run.limits)
    digests = 0
    for event in events(tmp_path, run):
        if getattr(event, "digest", ""):
            assert event.digest == request_digest(state)  # type: ignore[union-attr]
            digests += 1
        state = apply(state, event)
    assert digests >= 4


class StopAfter:
    """A watcher that cancels everything at the n-th answer of the agent."""

    def __init__(self, replies: int) -> None:
        self.left = replies
        self.scope = anyio.CancelScope()

    def append(self, thread_id: str, event: Event) -> None:
        assert MAIL not in event.model_dump_json(), "watchers see what is written"
        self.left -= isinstance(event, TargetReplied)
        if self.left <= 0:
            self.scope.cancel()

    def finished(self, result: SimulationResult) -> None:
        assert MAIL not in result.model_dump_json()


@pytest.mark.parametrize("replies", [1, 3, 5, 6])
async def test_what_was_finished_is_kept_and_what_was_not_begins_anew(tmp_path: Path, replies: int) -> None:
    whole = await run_plan(plan(), crew(), options(tmp_path / "whole"))
    stop = StopAfter(replies)
    with stop.scope:
        await run_plan(plan(), crew(), options(tmp_path / "cut"), [stop])
    folder = journals_dir(tmp_path / "cut") / plan().run_id
    before = events(tmp_path / "cut", plan())
    recorded = sum(isinstance(event, Noted) and event.what == RECORDED for event in before)
    again: list[str] = []

    def counted(seat: Seat) -> ScriptedTarget:
        again.append(seat.datapoint.id)
        target = crew().target(seat)
        assert isinstance(target, ScriptedTarget)
        return target

    resumed = await resume_plan(folder, replace(crew(), target=counted), options(tmp_path / "cut"))
    assert len(set(again)) == 3 - recorded
    volatile = {"attempts"}
    assert [r.model_dump(exclude=volatile) for r in resumed.results] == [
        r.model_dump(exclude=volatile) for r in whole.results
    ]
    later = [event for event in events(tmp_path / "cut", plan())[len(before) :] if isinstance(event, Resumed)]
    marked = sum(isinstance(event, Noted) and event.what == REDACTED for event in before)
    assert sum(event.restart for event in later) == marked - recorded
    assert MAIL not in written(tmp_path / "cut")


async def test_a_conversation_without_anything_to_hide_is_written_as_ever(tmp_path: Path) -> None:
    quiet = crew_of(user=["one"], target=["Hello there you"], judge=[verdict(stop=True)])
    await run_plan(plan(1), quiet, options(tmp_path))
    assert not any(isinstance(event, Noted) for event in events(tmp_path, plan(1)))


async def test_cases_that_were_redacted_have_to_be_given_again_and_are_checked(tmp_path: Path) -> None:
    private = a_datapoint(SCENARIO, persona=a_persona(background=f"Reachable at {MAIL}"), first_message=f"I am {MAIL}")
    run = a_plan(private, replace_id(private), limits=Limits(max_turns=3), evaluator_names=("mentions",))
    stop = StopAfter(1)
    with stop.scope:
        await run_plan(run, crew(), options(tmp_path), [stop])
    folder = journals_dir(tmp_path) / run.run_id
    assert MAIL not in written(tmp_path)
    with pytest.raises(ConfigError, match="give them again"):
        await resume_plan(folder, crew(), options(tmp_path))
    with pytest.raises(ConfigError, match="not the cases"):
        await resume_plan(folder, crew(), options(tmp_path, cases=points(2)))
    resumed = await resume_plan(folder, crew(), options(tmp_path, cases=run.datapoints))
    assert resumed.finished == 2
    assert MAIL not in written(tmp_path)
    assert resumed.results[0].messages[0].text == REDACTOR.text(f"I am {MAIL}")


def replace_id(point: SimulationDatapoint) -> SimulationDatapoint:
    return point.model_copy(update={"id": "dp_2"})
