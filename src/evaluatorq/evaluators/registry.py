"""From names and functions to evaluators, and from an evaluator to a score that is a number or an error, never neither.

An evaluator is built in, a function of a ``SimulationResult`` (plain or async), an object with ``name``, ``version``
and ``evaluate``, a ``module:attribute``, or an entry point of the group ``evaluatorq.evaluators``. One named by text
keeps that text as its name, so that a resumed run finds it again. A plain function runs in a worker thread: it may
block. A score may be any finite number; one outside 0 to 1 is marked, because rates cannot use it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import NamedTuple, TypeGuard

from anyio import to_thread
from pydantic import JsonValue, TypeAdapter

from evaluatorq.errors import ConfigError
from evaluatorq.evaluators.beliefs import BELIEF_SCORES
from evaluatorq.evaluators.builtin import (
    SIMULATION_EVALUATORS,
    SimulationScorer,
    evaluator_details,
    get_evaluator,
)
from evaluatorq.evaluators.evidence import FACT_SCORES, NothingToScore
from evaluatorq.evaluators.scoring import scoring_of
from evaluatorq.model.results import SimulationResult
from evaluatorq.plugins import import_attribute, load, offered
from evaluatorq.ports import Evaluator, Score

GROUP = "evaluatorq.evaluators"
OUT_OF_RANGE = "outside_0_to_1"
Function = Callable[[SimulationResult], object]
_DETAILS: TypeAdapter[dict[str, JsonValue] | None] = TypeAdapter(dict[str, JsonValue] | None)


class Outcome(NamedTuple):
    """What an evaluator came to: a score, or why there is none; ``details`` explain the score."""

    score: float | None
    error: str | None
    details: dict[str, JsonValue] | None


@dataclass(slots=True)
class BuiltInEvaluator:
    """One of the four built-in scores."""

    name: str
    scorer: SimulationScorer
    version: str = "1"

    def evaluate(self, result: SimulationResult) -> Score:
        """The score by its formula."""
        score = self.scorer(result)
        return Score(score, evaluator_details(self.name, result) or getattr(score, "breakdown", None))


@dataclass(slots=True)
class FactEvaluator:
    """One of the scores that are read off facts."""

    name: str
    scorer: Callable[[SimulationResult], Score]
    version: str = "1"

    def evaluate(self, result: SimulationResult) -> Score:
        """The score, or why there is none."""
        return self.scorer(result)


@dataclass(slots=True)
class FunctionEvaluator:
    """A function of a result as an evaluator."""

    name: str
    function: Function
    version: str = "unversioned"

    async def evaluate(self, result: SimulationResult) -> Score:
        """What the function returns; a plain one is called in a worker thread."""
        if _is_async(self.function):
            value = self.function(result)
        else:
            value = await to_thread.run_sync(self.function, result, abandon_on_cancel=True)
        return as_score(await value if isinstance(value, Awaitable) else value)


# ---------------------------------------------------------------- one score


def scorable(result: SimulationResult) -> bool:
    """Whether a conversation says something about the agent: it ended by itself, or the agent broke it."""
    return not result.errored or result.failed_component == "target"


async def evaluate_one(evaluator: Evaluator, result: SimulationResult) -> Outcome:
    """Asks one evaluator. Whatever it raises, or returns that is no number, is an error; cancellation passes through.

    A conversation that the agent broke off is 0.0 and the evaluator is not asked.
    """
    if result.errored and result.failed_component == "target":
        return Outcome(0.0, None, evaluator_details(evaluator.name, result))
    try:
        answer = evaluator.evaluate(result)
        score = as_score(await answer if isinstance(answer, Awaitable) else answer)
    except Exception as error:  # noqa: BLE001  whatever an evaluator raises is why it has no score
        said = (
            str(error)
            if isinstance(error, NotAScore | NothingToScore)
            else f"{type(error).__name__}: {error}".removesuffix(": ")
        )
        return Outcome(None, said, None)
    return Outcome(score.value, None, score.details)


class NotAScore(ValueError):  # noqa: N818  what it is
    """What an evaluator returned is not a finite number."""


def as_score(value: object) -> Score:
    """A ``Score`` from itself, a number, or an object with ``value`` (and ``details``); ``NotAScore`` otherwise."""
    number, details = value, getattr(value, "breakdown", None)
    if not isinstance(value, Real) and hasattr(value, "value"):
        number, details = value.value, getattr(value, "details", None)
    if isinstance(number, bool) or not isinstance(number, Real):
        raise NotAScore(f"returned {number!r:.80}, which is not a number")
    score = float(number)
    if not math.isfinite(score):
        raise NotAScore(f"returned {score}, which is not a finite number")
    try:
        kept = _DETAILS.validate_python(details)
    except ValueError:
        raise NotAScore("returned details that are not a JSON object") from None
    return Score(score, kept if 0 <= score <= 1 else {**(kept or {}), OUT_OF_RANGE: True})


# ---------------------------------------------------------------- from names


def resolve_evaluators(names: Sequence[str | Evaluator | Function], scoring: object = None) -> tuple[Evaluator, ...]:
    """The evaluators in this order. ``scoring`` (a ``SimulationScoringConfig`` or a mapping) tunes the built-in ones.

    ``ConfigError`` for an unknown name (with near ones), for what is no evaluator, and for two of one name.
    """
    evaluators: dict[str, Evaluator] = {}
    for given in names:
        evaluator = _by_name(given.strip(), scoring) if isinstance(given, str) else _from_object(given)
        if evaluator.name in evaluators:
            raise ConfigError(f"the evaluator {evaluator.name!r} is given twice; give it once")
        evaluators[evaluator.name] = evaluator
    return tuple(evaluators.values())


def _by_name(name: str, scoring: object) -> Evaluator:
    if name in SIMULATION_EVALUATORS:
        return BuiltInEvaluator(name, get_evaluator(name, scoring_of(scoring)))
    if scorer := (FACT_SCORES | BELIEF_SCORES).get(name):
        return FactEvaluator(name, scorer)
    if ":" in name:
        return _from_object(import_attribute(name), name)
    plugins = offered(GROUP)
    if name in plugins:
        return _from_object(load(plugins[name]), name)
    known = [*SIMULATION_EVALUATORS, *FACT_SCORES, *BELIEF_SCORES, *plugins]
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ConfigError(
        f"no evaluator is called {name!r}; {hint}known are {', '.join(known)}, and your own as module:attribute"
    )


def _from_object(given: object, name: str | None = None) -> Evaluator:
    """An evaluator from an evaluator, its class, or a function; ``name`` is what the user called it."""
    made = _made(given, name) if inspect.isclass(given) else given
    if _is_evaluator(made):
        return made if name in (None, made.name) else FunctionEvaluator(name or made.name, made.evaluate, made.version)
    if not callable(made):
        raise ConfigError(f"{name or repr(made)} is no evaluator; pass a function that takes a SimulationResult")
    own = name or _name_of(made)
    if own == "<lambda>":
        raise ConfigError("a lambda has no name for its score; pass a function that was defined with def")
    try:
        inspect.signature(made).bind(None)
    except TypeError:
        raise ConfigError(f"the evaluator {own} must take one argument, the SimulationResult") from None
    except ValueError:
        pass  # some builtins do not say what they take
    return FunctionEvaluator(own, made)


def _made(given: type, name: str | None) -> object:
    try:
        return given()
    except Exception as error:
        raise ConfigError(f"{name or given.__name__}() cannot be made without arguments: {error}") from error


def _name_of(function: object) -> str:
    wrapped = getattr(function, "func", None)
    own: str = getattr(function, "__name__", None) or getattr(wrapped, "__name__", None) or type(function).__name__
    return own


def _is_evaluator(value: object) -> TypeGuard[Evaluator]:
    named = isinstance(getattr(value, "name", None), str) and isinstance(getattr(value, "version", None), str)
    return named and callable(getattr(value, "evaluate", None))


def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  an async __call__
