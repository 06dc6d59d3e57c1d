"""Makers of personas, scenarios, first messages and datapoints under their published names.

Each opens its connections for one call and closes them; what it spent runs on until ``reset_usage``. ``client`` is a
``ChatModel``, or an object with ``base_url`` and ``api_key``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypedDict, Unpack

from pydantic import JsonValue

from evaluatorq.errors import CallError, ConfigError, SimulationError
from evaluatorq.generate.kinds import M
from evaluatorq.generate.making import Made
from evaluatorq.generate.perturbation import apply_perturbations_batch
from evaluatorq.generate.prompts import About
from evaluatorq.generate.slots import (
    EDGE_PERSONAS,
    EDGE_SCENARIOS,
    Slot,
    boundary_slots,
    edge_slots,
    persona_slots,
    scenario_slots,
    security_slots,
    seed_slots,
    share_of,
    spread_personas,
    spread_scenarios,
)
from evaluatorq.llm.endpoint import BASE_URL_VARIABLE, DEFAULT_BASE_URL, Endpoint
from evaluatorq.model.calls import LLMCallConfig
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.spending import Bill
from evaluatorq.model.usage import Usage
from evaluatorq.simulation.datapoints import generate_datapoint
from evaluatorq.simulation.models import fast_name, opened_models
from evaluatorq.simulation.workshop import Workshop, paired, retry_of, some, spoken

_log = logging.getLogger(__name__)
_AT_ONCE = 10


class FirstMessageGenerationError(SimulationError):
    """No first message could be had."""


class _Generator:
    """What all makers share: whom they ask, and what they spent."""

    def __init__(
        self,
        *,
        model: str | None = None,
        client: object = None,
        api_key: str | None = None,
        config: LLMCallConfig | None = None,
    ) -> None:
        self._config = config or LLMCallConfig()
        self._model = model or self._config.model or fast_name()
        self._client = client if client is not None or api_key is None else _keyed(api_key)
        self._bill = Bill()

    def get_usage(self) -> Usage:
        """What was spent since the last ``reset_usage``."""
        return self._bill.spending.total

    def reset_usage(self) -> None:
        """Counts from zero again."""
        self._bill = Bill()

    async def close(self) -> None:
        """Nothing is held between calls."""

    @asynccontextmanager
    async def workshop(self) -> AsyncIterator[Workshop]:
        """A workshop that asks this maker's model and writes on its bill."""
        async with opened_models(self._config, _AT_ONCE, self._client) as models:
            model = models.ours(self._model)
            yield Workshop(model, retry=retry_of(self._config), at_once=_AT_ONCE, bill=self._bill)


class PersonaGenerator(_Generator):
    """Makes personas. Every method raises ``SimulationError`` when not a single one could be made."""

    async def generate(
        self,
        *,
        agent_description: str,
        context: str = "",
        num_personas: int = 5,
        edge_case_percentage: float = EDGE_PERSONAS,
        seed: str = "",
        generation_instructions: str = "",
    ) -> list[Persona]:
        """Personas with distinct names, the given share of them edge cases, all built on ``seed`` if there is one."""
        edge = share_of(_count(num_personas), edge_case_percentage, EDGE_PERSONAS)
        about = About(agent_description, context, generation_instructions)
        return await self._personas(about, persona_slots(num_personas, edge, seed))

    async def generate_with_coverage(
        self,
        *,
        agent_description: str,
        context: str = "",
        num_personas: int = 8,
        edge_case_percentage: float = EDGE_PERSONAS,
    ) -> list[Persona]:
        """Personas whose traits, style, mood and directness are spread by code over what there is."""
        edge = share_of(_count(num_personas), edge_case_percentage, EDGE_PERSONAS)
        return await self._personas(About(agent_description, context), spread_personas(num_personas, edge))

    async def _personas(self, about: About, slots: Sequence[Slot]) -> list[Persona]:
        async with self.workshop() as workshop:
            return _told(await workshop.personas(about, slots))


class ScenarioGenerator(_Generator):
    """Makes scenarios. Every method raises ``SimulationError`` when not a single one could be made."""

    async def generate(
        self,
        *,
        agent_description: str,
        context: str = "",
        num_scenarios: int = 10,
        edge_case_percentage: float = EDGE_SCENARIOS,
        seed: str = "",
        generation_instructions: str = "",
    ) -> list[Scenario]:
        """Scenarios with distinct names, the given share of them edge cases, all built on ``seed`` if there is one."""
        edge = share_of(_count(num_scenarios), edge_case_percentage, EDGE_SCENARIOS)
        about = About(agent_description, context, generation_instructions)
        return await self._scenarios(about, scenario_slots(num_scenarios, edge, seed))

    async def generate_with_coverage(
        self,
        *,
        agent_description: str,
        context: str = "",
        num_scenarios: int = 6,
        edge_case_percentage: float = EDGE_SCENARIOS,
    ) -> list[Scenario]:
        """Scenarios whose strategy, starting emotion and form are spread by code over what there is."""
        edge = share_of(_count(num_scenarios), edge_case_percentage, EDGE_SCENARIOS)
        return await self._scenarios(About(agent_description, context), spread_scenarios(num_scenarios, edge))

    async def generate_edge_cases(
        self,
        *,
        agent_description: str,
        existing_scenarios: Sequence[Scenario] | None = None,
        num_edge_cases: int = 5,
    ) -> list[Scenario]:
        """Edge cases that are not among ``existing_scenarios``."""
        existing = tuple(f"{scenario.name}: {scenario.goal}" for scenario in existing_scenarios or ())
        return await self._scenarios(About(agent_description, existing=existing), edge_slots(_count(num_edge_cases)))

    async def generate_boundary_scenarios(self, *, agent_description: str, num_scenarios: int = 5) -> list[Scenario]:
        """Scenarios at the limits of what the agent may do, each limit in turn."""
        return await self._scenarios(About(agent_description), boundary_slots(_count(num_scenarios)))

    async def generate_security_scenarios(
        self,
        *,
        agent_description: str,
        seed_examples: Sequence[Mapping[str, JsonValue]] | None = None,
        categories: Sequence[str] | None = None,
        num_scenarios: int = 10,
    ) -> list[Scenario]:
        """Scenarios in which the user attacks, one category after the other, in the manner of the examples."""
        slots = security_slots(_count(num_scenarios), categories or (), seed_examples or ())
        return await self._scenarios(About(agent_description), slots)

    async def _scenarios(self, about: About, slots: Sequence[Slot]) -> list[Scenario]:
        async with self.workshop() as workshop:
            return _told(await workshop.scenarios(about, slots))


class FirstMessageGenerator(_Generator):
    """Writes what a persona says first."""

    async def generate(self, persona: Persona, scenario: Scenario) -> str:
        """The simulated user's first line. Raises ``FirstMessageGenerationError`` when there is none to be had."""
        async with self.workshop() as workshop:
            try:
                return await workshop.opening(generate_datapoint(persona, scenario))
            except CallError as error:
                raise FirstMessageGenerationError(
                    f"no first message for {persona.name} / {scenario.name}: {error.message}"
                ) from error


class DatapointGenerator(_Generator):
    """Makes whole datapoints. ``orq_api_key`` is for an endpoint that a run here does not ask, and is not used."""

    def __init__(
        self,
        *,
        model: str | None = None,
        config: LLMCallConfig | None = None,
        client: object = None,
        orq_api_key: str | None = None,
    ) -> None:
        super().__init__(model=model, client=client, config=config)
        del orq_api_key

    async def generate_from_description(  # noqa: PLR0913  the published signature
        self,
        *,
        agent_description: str,
        context: str = "",
        num_personas: int = 3,
        num_scenarios: int = 5,
        edge_case_percentage: float = 0.2,
        perturbation_rate: float = 0.0,
        include_boundary: bool = False,
        num_boundary: int = 5,
        include_security: bool = False,
        num_security: int = 5,
        security_seed_examples: Sequence[Mapping[str, JsonValue]] | None = None,
        security_categories: Sequence[str] | None = None,
        seed: int | None = None,
    ) -> list[SimulationDatapoint]:
        """Personas and scenarios made for an agent, paired, with first messages of which a share is spoiled.

        With ``seed`` the same messages are spoiled in the same way.
        """
        about = About(agent_description, context)
        people = persona_slots(_count(num_personas), share_of(num_personas, edge_case_percentage, 0.2))
        situations = scenario_slots(_count(num_scenarios), share_of(num_scenarios, edge_case_percentage, 0.2))
        if include_boundary:
            situations += boundary_slots(_count(num_boundary))
        if include_security:
            situations += security_slots(_count(num_security), security_categories or (), security_seed_examples or ())
        async with self.workshop() as workshop:
            personas = _told(await workshop.personas(about, people))
            scenarios = _told(await workshop.scenarios(about, situations))
            pairs = paired(personas, scenarios)
            texts = await _openings(workshop, pairs)
        spoiled = apply_perturbations_batch(texts, perturbation_rate, seed=seed)
        return spoken(pairs, [after if before else "" for before, (after, _) in zip(texts, spoiled, strict=True)])

    async def generate_from_combinations(
        self, personas: Sequence[Persona], scenarios: Sequence[Scenario]
    ) -> list[SimulationDatapoint]:
        """Each persona with each scenario and a first message."""
        pairs = paired(personas, scenarios)
        async with self.workshop() as workshop:
            return spoken(pairs, await _openings(workshop, pairs))


# ---------------------------------------------------------------- from seeds


class SeedOptions(TypedDict, total=False):
    """What cases made from seeds are for, and who is asked."""

    agent_description: str
    context: str
    generation_instructions: str
    llm_config: LLMCallConfig | None
    generation_client: object


async def generate_personas(seeds: Sequence[str], **options: Unpack[SeedOptions]) -> list[Persona]:
    """One persona for each seed, in their order. Raises ``SimulationError`` for a seed that yields none."""
    async with _opened_workshop(options) as workshop:
        return _each(await workshop.personas(_about(options), seed_slots(_checked(seeds))), seeds)


async def generate_persona(seed: str, **options: Unpack[SeedOptions]) -> Persona:
    """The persona for one seed. Raises ``SimulationError`` when it yields none."""
    return (await generate_personas([seed], **options))[0]


async def generate_scenarios(seeds: Sequence[str], **options: Unpack[SeedOptions]) -> list[Scenario]:
    """One scenario for each seed, in their order. Raises ``SimulationError`` for a seed that yields none."""
    async with _opened_workshop(options) as workshop:
        return _each(await workshop.scenarios(_about(options), seed_slots(_checked(seeds))), seeds)


async def generate_scenario(seed: str, **options: Unpack[SeedOptions]) -> Scenario:
    """The scenario for one seed. Raises ``SimulationError`` when it yields none."""
    return (await generate_scenarios([seed], **options))[0]


def _opened_workshop(options: SeedOptions) -> AbstractAsyncContextManager[Workshop]:
    return _Generator(config=options.get("llm_config"), client=options.get("generation_client")).workshop()


def _about(options: SeedOptions) -> About:
    return About(
        options.get("agent_description", ""), options.get("context", ""), options.get("generation_instructions", "")
    )


def _checked(seeds: Sequence[str]) -> Sequence[str]:
    if isinstance(seeds, str) or not seeds or not all(isinstance(seed, str) and seed.strip() for seed in seeds):
        raise ConfigError("seeds are a list of at least one idea, each a text that is not blank")
    return seeds


def _each(made: Made[M], seeds: Sequence[str]) -> list[M]:
    if len(made.by_slot) < len(seeds):
        raise SimulationError("; ".join(made.problems))
    return made.items


# ---------------------------------------------------------------- small steps


def _count(number: int) -> int:
    if number < 1:
        raise ConfigError(f"so many cases are made as are asked for, at least 1, not {number}")
    return number


def _told(made: Made[M]) -> list[M]:
    """What was made; what could not be is logged."""
    items = some(made)
    for problem in made.problems:
        _log.warning("%s", problem)
    return items


async def _openings(workshop: Workshop, pairs: Sequence[SimulationDatapoint]) -> list[str]:
    """What the users of the pairs say first; what went wrong is logged."""
    openings = await workshop.openings(pairs)
    for problem in openings.problems:
        _log.warning("%s", problem)
    return openings.texts


def _keyed(api_key: str) -> Endpoint:
    """The endpoint of the environment with a key of one's own."""
    return Endpoint(os.environ.get(BASE_URL_VARIABLE, "").strip() or DEFAULT_BASE_URL, api_key)
