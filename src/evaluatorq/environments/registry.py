"""Environments by plain name: what a scenario's ``environment: orders`` stands for.

A case file names an environment and never a piece of code; code is named by whoever starts the run. ``setup`` is laid
over the environment's own starting state as a JSON merge patch (RFC 7386): objects merge, ``null`` removes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from pydantic import JsonValue, ValidationError

from evaluatorq.environments.orders import orders_environment
from evaluatorq.environments.patch import merge_patch
from evaluatorq.environments.ruled import Ruled
from evaluatorq.environments.toolbox import Toolbox
from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import Scenario, SimulationDatapoint
from evaluatorq.ports import Environment

Builder = Callable[[int], Environment]
"""Makes a fresh environment for one conversation from the conversation's seed."""

BUILT_IN: Mapping[str, Builder] = {"orders": lambda _seed: orders_environment()}


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
        except ConfigError as error:
            raise ConfigError(f"scenario {scenario.name!r}: {error}") from None

    def _made(self, scenario: Scenario, seed: int) -> Environment | None:
        if scenario.environment is None:
            if scenario.setup is not None:
                raise ConfigError(f"scenario {scenario.name!r} has a setup but names no environment for it")
            if scenario.events:
                raise ConfigError(f"scenario {scenario.name!r} has events but names no environment for them")
            return Toolbox[dict[str, JsonValue]]({}, []) if scenario.tools else None
        environment = self._builder(scenario.environment, scenario.name)(seed)
        if scenario.setup is not None:
            try:
                environment.restore(merge_patch(environment.snapshot(), scenario.setup))
            except ValidationError as error:
                raise ConfigError(
                    f"scenario {scenario.name!r}: its setup does not fit environment {scenario.environment!r}: "
                    f"{_first_fault(error)}"
                ) from None
        return environment

    def _builder(self, name: str, scenario: str) -> Builder:
        builder = self._builders.get(name)
        if builder is None:
            near = get_close_matches(name, self._builders, n=3) or sorted(self._builders)
            raise ConfigError(
                f"scenario {scenario!r} names environment {name!r}; there is {', '.join(near) or 'none registered'}"
            )
        return builder


environment_for = Environments()
"""The factory over the built-in environments."""


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    return f"/{'/'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
