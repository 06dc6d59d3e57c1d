"""Holds scenarios to the environment that they name, built as a run would build it: does it exist, has it these tools?

A name that is not registered is a doubt and no mistake, because it may be registered where the run takes place; so is a
tool that the environment lacks, because an agent may bring tools of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from evaluatorq.environments.registry import OWN_ENVIRONMENT, environment_for
from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import Scenario, SimulationDatapoint
from evaluatorq.model.rules import Problem, near_or_known
from evaluatorq.ports import Closeable, EnvironmentFactory, ToolSpec
from evaluatorq.store.cases import bundled, load_personas
from evaluatorq.store.tool_names import tool_names

Tools = tuple[ToolSpec, ...]


class Worlds:
    """Builds the environment of each distinct scenario once, by ``factory``."""

    def __init__(self, factory: EnvironmentFactory = environment_for) -> None:
        self._factory = factory
        self._persona = load_personas(bundled("personas"))[0]
        self._known: dict[str, Tools | None] = {}

    def doubts(self, scenario: Scenario, written: JsonValue) -> Iterator[Problem]:
        """What a scenario says of environments and tools that is not so. ``ConfigError`` where a run would raise it."""
        if scenario.environment == OWN_ENVIRONMENT and self._factory is environment_for:
            return  # the world of whoever starts the run
        known = [*environment_for.names, OWN_ENVIRONMENT]
        if scenario.environment is not None and scenario.environment not in known:
            reason = (
                f"no environment is called {scenario.environment!r} here; {near_or_known(scenario.environment, known)}"
            )
            yield Problem(reason, ("environment",))
            return
        tools = self.tools(scenario)
        if tools is None:
            return
        names = [tool.name for tool in tools]
        where = f"environment {scenario.environment}" if scenario.environment else "this scenario's environment"
        for keys, name in tool_names(written):
            if name not in names:
                yield Problem(f"{name!r} is no tool of {where}; {near_or_known(name, names)}", keys)

    def tools(self, scenario: Scenario) -> Tools | None:
        """The tools of a scenario's environment, ``None`` where it has none. Raises ``ConfigError``."""
        key = scenario.model_dump_json(include={"environment", "setup", "tools", "events"})
        if key not in self._known:
            self._known[key] = self._built(scenario)
        return self._known[key]

    def _built(self, scenario: Scenario) -> Tools | None:
        datapoint = SimulationDatapoint(id="looked-at", persona=self._persona, scenario=scenario)
        try:
            world = self._factory(datapoint, 0)
        except ConfigError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise ConfigError(f"scenario {scenario.name!r}: its environment cannot be made: {reason}") from error
        if world is None:
            return None
        tools = world.tools
        if isinstance(world, Closeable):
            import anyio  # noqa: PLC0415  only for an environment that holds something

            anyio.run(world.aclose)
        return tools
