"""Cases made by a model, alone or as the first stage of a run.

Whoever watches is told before the first request how many cases and conversations it will be, so that it can be declined
before anything is spent. Partial failure keeps what worked: what did not is logged and saved with the run.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Unpack

import anyio

from evaluatorq import __version__
from evaluatorq.errors import WrongKind
from evaluatorq.generate.making import Made
from evaluatorq.generate.prompts import About
from evaluatorq.generate.slots import (
    EDGE_PERSONAS,
    EDGE_SCENARIOS,
    Slot,
    persona_slots,
    scenario_slots,
    seed_slots,
    share_of,
)
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.runs import CasesFile, RunPlan
from evaluatorq.model.spending import NO_SPENDING, Spending
from evaluatorq.ports import CaseOrder, Commissioned, Sink
from evaluatorq.roles.prompts import PROMPT_VERSION
from evaluatorq.run.clock import SystemClock
from evaluatorq.run.crew import try_worlds
from evaluatorq.run.engine import first_of, run_plan
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.simulation.api import (
    SimulationResults,
    check_outcome,
    concluded,
    redactor_of,
    resumed_options,
    run_options,
)
from evaluatorq.simulation.assemble import Cases, assembled, plan_of, redaction_rules
from evaluatorq.simulation.drafting import Drafting, drafting, ordered_cases
from evaluatorq.simulation.elsewhere import warn_of_unstored
from evaluatorq.simulation.hook_stream import HookStream
from evaluatorq.simulation.models import Models, fast_model, fast_place, model_credentials, opened_models
from evaluatorq.simulation.orders import GenerateConfig, GenerateOptions, OrderOptions, RunConfig, RunOptions
from evaluatorq.simulation.privacy import redactor_for
from evaluatorq.simulation.report_files import check_outputs, write_outputs
from evaluatorq.simulation.served import served
from evaluatorq.simulation.telemetry import with_telemetry
from evaluatorq.simulation.workshop import (
    PERSONAS,
    SCENARIOS,
    Openings,
    Workshop,
    paired,
    retry_of,
    some,
    spoken,
)
from evaluatorq.store.drafts import read_draft

_log = logging.getLogger(__name__)
_UNBOUNDED = 100
"""Requests at once where the options set no limit."""

_DECIDING = frozenset({*OrderOptions.model_fields, "sim_base_url", "llm_config", "seed"})

Prepared = Callable[[RunPlan], Awaitable[None]]
Reopened = Callable[[Spending], None]


def _ignored(_spent: Spending) -> None:
    """Nobody wants to know."""


class GeneratedDatapoints(list[SimulationDatapoint]):
    """Datapoints that a model made, with what could not be made and what it all cost."""

    def __init__(self, datapoints: Iterable[SimulationDatapoint], problems: Sequence[str], spent: Spending) -> None:
        super().__init__(datapoints)
        self.problems = list(problems)
        self.spent = spent


# ---------------------------------------------------------------- cases alone


async def generate(**options: Unpack[GenerateOptions]) -> GeneratedDatapoints:
    """Personas, scenarios and first messages for an agent, paired; ``.problems`` says what could not be made.

    Raises ``ConfigError`` for options that cannot be right, ``SimulationError`` when nothing could be made, and
    ``SimulationCancelledError`` when a hook declined.
    """
    config = GenerateConfig.parse(options)
    watcher = HookStream(config.hooks, config.datapoint_parallelism)
    async with watcher.around():
        made = await run_generate(config, sinks=[watcher])
    _tell(made.problems)
    return made


async def run_generate(
    config: GenerateConfig,
    *,
    sinks: Sequence[Sink] = (),
    prepared: Prepared | None = None,
    reopened: Reopened = _ignored,
) -> GeneratedDatapoints:
    """Makes what ``config`` describes; ``sinks`` watch it.

    Where ``prepared`` puts the cases away, every answer is on disk until it has. ``reopened`` is told before the first
    request what a process that was stopped had spent on the same cases.
    """
    blank = RunPlan(
        run_id=uuid.uuid4().hex,
        run_name=config.run_name or "generate",
        created_at=SystemClock().now(),
        mode="generate",
        config=config.recorded(),
        versions={"evaluatorq": __version__, "prompts": PROMPT_VERSION},
        datapoints=(),
    )
    async with opened_models(config.llm_config, _at_once(config), config.generation_client) as models:
        watchers = await _ordered(config, blank, sinks)
        if prepared is None:
            plan = await _made(config, blank, models, watchers)
        else:
            redactor, texts = redactor_of(config, None, blank), not redaction_rules(config)
            with ordered_cases(blank, _order_of(config), redactor, texts=texts) as desk:
                if desk.spent != NO_SPENDING:
                    reopened(desk.spent)
                plan = await _made_alive(config, blank, models, watchers, desk)
                await prepared(plan)
    return GeneratedDatapoints(plan.datapoints, plan.problems, plan.spent)


def _order_of(config: GenerateConfig) -> str:
    """What tells one order of cases from another: all that decides what models are asked."""
    asked = {name: value for name, value in config.recorded().items() if name in _DECIDING}
    text = json.dumps([asked, fast_model(config), PROMPT_VERSION], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


# ---------------------------------------------------------------- a whole run


async def generate_and_simulate(**options: Unpack[RunOptions]) -> SimulationResults:
    """Makes cases for an agent and simulates them: ``simulate`` with ``agent_description`` in place of an input.

    ``emit_datapoints`` is called once with the list of cases, before the first conversation. Raises as ``simulate``
    does, and ``SimulationError`` when no case could be made.
    """
    given: dict[str, object] = dict(options)
    emit = given.pop("emit_datapoints", None)
    if emit is not None and not callable(emit):
        raise WrongKind(f"emit_datapoints is a function that takes the list of datapoints, not {emit!r}")
    config = RunConfig.parse(given)
    warn_of_unstored(config)

    async def prepared(plan: RunPlan) -> None:
        _tell(plan.problems)
        answer = emit(list(plan.datapoints)) if callable(emit) else None
        if inspect.isawaitable(answer):
            await answer

    hooks = HookStream(config.hooks, config.datapoint_parallelism)
    async with hooks.around():
        outcome = await run_made(config, sinks=[hooks], keep=True, prepared=prepared)
        check_outcome(config, outcome)
    return concluded(config, outcome)


async def run_made(
    config: RunConfig,
    *,
    sinks: Sequence[Sink] = (),
    keep: bool = False,
    prepared: Prepared | None = None,
    draft: RunPlan | None = None,
    cases_file: CasesFile | None = None,
) -> RunOutcome:
    """Makes the cases that ``config`` orders, shows ``prepared`` the plan, and simulates them.

    With the plan of an earlier ``draft`` it goes on with that run: what was answered is not asked again. The plan says
    of ``cases_file`` that the cases go there, for ``prepared`` and for whoever goes on.
    """
    check_outputs(config)
    async with assembled(config, _at_once(config)) as assembly, served(assembly.crew, config) as crew:
        plan = plan_of(config, Cases(()), assembly, now=SystemClock().now())
        plan = plan.model_copy(update={"mode": "run", "cases_file": cases_file})
        if draft is not None:
            earlier = ("run_id", "created_at", "cases_file")
            plan = plan.model_copy(update={name: getattr(draft, name) for name in earlier})
        watchers = await _ordered(config, plan, sinks)
        options = run_options(config, plan, keep=keep)
        hidden, texts = partial(redactor_of, config, crew), not redaction_rules(config)
        with drafting(plan, options, hidden, texts=texts, goes_on=draft is not None) as desk:
            plan = await _made_alive(config, plan, assembly.source, watchers, desk)
            if prepared is not None:
                await prepared(plan)
            await try_worlds(plan, crew)
        options = replace(options, redactor=redactor_of(config, crew, plan))
        outcome = await run_plan(plan, crew, options, with_telemetry(config, sinks))
    await write_outputs(outcome, config)
    return outcome


async def resume_made(
    folder: Path,
    *,
    sinks: Sequence[Sink] = (),
    overrides: Mapping[str, object],
    prepared: Prepared | None = None,
) -> RunOutcome:
    """Goes on with a run that was stopped while its cases were made. ``overrides`` replace options of the start."""
    draft = read_draft(folder)
    options = resumed_options(draft, overrides)
    config = RunConfig.parse(options, where=f"run {draft.run_id}")
    return await run_made(config, sinks=sinks, draft=draft, prepared=prepared)


# ---------------------------------------------------------------- the making


async def _ordered(config: RunConfig, plan: RunPlan, sinks: Sequence[Sink]) -> list[Commissioned]:
    """Those who watch cases being made, after they had a chance to decline."""
    watchers: list[Commissioned] = [sink for sink in sinks if isinstance(sink, Commissioned)]
    for watcher in watchers:
        await watcher.ordered(CaseOrder(plan, config.personas_wanted, config.scenarios_wanted, fast_model(config)))
    return watchers


async def _made_alive(
    config: RunConfig, plan: RunPlan, models: Models, watchers: Sequence[Commissioned], desk: Drafting
) -> RunPlan:
    """``_made``, while the manifest says every two seconds that the run lives."""
    made: list[RunPlan] = []
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(desk.status.beat)
            made.append(await _made(config, plan, models, watchers, desk))
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None
    desk.status.over()
    return made[0]


async def _made(
    config: RunConfig, plan: RunPlan, models: Models, watchers: Sequence[Commissioned], desk: Drafting | None = None
) -> RunPlan:
    """The plan with its cases. ``desk`` has it so far, and keeps what is paid for."""
    name, place = fast_model(config), fast_place(config)
    model = speaker = models.ours(name, place)
    if desk is not None:
        model, speaker = desk.kept(model, "generation"), desk.kept(model, "first_messages")
    workshop = Workshop(
        model,
        speaker=speaker,
        retry=retry_of(config.llm_config),
        at_once=_at_once(config),
        seed=config.seed,
        bill=None if desk is None else desk.bill(),
    )
    cases = await _cases(config, workshop, desk)
    pairs = paired(cases.personas, cases.scenarios)
    openings = Openings([pair.first_message for pair in pairs])
    without_keys = redactor_for((), model_credentials(config))

    def so_far() -> RunPlan:
        return plan.model_copy(
            update={
                "datapoints": tuple(map(without_keys.case, spoken(pairs, openings.texts))),
                "spent": workshop.bill.spending,
                "problems": (*cases.problems, *openings.problems),
                "models": {**plan.models, "generator": name},
            }
        )

    if desk is not None:
        desk.plan = so_far
    await workshop.open(pairs, openings)
    whole = so_far()
    for watcher in watchers:
        await watcher.delivered(len(cases.personas), len(cases.scenarios), whole)
    return whole


@dataclass(frozen=True, slots=True)
class _Cases:
    personas: list[Persona]
    scenarios: list[Scenario]
    problems: list[str]


async def _cases(config: RunConfig, workshop: Workshop, desk: Drafting | None) -> _Cases:
    about = About(config.agent_description or "", wishes=config.generation_instructions)
    people: Made[Persona] = Made()

    async def find_people() -> None:
        nonlocal people
        people = await workshop.personas(about, _persona_slots(config))

    async with anyio.create_task_group() as group:
        group.start_soon(find_people)
        situations = await workshop.scenarios(about, _scenario_slots(config))
    if desk is not None:
        for kind, made in ((PERSONAS, people.by_slot), (SCENARIOS, situations.by_slot)):
            if not made:
                desk.came_to_nothing(kind.plural)
    return _Cases(some(people), some(situations), [*people.problems, *situations.problems])


def _persona_slots(config: RunConfig) -> list[Slot]:
    if config.persona_seeds:
        return seed_slots(config.persona_seeds)
    edge = share_of(config.num_personas, config.edge_case_percentage, EDGE_PERSONAS)
    return persona_slots(config.num_personas, edge)


def _scenario_slots(config: RunConfig) -> list[Slot]:
    if config.scenario_seeds:
        return seed_slots(config.scenario_seeds)
    edge = share_of(config.num_scenarios, config.edge_case_percentage, EDGE_SCENARIOS)
    return scenario_slots(config.num_scenarios, edge)


def _at_once(config: RunConfig) -> int:
    """How many requests the making of cases may have under way."""
    most = config.llm_parallelism or _UNBOUNDED
    return most if most > 0 else _UNBOUNDED


def _tell(problems: Sequence[str]) -> None:
    for problem in problems:
        _log.warning("%s", problem)
