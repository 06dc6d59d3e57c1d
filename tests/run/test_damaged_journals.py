"""Whatever happens to a journal, a resumed run has the results of the undisturbed one: none lost, none invented."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluatorq.errors import CallError, ReplayError, SchemaError
from evaluatorq.evaluators.registry import resolve_evaluators
from evaluatorq.model.cases import Criterion
from evaluatorq.model.messages import Message
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.model.usage import Usage
from evaluatorq.ports import Seat, TargetReply, UserReply
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, resume_plan, run_plan
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.journal_index import JournalIndex
from evaluatorq.store.paths import journals_dir
from evaluatorq.testing import ScriptedTarget, a_datapoint, a_plan, a_scenario, crew_of, verdict

ROWS = 3
TEN = Usage(input_tokens=10, total_tokens=10, calls=1)
LINES = ("Hello there you", "Yes, I see that", "I will help you")
HELP = a_scenario(criteria=[Criterion(description="helps", type="must_happen")])
PLAN = a_plan(*(a_datapoint(HELP, id=f"dp_{i}") for i in range(ROWS)), limits=Limits(max_turns=4))


def crew(asked: list[str], *, fails: bool = False) -> Crew:
    class Counting(ScriptedTarget):
        """Where it ``fails``, it does so before each answer, so that the journal holds failures with a price."""

        def __init__(self, seat: Seat) -> None:
            super().__init__(LINES)
            self.seat, self.failed = seat, False

        async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
            asked.append(self.seat.datapoint.id)
            self.failed = fails and not self.failed
            if self.failed:
                raise CallError("server_error", "503", retryable=True, usage=TEN)
            return await super().respond(messages, thread_id=thread_id)

    basic = crew_of(
        user=[UserReply(text, usage=TEN) for text in ("one", "two", "three")],
        judge=[verdict({0: False}), verdict({0: False}), verdict({0: LINES[2]}, stop=True, goal=True)],
        evaluators=resolve_evaluators(PLAN.evaluator_names),
    )
    return replace(basic, target=Counting)


@dataclass(frozen=True)
class Whole:
    """An undisturbed run: its journal, line by line, and what came out."""

    lines: tuple[bytes, ...]
    facts: list[object]
    tokens: list[int]


def facts(outcome: RunOutcome) -> list[object]:
    ignored = {
        "attempts",
        "token_usage",
        "token_usage_known",
        "unread_answers",
        "usage_by_role",
        "turn_metrics",
        "usage_by_model",
    }
    ignored |= {"observations"}  # which count the failures
    return [json.loads(result.model_dump_json(exclude=ignored | {"metadata"})) for result in outcome.results] + [
        (result.metadata["criteria_meta"], result.metadata["evaluator_scores"]) for result in outcome.results
    ]


@cache
def whole() -> Whole:
    folder = Path(mkdtemp())

    async def run() -> RunOutcome:
        return await run_plan(PLAN, crew([], fails=True), RunOptions(runs_dir=folder, parallelism=2, keep=True))

    outcome = anyio.run(run)
    lines = (journals_dir(folder) / PLAN.run_id / "0001.jsonl").read_bytes().splitlines(keepends=True)
    shutil.rmtree(folder)
    return Whole(tuple(lines), facts(outcome), [result.token_usage.total_tokens for result in outcome.results])


@dataclass(frozen=True)
class Resumed:
    """A run that went on from a damaged journal."""

    outcome: RunOutcome
    asked: list[str]

    @property
    def tokens(self) -> list[int]:
        return [result.token_usage.total_tokens for result in self.outcome.results]


def resumed(journal: bytes, plan: RunPlan = PLAN) -> Resumed:
    folder, asked = Path(mkdtemp()), list[str]()
    target = journals_dir(folder) / plan.run_id
    target.mkdir(parents=True)
    (target / "0001.jsonl").write_bytes(journal)

    async def run() -> RunOutcome:
        return await resume_plan(target, crew(asked), RunOptions(runs_dir=folder, parallelism=2, keep=True))

    try:
        outcome = anyio.run(run)
        again = anyio.run(run)
        assert facts(again) == facts(outcome), "what was put right stays right"
        return Resumed(outcome, asked)
    finally:
        shutil.rmtree(folder)


def row_of(line: bytes) -> int | None:
    found = json.loads(line).get("row")
    return found if isinstance(found, int) else None


def check(found: Resumed, hit: set[int | None]) -> None:
    """The same results; conversations that were not hit are not asked again."""
    assert facts(found.outcome) == [*whole().facts]
    assert {int(name.removeprefix("dp_")) for name in found.asked} <= hit
    for row in set(range(ROWS)) - hit:
        assert found.tokens[row] == whole().tokens[row]


EVENTS = st.integers(1, len(whole().lines) - 1)


@settings(max_examples=25)
@given(data=st.data())
def test_cut_at_any_byte(data: st.DataObject) -> None:
    text = b"".join(whole().lines)
    cut = data.draw(st.integers(len(whole().lines[0]), len(text)))
    rest = b"".join(whole().lines[text[:cut].count(b"\n") :])
    found = resumed(text[:cut])
    check(found, {row_of(line) for line in rest.splitlines()})
    assert found.outcome.damage == []


@settings(max_examples=20)
@given(data=st.data())
def test_one_byte_changed_anywhere(data: st.DataObject) -> None:
    number = data.draw(EVENTS)
    line = whole().lines[number]
    at = data.draw(st.integers(0, len(line) - 2))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte not in (line[at], ord("\n"))))
    lines = [*whole().lines]
    lines[number] = line[:at] + bytes([byte]) + line[at + 1 :]
    check(resumed(b"".join(lines)), {row_of(line)})


@settings(max_examples=25)
@given(first=EVENTS, count=st.integers(1, 12))
def test_lines_in_the_middle_overwritten_with_rubbish(first: int, count: int) -> None:
    """A hole as large as some whole turns leaves no conversation that seems to go on without them."""
    hole = whole().lines[first : first + count]
    found = resumed(b"".join([*whole().lines[:first], b"\x00\x01\n", *whole().lines[first + count :]]))
    check(found, {row_of(line) for line in hole})


@settings(max_examples=20)
@given(number=EVENTS, last=st.booleans())
def test_a_line_written_twice(number: int, last: bool) -> None:
    lines = [*whole().lines[: number + 1]] if last else [*whole().lines]
    lines.insert(number, lines[number])
    found = resumed(b"".join(lines))
    rest = whole().lines[number + 1 :] if last else ()
    check(found, {row_of(line) for line in rest})
    assert last or found.tokens == whole().tokens, "what it cost is counted once"


@settings(max_examples=25)
@given(data=st.data())
def test_two_lines_swapped(data: st.DataObject) -> None:
    first = data.draw(EVENTS.filter(lambda number: number < len(whole().lines) - 1))
    second = data.draw(st.integers(first + 1, min(first + 6, len(whole().lines) - 1)))
    lines = [*whole().lines]
    lines[first], lines[second] = lines[second], lines[first]
    check(resumed(b"".join(lines)), {row_of(line) for line in lines[first : second + 1]})


@settings(max_examples=10)
@given(number=EVENTS, row=st.integers(0, 10 * ROWS))
def test_a_line_of_a_kind_that_only_a_newer_version_knows(number: int, row: int) -> None:
    newer = json.dumps({"row": row, "kind": "dreamed", "at": "2026-01-01T00:00:00Z", "of": "sheep"})
    lines = [*whole().lines]
    lines.insert(number, newer.encode() + b"\n")
    found = resumed(b"".join(lines))
    check(found, {row})
    assert found.outcome.damage == [
        f"0001.jsonl:{number + 1}: a line of a kind that this version does not know: 'dreamed'"
    ]


@pytest.mark.parametrize("rubbish", [b"x" * 5_000_000, b'{"row":0,"kind":"noted","at":"' + b"9" * 5_000_000])
def test_a_line_of_five_megabytes_that_is_none(rubbish: bytes) -> None:
    lines = [*whole().lines]
    lines.insert(4, rubbish + b"\n")
    found = resumed(b"".join(lines))
    check(found, {0})
    assert len(found.outcome.damage) == 1
    assert len(found.outcome.damage[0]) < 200


def test_an_answer_of_five_megabytes_is_read_back() -> None:
    long = "word " * 1_000_000
    folder, asked = Path(mkdtemp()), list[str]()
    basic = crew_of(target=[long], judge=[verdict(stop=True)])

    async def run() -> RunOutcome:
        return await run_plan(PLAN, basic, RunOptions(runs_dir=folder, keep=True))

    try:
        anyio.run(run)
        journal = (journals_dir(folder) / PLAN.run_id / "0001.jsonl").read_bytes()
    finally:
        shutil.rmtree(folder)
    found = resumed(journal[: journal.rindex(b'{"row":')])
    assert [result.messages[1].text for result in found.outcome.results] == [long] * ROWS
    assert asked == []


@settings(max_examples=25)
@given(data=st.data())
def test_the_plan_itself_is_refused_when_it_was_changed(data: st.DataObject) -> None:
    """Nobody goes on with other cases than those that were asked for."""
    first = whole().lines[0]
    at = data.draw(st.integers(0, len(first) - 2))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte not in (first[at], ord("\n"))))
    changed = first[:at] + bytes([byte]) + first[at + 1 :]
    in_seal = at >= len(first) - 19
    try:
        found = resumed(b"".join([changed, *whole().lines[1:]]))
    except (ReplayError, SchemaError):
        return
    assert in_seal, "only a plan that is unharmed but for its checksum may be gone on with"
    check(found, set())


@settings(max_examples=20)
@given(number=EVENTS)
def test_whoever_looks_at_one_conversation_sees_the_same_damage(number: int) -> None:
    """The reader of everything and the reader by conversation agree on what can be read."""
    lines = [*whole().lines]
    lines[number] = lines[number][:-30] + b"\n"
    folder = Path(mkdtemp())
    try:
        (folder / "0001.jsonl").write_bytes(b"".join(lines))
        reader = JournalReader(folder)
        read = [(line.row, line.event) for line in reader.lines()]
        index = JournalIndex(folder)
        by_row = [(row, event) for row in range(ROWS) for event in index.events(row)]
        assert sorted(read, key=repr) == sorted(by_row, key=repr)
        assert bool(reader.damage) == bool(index.damage)
    finally:
        shutil.rmtree(folder)
