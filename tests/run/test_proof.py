"""Proof replay: what was just driven never drifts, and every change of a recording is named with its place."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluatorq.errors import CallError, ReplayDrift, ReplayError, RunNotFound
from evaluatorq.evaluators.registry import resolve_evaluators
from evaluatorq.model.cases import Criterion
from evaluatorq.model.events import Event
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.ports import UserReply
from evaluatorq.records.proof import prove
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.run.rebuild import rebuild
from evaluatorq.run.verify import verify_run
from evaluatorq.store.journal_index import JournalIndex
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir
from evaluatorq.store.runs import find_run, read_run
from evaluatorq.testing import (
    FakeClock,
    a_datapoint,
    a_plan,
    a_scenario,
    converse,
    crew_of,
    verdict,
)

SCENARIO = a_scenario(
    criteria=[
        Criterion(description="offers help", type="must_happen"),
        Criterion(description="asks for a password", type="must_not_happen"),
    ]
)
SAID = "I will gladly help you"
CREW = crew_of(
    user=["one", "two", "three"],
    target=["Hello there you", SAID],
    judge=[verdict({0: False, 1: False}), verdict({0: SAID, 1: False}, stop=True, goal=True)],
    evaluators=resolve_evaluators(["goal_achieved", "criteria_met", "conversation_quality"]),
)


def the_plan(n: int = 3, **fields: object) -> RunPlan:
    names = ("goal_achieved", "criteria_met", "conversation_quality")
    points = tuple(a_datapoint(SCENARIO, id=f"dp_{i}") for i in range(n))
    return a_plan(*points, limits=Limits(max_turns=3), evaluator_names=names, **fields)


async def ran(plan: RunPlan | None = None, crew: Crew = CREW) -> RunPlan:
    plan = plan or the_plan()
    await run_plan(plan, crew, RunOptions(), clock=FakeClock())
    return plan


def lines_of(plan: RunPlan) -> tuple[Path, list[dict[str, object]]]:
    path = journals_dir(get_sim_runs_dir()) / plan.run_id / "0001.jsonl"
    return path, [json.loads(line) for line in path.read_text().splitlines()]


def rewritten(plan: RunPlan, change: Callable[[list[dict[str, object]]], object]) -> None:
    path, lines = lines_of(plan)
    for line in lines:
        line.pop("n", None)  # nobody counts lines that were put there by hand
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def found_in(plan: RunPlan) -> list[tuple[int | None, str, str]]:
    return [(found.row, found.drift.kind, found.drift.path) for found in verify_run(plan.run_id).found]


def first(lines: list[dict[str, object]], kind: str, row: int = 0) -> dict[str, object]:
    return next(line for line in lines if line["kind"] == kind and line.get("row") == row)


async def test_a_run_that_was_just_made_proves_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = await ran()
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a proof opens no connection"))
    verification = verify_run(plan.run_id)
    assert verification.holds
    assert (verification.conversations, verification.unfinished) == (3, 0)
    verification.raise_for_drift()


async def test_another_answer_is_another_question_from_there_on_and_another_result() -> None:
    plan = await ran()
    rewritten(
        plan, lambda lines: first(lines, "target_replied", 1).update(messages=[{"role": "assistant", "content": "No."}])
    )
    found = found_in(plan)
    assert {row for row, _, _ in found} == {1}
    assert found[0][1:] == ("request_drift", "/digest")
    assert (1, "result_drift", "/messages/1/content") in found
    told = str(verify_run(plan.run_id).found[0])
    assert told.startswith(f"{plan.run_id}:1: request_drift at step 3 /digest: recorded ")


async def test_another_verdict_is_another_result_with_both_values() -> None:
    plan = await ran()

    def lie(lines: list[dict[str, object]]) -> None:
        last = [line for line in lines if line["kind"] == "turn_judged" and line["row"] == 2][-1]
        last["judgment"]["goal_achieved"] = False  # type: ignore[index]

    rewritten(plan, lie)
    drifts = {found.drift.path: found.drift for found in verify_run(plan.run_id).found}
    assert (drifts["/goal_achieved"].recorded, drifts["/goal_achieved"].replayed) == (True, False)
    assert "/metadata/evaluator_scores/goal_achieved" in drifts


async def test_an_answer_that_is_missing_and_one_that_is_too_much_are_named() -> None:
    plan = await ran()
    rewritten(plan, lambda lines: lines.remove(first(lines, "target_replied", 0)))
    assert (0, "missing_step", "/kind") in found_in(plan)
    plan = await ran(the_plan(run_id="b" * 32))
    rewritten(
        plan, lambda lines: lines.insert(lines.index(first(lines, "turn_judged")), first(lines, "target_replied"))
    )
    assert (0, "extra_step", "/kind") in found_in(plan)


async def test_another_ending_is_named() -> None:
    plan = await ran()
    rewritten(plan, lambda lines: first(lines, "ended").update(terminated_by="max_turns", ended_by="max_turns"))
    found = found_in(plan)
    assert (0, "terminal_drift", "/terminated_by") in found


async def test_a_score_that_its_formula_does_not_give_is_named() -> None:
    plan = await ran()
    rewritten(plan, lambda lines: first(lines, "scored").update(score=0.25))
    assert (0, "result_drift", "/metadata/evaluator_scores/goal_achieved") in found_in(plan)


async def test_a_run_file_that_says_otherwise_than_its_recording_is_named() -> None:
    plan = await ran()
    path = find_run(plan.run_id)
    path.write_text(path.read_text().replace(SAID, "I will never help you", 1))
    assert {row for row, _, _ in found_in(plan)} == {0}
    path.write_text(
        path.read_text()
        .replace("I will never help you", SAID)
        .replace('"criteria_met": 1.0,', '"criteria_met": 0.5,', 1)
    )
    assert (None, "result_drift", "/scorer_averages/criteria_met") in found_in(plan)


async def test_what_a_file_of_an_older_version_does_not_have_is_no_difference_and_what_it_has_is_held_to() -> None:
    plan = await ran()
    path = find_run(plan.run_id)
    run = json.loads(path.read_text())
    for result in run["results"]:
        del result["fully_audited"]
        del result["criteria_audit"][0]["message_index"]
    path.write_text(json.dumps(run, indent=2))
    assert found_in(plan) == []
    audit = run["results"][1]["criteria_audit"][0]
    audit["occurred"] = not audit["occurred"]
    path.write_text(json.dumps(run, indent=2))
    assert found_in(plan) == [(1, "result_drift", "/criteria_audit/0/occurred")]


async def test_a_saved_result_that_is_none_is_named_by_file_and_number() -> None:
    plan = await ran()
    path = find_run(plan.run_id)
    run = json.loads(path.read_text())
    run["results"][1]["turn_count"] = "many"
    path.write_text(json.dumps(run, indent=2))
    with pytest.raises(ReplayError, match=r"test_\S+: results\[1\] cannot be read: turn_count: "):
        verify_run(plan.run_id)


async def test_a_saved_result_without_a_recording_and_a_recording_without_a_result_are_named() -> None:
    plan = await ran()
    rewritten(plan, lambda lines: [lines.remove(line) for line in list(lines) if line.get("row") == 1])
    assert (1, "missing_step", "/results/1") in found_in(plan)
    plan = await ran(the_plan(run_id="c" * 32))
    run = read_run(find_run(plan.run_id))
    run.results.pop()
    find_run(plan.run_id).write_text(run.model_dump_json(indent=2))
    assert (2, "extra_step", "/results/2") in found_in(plan)


async def test_cases_are_read_one_at_a_time_as_they_stand_in_the_plan() -> None:
    plan = await ran()
    whole, sparse = (JournalIndex(journals_dir(get_sim_runs_dir()) / plan.run_id, sparse=how) for how in (False, True))
    assert sparse.plan == plan.model_copy(update={"datapoints": ()})
    assert [sparse.datapoint(row) for row in range(sparse.size)] == list(plan.datapoints)
    assert (sparse.rows, whole.datapoint(2)) == (whole.rows, plan.datapoints[2])


async def test_a_line_that_cannot_be_read_is_damage() -> None:
    plan = await ran()
    path, _ = lines_of(plan)
    text = path.read_text().splitlines()
    text[3] = text[3][:20] + "?"
    path.write_text("\n".join(text) + "\n")
    verification = verify_run(plan.run_id)
    assert not verification.holds
    assert verification.damage
    with pytest.raises(ReplayDrift):
        verification.raise_for_drift()


async def test_a_missing_recording_is_an_error_and_never_a_live_call() -> None:
    plan = await ran()
    path, _ = lines_of(plan)
    path.unlink()
    path.with_name("lock").unlink()
    path.parent.rmdir()
    with pytest.raises(ReplayError, match="no journal"):
        verify_run(plan.run_id)


# ---------------------------------------------------------------- whatever was driven

ANSWERS = st.sampled_from(
    ["Hello there you", SAID, "No.", CallError("rate_limit", "slow", retryable=True), CallError("bad_request", "no")]
)
WORDS = st.sampled_from(["one", "two", UserReply("bye", stop=True), UserReply("", stop=True)])
LIMITS = st.builds(
    Limits, max_turns=st.integers(1, 4), judge_every=st.integers(0, 2), repetition_limit=st.integers(2, 3)
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    answers=st.lists(ANSWERS, min_size=1, max_size=5),
    words=st.lists(WORDS, min_size=1, max_size=4),
    stops=st.lists(st.booleans(), min_size=1, max_size=4),
    limits=LIMITS,
    opening=st.sampled_from(["", "Exact words"]),
    scripted=st.sampled_from([{}, {"opens": "agent"}, {"script": ["first line", None, "third line"]}]),
)
async def test_what_was_driven_never_drifts(answers, words, stops, limits, opening, scripted) -> None:
    point = a_datapoint(a_scenario(criteria=SCENARIO.criteria, **scripted), first_message=opening)
    judge = [verdict({0: SAID if stop else False, 1: False}, stop=stop, goal=stop) for stop in stops]
    events: list[Event] = []
    await converse(point, crew_of(target=answers, user=words, judge=judge), limits, events=events)  # type: ignore[arg-type]
    proof = prove(point, limits, events)
    assert proof.drifts == []
    assert proof.is_over
    for cut in range(1, len(events)):
        kinds = {drift.kind for drift in prove(point, limits, events[:cut]).drifts}
        assert kinds == {"missing_step"}


async def test_a_run_file_is_made_again_byte_for_byte_and_keeps_its_time() -> None:
    plan = await ran()
    path = find_run(plan.run_id)
    before, time = path.read_bytes(), path.stat().st_mtime_ns
    path.write_text("torn")
    assert rebuild(plan.run_id).samefile(path)
    again = json.loads(path.read_bytes())
    assert {**again, "duration_s": None} == {**json.loads(before), "duration_s": None}
    rebuild(plan.run_id)
    assert verify_run(plan.run_id).holds
    path.unlink()
    made = rebuild(plan.run_id)
    assert made.stat().st_mtime_ns <= time, "a rebuilt file is not the newest run"
    assert [result.metadata["datapoint_id"] for result in read_run(made).results] == ["dp_0", "dp_1", "dp_2"]


async def test_a_copied_store_is_rebuilt_in_its_own_folder_and_the_original_stays(tmp_path: Path) -> None:
    plan = await ran()
    original = find_run(plan.run_id)
    copy = Path(shutil.copytree(get_sim_runs_dir(), tmp_path / "copy"))
    mark = original.read_text().replace('"run_name"', ' "run_name"')
    original.write_text(mark)
    own = rebuild(plan.run_id, copy)
    assert own.samefile(copy / original.name)
    own.unlink()
    with pytest.raises(RunNotFound):
        find_run(plan.run_id, copy)
    assert rebuild(plan.run_id, copy).parent.samefile(copy)
    assert original.read_text() == mark


async def test_an_unfinished_run_is_not_rebuilt_but_what_it_has_is_proved() -> None:
    plan = await ran()
    path, lines = lines_of(plan)
    find_run(plan.run_id).unlink()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[: len(lines) // 2]))
    with pytest.raises(ReplayError, match=r"are not finished.*sim resume"):
        rebuild(plan.run_id)
    verification = verify_run(plan.run_id)
    assert verification.holds
    assert verification.unfinished >= 1
