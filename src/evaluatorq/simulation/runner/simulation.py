"""Conversations one by one or in a batch, without a run file: for code that keeps its own records.

``SimulationRunner`` has conversations; ``wrap_simulation_agent`` makes a job of it that takes one case a row. Both are
fronts of what ``simulate`` runs on: nothing is scored, saved or journaled here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Never, Protocol, TypedDict, TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from evaluatorq.errors import ConfigError, EvaluatorqError
from evaluatorq.evaluators.builtin import failure_reason
from evaluatorq.model.calls import DEFAULT_FAST_MODEL, LLMCallConfig
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.results import SimulationResult, TerminatedBy
from evaluatorq.model.runs import RunPlan
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.roles.published import published_judge, published_user
from evaluatorq.run.clock import SystemClock
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.simulation.assemble import Cases, assembled, plan_of
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.simulation.convert import to_open_responses
from evaluatorq.simulation.datapoints import generate_datapoint
from evaluatorq.simulation.hook_stream import ConversationHooks, hooks_of

M = TypeVar("M", bound=BaseModel)
_SOME_INPUT = "latest"
"""Options name an input; a runner is given its cases later, so this one is never looked for."""


class SimulationRunner:
    """Has conversations with one agent. Options mean what they mean in ``simulate``."""

    def __init__(  # noqa: PLR0913  one option each, keyword-only, as published
        self,
        *,
        target_agent: object = None,
        target: object = None,
        model: str | None = None,
        max_turns: int = 10,
        target_agent_timeout_ms: int = 240_000,
        max_target_retries: int = 2,
        max_tool_result_chars: int | None = None,
        user_simulator: object = None,
        judge: object = None,
        hooks: object = None,
        llm_client: object = None,
        llm_config: LLMCallConfig | None = None,
    ) -> None:
        if target_agent is None and target is None:
            raise ConfigError("a runner needs target_agent or target")
        for injected, check in ((user_simulator, published_user), (judge, published_judge)):
            if injected is not None:
                check(injected)
        self._hooks = hooks_of(hooks)
        self._config = SimulationConfig.parse(
            {
                "previous_run": _SOME_INPUT,
                "target": target_agent if target_agent is not None else target,
                "sim_model": model,
                "judge_model": model,
                "max_turns": max_turns,
                "target_agent_timeout_ms": target_agent_timeout_ms,
                "max_target_retries": max_target_retries,
                "max_tool_result_chars": max_tool_result_chars,
                "user_simulator": user_simulator,
                "judge": judge,
                "generation_client": llm_client,
                "llm_config": llm_config,
            }
        )

    @property
    def model(self) -> str:
        """The model that plays the user."""
        calls = self._config.llm_config
        return self._config.sim_model or (calls.model if calls else None) or DEFAULT_FAST_MODEL

    async def run(
        self,
        *,
        persona: Persona | None = None,
        scenario: Scenario | None = None,
        datapoint: SimulationDatapoint | None = None,
        max_turns: int | None = None,
        first_message: str | None = None,
        thread_id: str | None = None,
    ) -> SimulationResult:
        """One conversation, of ``datapoint`` or of ``persona`` and ``scenario``. What goes wrong is in the result.

        Raises ``ConfigError`` for a ``max_turns`` below 1; nothing else but cancellation.
        """
        config = self._with(max_turns, parallelism=1)
        if datapoint is None:
            if persona is None or scenario is None:
                return _not_run("give a datapoint, or both a persona and a scenario")
            datapoint = generate_datapoint(persona, scenario)
        if first_message:
            datapoint = datapoint.model_copy(update={"first_message": first_message})
        try:
            [result] = await self._converse(config, [datapoint], thread_id)
        except EvaluatorqError as error:
            return _not_run(str(error), datapoint)
        result.metadata.pop("datapoint_id", None)
        return result

    async def run_batch(
        self,
        datapoints: Sequence[SimulationDatapoint],
        *,
        max_turns: int | None = None,
        timeout_per_simulation: float | None = 300.0,
        max_concurrency: int = 10,
    ) -> list[SimulationResult]:
        """One conversation for each datapoint, in order, at most ``max_concurrency`` at once.

        ``timeout_per_simulation`` is in seconds, ``None`` for no limit. Raises ``ConfigError`` for limits that cannot
        be right and when no conversation can be had at all.
        """
        if max_concurrency < 1:
            raise ConfigError(f"max_concurrency must be at least 1, not {max_concurrency}")
        if timeout_per_simulation is not None and not timeout_per_simulation > 0:
            raise ConfigError(f"timeout_per_simulation must be above 0, or None for no limit: {timeout_per_simulation}")
        config = self._with(max_turns, parallelism=max_concurrency)
        limited = config.model_copy(update={"per_simulation_timeout_s": timeout_per_simulation})
        return await self._converse(limited, datapoints) if datapoints else []

    async def close(self) -> None:
        """Nothing is held between conversations: each closes what it opened."""

    def _with(self, max_turns: int | None, *, parallelism: int) -> SimulationConfig:
        if max_turns is not None and max_turns < 1:
            raise ConfigError(f"max_turns must be at least 1, not {max_turns}")
        changes = {"max_turns": max_turns or self._config.max_turns, "datapoint_parallelism": parallelism}
        return self._config.model_copy(update=changes)

    async def _converse(
        self, config: SimulationConfig, datapoints: Sequence[SimulationDatapoint], thread_id: str | None = None
    ) -> list[SimulationResult]:
        options = RunOptions(parallelism=config.datapoint_parallelism, save=False, journal=False, keep=True)
        async with assembled(config) as assembly:
            plan = plan_of(config, Cases(tuple(datapoints)), assembly, now=SystemClock().now())
            if thread_id is not None:
                plan = _NamedThread.model_construct(**dict(plan), name=thread_id)
            crew = replace(assembly.crew, evaluators=())
            outcome = await run_plan(plan, crew, options, [ConversationHooks(self._hooks)])
        return outcome.results


class _NamedThread(RunPlan):
    """A plan of one conversation whose identity was given."""

    name: str

    def thread_id(self, row: int) -> str:
        """The name."""
        del row
        return self.name


def _not_run(reason: str, datapoint: SimulationDatapoint | None = None) -> SimulationResult:
    """The record of a conversation that never began."""
    metadata: dict[str, JsonValue] = {
        "persona": datapoint.persona.name if datapoint else "unknown",
        "scenario": datapoint.scenario.name if datapoint else "unknown",
        "error": reason,
        "error_type": "bad_request",
    }
    return SimulationResult(
        messages=[],
        terminated_by=TerminatedBy.ERROR,
        reason=reason,
        goal_achieved=False,
        goal_completion_score=0.0,
        rules_broken=[],
        turn_count=0,
        token_usage=NO_USAGE,
        turn_metrics=[],
        metadata=metadata,
        ended_by="error",
        failed_component="infrastructure",
        goal_known=False,
    )


# ---------------------------------------------------------------- a job


class JobOutput(TypedDict):
    """What a job answers: its name, the conversation as an OpenResponses document, and what cut it short."""

    name: str
    output: dict[str, JsonValue]
    error: str | None


class DataRow(Protocol):
    """A row of a data set."""

    @property
    def inputs(self) -> dict[str, object]:
        """The case, in one of four shapes; see ``SimulationJob``."""
        ...


class SimulationJob:
    """``await job(data, row)``: the conversation of one row.

    ``data.inputs`` holds ``datapoint``, or ``datapoints`` with one in it, or ``persona`` and ``scenario`` (and
    ``first_message``), or ``personas`` and ``scenarios`` with one each; each value may also be JSON text.
    """

    def __init__(self, name: str, runner: SimulationRunner) -> None:
        self.name = self.__name__ = name
        self._runner = runner

    async def __call__(self, data: DataRow, row: int) -> JobOutput:
        """Has the conversation. Raises ``ConfigError`` for inputs in none of the four shapes."""
        del row
        result = await self._runner.run(datapoint=read_inputs(data.inputs))
        return {"name": self.name, "output": to_open_responses(result), "error": failure_reason(result)}

    async def aclose(self) -> None:
        """Closes the runner."""
        await self._runner.close()


def wrap_simulation_agent(  # noqa: PLR0913  one option each, keyword-only, as published
    *,
    name: str = "simulation",
    target: object = None,
    agent_key: str | None = None,
    max_turns: int = 10,
    model: str | None = None,
    llm_config: LLMCallConfig | None = None,
    user_simulator: object = None,
    judge: object = None,
    **removed: Never,
) -> SimulationJob:
    """A job that has one conversation with ``target`` for each row of a data set."""
    if "evaluators" in removed:
        raise TypeError("evaluators= is no longer taken here; give them to whoever runs the job")
    if removed:
        raise TypeError(f"unexpected keyword argument: {', '.join(removed)}")
    if target is None and agent_key is None:
        raise ConfigError("wrap_simulation_agent needs target or agent_key")
    if target is None:
        raise ConfigError(f"agent_key {agent_key!r} names an Orq deployment, which cannot be reached; give target")
    runner = SimulationRunner(
        target=target,
        max_turns=max_turns,
        model=model,
        llm_config=llm_config,
        user_simulator=user_simulator,
        judge=judge,
    )
    return SimulationJob(name, runner)


def read_inputs(inputs: dict[str, object]) -> SimulationDatapoint:
    """The one case in a row's inputs, whichever shape they have. Raises ``ConfigError``."""
    if "datapoint" in inputs or "datapoints" in inputs:
        return _read(SimulationDatapoint, _only("datapoint", inputs), "datapoint")
    if not ({"persona", "personas"} & inputs.keys() and {"scenario", "scenarios"} & inputs.keys()):
        raise ConfigError(
            "inputs hold 'datapoint', 'datapoints', 'persona' with 'scenario', or 'personas' with 'scenarios'; "
            f"there is {', '.join(map(repr, inputs)) or 'nothing'}"
        )
    persona = _read(Persona, _only("persona", inputs), "persona")
    scenario = _read(Scenario, _only("scenario", inputs), "scenario")
    first = inputs.get("first_message")
    datapoint = generate_datapoint(persona, scenario, first if isinstance(first, str) else "")
    return datapoint.model_copy(update={"id": f"{persona.name}-{scenario.name}"})


def _only(noun: str, inputs: dict[str, object]) -> object:
    """The value under ``noun``, or the only one in the list under its plural."""
    if noun in inputs:
        return inputs[noun]
    several = inputs[f"{noun}s"]
    listed = _JSON_LIST.validate_json(several) if isinstance(several, str) else several
    if not isinstance(listed, list) or len(listed) != 1:
        count = len(listed) if isinstance(listed, list) else type(listed).__name__
        raise ConfigError(f"a row holds exactly one {noun}, not {count}; write one row per conversation")
    return listed[0]


_JSON_LIST: TypeAdapter[list[JsonValue]] = TypeAdapter(list[JsonValue])


def _read(model: type[M], value: object, noun: str) -> M:
    try:
        return model.model_validate_json(value) if isinstance(value, str) else model.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in (noun, *fault["loc"]))
        raise ConfigError(f"{place}: {fault['msg']}") from error
