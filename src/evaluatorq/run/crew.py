"""Who takes part: the factories of a run, and the participants of one conversation made from them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TypeVar

import anyio
from pydantic import JsonValue

from evaluatorq.errors import CallError, Component, ConfigError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import CallFailed
from evaluatorq.model.runs import NOTHING_LEARNED, Learned, RunPlan
from evaluatorq.pacing.retry import RetryPolicy
from evaluatorq.ports import (
    Analyst,
    BeliefDetector,
    ClaimFinder,
    Closeable,
    DetectorFactory,
    Environment,
    EnvironmentFactory,
    Evaluator,
    FinderFactory,
    Forgetful,
    Judge,
    JudgeFactory,
    ObservationSource,
    Seat,
    SourceFactory,
    Target,
    TargetFactory,
    UserFactory,
    UserSimulator,
)
from evaluatorq.toolset import Recorder

T = TypeVar("T")
CLOSING_S = 5.0
MODEL_RETRY = RetryPolicy()
TARGET_RETRY = RetryPolicy(attempts=3)


@dataclass(frozen=True, slots=True)
class Crew:
    """Everything a run needs besides its plan.

    ``serve`` offers a world's tools to other processes and tells the URL. ``source`` is asked after each of the agent's
    turns what it left in a store of the user's own; ``max_observed_events`` is the only bound on its events.
    ``detector`` notes what can be known from each message of the user, ``finder`` what the agent says that it did.
    ``analyst`` reads the whole run once it is complete. ``learned`` tells what the models turned out to take.
    ``metered`` names the roles whose calls cost something, so that an answer lost on its way makes the usage unknown.
    """

    target: TargetFactory
    user: UserFactory
    judge: JudgeFactory
    environment: EnvironmentFactory
    evaluators: tuple[Evaluator, ...] = ()
    analyst: Analyst | None = None
    learned: Callable[[], Learned] = lambda: NOTHING_LEARNED
    serve: Callable[[Recorder], str] | None = None
    source: SourceFactory | None = None
    detector: DetectorFactory | None = None
    finder: FinderFactory | None = None
    max_observed_events: int | None = None
    retry: RetryPolicy = MODEL_RETRY
    target_retry: RetryPolicy = TARGET_RETRY
    target_timeout_s: float | None = 240.0
    conversation_timeout_s: float | None = None
    metered: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Participants:
    """The participants of one conversation, each made for it alone."""

    target: Target
    user: UserSimulator
    judge: Judge
    environment: Environment | None
    random: Random
    recorder: Recorder | None = None
    served: Recorder | None = None
    source: ObservationSource | None = None
    detector: BeliefDetector | None = None
    finder: ClaimFinder | None = None

    def remind(self, failures: Sequence[CallFailed]) -> None:
        """Tells those who count unusable answers of the ones that an earlier process got."""
        for component, participant in (("user_simulator", self.user), ("judge", self.judge)):
            theirs = [failure for failure in failures if failure.component == component]
            if theirs and isinstance(participant, Forgetful):
                participant.remind(theirs)

    async def aclose(self) -> None:
        """Gives back what they hold; a fault while doing so is nobody's verdict."""
        for participant in (self.target, self.user, self.judge, self.environment, self.source):
            await _given_back(participant)


async def _given_back(participant: object) -> None:
    if hasattr(participant, "aclose") and isinstance(participant, Closeable):  # the first is quicker to see
        with suppress(Exception), anyio.move_on_after(CLOSING_S, shield=True):
            await participant.aclose()


def conversation_seed(plan: RunPlan, row: int) -> int:
    """A seed of its own for each sample of each datapoint, the same whatever runs beside it."""
    return seed_of(plan.datapoints[row], plan.seed)


def seed_of(datapoint: SimulationDatapoint, seed: int) -> int:
    """The seed of one sample of a datapoint in a run with this seed."""
    digest = hashlib.blake2b(f"{seed}/{datapoint.id}/{datapoint.sample or 0}".encode(), digest_size=8)
    return int.from_bytes(digest.digest())


async def seat_participants(
    crew: Crew, plan: RunPlan, row: int, world: Callable[[], Environment | None]
) -> Participants:
    """Makes the participants of conversation ``row``. Where one cannot be made, those that were are given back."""
    seated: list[object] = []
    try:
        return _seated(crew, plan, row, world, seated)
    except CallError:
        for participant in reversed(seated):
            await _given_back(participant)
        raise


def _seated(
    crew: Crew, plan: RunPlan, row: int, world: Callable[[], Environment | None], seated: list[object]
) -> Participants:
    def keep(component: Component, make: Callable[[], T]) -> T:
        participant = _made(component, make)
        seated.append(participant)
        return participant

    environment = keep("environment", world)
    recorder = Recorder(environment) if environment is not None else None
    seed = conversation_seed(plan, row)
    served = None if crew.serve is None or environment is None else Recorder(environment, prefix="mcp")
    url = None if crew.serve is None or served is None else crew.serve(served)
    limit_s = crew.target_timeout_s
    seat = Seat(plan.datapoints[row], plan.thread_id(row), seed, plan.limits.max_turns, recorder, url, limit_s)
    blind = replace(seat, datapoint=without_truth(seat.datapoint))
    target = keep("target", lambda: crew.target(blind))
    user = keep("user_simulator", lambda: crew.user(blind))
    judge = keep("judge", lambda: crew.judge(seat))
    source = None if crew.source is None else keep("infrastructure", partial(crew.source, seat))
    detector = None if crew.detector is None else _made("infrastructure", partial(crew.detector, blind))
    finder = None if crew.finder is None else _made("infrastructure", partial(crew.finder, blind))
    random = Random(seed)  # noqa: S311  jitter only
    return Participants(target, user, judge, environment, random, recorder, served, source, detector, finder)


def without_truth(datapoint: SimulationDatapoint) -> SimulationDatapoint:
    """The case as those see it who must not know its truth: without it, and without what its world starts with."""
    if datapoint.scenario.truth is None:
        return datapoint
    blind = datapoint.scenario.model_copy(update={"truth": None, "hidden": None, "setup": None})
    return datapoint.model_copy(update={"scenario": blind})


def _made(component: Component, make: Callable[[], T]) -> T:
    try:
        return make()
    except CallError:
        raise
    except Exception as error:
        code = "target_error" if component == "target" else "internal_error"
        raise CallError(code, f"{type(error).__name__}: {error}", component=component) from error


def world_of(crew: Crew, datapoint: SimulationDatapoint, seed: int, state: JsonValue) -> Environment | None:
    """A fresh environment, put back to ``state`` where a conversation goes on."""
    environment = crew.environment(datapoint, seed)
    if environment is not None and state is not None:
        environment.restore(state)
    return environment


async def try_worlds(plan: RunPlan, crew: Crew) -> None:
    """Makes the world of each distinct scenario once, so that one which cannot be made is told before anything runs.

    Raises ``ConfigError``; whatever else a builder raises is told in one.
    """
    tried: set[str] = set()
    for datapoint in plan.datapoints:
        scenario = datapoint.scenario
        key = scenario.model_dump_json(include={"environment", "setup", "tools", "events"})
        if key in tried:
            continue
        tried.add(key)
        try:
            world = crew.environment(datapoint, plan.seed)
        except ConfigError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise ConfigError(f"scenario {scenario.name!r}: its environment cannot be made: {reason}") from error
        await _given_back(world)


def snapshot_of(environment: Environment | None) -> JsonValue:
    """The environment's state; ``CallError`` of the environment when it cannot be read."""
    if environment is None:
        return None
    try:
        return environment.snapshot()
    except Exception as error:
        raise CallError(
            "internal_error", f"the environment's state cannot be read: {error}", component="environment"
        ) from error


def tools_of(environment: Environment | None) -> dict[str, bool]:
    """The names of the environment's tools, and whether a call of each may be repeated."""
    if environment is None:
        return {}
    return _made("environment", lambda: {spec.name: spec.idempotent for spec in environment.tools})
