"""Holds scenarios to the environment that they name, built as a run would build it: does it exist, has it these tools?

A name that is not registered is a mistake, as it is for a run. A tool that the environment lacks is a doubt, because an
agent may bring tools of its own; so is a check of the state where there is none, because a run may bring one.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from evaluatorq.environments.registry import OWN_ENVIRONMENT, environment_for
from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import Scenario, SimulationDatapoint
from evaluatorq.model.rules import Keys, Misfit, Problem, near_or_known
from evaluatorq.ports import Closeable, EnvironmentFactory, ToolSpec
from evaluatorq.store.cases import bundled, load_personas
from evaluatorq.store.tool_names import tool_names

Tools = tuple[ToolSpec, ...]
_OF_A_WORLD = ("setup", "tools", "events")
_NO_STATE = "looks at a state, and without an environment there is none; name one, such as environment: orders"


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
            raise ConfigError(reason)
        tools, misfits = self._tools_or_misfits(scenario)
        names = [tool.name for tool in tools or ()]
        where = f"environment {scenario.environment}" if scenario.environment else "this scenario's environment"
        for keys, name in () if tools is None else tool_names(written):
            if name not in names:
                yield Problem(f"{name!r} is no tool of {where}; {near_or_known(name, names)}", keys)
        if scenario.environment is None and self._tools_or_misfits(_without(scenario, *_OF_A_WORLD))[0] is None:
            yield from (Problem(_NO_STATE, keys) for keys in _state_checks(written))
        if misfits:
            raise Misfit(f"scenario {scenario.name!r} does not fit its environment", misfits)

    def _tools_or_misfits(self, scenario: Scenario) -> tuple[Tools | None, tuple[Problem, ...]]:
        """The tools, and what does not fit: a part that does not is left out to see how the others do."""
        found: tuple[Problem, ...] = ()
        while True:
            try:
                return self.tools(scenario), found
            except Misfit as error:
                found += error.problems
                scenario = _without(scenario, *(str(problem.keys[0]) for problem in error.problems))

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


def _without(scenario: Scenario, *parts: str) -> Scenario:
    return scenario.model_copy(update={part: Scenario.model_fields[part].get_default() for part in parts})


def _state_checks(written: JsonValue) -> Iterator[Keys]:
    """Where a scenario's goal and criteria look at the state."""
    scenario = written if isinstance(written, dict) else {}
    if scenario.get("goal_state"):
        yield ("goal_state",)
    criteria = scenario.get("criteria")
    listed = list(enumerate(criteria)) if isinstance(criteria, list) else []
    checks = [(("criteria", at, "check"), item.get("check")) for at, item in listed if isinstance(item, dict)]
    for keys, check in [(("goal_check",), scenario.get("goal_check")), *checks]:
        if isinstance(check, dict) and check.get("state") is not None:
            yield (*keys, "state")
