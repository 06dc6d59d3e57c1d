"""The options of runs whose cases a model makes first: what the agent is, how many cases, built on which ideas.

``RunConfig`` is a ``SimulationConfig`` whose input is such an order instead of files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Self, TypedDict

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, model_validator

from evaluatorq.model.base import Strict
from evaluatorq.model.calls import LLMCallConfig
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.simulation.config import INPUTS, TARGETS, Flag, SimulationConfig
from evaluatorq.simulation.keywords import SimulationOptions
from evaluatorq.simulation.kinds import Text

EmitDatapoints = Callable[[list[SimulationDatapoint]], object]
"""Is handed the cases that were made; what it returns is awaited where that can be done."""


def _one_listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _not_empty(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return values or None


Seeds = Annotated[tuple[Text, ...] | None, BeforeValidator(_one_listed), AfterValidator(_not_empty)]


class OrderOptions(Strict):
    """Which cases to make. Seeds give one case each and take the place of the count."""

    agent_description: Annotated[Text | None, Flag("Cases", metavar="TEXT")] = Field(
        None, description="What the agent is for, what it may and may not do."
    )
    num_personas: Annotated[int, Flag("Cases", metavar="N")] = Field(5, ge=1, description="Personas to make.")
    num_scenarios: Annotated[int, Flag("Cases", metavar="N")] = Field(5, ge=1, description="Scenarios to make.")
    edge_case_percentage: Annotated[float | None, Flag("Cases", metavar="SHARE")] = Field(
        None, ge=0, le=1, description="Share of edge cases, 0 to 1; 0.2 of the personas and 0.3 of the scenarios."
    )
    persona_seeds: Annotated[Seeds, Flag("Cases", ("--persona-seed",), "TEXT")] = Field(
        None, description="Ideas for personas, one persona each, instead of --num-personas."
    )
    scenario_seeds: Annotated[Seeds, Flag("Cases", ("--scenario-seed",), "TEXT")] = Field(
        None, description="Ideas for scenarios, one scenario each, instead of --num-scenarios."
    )
    generation_instructions: Annotated[str, Flag("Cases", metavar="TEXT")] = Field(
        "", description="How the cases should be, in your own words."
    )

    @property
    def personas_wanted(self) -> int:
        """How many personas that makes."""
        return len(self.persona_seeds) if self.persona_seeds else self.num_personas

    @property
    def scenarios_wanted(self) -> int:
        """How many scenarios that makes."""
        return len(self.scenario_seeds) if self.scenario_seeds else self.num_scenarios

    @model_validator(mode="after")
    def _described(self) -> Self:
        if self.agent_description is None:
            raise ValueError(
                "agent_description is missing: say what the agent is for, so that cases can be made for it (on the "
                "command line --agent-description)"
            )
        return self


class RunConfig(OrderOptions, SimulationConfig):
    """What to make, and how to simulate it."""

    def _one_input(self) -> None:
        given = [name for name in (*INPUTS, "only", "pack") if getattr(self, name) is not None]
        if given:
            raise ValueError(f"the cases are made by a model, so {' and '.join(given)} cannot be given; use simulate")
        if self.offline:
            raise ValueError("offline asks no model, and only a model can make cases; drop offline or simulate files")


class GenerateConfig(RunConfig):
    """What to make. There is no agent to simulate against."""

    def _one_target(self) -> None:
        given = [name for name in TARGETS if getattr(self, name) is not None]
        if given:
            raise ValueError(f"cases are made without an agent, so {' and '.join(given)} cannot be given")


class _Order(TypedDict, total=False):
    agent_description: str | None
    num_personas: int
    num_scenarios: int
    edge_case_percentage: float | None
    persona_seeds: Sequence[str] | None
    scenario_seeds: Sequence[str] | None
    generation_instructions: str


class GenerateOptions(_Order, total=False):
    """The keyword arguments of ``generate``."""

    sim_model: str | None
    llm_config: LLMCallConfig | Mapping[str, JsonValue] | None
    generation_client: object
    hooks: object
    llm_parallelism: int | None
    seed: int


class RunOptions(_Order, SimulationOptions, total=False):
    """The keyword arguments of ``generate_and_simulate``; ``emit_datapoints`` is handed the cases once."""

    emit_datapoints: EmitDatapoints | None
