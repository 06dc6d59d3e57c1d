"""Cases made by a model, alone or as the first stage of a run.

Whoever watches is told before the first request what is about to be made and simulated, so that it can be declined
before anything is spent; a count of seeds or cases is known then, only their text is not. Partial failure keeps what
worked: the problems are logged and saved with the run.
"""

from __future__ import annotations

import inspect
import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar, Unpack

import anyio

from evaluatorq import __version__
from evaluatorq.errors import ConfigError, SimulationError
from evaluatorq.generate.making import Made
from evaluatorq.generate.prompts import About
from evaluatorq.generate.slots import (
    EDGE_PERSONAS,
    EDGE_SCENARIOS,
    persona_slots,
    scenario_slots,
    seed_slots,
    share_of,
)
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.runs import RunPlan
from evaluatorq.model.spending import Spending
from evaluatorq.pacing.retry import RetryPolicy
from evaluatorq.ports import CaseOrder, Commissioned, Sink
from evaluatorq.roles.prompts import PROMPT_VERSION
from evaluatorq.roles.prompts_user import user_system
from evaluatorq.run.clock import SystemClock
from evaluatorq.run.crew import try_worlds
from evaluatorq.run.engine import run_plan
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.simulation.api import SimulationResults, concluded, run_options, write_results
from evaluatorq.simulation.assemble import Cases, assembled, plan_of
from evaluatorq.simulation.config import LLMCallConfig
from evaluatorq.simulation.models import Models, fast_model, opened_models
from evaluatorq.simulation.orders import EmitDatapoints, GenerateConfig, RunConfig, RunOptions
from evaluatorq.simulation.workshop import Workshop
from evaluatorq.store.cases import product

_log = logging.getLogger(__name__)
_UNBOUNDED = 100
"""Requests at once where the options set no limit."""


class GeneratedDatapoints(list[SimulationDatapoint]):
    """Datapoints that a model made, with what could not be made and what it cost."""

    def __init__(self, datapoints: Iterable[SimulationDatapoint], problems: Sequence[str], spent: Spending) -> None:
        super().__init__(datapoints)
        self.problems = list(problems)
        self.spent = spent


# ---------------------------------------------------------------- datapoints


def generate_datapoint(persona: Persona, scenario: Scenario, first_message: str = "") -> SimulationDatapoint:
    """A datapoint of one persona and one scenario; asks no model. Each has an id of its own.

    An empty ``first_message`` is left to the simulated user.
    """
    return SimulationDatapoint(
        id=f"dp_{uuid.uuid4().hex[:12]}",
        persona=persona,
        scenario=scenario,
        user_system_prompt=user_system(persona, scenario),
        first_message=first_message,
    )


def paired(personas: Sequence[Persona], scenarios: Sequence[Scenario]) -> list[SimulationDatapoint]:
    """Each persona with each scenario, with the prompt of its simulated user; the same pair has the same id."""
    return [
        pair.model_copy(update={"user_system_prompt": user_system(pair.persona, pair.scenario)})
        for pair in product(personas, scenarios)
    ]


async def generate(  # noqa: PLR0913  the published signature
    *,
    agent_description: str,
    num_personas: int = 5,
    num_scenarios: int = 5,
    llm_config: LLMCallConfig | None = None,
    generation_client: object = None,
    persona_seeds: Sequence[str] | None = None,
    scenario_seeds: Sequence[str] | None = None,
    generation_instructions: str = "",
    edge_case_percentage: float | None = None,
    llm_parallelism: int | None = None,
    sinks: Sequence[Sink] = (),
) -> GeneratedDatapoints:
    """Personas, scenarios and first messages for an agent, paired; ``.problems`` says what could not be made.

    Raises ``ConfigError`` for options that cannot be right and ``SimulationError`` when nothing could be made.
    """
    options: dict[str, object] = {
        "agent_description": agent_description,
        "num_personas": num_personas,
        "num_scenarios": num_scenarios,
        "llm_config": llm_config,
        "persona_seeds": persona_seeds,
        "scenario_seeds": scenario_seeds,
        "generation_instructions": generation_instructions,
        "edge_case_percentage": edge_case_percentage,
    }
    if llm_parallelism is not None:
        options["llm_parallelism"] = llm_parallelism
    return await run_generate(GenerateConfig.parse(options), sinks=sinks, client=generation_client)


async def run_generate(
    config: GenerateConfig, *, sinks: Sequence[Sink] = (), client: object = None
) -> GeneratedDatapoints:
    """Makes what ``config`` describes; ``sinks`` watch it."""
    async with opened_models(config.llm_config, at_once_of(config), client) as models:
        draft = RunPlan(
            run_id=uuid.uuid4().hex,
            run_name=config.run_name or "generate",
            created_at=SystemClock().now(),
            mode="generate",
            config=config.recorded(),
            versions={"evaluatorq": __version__, "prompts": PROMPT_VERSION},
            datapoints=(),
        )
        plan = await _prepared(config, draft, models, sinks)
    return GeneratedDatapoints(plan.datapoints, plan.problems, plan.spent)


# ---------------------------------------------------------------- a whole run


async def generate_and_simulate(**options: Unpack[RunOptions]) -> SimulationResults:
    """Makes cases for an agent and simulates them: ``simulate`` with ``agent_description`` in place of an input.

    Raises as ``simulate`` does, and ``SimulationError`` when no case could be made.
    """
    given = dict(options)
    emit = given.pop("emit_datapoints", None)
    config = RunConfig.parse(given)
    if emit is not None and not callable(emit):
        raise ConfigError(f"emit_datapoints is a function that takes the list of datapoints, not {emit!r}")
    return concluded(config, await run_made(config, keep=True, emit=emit))


async def run_made(
    config: RunConfig, *, sinks: Sequence[Sink] = (), keep: bool = False, emit: EmitDatapoints | None = None
) -> RunOutcome:
    """Makes the cases that ``config`` orders, hands them to ``emit``, and simulates them."""
    async with assembled(config, at_once_of(config)) as assembly:
        draft = plan_of(config, Cases(()), assembly, now=SystemClock().now()).model_copy(update={"mode": "run"})
        plan = await _prepared(config, draft, assembly.source, sinks)
        await try_worlds(plan, assembly.crew)
        if emit is not None:
            answer = emit(list(plan.datapoints))
            if inspect.isawaitable(answer):
                await answer
        outcome = await run_plan(plan, assembly.crew, run_options(config, plan, keep=keep), sinks)
    write_results(outcome, config.results)
    return outcome


async def _prepared(config: RunConfig, draft: RunPlan, models: Models, sinks: Sequence[Sink]) -> RunPlan:
    """The plan with its cases, after those who watch had a chance to decline."""
    name = fast_model(config)
    order = CaseOrder(draft, config.personas_wanted, config.scenarios_wanted, name)
    watchers = [sink for sink in sinks if isinstance(sink, Commissioned)]
    for watcher in watchers:
        await watcher.ordered(order)
    retry = RetryPolicy(attempts=(config.llm_config or LLMCallConfig()).retry_count + 1)
    workshop = Workshop(models.ours(name), retry=retry, at_once=at_once_of(config), seed=config.seed)
    made = await _cases(config, workshop)
    pairs = paired(made.personas, made.scenarios)
    openings = await workshop.openings(pairs)
    plan = draft.model_copy(
        update={
            "datapoints": tuple(
                pair.model_copy(update={"first_message": text})
                for pair, text in zip(pairs, openings.texts, strict=True)
            ),
            "spent": workshop.bill.spending,
            "problems": (*made.problems, *openings.problems),
            "models": {**draft.models, "generator": name},
        }
    )
    for problem in () if watchers else plan.problems:
        _log.warning("%s", problem)
    for watcher in watchers:
        await watcher.delivered(len(made.personas), len(made.scenarios), plan)
    return plan


@dataclass(frozen=True, slots=True)
class _Cases:
    personas: list[Persona]
    scenarios: list[Scenario]
    problems: list[str]


async def _cases(config: RunConfig, workshop: Workshop) -> _Cases:
    about = About(config.agent_description or "", wishes=config.generation_instructions)
    share = config.edge_case_percentage
    personas = seed_slots(config.persona_seeds or ()) or persona_slots(
        config.num_personas, share_of(config.num_personas, share, EDGE_PERSONAS)
    )
    scenarios = seed_slots(config.scenario_seeds or ()) or scenario_slots(
        config.num_scenarios, share_of(config.num_scenarios, share, EDGE_SCENARIOS)
    )
    people: Made[Persona] = Made()
    situations: Made[Scenario] = Made()

    async def find_people() -> None:
        nonlocal people
        people = await workshop.personas(about, personas)

    async with anyio.create_task_group() as group:
        group.start_soon(find_people)
        situations = await workshop.scenarios(about, scenarios)
    return _Cases(some(people), some(situations), [*people.problems, *situations.problems])


M = TypeVar("M", Persona, Scenario)


def some(made: Made[M]) -> list[M]:
    """What was made. Raises ``SimulationError`` with the reasons when that is nothing."""
    if not made.by_slot:
        raise SimulationError("; ".join(made.problems) or "nothing was asked for")
    return made.items


def at_once_of(config: RunConfig) -> int:
    """How many requests the making of cases may have under way."""
    return config.llm_parallelism if config.llm_parallelism > 0 else _UNBOUNDED
