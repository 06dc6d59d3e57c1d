"""Hooks hear of a run in the published order, may stop it before it costs anything, and lose nothing paid for."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from published_actors import Judge, User, datapoint, dies_second, greeter
from rich.console import Console

from evaluatorq.simulation import (
    DefaultHooks,
    RichHooks,
    SimulationCancelledError,
    SimulationDroppedError,
    SimulationHooks,
    SimulationResult,
    TurnMetrics,
    simulate,
)
from evaluatorq.simulation.hook_stream import HOOK_NAMES, HookName

Told = list[tuple[str, tuple[object, ...]]]


class Recorder:
    """Writes down what it is told; raises ``fails`` where its name says so."""

    def __init__(self, fails: HookName | None = None, *, confirms: bool = True, is_async: bool = True) -> None:
        self.told: Told = []
        self.fails = fails
        self.confirms = confirms
        self.is_async = is_async

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name not in HOOK_NAMES:
            raise AttributeError(name)
        return partial(self._later if self.is_async else self._hear, name)

    def _hear(self, name: str, *what: object) -> bool:
        self.told.append((name, what))
        if name == self.fails:
            raise RuntimeError(f"{name} says no")
        return self.confirms

    async def _later(self, name: str, *what: object) -> bool:
        await anyio.lowlevel.checkpoint()
        return self._hear(name, *what)

    @property
    def names(self) -> list[str]:
        return [name.removeprefix("on_") for name, _ in self.told]

    def of(self, name: str) -> list[tuple[object, ...]]:
        return [what for told, what in self.told if told == name]


async def run(hooks: object, target: object = greeter, conversations: int = 1) -> list[SimulationResult]:
    points = [datapoint(i) for i in range(conversations)]
    return await simulate(
        run_name="hooked",
        datapoints=points,
        target=target,
        user_simulator=User(),
        judge=Judge(),
        hooks=hooks,
        max_turns=3,
    )


ORDER = [
    "confirm", "stage_start", "run_start", "datapoint_start", "turn_complete", "turn_complete", "datapoint_complete",
    "evaluator_complete", "evaluator_complete", "run_complete", "stage_end",
]  # fmt: skip


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_run_is_told_in_the_published_order(is_async: bool):
    hooks = Recorder(is_async=is_async)
    results = await run(hooks)
    assert hooks.names == ORDER
    meta = {
        "num_datapoints": 1, "model": "", "max_turns": 3, "datapoint_parallelism": 10, "evaluation_name": "hooked",
        "evaluator_names": ["goal_achieved", "criteria_met"], "target": "greeter",
    }  # fmt: skip
    assert hooks.of("on_confirm") == hooks.of("on_run_start") == [(meta,)]
    assert hooks.of("on_run_complete") == [(results,)]
    [(stage, meta)] = hooks.of("on_stage_end")
    assert (stage, meta) == ("simulate", {"num_results": 1, "error": None})


async def test_turns_are_told_as_the_result_lists_them():
    hooks = Recorder()
    [result] = await run(hooks)
    told = [metrics for _, metrics in hooks.of("on_turn_complete")]
    assert told == result.turn_metrics
    assert [isinstance(metrics, TurnMetrics) for metrics in told] == [True, True]


async def test_scores_are_told_with_their_explanation():
    hooks = Recorder()
    await run(hooks)
    goal, criteria = (score for _, _, score, _ in hooks.of("on_evaluator_complete"))
    assert (goal.score.value, goal.score.explanation, goal.score.pass_) == (1.0, "finished", True)
    assert criteria.score.explanation == "PASS [required]: Agent greets the user"
    assert criteria.score.raw_output["criteria"][0]["id"] == "criteria_0"


async def test_an_evaluator_without_a_score_is_told_as_well():
    hooks, names = Recorder(), ["goal_achieved", "published_actors:clueless"]
    await simulate(
        datapoints=[datapoint()], target=greeter, user_simulator=User(), judge=Judge(), hooks=hooks,
        evaluator_names=names,
    )  # fmt: skip
    told = [(name, score.score.value, score.error) for _, name, score, _ in hooks.of("on_evaluator_complete")]
    assert told == [("goal_achieved", 1.0, None), (names[1], None, "ValueError: no idea")]


async def test_a_broken_conversation_is_told_as_error_and_then_as_complete():
    hooks = Recorder()
    with pytest.raises(SimulationDroppedError) as caught:
        await run(hooks, dies_second)
    assert [name for name in hooks.names if name.startswith("datapoint")] == [
        "datapoint_start", "datapoint_error", "datapoint_complete",
    ]  # fmt: skip
    assert hooks.names[-2:] == ["run_complete", "stage_end"]
    assert hooks.of("on_stage_end")[0][1]["error"] is caught.value
    assert len(hooks.of("on_turn_complete")) == 1
    [(point, error)] = hooks.of("on_datapoint_error")
    assert point == datapoint()
    assert "boom" in str(error)


async def test_declining_calls_the_run_off_before_anything_is_asked(tmp_path: Path):
    asked: list[object] = []
    hooks = Recorder(confirms=False)
    with pytest.raises(SimulationCancelledError, match="1 conversations were declined"):
        await run(hooks, lambda messages: asked.append(messages) or "x")
    assert hooks.names == ["confirm"]
    assert asked == []
    assert list(tmp_path.rglob("*.jsonl")) == []


@pytest.mark.parametrize("name", ["on_confirm", "on_stage_start", "on_run_start"])
async def test_a_hook_that_fails_before_the_run_calls_it_off(name: HookName):
    hooks = Recorder(name)
    with pytest.raises(RuntimeError, match="says no"):
        await run(hooks)
    assert hooks.names[-1] == name.removeprefix("on_")


async def test_a_hook_that_refuses_a_conversation_ends_that_one_only():
    class Choosy(DefaultHooks):
        async def on_datapoint_start(self, datapoint):
            if datapoint.id == "d1":
                raise RuntimeError("not this one")

    hooks = Recorder()
    with pytest.raises(SimulationDroppedError) as caught:
        await run([Choosy(), hooks], conversations=3)
    assert [result.terminated_by.value for result in caught.value.partial_results] == ["judge", "error", "judge"]
    assert "not this one" in caught.value.partial_results[1].reason
    assert [str(error) for _, error in hooks.of("on_datapoint_error")] == ["not this one"]


@pytest.mark.parametrize("name", ["on_turn_complete", "on_datapoint_complete", "on_datapoint_error"])
async def test_a_watcher_that_fails_in_a_conversation_does_not_harm_it(
    name: HookName, caplog: pytest.LogCaptureFixture
):
    hooks = Recorder(name)
    points = [datapoint()]
    target = dies_second if name == "on_datapoint_error" else greeter
    results = await simulate(
        datapoints=points, target=target, user_simulator=User(), judge=Judge(), hooks=hooks,
        raise_on_execution_failure=False,
    )  # fmt: skip
    assert results[0].metadata["evaluator_scores"]
    assert "a hook failed" in caplog.text
    assert hooks.names[-1] == "stage_end"


@pytest.mark.parametrize("name", ["on_evaluator_complete", "on_run_complete", "on_stage_end"])
async def test_a_hook_that_fails_at_the_end_is_raised_once_everything_is_saved(name: HookName, tmp_path: Path):
    hooks = Recorder(name)
    with pytest.raises(RuntimeError, match="says no"):
        await simulate(
            datapoints=[datapoint()], target=greeter, user_simulator=User(), judge=Judge(), hooks=hooks, save=True
        )
    assert hooks.names.count("run_complete") == hooks.names.count("stage_end") == 1
    assert len(list(tmp_path.rglob("sim-runs/*.json"))) == 1


async def test_a_hook_never_takes_the_place_of_what_went_wrong():
    with pytest.raises(SimulationDroppedError):
        await run(Recorder("on_run_complete"), dies_second)


async def test_all_of_several_hooks_are_told_and_all_must_agree():
    first, second = Recorder("on_run_start"), Recorder()
    with pytest.raises(RuntimeError):
        await run([first, second])
    assert second.names == ["confirm", "stage_start", "run_start"]
    with pytest.raises(SimulationCancelledError):
        await run([Recorder(), Recorder(confirms=False)])


async def test_a_cancelled_run_is_told_with_the_results_that_there_are():
    hooks = Recorder()
    with anyio.CancelScope() as scope:

        async def slow(messages: object) -> str:
            scope.cancel()
            await anyio.sleep_forever()
            return ""

        await run(hooks, slow)
    assert hooks.names[-2:] == ["run_complete", "stage_end"]
    assert hooks.of("on_run_complete") == [([],)]


async def test_an_object_that_lacks_a_hook_is_refused_by_name():
    class Half:
        def on_confirm(self, meta):
            return True

    with pytest.raises(TypeError, match="Half has no on_run_start"):
        await run(Half())


async def test_without_hooks_a_run_is_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "evaluatorq.simulation")
    await run(None)
    assert "1 conversations" in caplog.text
    assert "d0: turn 1" in caplog.text


@pytest.mark.parametrize("verbose", [0, 2])
async def test_rich_hooks_draw_plan_verdicts_and_one_summary(verbose: int):
    screen = io.StringIO()
    hooks: SimulationHooks = RichHooks(console=Console(file=screen, width=100), verbose=verbose)
    results = await run(hooks, conversations=2)
    drawn = screen.getvalue()
    assert "num datapoints" in drawn
    assert drawn.count("✓ passed  Pat · Refund, 2 turns") == 2
    hooks.print_summary(results)
    assert screen.getvalue() == drawn
    assert drawn.count("2 passed") == 1


async def test_a_deferred_summary_is_printed_when_it_is_asked_for():
    screen = io.StringIO()
    hooks = RichHooks(console=Console(file=screen, width=100), skip_confirm=True, defer_summary=True)
    results = await run(hooks)
    before = screen.getvalue()
    hooks.print_summary(results, executive_summary="All is well.")
    assert "All is well." in screen.getvalue().removeprefix(before)
