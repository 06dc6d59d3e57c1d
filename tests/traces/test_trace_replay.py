"""A replay does again what is deterministic, asks nobody, and names every difference with its place."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue
from trace_samples import SAMPLES, checked, events_of_sample, made, shop

from evaluatorq.environments.toolbox import Toolbox
from evaluatorq.errors import ReplayDrift, ReplayError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.trace import Trace
from evaluatorq.records.trace_case import content_hash
from evaluatorq.replay import Drift, _offline, replay, replay_sync
from evaluatorq.store.run_traces import traces_of_run

EVERY = pytest.mark.parametrize("name", SAMPLES)
World = dict[str, dict[str, str]]


@pytest.fixture
def connections() -> Iterator[list[str]]:
    """Every attempt to reach a network while a test runs."""
    seen: list[str] = []
    listening = [True]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if listening and event in ("socket.connect", "socket.getaddrinfo"):
            seen.append(f"{event} {arguments}")

    sys.addaudithook(hook)
    yield seen
    listening.clear()


def changed(trace: Trace, path: str, value: JsonValue) -> Trace:
    """The trace with one value of its document replaced."""
    document = trace.document()
    node: object = document
    *parents, last = path.strip("/").split("/")
    for key in parents:
        node = node[int(key)] if isinstance(node, list) else node[key]
    node[last] = value
    return Trace.model_validate(document)


def step_of(trace: Trace, kind: str, nth: int = 0) -> int:
    return [number for number, step in enumerate(trace.steps) if step.kind == kind][nth]


def drifts(trace: Trace, **how: object) -> list[tuple[str, int | None, str]]:
    return [(drift.kind, drift.step, drift.path) for drift in replay_sync(trace, collect=True, **how).drifts]


@EVERY
def test_what_was_recorded_replays_without_a_difference_and_without_network(name: str, connections: list[str]) -> None:
    for length in range(1, len(events_of_sample(name)) + 1):
        again = replay_sync(made(name, length))
        assert again.drifts == ()
        checked(again.trace)
    assert connections == []


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_replay_runs_on_every_event_loop(backend: str) -> None:
    trace = made("refund")

    async def run() -> None:
        assert not (await replay(trace, environment=a_shop, live_tools=True)).drifted

    anyio.run(run, backend=backend)


def test_a_replayed_trace_says_so_and_how_each_step_was_had() -> None:
    again = replay_sync(made("refund"))
    assert again.trace.thread_id == f"{made('refund').thread_id}#replay"
    assert again.trace.replayed is not None
    assert again.trace.replayed.of == made("refund").thread_id
    kinds = {step.kind: again.modes[number] for number, step in enumerate(made("refund").steps)}
    assert {kinds.pop("rule"), kinds.pop("note")} == {"reexecuted"}
    assert set(kinds) == {"user", "target", "tool", "judge"}
    assert set(kinds.values()) == {"substituted"}


# ---------------------------------------------------------------- a real run


@cache
def demo_run() -> tuple[Trace, ...]:
    from evaluatorq.simulation.api import run_simulation
    from evaluatorq.simulation.config import SimulationConfig

    async def run() -> None:
        await run_simulation(SimulationConfig.parse({"target": "demo", "offline": True, "save": True}))

    anyio.run(run)
    return tuple(map(checked, traces_of_run("latest")))


def test_every_conversation_of_a_real_run_replays_with_users_judges_and_harmless_tools_done_again(
    tmp_path: Path,
) -> None:
    modes: dict[tuple[str, str], int] = {}
    for trace in demo_run():
        again = replay_sync(trace, live_tools=True)
        assert again.drifts == ()
        for number, mode in again.modes.items():
            key = (trace.steps[number].kind, mode)
            modes[key] = modes.get(key, 0) + 1
    assert modes["tool", "live"] > 10
    assert modes["tool", "substituted"] > 10
    assert modes["user", "reexecuted"] > 48
    assert modes["judge", "reexecuted"] > 48
    assert ("target", "reexecuted") not in modes


def test_a_scripted_user_that_says_something_else_now_is_a_drift() -> None:
    trace = demo_run()[0]
    number = step_of(trace, "user", 1)
    with pytest.raises(
        ReplayDrift, match=rf"result_drift at step {number} /text: recorded \"Something else\""
    ) as drift:
        replay_sync(changed(trace, f"/steps/{number}/text", "Something else"))
    assert isinstance(drift.value.drifts[0], Drift)


def test_an_offline_verdict_that_is_another_one_now_is_a_drift() -> None:
    trace = demo_run()[0]
    number = step_of(trace, "judge")
    found = drifts(changed(trace, f"/steps/{number}/judgment/goal_completion_score", 0.5))
    assert ("result_drift", number, "/judgment/goal_completion_score") in found


# ---------------------------------------------------------------- each kind of drift


def test_a_question_that_is_another_one_now_is_a_request_drift() -> None:
    trace = made("refund")
    number = step_of(trace, "target")
    assert ("request_drift", number, "/request_digest") in drifts(
        changed(trace, f"/steps/{number}/request_digest", "0" * 24)
    )


def test_a_changed_answer_changes_the_questions_that_follow() -> None:
    trace = made("refund")
    altered = changed(trace, f"/steps/{step_of(trace, 'tool')}/message/content", "shipped")
    assert {kind for kind, _, _ in drifts(altered)} == {"request_drift"}


def test_a_rule_that_concludes_something_else_now_is_a_result_drift() -> None:
    trace = made("refund")
    number = step_of(trace, "rule")
    found = drifts(changed(trace, f"/steps/{number}/derived/0/value/occurred", False))
    assert found == [("result_drift", number, "/derived/0/value/occurred")]


def test_a_conversation_that_ends_earlier_now_has_extra_steps() -> None:
    trace = made("repetition")
    kinds = [kind for kind, _, _ in drifts(changed(trace, "/run/limits/max_turns", 1))]
    assert kinds[-1] == "extra_step"


def test_a_verdict_that_is_due_now_and_was_not_recorded_is_a_missing_step() -> None:
    trace = made("cap")
    without = [step for step in trace.steps if not (step.kind == "judge" and step.turn == 1)]
    document = trace.model_copy(update={"steps": tuple(without)})
    assert drifts(document)[0] == ("missing_step", 2, "/kind")


def test_a_recorded_step_that_nobody_asks_for_now_is_an_extra_step() -> None:
    trace = changed(made("cap"), "/run/limits/judge_every", 2)
    found = replay_sync(trace, collect=True).drifts
    assert [(drift.kind, drift.recorded, drift.replayed) for drift in found][-1] == (
        "extra_step",
        "turn_judged",
        "AskUser",
    )


def test_an_ending_that_is_another_one_now_is_a_terminal_drift() -> None:
    trace = made("user_stops")
    number = next(i for i, step in enumerate(trace.steps) if step.kind == "note")
    altered = changed(changed(trace, f"/steps/{number}/data/reason", "bored"), "/outcome/reason", "bored")
    assert drifts(altered)[0] == ("terminal_drift", number, "/data/reason")


def test_a_label_that_is_computed_otherwise_now_is_a_result_drift() -> None:
    assert drifts(changed(made("refund"), "/outcome/labels/errors", 3)) == [
        ("result_drift", None, "/outcome/labels/errors")
    ]


def test_another_version_is_named_as_the_likely_cause() -> None:
    trace = changed(made("refund"), "/outcome/labels/errors", 3)
    trace = changed(trace, "/run/versions", {"evaluatorq": "0.0.1"})
    with pytest.raises(ReplayDrift, match=r"it was recorded by evaluatorq 0\.0\.1"):
        replay_sync(trace)


# ---------------------------------------------------------------- live tools


class Watched(Toolbox[World]):
    """A shop that notes what is called."""

    called: list[str]

    async def run(self, calls):
        self.called += [call.function.name for call in calls]
        return await super().run(calls)


def a_shop(_datapoint: SimulationDatapoint, _seed: int) -> Toolbox[World]:
    return shop()


def test_only_tools_that_may_be_repeated_are_called_again() -> None:
    world = shop()
    watched = Watched(world.state, list(world._functions.values()))
    watched.called = []
    again = replay_sync(made("refund"), environment=lambda _datapoint, _seed: watched, live_tools=True)
    assert watched.called == ["look_up"]
    assert [again.modes[step_of(made("refund"), "tool", n)] for n in range(2)] == ["live", "substituted"]


def test_a_live_tool_that_answers_otherwise_is_a_drift_at_its_step() -> None:
    world = shop()
    world.state["orders"]["A1"] = "delivered"
    trace = made("refund")
    number = step_of(trace, "tool")
    altered = changed(trace, f"/steps/{number}/message/content", "lost")
    found = drifts(altered, environment=a_shop, live_tools=True)
    assert ("result_drift", number, "/message/content") in found


def test_a_patch_from_outside_is_laid_over_the_state_again() -> None:
    trace = made("outside")
    again = replay_sync(trace, environment=a_shop, live_tools=True)
    note = next(i for i, step in enumerate(trace.steps) if step.kind == "note")
    assert again.modes[note] == "reexecuted"


def test_a_pack_that_is_not_installed_is_told() -> None:
    trace = changed(changed(made("refund"), "/run/pack", "gardening"), "/run/offline", True)
    with pytest.raises(ReplayError, match="came from a pack that is not here: no pack is called 'gardening'"):
        replay_sync(trace)


def test_live_tools_without_a_world_to_run_them_in_are_refused() -> None:
    with pytest.raises(ReplayError, match="give environment="):
        replay_sync(made("refund"), live_tools=True)


def test_a_connection_in_a_replay_without_live_tools_is_refused() -> None:
    with _offline(allowed=False), pytest.raises(ReplayError, match="tried to use the network"):
        socket.create_connection(("127.0.0.1", 9))
    with _offline(allowed=True), pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 9))


# ---------------------------------------------------------------- starting in the middle


@EVERY
def test_a_replay_starts_at_any_boundary(name: str) -> None:
    trace = made(name)
    starts = {step.event: number for number, step in reversed(list(enumerate(trace.steps)))}
    for start in starts.values():
        if any(step.abandoned for step in trace.steps[start:]):
            continue
        again = replay_sync(trace, start_at=start)
        assert [mode for number, mode in again.modes.items() if number < start] == ["skipped"] * start
        assert "skipped" not in [mode for number, mode in again.modes.items() if number >= start]


def test_differences_before_the_start_are_not_looked_at() -> None:
    trace = made("refund")
    altered = changed(trace, f"/steps/{step_of(trace, 'rule')}/why", "because")
    assert drifts(altered) != []
    assert drifts(altered, start_at=step_of(trace, "judge")) == []


def test_a_start_inside_an_answer_is_refused_with_the_nearest_boundaries() -> None:
    trace = made("own_tools")
    inside = step_of(trace, "tool")
    with pytest.raises(ReplayError, match=rf"step {inside} is no boundary; the nearest are \d+ and \d+"):
        replay_sync(trace, start_at=inside)


def test_a_start_without_its_state_or_with_another_one_is_refused() -> None:
    trace = made("refund")
    start = step_of(trace, "judge")
    reference = (trace.snapshots or {})[f"s{start}"]
    states = {key: value for key, value in (trace.states or {}).items() if key != reference}
    with pytest.raises(ReplayError, match=f"keeps no state for s{start}"):
        replay_sync(trace.model_copy(update={"states": states}), start_at=start)
    states[reference] = {"orders": {}}
    assert content_hash(states[reference]) != reference
    with pytest.raises(ReplayError, match="is not the recorded one"):
        replay_sync(trace.model_copy(update={"states": states}), start_at=start)
