"""From options to a crew and a plan: which cases, which agent, who plays the user, who judges."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import anyio

from evaluatorq import __version__
from evaluatorq.environments.registry import BUILT_IN, OWN_ENVIRONMENT, Environments
from evaluatorq.errors import ConfigError
from evaluatorq.evaluators.evidence import CLAIMS_IN_PROSE
from evaluatorq.evaluators.registry import resolve_evaluators
from evaluatorq.llm.endpoint import Sampling
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.events import BELIEFS, CLAIMS
from evaluatorq.model.runs import (
    DEFAULT_EVALUATOR_NAMES,
    DEFAULT_MAX_TURNS,
    DEFAULT_RUN_NAME,
    Limits,
    RunPlan,
    TargetKind,
)
from evaluatorq.pacing.limits import LimiterOptions
from evaluatorq.pacing.retry import RetryPolicy
from evaluatorq.packs import find_pack
from evaluatorq.plugins import import_attribute
from evaluatorq.ports import (
    Analyst,
    Closeable,
    DetectorFactory,
    EnvironmentFactory,
    FinderFactory,
    JudgeFactory,
    TargetFactory,
    UserFactory,
)
from evaluatorq.roles.judge import model_judge
from evaluatorq.roles.prompts import PROMPT_VERSION
from evaluatorq.roles.user import model_user
from evaluatorq.run.crew import Crew
from evaluatorq.simulation.config import LLMCallConfig, SimulationConfig
from evaluatorq.simulation.models import (
    Models,
    NoModels,
    fast_model,
    fast_place,
    opened_models,
    smart_model,
    smart_place,
    target_place,
)
from evaluatorq.simulation.sources import source_of
from evaluatorq.store.cases import (
    bundled,
    check_datapoints,
    load_datapoints,
    load_personas,
    load_scenarios,
    product,
    repeated,
    select,
)

DEFAULT_EVALUATORS = DEFAULT_EVALUATOR_NAMES


# ---------------------------------------------------------------- cases


@dataclass(frozen=True, slots=True)
class Cases:
    """The datapoints to run, and what a replayed run says about its length."""

    datapoints: tuple[SimulationDatapoint, ...]
    max_turns: int | None = None
    replayed_from: str | None = None


def cases_of(config: SimulationConfig) -> Cases:
    """The cases that the options name. Raises ``CaseError``, ``ConfigError`` or ``ReplayError``."""
    if config.previous_run is not None:
        from evaluatorq.simulation.replay import load_simulation_replay  # noqa: PLC0415  only where a run is read

        replay = load_simulation_replay(config.previous_run)
        cases = Cases(tuple(replay.datapoints), replay.max_turns, replay.source)
    elif config.datapoints is not None:
        check_datapoints(config.datapoints)
        cases = Cases(config.datapoints)
    elif config.input is not None:
        cases = Cases(tuple(load_datapoints(config.input)))
    elif config.pack is not None and config.personas is None:
        cases = Cases(find_pack(config.pack).cases(config.seed))
    else:
        cases = Cases(tuple(product(_personas(config), _scenarios(config))))
    datapoints = cases.datapoints if config.only is None else select(cases.datapoints, config.only)
    return replace(cases, datapoints=tuple(repeated(datapoints, config.samples)))


def _personas(config: SimulationConfig) -> list[Persona]:
    given = config.personas if config.personas is not None else (bundled("personas"),)
    made = [item for item in given if isinstance(item, Persona)]
    return [*made, *load_personas(*(item for item in given if isinstance(item, Path)))]


def _scenarios(config: SimulationConfig) -> list[Scenario]:
    given = config.scenarios if config.scenarios is not None else (bundled("scenarios"),)
    made = [item for item in given if isinstance(item, Scenario)]
    return [*made, *load_scenarios(*(item for item in given if isinstance(item, Path)))]


# ---------------------------------------------------------------- the crew


@dataclass(frozen=True, slots=True)
class Assembly:
    """A crew, what a plan records about its agent and models, and where more models are to be had."""

    crew: Crew
    target: TargetFacts
    models: dict[str, str]
    source: Models


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """The agent as a run file names it."""

    kind: TargetKind
    name: str
    type: str
    model: str | None = None
    metered: bool = False


@dataclass(frozen=True, slots=True)
class _Roles:
    """The simulation's own actors, and the models they ask."""

    user: UserFactory
    judge: JudgeFactory
    models: dict[str, str]
    detector: DetectorFactory | None = None
    finder: FinderFactory | None = None


@asynccontextmanager
async def assembled(config: SimulationConfig, at_once: int = 0) -> AsyncIterator[Assembly]:
    """The crew for these options; a connection pool is opened only when a model is asked, and closed at the end.

    ``at_once`` asks for room for more requests than there are conversations at a time.
    """
    if not _asks_models(config):
        async with _closing_target(_assembly(config, NoModels())) as assembly:
            yield assembly
        return
    limits = LimiterOptions(config.requests_per_minute, config.tokens_per_minute)
    at_once = max(at_once, _at_once(config))
    async with (
        opened_models(config.llm_config, at_once, config.generation_client, limits=limits) as models,
        _closing_target(_assembly(config, models)) as assembly,
    ):
        yield assembly


def _at_once(config: SimulationConfig) -> int:
    """A conversation asks one model at a time, so there are never more requests than conversations."""
    most = config.llm_parallelism or -1
    return config.datapoint_parallelism if most == -1 else min(most, config.datapoint_parallelism)


def _asks_models(config: SimulationConfig) -> bool:
    roles_ask = not config.offline and (config.user_simulator is None or config.judge is None)
    noting = config.belief_model is not None or config.claims_model is not None
    return config.openai_model is not None or noting or roles_ask or config.analysed


@asynccontextmanager
async def _closing_target(assembly: Assembly) -> AsyncIterator[Assembly]:
    """Closes, at the end, the connections that the agents of all conversations shared."""
    try:
        yield assembly
    finally:
        factory: object = assembly.crew.target
        if isinstance(factory, Closeable):
            with anyio.CancelScope(shield=True):
                await factory.aclose()


def _assembly(config: SimulationConfig, models: Models) -> Assembly:
    evaluators = resolve_evaluators(_evaluator_names(config), config.scoring)
    facts, factory = _target(config, models)
    roles = _roles(config, models)
    calls = config.llm_config or LLMCallConfig()
    metered = set() if config.offline else {"user_simulator", "judge"}
    if facts.kind == "openai_model" or facts.metered:
        metered.add("target")
    crew = Crew(
        target=factory,
        user=roles.user,
        judge=roles.judge,
        environment=environment_factory(config.environment),
        source=source_of(config.observation_source),
        detector=roles.detector,
        finder=roles.finder,
        max_observed_events=config.max_observed_events,
        evaluators=evaluators,
        analyst=_analyst(config, models) if config.analysed else None,
        learned=models.learned,
        retry=RetryPolicy(attempts=calls.retry_count + 1),
        target_retry=RetryPolicy(attempts=config.max_target_retries + 1),
        target_timeout_s=config.target_agent_timeout_ms / 1000,
        conversation_timeout_s=config.per_simulation_timeout_s,
        metered=frozenset(metered),
    )
    return Assembly(crew, facts, roles.models, models)


def _analyst(config: SimulationConfig, models: Models) -> Analyst:
    from evaluatorq.simulation.analysis import RunAnalyst  # noqa: PLC0415  only where a run is summed up

    return RunAnalyst(config, models)


def _target(config: SimulationConfig, models: Models) -> tuple[TargetFacts, TargetFactory]:
    if config.openai_model is not None:
        from evaluatorq.targets.openai import openai_target  # noqa: PLC0415  only where a model is the agent

        facts = TargetFacts("openai_model", config.openai_model, "OpenAITarget", config.openai_model)
        model = models.theirs(
            config.openai_model,
            target_place(config),
            sampling=Sampling(
                temperature=config.target_temperature,
                max_tokens=config.target_max_tokens,
                reasoning_effort=config.target_reasoning_effort,
            ),
            timeout_s=config.target_agent_timeout_ms / 1000,
        )
        told = None if config.pack is None else find_pack(config.pack).pack.instructions
        prompt = config.target_system_prompt or told
        return facts, openai_target(model, system_prompt=prompt, manages_own_timeout=True)
    if config.pack is not None and config.target is None and config.vercel_url is None:
        used = find_pack(config.pack)
        return TargetFacts("callback", used.name, "Pack"), used.pack.agent
    from evaluatorq.targets.resolve import resolve_target  # noqa: PLC0415  a model is no agent to look for

    resolved = resolve_target(_agent(config), parallelism=config.datapoint_parallelism)
    facts = TargetFacts(resolved.kind, resolved.name, resolved.type, resolved.model, resolved.metered)
    return facts, resolved.factory


def _agent(config: SimulationConfig) -> object:
    if config.vercel_url is None:
        return config.agent
    from evaluatorq.targets.vercel import VercelAISdkTarget  # noqa: PLC0415  only where it is the agent

    return VercelAISdkTarget(config.vercel_url)


def _roles(config: SimulationConfig, models: Models) -> _Roles:
    names: dict[str, str] = {}
    user, judge = _own_user(config), _own_judge(config)
    if user is None:
        fast = fast_model(config)
        names["user_simulator"], user = fast, model_user(models.ours(fast, fast_place(config)))
    if judge is None:
        smart = smart_model(config)
        names["judge"], judge = smart, model_judge(models.ours(smart, smart_place(config)))
    roles = _Roles(user, judge, names)
    if config.belief_model is not None:
        from evaluatorq.roles.detector import model_detector  # noqa: PLC0415  only where beliefs are asked for

        names[BELIEFS] = config.belief_model
        roles = replace(roles, detector=model_detector(models.ours(config.belief_model, fast_place(config))))
    if config.claims_model is not None:
        from evaluatorq.roles.claims import model_claim_finder  # noqa: PLC0415  only where claims are looked for

        names[CLAIMS] = config.claims_model
        roles = replace(roles, finder=model_claim_finder(models.ours(config.claims_model, smart_place(config))))
    return roles


def _own_user(config: SimulationConfig) -> UserFactory | None:
    """A simulated user that is no model of ours: one that was given, or offline the domain's or the scripted one."""
    if config.user_simulator is not None:
        from evaluatorq.roles.published import published_user  # noqa: PLC0415

        return published_user(config.user_simulator)
    if not config.offline:
        return None
    from evaluatorq.roles.scripted import offline_user  # noqa: PLC0415

    return (None if config.pack is None else find_pack(config.pack).pack.user) or offline_user


def _own_judge(config: SimulationConfig) -> JudgeFactory | None:
    """A judge that is no model of ours: one that was given, or offline the one that checks."""
    if config.judge is not None:
        from evaluatorq.roles.published import published_judge  # noqa: PLC0415

        return published_judge(config.judge)
    if not config.offline:
        return None
    from evaluatorq.roles.checks import check_judge  # noqa: PLC0415

    return check_judge


def _evaluator_names(config: SimulationConfig) -> tuple[str, ...]:
    own = () if config.pack is None else find_pack(config.pack).pack.evaluators
    names = config.evaluator_names or own or DEFAULT_EVALUATORS
    looked = config.claims_model is not None and CLAIMS_IN_PROSE not in names
    return (*names, CLAIMS_IN_PROSE) if looked else names


def redaction_rules(config: SimulationConfig) -> tuple[str, ...]:
    """What is to be taken out of what is written: the rules that were given, else those of the domain."""
    own = () if config.pack is None else find_pack(config.pack).pack.redact
    return own if config.redact is None else config.redact


def environment_factory(own: object) -> EnvironmentFactory:
    """The registered environments, with the user's own in place of what a scenario leaves open."""
    if own is None:
        return Environments()
    if isinstance(own, str) and ":" not in own:
        Environments().require(own)
        return lambda datapoint, seed: Environments()(_in_world(datapoint, own), seed)
    build = import_attribute(own) if isinstance(own, str) else own
    if not callable(build):
        raise ConfigError(f"environment {own!r} is not callable; give a function that makes a fresh environment")
    named = Environments({**BUILT_IN, OWN_ENVIRONMENT: lambda _seed: build()})
    return lambda datapoint, seed: named(_in_world(datapoint, OWN_ENVIRONMENT), seed)


def _in_world(datapoint: SimulationDatapoint, name: str) -> SimulationDatapoint:
    if datapoint.scenario.environment is not None:
        return datapoint
    scenario = datapoint.scenario.model_copy(update={"environment": name})
    return datapoint.model_copy(update={"scenario": scenario})


# ---------------------------------------------------------------- the plan


def plan_of(config: SimulationConfig, cases: Cases, assembly: Assembly, *, now: datetime) -> RunPlan:
    """The plan that a new run's journal begins with."""
    target = assembly.target
    return RunPlan(
        run_id=uuid.uuid4().hex,
        run_name=config.run_name or DEFAULT_RUN_NAME,
        evaluation_name=config.run_name,
        created_at=now,
        target_kind=target.kind,
        target=target.name,
        target_type=target.type,
        target_model=target.model,
        evaluator_names=tuple(evaluator.name for evaluator in assembly.crew.evaluators),
        limits=Limits(
            max_turns=config.max_turns or cases.max_turns or DEFAULT_MAX_TURNS,
            tool_rounds=config.tool_rounds,
            repetition_limit=config.repetition_limit,
            judge_every=config.judge_every,
            stop_on_violation=config.stop_on_violation,
        ),
        seed=config.seed,
        offline=config.offline,
        config=config.recorded(),
        versions={"evaluatorq": __version__, "prompts": PROMPT_VERSION},
        models=assembly.models,
        replayed_from=cases.replayed_from,
        datapoints=cases.datapoints,
    )
