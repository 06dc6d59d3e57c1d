"""All options of a simulation in one frozen record; ``simulate(**options)``, ``--config`` and the flags derive from it.

A field's description is its help text, and a ``Flag`` beside it makes it a command-line option, so a new option is one
line here and one in ``simulation.keywords``. A config that exists is complete and consistent:
``SimulationConfig.parse`` refuses everything else with one sentence.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, ValidationError, model_validator

from evaluatorq.errors import ConfigError
from evaluatorq.evaluators.scoring import SimulationScoringConfig
from evaluatorq.model.base import Strict
from evaluatorq.model.calls import DEFAULT_FAST_MODEL, DEFAULT_SMART_MODEL
from evaluatorq.model.calls import LLMCallConfig as LLMCallConfig  # noqa: PLC0414  offered here as well
from evaluatorq.model.rules import Placed, nowhere
from evaluatorq.records.triggers import SimulationRecommendationConfig
from evaluatorq.simulation.described import described
from evaluatorq.simulation.elsewhere import warn_of_no_effect
from evaluatorq.simulation.kinds import Datapoints, Names, Parallelism, Personas, Scenarios, Text
from evaluatorq.simulation.recording import recorded_value
from evaluatorq.simulation.sentences import sentence, unknown

DEMO_TARGET = "demo"
ALIASES = {
    "evaluation_name": "run_name",
    "parallelism": "datapoint_parallelism",
    "report": "report_path",
    "exit_on_failure": "raise_on_execution_failure",
    "evaluation_description": "experiment_description",
    "orq_results_path": "orq_folder_path",
}
"""Second names of options, as published; given beside the first with another value they are refused."""

INPUTS = ("input", "datapoints", "personas", "scenarios", "previous_run")
TARGETS = ("target", "openai_model", "vercel_url")
_OWN_MODELS = ("sim_model", "judge_model", "belief_model", "claims_model")
ANALYSES = ("executive_summary", "recommendations")
Section = Literal["Cases", "Target", "Models", "Conversation", "Limits", "Output"]


@dataclass(frozen=True, slots=True)
class Flag:
    """How a field is offered on the command line: section of the help, spellings instead of ``--field-name``, value."""

    section: Section
    names: tuple[str, ...] = ()
    metavar: str | None = None


# ---------------------------------------------------------------- the record


class SimulationConfig(Strict):
    """What to simulate, against what, judged how. Build it with ``parse`` for one-sentence errors."""

    personas: Annotated[Personas, Flag("Cases", metavar="PATH")] = Field(
        None, description="Personas (records or files, folders, globs); each meets every scenario."
    )
    scenarios: Annotated[Scenarios, Flag("Cases", metavar="PATH")] = Field(
        None, description="Scenarios (records or files, folders, globs)."
    )
    input: Annotated[Path | None, Flag("Cases", ("--input", "-i"), "PATH")] = Field(
        None, description="Datapoints from a file, folder or glob (JSONL, JSON, YAML)."
    )
    datapoints: Datapoints = Field(None, description="Datapoints, each one persona with one scenario.")
    previous_run: Annotated[Text | None, Flag("Cases", ("--from-run",), "RUN")] = Field(
        None, description="The datapoints of a saved run: its id, name, file, or 'latest'."
    )

    samples: Annotated[int | None, Flag("Cases", metavar="K")] = Field(
        None, ge=1, description="Conversations for each datapoint; 1, or what the replayed run had."
    )

    pack: Annotated[Text | None, Flag("Cases", metavar="NAME")] = Field(
        None, description="A domain: its cases where no others are given, and its agent where there is no target."
    )

    target: Annotated[object, BeforeValidator(described), Flag("Target", metavar="TARGET")] = Field(
        None,
        description="The agent: 'module:attribute', a URL, 'command:...', 'demo', or a request described in JSON or a "
        "file; in Python any object.",
    )
    openai_model: Annotated[Text | None, Flag("Target", metavar="MODEL")] = Field(
        None, description="A model as the agent, at OPENAI_BASE_URL or the public endpoint."
    )
    openai_base_url: Annotated[Text | None, Flag("Target", metavar="URL")] = Field(
        None, description="Where that model is asked; its key is EVALUATORQ_TARGET_API_KEY or OPENAI_API_KEY."
    )
    target_system_prompt: Annotated[Text | None, Flag("Target", metavar="TEXT")] = Field(
        None, description="The system prompt of a model that is the agent."
    )
    target_temperature: Annotated[float | None, Flag("Target", metavar="T")] = Field(
        None, ge=0, le=2, description="Sampling temperature of a model that is the agent."
    )
    target_max_tokens: Annotated[int | None, Flag("Target", metavar="N")] = Field(
        None, gt=0, description="Most tokens of one answer of a model that is the agent."
    )
    vercel_url: Annotated[Text | None, Flag("Target", metavar="URL")] = Field(
        None, description="An AI SDK chat route as the agent, in either stream protocol."
    )
    target_reasoning_effort: Annotated[Text | None, Flag("Target", metavar="EFFORT")] = Field(
        None, description="Reasoning effort of a model that is the agent; other agents have their own."
    )
    environment: Annotated[object, Flag("Target", metavar="NAME")] = Field(
        None, description="The environment behind the agent's tools, for scenarios that name none."
    )
    serve_tools: Annotated[bool, Flag("Target")] = Field(
        False, description="Serve each conversation's tools over MCP, for an agent in another process."
    )
    observation_source: Annotated[object, Flag("Target", metavar="MODULE:ATTRIBUTE")] = Field(
        None, description="The store behind the agent, read after each of its turns for what the turn left there."
    )
    max_observed_events: Annotated[int | None, Flag("Target", metavar="N")] = Field(
        None, ge=0, description="Events kept of one turn; more of them make claims about events fail."
    )
    target_agent_timeout_ms: Annotated[int, Flag("Target", metavar="MS")] = Field(
        240_000, gt=0, description="Milliseconds that one answer of the agent may take."
    )
    max_target_retries: Annotated[int, Flag("Target", metavar="N")] = Field(
        2, ge=0, description="Further attempts when the agent fails."
    )

    offline: Annotated[bool, Flag("Models")] = Field(
        False, description="Simulated users and checks without any model; without cases, the bundled ones."
    )
    sim_model: Annotated[Text | None, Flag("Models", metavar="MODEL")] = Field(
        None, description=f"The model that plays the user; EVALUATORQ_FAST_MODEL or {DEFAULT_FAST_MODEL} unless given."
    )
    judge_model: Annotated[Text | None, Flag("Models", metavar="MODEL")] = Field(
        None,
        description=f"The model that audits criteria; EVALUATORQ_SMART_MODEL or {DEFAULT_SMART_MODEL} unless given.",
    )
    sim_base_url: Annotated[Text | None, Flag("Models", metavar="URL")] = Field(
        None, description="Where the first is asked; its key is EVALUATORQ_SIM_API_KEY or OPENAI_API_KEY."
    )
    judge_base_url: Annotated[Text | None, Flag("Models", metavar="URL")] = Field(
        None, description="Where the second is asked; its key is EVALUATORQ_JUDGE_API_KEY or OPENAI_API_KEY."
    )
    belief_model: Annotated[Text | None, Flag("Models", metavar="MODEL")] = Field(
        None, description="A model that notes, for the slots a case names, what each message of the user tells."
    )
    claims_model: Annotated[Text | None, Flag("Models", metavar="MODEL")] = Field(
        None, description="A model that finds what the agent says it did, to be compared with its calls."
    )
    llm_config: Annotated[LLMCallConfig | None, Flag("Models", metavar="JSON")] = Field(
        None,
        description="How both are called: model, base_url, temperature, max_tokens, timeout_ms, retry_count, stream.",
    )
    generation_client: object = Field(None, description="An OpenAI client whose endpoint and key both use.")
    user_simulator: object = Field(None, description="A simulated user instead of the built-in one.")
    judge: object = Field(None, description="A judge instead of the built-in one.")
    hooks: object = Field(None, description="Who is told what happens: SimulationHooks, or several of them.")

    max_turns: Annotated[int | None, Flag("Conversation", metavar="N")] = Field(
        None, ge=1, description="Most exchanges in a conversation; 10, or what the replayed run had."
    )
    judge_every: Annotated[int, Flag("Conversation", metavar="N")] = Field(
        1, ge=0, description="Judge after every N exchanges; 0 judges once, at the end."
    )
    stop_on_violation: Annotated[bool, Flag("Conversation")] = Field(
        False, description="End a conversation when something prohibited was seen."
    )
    tool_rounds: Annotated[int, Flag("Conversation", metavar="N")] = Field(
        8, ge=1, description="Most rounds of tool calls in one exchange."
    )
    repetition_limit: Annotated[int, Flag("Conversation", metavar="N")] = Field(
        3, ge=2, description="Equal exchanges in a row that end a conversation."
    )
    seed: Annotated[int, Flag("Conversation", metavar="N")] = Field(
        0, description="The same seed gives the same offline conversations."
    )
    evaluator_names: Annotated[Names, Flag("Conversation", ("--evaluator",), "NAME")] = Field(
        None, description="Scores to compute; goal_achieved and criteria_met unless given."
    )
    scoring: SimulationScoringConfig | None = Field(None, description="Tunes turn_efficiency and conversation_quality.")
    only: Annotated[Text | None, Flag("Cases", metavar="NAME")] = Field(
        None, description="Only the cases whose id, persona or scenario matches: a part of the name, or a glob."
    )

    datapoint_parallelism: Annotated[int, Flag("Limits", ("--datapoint-parallelism", "--parallelism"), "N")] = Field(
        10, ge=1, description="Conversations at once."
    )
    llm_parallelism: Annotated[Parallelism | None, Flag("Limits", metavar="N")] = Field(
        None, description="Requests to models at once; -1 or nothing for as many as there are conversations."
    )
    requests_per_minute: Annotated[float | None, Flag("Limits", metavar="N")] = Field(
        None, gt=0, description="Requests that one endpoint gets in a minute."
    )
    tokens_per_minute: Annotated[float | None, Flag("Limits", metavar="N")] = Field(
        None, gt=0, description="Tokens that one endpoint may be asked for in a minute."
    )
    max_total_tokens: Annotated[int | None, Flag("Limits", metavar="N")] = Field(
        None, gt=0, description="Tokens of the whole run past which nothing new begins; resume with more."
    )
    max_cost: Annotated[float | None, Flag("Limits", metavar="USD")] = Field(
        None, gt=0, description="US dollars of the whole run past which nothing new begins; resume with more."
    )
    per_simulation_timeout_s: Annotated[float | None, Flag("Limits", metavar="S")] = Field(
        None, gt=0, description="Seconds that one conversation may take."
    )
    run_timeout_s: Annotated[float | None, Flag("Limits", metavar="S")] = Field(
        None, gt=0, description="Seconds that the whole run may take."
    )

    run_name: Annotated[Text | None, Flag("Output", ("--name", "-n"), "NAME")] = Field(
        None, description="Label of the run and start of its file name."
    )
    save: Annotated[bool, Flag("Output")] = Field(False, description="Write the run to the run store.")
    report_path: Annotated[Path | None, Flag("Output", ("--report",), "PATH")] = Field(
        None, description="Write the run to this file (or into this folder) as well."
    )
    report_md: Annotated[Path | None, Flag("Output", ("--report-md",), "PATH")] = Field(
        None, description="Write a Markdown report to this file (or into this folder) when the run is complete."
    )
    report_html: Annotated[Path | None, Flag("Output", ("--report-html",), "PATH")] = Field(
        None, description="Write an HTML report to this file (or into this folder) when the run is complete."
    )
    results: Annotated[Path | None, Flag("Output", ("--results", "-r"), "PATH")] = Field(
        None, description="Write the results to this file, one JSON line each."
    )
    journal: Annotated[bool, Flag("Output")] = Field(
        True, description="Keep every answer on disk while running, so that nothing is lost."
    )
    redact: Annotated[Names, Flag("Output", metavar="RULE")] = Field(
        None,
        description="Take personal data out of everything that is written: email, iban, card, phone, ip, or your own "
        "rules as name=regular-expression. Or keep back whole texts: of user, agent, tools, tool:NAME.",
    )
    otel: Annotated[bool, Flag("Output")] = Field(
        False, description="Send spans to the process's OpenTelemetry provider, or to OTEL_EXPORTER_OTLP_ENDPOINT."
    )
    sync: Annotated[bool, Flag("Output")] = Field(
        False, description="Force every answer onto the medium at once, so that it survives a power cut."
    )
    executive_summary: Annotated[bool, Flag("Output")] = Field(
        False, description="Have the run summed up in a few sentences; only for a run that is stored."
    )
    recommendations: Annotated[bool | SimulationRecommendationConfig, Flag("Output")] = Field(
        False, description="Have changes suggested for the worst conversations; only for a run that is stored."
    )
    raise_on_execution_failure: bool = Field(
        True, description="Fail (after saving) when a conversation ended in an error or timeout."
    )
    upload_results: bool | None = Field(None, description="Nothing is ever uploaded; False says so too.")
    experiment_description: str | None = Field(None, description="Kept with the run; there is nothing to upload it to.")
    orq_folder_path: str | None = Field(None, description="Kept with the run; there is nothing to upload it to.")
    max_tool_result_chars: int | None = Field(
        None, ge=1, description="Kept with the run; simulated users never see what tools answer."
    )

    @classmethod
    def parse(
        cls,
        options: Mapping[str, object],
        *,
        where: str = "",
        typed: Mapping[str, str] | None = None,
        placed: Placed = nowhere,
    ) -> Self:
        """The config that ``options`` describe; ``ConfigError`` in one sentence, which begins with ``where``.

        ``typed`` says as what flags some of them were given, to be named so; ``placed`` where the others are written.
        """
        try:
            config = cls.model_validate(dict(options))
        except ValidationError as error:
            faults = "; ".join(
                placed(detail["loc"]) + sentence(detail, cls.names(), typed or {}) for detail in error.errors()
            )
            raise ConfigError(f"{where}: {faults}" if where else faults) from None
        warn_of_no_effect(config)
        return config

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Everything that an option may be called."""
        return (*cls.model_fields, *ALIASES)

    @classmethod
    def refuse_unknown(cls, options: Iterable[str], *, where: str) -> None:
        """``ConfigError`` with ``where`` and the nearest name for the first key that is no option."""
        for name in options:
            if name not in cls.names():
                raise ConfigError(f"{where}: {unknown(str(name), cls.names())}")

    @property
    def uses_bundled_cases(self) -> bool:
        """No cases were given, so the bundled personas meet the bundled scenarios (offline only)."""
        return self.pack is None and not any(getattr(self, name) is not None for name in INPUTS)

    @property
    def is_stored(self) -> bool:
        """The run file goes somewhere."""
        return self.save or self.report_path is not None

    @property
    def analysed(self) -> bool:
        """Models are asked about the run as a whole; what would be thrown away is not made."""
        return self.is_stored and (self.executive_summary or bool(self.recommendations))

    @property
    def agent(self) -> object:
        """The target; ``None`` where ``openai_model`` or ``vercel_url`` is it."""
        return self.target if self.target is not None or self.openai_model or self.vercel_url else DEMO_TARGET

    def recorded(self) -> dict[str, JsonValue]:
        """What was asked for as JSON, to be kept with the run: without its cases and without credentials."""
        names = sorted(self.model_fields_set - {"datapoints", "personas", "scenarios", "hooks"})
        return {name: recorded_value(getattr(self, name)) for name in names}

    @model_validator(mode="before")
    @classmethod
    def _one_name_each(cls, options: object) -> object:
        return canonical(options) if isinstance(options, Mapping) else options

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        targets = [name for name in TARGETS if getattr(self, name) is not None]
        if len(targets) > 1:
            raise ValueError(f"two targets: {' and '.join(targets)}; give one")
        self._one_input()
        self._one_target()
        rivals = [name for name in _OWN_MODELS if getattr(self, name) is not None]
        rivals += ["llm_config.model"] if self.llm_config is not None and self.llm_config.model else []
        rivals += [name for name in ANALYSES if getattr(self, name)]
        if self.offline and rivals:
            raise ValueError(f"offline asks no model, yet {' and '.join(rivals)} is given; drop one of them")
        return self

    def _one_input(self) -> None:
        given = [name for name in INPUTS if getattr(self, name) is not None]
        sources = sorted({"personas/scenarios" if name in ("personas", "scenarios") else name for name in given})
        if len(sources) > 1:
            raise ValueError(f"more than one input: {', '.join(sources)}; give one")
        if len(given) == 1 and given[0] in ("personas", "scenarios"):
            other = "scenarios" if given[0] == "personas" else "personas"
            raise ValueError(f"{given[0]} without {other}; each needs the other")
        if not given and not self.offline and self.pack is None:
            raise ValueError(
                "no input: give datapoints, personas with scenarios, or previous_run (on the command line --input, "
                "--personas with --scenarios, --pack, or --from-run); offline runs the bundled cases without any, and "
                "'evaluatorq init DIR' writes a folder of cases to run with models"
            )

    def _one_target(self) -> None:
        if isinstance(self.target, str) and not self.target.strip():
            raise ValueError("target is blank")
        given = [name for name in TARGETS if getattr(self, name) is not None]
        if not given and self.pack is None and not (self.offline and self.uses_bundled_cases):
            raise ValueError(
                "no target: give target, openai_model or vercel_url (on the command line --target, --openai-model or "
                "--vercel-url); "
                f"target='{DEMO_TARGET}' is the bundled agent"
            )


def canonical(options: Mapping[str, object]) -> dict[str, object]:
    """The options under their first names, ``None`` being no value; two names of one option that differ are refused."""
    plain = {name: value for name, value in options.items() if name not in ALIASES and value is not None}
    for alias, name in ALIASES.items():
        value = options.get(alias)
        if value is None or value == "":
            continue
        if plain.setdefault(name, value) != value:
            raise ConfigError(f"{name} and {alias} are one option and differ: {plain[name]!r} and {value!r}")
        if alias == "parallelism":
            warnings.warn("parallelism is now called datapoint_parallelism", DeprecationWarning, stacklevel=5)
    return plain
