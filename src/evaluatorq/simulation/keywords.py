"""The options of ``simulate(**options)`` as type checkers and editors see them; what they mean is in ``config``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TypedDict

from pydantic import JsonValue

from evaluatorq.evaluators.scoring import SimulationScoringConfig
from evaluatorq.model.calls import LLMCallConfig
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.records.triggers import SimulationRecommendationConfig


class SimulationOptions(TypedDict, total=False):
    """The keyword arguments of ``simulate``: the fields of ``SimulationConfig`` and their published second names."""

    personas: Sequence[Persona | str | PathLike[str]] | str | PathLike[str] | None
    scenarios: Sequence[Scenario | str | PathLike[str]] | str | PathLike[str] | None
    input: str | PathLike[str] | None
    datapoints: Sequence[SimulationDatapoint] | None
    previous_run: str | None
    samples: int | None
    pack: str | None
    target: object
    openai_model: str | None
    vercel_url: str | None
    openai_base_url: str | None
    target_system_prompt: str | None
    target_temperature: float | None
    target_max_tokens: int | None
    target_reasoning_effort: str | None
    environment: object
    serve_tools: bool
    observation_source: object
    max_observed_events: int | None
    target_agent_timeout_ms: int
    max_target_retries: int
    offline: bool
    sim_model: str | None
    judge_model: str | None
    belief_model: str | None
    claims_model: str | None
    sim_base_url: str | None
    judge_base_url: str | None
    llm_config: LLMCallConfig | Mapping[str, JsonValue] | None
    generation_client: object
    user_simulator: object
    judge: object
    hooks: object
    max_turns: int | None
    judge_every: int
    stop_on_violation: bool
    tool_rounds: int
    repetition_limit: int
    seed: int
    evaluator_names: Sequence[str] | None
    scoring: SimulationScoringConfig | Mapping[str, JsonValue] | None
    only: str | None
    datapoint_parallelism: int | None
    parallelism: int | None
    llm_parallelism: int | None
    requests_per_minute: float | None
    tokens_per_minute: float | None
    max_total_tokens: int | None
    max_cost: float | None
    per_simulation_timeout_s: float | None
    run_timeout_s: float | None
    run_name: str | None
    evaluation_name: str
    save: bool
    report_path: str | PathLike[str] | None
    report: str | PathLike[str] | None
    report_md: str | PathLike[str] | None
    report_html: str | PathLike[str] | None
    results: str | PathLike[str] | None
    journal: bool
    sync: bool
    otel: bool
    redact: Sequence[str] | None
    executive_summary: bool
    recommendations: bool | SimulationRecommendationConfig | Mapping[str, JsonValue]
    raise_on_execution_failure: bool | None
    exit_on_failure: bool | None
    upload_results: bool | None
    experiment_description: str | None
    evaluation_description: str | None
    orq_folder_path: str | None
    orq_results_path: str | None
    max_tool_result_chars: int | None
