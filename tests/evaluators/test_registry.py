"""Evaluators by name, function, object and plugin; and scores that are a number or an error, never neither."""

from __future__ import annotations

import math
import threading
from collections.abc import Awaitable
from functools import partial
from pathlib import Path

import anyio
import pytest

from evaluatorq import plugins
from evaluatorq.errors import ConfigError
from evaluatorq.evaluators.registry import (
    OUT_OF_RANGE,
    BuiltInEvaluator,
    Outcome,
    evaluate_one,
    resolve_evaluators,
    scorable,
)
from evaluatorq.evaluators.scoring import SimulationScoringConfig
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import Evaluator, Score


def result(**fields: object) -> SimulationResult:
    plain = {
        "messages": [],
        "terminated_by": "judge",
        "reason": "done",
        "goal_achieved": True,
        "goal_completion_score": 1.0,
        "rules_broken": [],
        "turn_count": 3,
        "token_usage": NO_USAGE,
        "turn_metrics": [],
        "criteria_results": {"asks": True},
    }
    return SimulationResult.model_validate({**plain, **fields})


def brevity(result: SimulationResult) -> float:
    return 1 / (1 + result.turn_count)


async def slow_brevity(result: SimulationResult) -> float:
    await anyio.lowlevel.checkpoint()
    return brevity(result)


class Politeness:
    name = "politeness"
    version = "3"

    def evaluate(self, result: SimulationResult) -> Score | Awaitable[Score]:
        return Score(0.5, {"please": 2})


class AsyncCallable:
    async def __call__(self, result: SimulationResult) -> float:
        return 0.25


def only(given: object) -> Evaluator:
    (evaluator,) = resolve_evaluators([given])
    return evaluator


def returning(value: object) -> Evaluator:
    def scorer(_: SimulationResult) -> object:
        return value

    return only(scorer)


# ---------------------------------------------------------------- resolving


def test_evaluators_come_in_the_order_asked_for_under_the_names_asked_for() -> None:
    asked = ["turn_efficiency", brevity, "goal_achieved", Politeness(), slow_brevity, AsyncCallable()]
    names = [evaluator.name for evaluator in resolve_evaluators(asked)]
    assert names == ["turn_efficiency", "brevity", "goal_achieved", "politeness", "slow_brevity", "AsyncCallable"]


def test_built_in_evaluators_take_the_scoring_as_a_config_or_a_mapping() -> None:
    options = {"turn_efficiency_cliffs": [[1, 1.0]], "turn_efficiency_decay_per_turn": 0.25}
    for scoring in (options, SimulationScoringConfig.model_validate(options)):
        (evaluator,) = resolve_evaluators(["turn_efficiency"], scoring)
        assert isinstance(evaluator, BuiltInEvaluator)
        assert evaluator.evaluate(result(turn_count=2)).value == 0.75


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("goal_acheived", "did you mean goal_achieved"),
        ("zzz", "known are goal_achieved, criteria_met, turn_efficiency, conversation_quality"),
        ("no_such_module:scorer", "no_such_module"),
        ("no such:thing", "module:attribute"),
        ("math:sqr", "did you mean sqrt"),
        ("math:pi", "no evaluator"),
        (lambda result: 1.0, "a lambda has no name"),
        (lambda: 1.0, "lambda"),
        (math.dist, "one argument"),
        (partial(brevity, result()), "one argument"),
        (3, "no evaluator"),
        (int.__add__, "one argument"),
        (Path, "no evaluator"),
    ],
)
def test_what_is_no_evaluator_is_refused_with_what_would_be(given: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        resolve_evaluators([given])


@pytest.mark.parametrize("twice", [["goal_achieved", "goal_achieved"], [brevity, brevity]])
def test_the_same_name_twice_is_refused(twice: list[object]) -> None:
    with pytest.raises(ConfigError, match="given twice"):
        resolve_evaluators(twice)


async def test_an_evaluator_in_a_file_of_the_working_folder_keeps_the_name_it_was_called_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_scorers.py").write_text(
        "from evaluatorq.ports import Score\n"
        "def kind(result):\n    return 0.5\n"
        "class Strict:\n    name = 'strict'\n    version = '2'\n"
        "    def evaluate(self, result):\n        return Score(0.75)\n"
        "strict = Strict()\n"
        "class Nested:\n    scorer = staticmethod(kind)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    asked = ["own_scorers:kind", "own_scorers:Strict", "own_scorers:strict", "own_scorers:Nested.scorer"]
    evaluators = resolve_evaluators(asked)
    assert [evaluator.name for evaluator in evaluators] == asked
    assert [evaluator.version for evaluator in evaluators] == ["unversioned", "2", "2", "unversioned"]
    assert [(await evaluate_one(e, result())).score for e in evaluators] == [0.5, 0.75, 0.75, 0.5]


def test_a_file_that_fails_to_import_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_scorers.py").write_text("import no_such_dependency\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    with pytest.raises(ConfigError, match=r"broken_scorers:kind.*no_such_dependency"):
        resolve_evaluators(["broken_scorers:kind"])


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers evaluators, installed in a folder of its own."""
    (tmp_path / "offering.py").write_text("def calm(result):\n    return 0.5\n")
    info = tmp_path / "offering-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[evaluatorq.evaluators]\ncalm = offering:calm\ngoal_achieved = offering:calm\nbroken = offering:nothing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
async def test_an_installed_package_offers_evaluators_and_replaces_none_of_ours() -> None:
    assert plugins.offered("evaluatorq.evaluators")["calm"].value == "offering:calm"
    calm, goal = resolve_evaluators(["calm", "goal_achieved"])
    assert (calm.name, (await evaluate_one(calm, result())).score) == ("calm", 0.5)
    assert isinstance(goal, BuiltInEvaluator)
    with pytest.raises(ConfigError, match="'broken'"):
        resolve_evaluators(["broken"])
    with pytest.raises(ConfigError, match="did you mean calm"):
        resolve_evaluators(["clam"])


# ---------------------------------------------------------------- scoring


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (brevity, Outcome(0.25, None, None)),
        (slow_brevity, Outcome(0.25, None, None)),
        (AsyncCallable(), Outcome(0.25, None, None)),
        (partial(brevity), Outcome(0.25, None, None)),
        (Politeness(), Outcome(0.5, None, {"please": 2})),
        (Politeness, Outcome(0.5, None, {"please": 2})),
        ("goal_achieved", Outcome(1.0, None, None)),
        (
            "criteria_met",
            Outcome(
                1.0, None, {"criteria_results": {"asks": True}, "criteria_verified": None, "unverified_reason": None}
            ),
        ),
        (
            "conversation_quality",
            Outcome(
                0.97,
                None,
                {
                    "components": {"goal_achieved": 1.0, "criteria_met": 1.0, "turn_efficiency": 0.9},
                    "weights": {"goal_achieved": 0.4, "criteria_met": 0.3, "turn_efficiency": 0.3},
                },
            ),
        ),
    ],
)
async def test_every_kind_of_evaluator_comes_to_a_score(given: object, expected: Outcome) -> None:
    assert await evaluate_one(only(given), result()) == expected


class Verdict:
    def __init__(self, value: object, details: object = None) -> None:
        self.value, self.details = value, details


@pytest.mark.parametrize(
    ("value", "score", "details"),
    [
        (1, 1.0, None),
        (0, 0.0, None),
        (Score(0.5, {"why": "so"}), 0.5, {"why": "so"}),
        (Verdict(0.5, {"why": "so"}), 0.5, {"why": "so"}),
        (3.5, 3.5, {OUT_OF_RANGE: True}),
        (-1, -1.0, {OUT_OF_RANGE: True}),
        (Score(2, {"why": "so"}), 2.0, {"why": "so", OUT_OF_RANGE: True}),
    ],
)
async def test_any_finite_number_is_a_score_and_one_outside_0_to_1_is_marked(
    value: object, score: float, details: object
) -> None:
    assert await evaluate_one(returning(value), result()) == (score, None, details)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        (True, "True"),
        ("0.5", "'0.5'"),
        ("abstain", "'abstain'"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "inf"),
        (Score(math.nan), "nan"),
        (Score("high"), "'high'"),
        (Verdict(True), "True"),
        ([0.5], "[0.5]"),
        (10**400, "too large"),
        (Score(0.5, {"when": object()}), "details"),
        (Score(0.5, ["a"]), "details"),
    ],
)
async def test_what_is_not_a_finite_number_is_an_error_and_never_zero(value: object, words: str) -> None:
    score, error, details = await evaluate_one(returning(value), result())
    assert (score, details) == (None, None)
    assert error is not None
    assert words in error


async def test_an_evaluator_that_raises_leaves_its_reason_and_stops_nobody() -> None:
    def dividing(result: SimulationResult) -> float:
        return 1 / 0

    class Raising:
        name = "raising"
        version = "1"

        def evaluate(self, result: SimulationResult) -> Score:
            raise KeyError("turns")

    assert await evaluate_one(only(dividing), result()) == (None, "ZeroDivisionError: division by zero", None)
    assert await evaluate_one(only(Raising()), result()) == (None, "KeyError: 'turns'", None)


def test_cancelling_stops_an_evaluator_instead_of_becoming_its_error() -> None:
    async def forever(result: SimulationResult) -> float:
        await anyio.sleep_forever()
        return 1.0

    async def cancelled() -> bool:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(evaluate_one, only(forever), result())
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        return scope.cancelled_caught

    for backend in ("asyncio", "trio"):
        assert anyio.run(cancelled, backend=backend)


async def test_a_plain_function_may_block_because_it_runs_in_a_thread_of_its_own() -> None:
    proceed = threading.Event()

    def waiting(result: SimulationResult) -> float:
        proceed.wait(60)
        return 1.0

    async def let_it() -> None:
        proceed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(let_it)
        assert (await evaluate_one(only(waiting), result())).score == 1.0


# ---------------------------------------------------------------- conversations that broke


@pytest.mark.parametrize("ending", ["error", "timeout"])
async def test_a_conversation_that_the_agent_broke_scores_zero_on_everything(ending: str) -> None:
    broken = result(terminated_by=ending, failed_component="target", goal_achieved=True)
    assert scorable(broken)
    for evaluator in resolve_evaluators(["goal_achieved", "criteria_met", "turn_efficiency", "conversation_quality"]):
        assert (await evaluate_one(evaluator, broken)).score == 0.0
    assert (await evaluate_one(returning(1.0), broken)).score == 0.0
    details = (await evaluate_one(only("criteria_met"), broken)).details
    assert details is not None
    assert details["unverified_reason"] == f"terminated_by={ending}"


@pytest.mark.parametrize("component", ["user_simulator", "judge", "environment", "infrastructure", None])
def test_a_conversation_that_broke_for_another_reason_says_nothing_about_the_agent(component: str | None) -> None:
    assert not scorable(result(terminated_by="error", failed_component=component))
    assert scorable(result(terminated_by="max_turns"))
