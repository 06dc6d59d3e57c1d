"""Environments by plain name: what a scenario's ``environment: orders`` stands for.

A case file names an environment and never a piece of code; code is named by whoever starts the run. ``setup`` is laid
over the environment's own starting state as a JSON merge patch (RFC 7386): objects merge, ``null`` removes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import get_args

from pydantic import BaseModel, JsonValue, ValidationError

from evaluatorq.environments.patch import merge_patch
from evaluatorq.environments.ruled import Ruled
from evaluatorq.environments.toolbox import Toolbox
from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import Scenario, SimulationDatapoint
from evaluatorq.model.rules import Misfit, Problem, near_and_known
from evaluatorq.model.type_rules import type_problems
from evaluatorq.plugins import load, offered
from evaluatorq.ports import Environment

Builder = Callable[[int], Environment]
"""Makes a fresh environment for one conversation from the conversation's seed."""

GROUP = "evaluatorq.environments"
"""Entry points that add environments: functions that take a seed."""


def _orders(_seed: int) -> Environment:
    from evaluatorq.environments.orders import orders_environment  # noqa: PLC0415  only where a scenario names it

    return orders_environment()


OWN_ENVIRONMENT = "own"
"""What a scenario calls the environment that whoever starts the run brings along."""
BUILT_IN: Mapping[str, Builder] = {"orders": _orders}


class Environments:
    """An ``EnvironmentFactory`` over builders by name: ``Environments({**BUILT_IN, "shop": build_shop})``."""

    def __init__(self, builders: Mapping[str, Builder] = BUILT_IN) -> None:
        self._builders = dict(builders)

    def __call__(self, datapoint: SimulationDatapoint, seed: int) -> Environment | None:
        """A fresh environment in the scenario's starting state, ``None`` where the scenario names none."""
        scenario = datapoint.scenario
        environment = self._made(scenario, seed)
        if environment is None or not scenario.tools:
            return environment
        try:
            return Ruled(environment, scenario.tools, seed)
        except Misfit as error:
            raise Misfit(f"scenario {scenario.name!r}: {error}", error.problems) from None

    def _made(self, scenario: Scenario, seed: int) -> Environment | None:
        if scenario.environment is None:
            if scenario.setup is not None:
                raise _homeless(scenario, "setup", "a setup but names no environment for it")
            if scenario.events:
                raise _homeless(scenario, "events", "events but names no environment for them")
            return Toolbox[dict[str, JsonValue]]({}, []) if scenario.tools else None
        environment = self._builder(scenario.environment, scenario.name)(seed)
        if scenario.setup is not None:
            try:
                environment.restore(merge_patch(environment.snapshot(), scenario.setup))
            except ValidationError as error:
                raise _misfit(scenario, environment, error) from None
        return environment

    def _builder(self, name: str, scenario: str) -> Builder:
        builder = self._builders.get(name) or _plugged(name)
        if builder is None:
            raise ConfigError(f"scenario {scenario!r} names environment {name!r}; {near_and_known(name, self.names)}")
        return builder

    def require(self, name: str) -> None:
        """``ConfigError`` with the names that are known where ``name`` is none of them."""
        if name not in self.names:
            raise ConfigError(f"no environment is called {name!r}; {near_and_known(name, self.names)}")

    @property
    def names(self) -> list[str]:
        """Everything that a scenario's ``environment`` may say."""
        return sorted({*self._builders, *offered(GROUP)})


environment_for = Environments()
"""The factory over the built-in environments."""


@lru_cache(maxsize=64)
def _plugged(name: str) -> Builder | None:
    """The builder that another package registered under this name; what is built in goes before it."""
    entry = offered(GROUP).get(name)
    if entry is None:
        return None
    build = load(entry)
    if not callable(build):
        raise ConfigError(f"the environment {name!r} ({entry.value}) is no function that makes one")

    def built(seed: int) -> Environment:
        made: Environment = build(seed)
        return made

    return built


def _homeless(scenario: Scenario, part: str, what: str) -> Misfit:
    reason = f"needs an environment; name one beside {part}, such as environment: orders"
    return Misfit(f"scenario {scenario.name!r} has {what}", [Problem(reason, (part,))])


def _misfit(scenario: Scenario, environment: Environment, error: ValidationError) -> Misfit:
    """Every place of a setup that the environment does not take."""
    state: object = getattr(environment, "state", None)
    known = sorted(set(_names(type(state), set())))
    noun = f"environment {scenario.environment}"
    problems = list(type_problems(error, scenario.setup, noun, known))
    told = "; ".join(f"/{'/'.join(map(str, problem.keys))}: {problem.reason}" for problem in problems)
    message = f"scenario {scenario.name!r}: its setup does not fit environment {scenario.environment!r}: {told}"
    return Misfit(message, (problem.under("setup") for problem in problems))


def _names(kind: object, seen: set[object]) -> Iterator[str]:
    """The fields of a state and of everything in it."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {} if kind in seen else kind.model_fields
        seen.add(kind)
        yield from fields
        yield from (name for field in fields.values() for name in _names(field.annotation, seen))
    else:
        yield from (name for part in get_args(kind) for name in _names(part, seen))
