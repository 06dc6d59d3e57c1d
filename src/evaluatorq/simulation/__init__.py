"""The front door: ``simulate()`` and the names that the output reference uses, each loaded when it is first used.

A new name is written three times: where it comes from for type checkers, the same for Python, and in ``__all__``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluatorq.errors import (
        ReplayError,
        SimulationCancelledError,
        SimulationDroppedError,
        SimulationError,
    )
    from evaluatorq.evaluators.builtin import (
        SIMULATION_EVALUATORS,
        SimulationScorer,
        get_all_evaluators,
        get_evaluator,
    )
    from evaluatorq.evaluators.scoring import (
        SimulationScoringConfig,
    )
    from evaluatorq.generate.perturbation import (
        PerturbationType,
        apply_perturbation,
        apply_perturbations_batch,
        apply_random_perturbation,
    )
    from evaluatorq.model.calls import (
        DEFAULT_MODEL,
        LLMCallConfig,
    )
    from evaluatorq.model.cases import (
        CRITERION_ID_PATTERN,
        CommunicationStyle,
        ConversationStrategy,
        Criterion,
        CulturalContext,
        EmotionalArc,
        InputFormat,
        MustHappenCriterion,
        MustNotHappenCriterion,
        Persona,
        Scenario,
        SimulationDatapoint,
        StartingEmotion,
        criterion_id_for,
    )
    from evaluatorq.model.judgments import (
        CriterionVerdict,
        Judgment,
    )
    from evaluatorq.model.messages import (
        Message,
    )
    from evaluatorq.model.results import (
        SimulationResult,
        TerminatedBy,
        TurnMetrics,
    )
    from evaluatorq.model.runs import (
        SimulationRun,
    )
    from evaluatorq.model.usage import (
        TokenUsage,
    )
    from evaluatorq.simulation.again import (
        compare,
        gate,
    )
    from evaluatorq.simulation.agents import (
        BaseAgent,
        JudgeAgent,
        UserSimulatorAgent,
    )
    from evaluatorq.simulation.api import (
        SimulationResults,
    )
    from evaluatorq.simulation.convert import (
        to_open_responses,
    )
    from evaluatorq.simulation.datapoints import (
        generate_datapoint,
    )
    from evaluatorq.simulation.entry import (
        simulate,
        simulate_sync,
    )
    from evaluatorq.simulation.generation import (
        GeneratedDatapoints,
        generate,
        generate_and_simulate,
    )
    from evaluatorq.simulation.generators import (
        DatapointGenerator,
        FirstMessageGenerationError,
        FirstMessageGenerator,
        PersonaGenerator,
        ScenarioGenerator,
        generate_persona,
        generate_personas,
        generate_scenario,
        generate_scenarios,
    )
    from evaluatorq.simulation.hooks import (
        DefaultHooks,
        SimStage,
        SimulationHooks,
        SimulationRunMeta,
    )
    from evaluatorq.simulation.rich_hooks import (
        RichHooks,
    )
    from evaluatorq.simulation.runner.simulation import (
        SimulationRunner,
        wrap_simulation_agent,
    )
    from evaluatorq.simulation.saving import (
        auto_save_run,
        build_simulation_run,
    )
    from evaluatorq.store.cases import (
        export_datapoints_to_jsonl,
        load_datapoints_from_jsonl,
    )
    from evaluatorq.store.jsonl import (
        export_results_to_jsonl,
        load_results_from_jsonl,
        parse_jsonl,
        results_to_jsonl,
    )
    from evaluatorq.store.paths import (
        SIM_RUNS_DIR_NAME,
        get_sim_runs_dir,
    )
    from evaluatorq.targets.published import (
        AgentTarget,
        CallableTarget,
        from_chat_completions,
    )
    from evaluatorq.targets.vercel import (
        VercelAISdkTarget,
    )

_HOMES = {
    "CRITERION_ID_PATTERN": "model.cases",
    "DEFAULT_MODEL": "model.calls",
    "SIMULATION_EVALUATORS": "evaluators.builtin",
    "SIM_RUNS_DIR_NAME": "store.paths",
    "AgentTarget": "targets.published",
    "BaseAgent": "simulation.agents",
    "CallableTarget": "targets.published",
    "CommunicationStyle": "model.cases",
    "ConversationStrategy": "model.cases",
    "Criterion": "model.cases",
    "CriterionVerdict": "model.judgments",
    "CulturalContext": "model.cases",
    "DatapointGenerator": "simulation.generators",
    "DefaultHooks": "simulation.hooks",
    "EmotionalArc": "model.cases",
    "FirstMessageGenerationError": "simulation.generators",
    "FirstMessageGenerator": "simulation.generators",
    "GeneratedDatapoints": "simulation.generation",
    "InputFormat": "model.cases",
    "JudgeAgent": "simulation.agents",
    "Judgment": "model.judgments",
    "LLMCallConfig": "model.calls",
    "Message": "model.messages",
    "MustHappenCriterion": "model.cases",
    "MustNotHappenCriterion": "model.cases",
    "Persona": "model.cases",
    "PersonaGenerator": "simulation.generators",
    "PerturbationType": "generate.perturbation",
    "ReplayError": "errors",
    "RichHooks": "simulation.rich_hooks",
    "Scenario": "model.cases",
    "ScenarioGenerator": "simulation.generators",
    "SimStage": "simulation.hooks",
    "SimulationCancelledError": "errors",
    "SimulationDatapoint": "model.cases",
    "SimulationDroppedError": "errors",
    "SimulationError": "errors",
    "SimulationHooks": "simulation.hooks",
    "SimulationResult": "model.results",
    "SimulationResults": "simulation.api",
    "SimulationRun": "model.runs",
    "SimulationRunMeta": "simulation.hooks",
    "SimulationRunner": "simulation.runner.simulation",
    "SimulationScorer": "evaluators.builtin",
    "SimulationScoringConfig": "evaluators.scoring",
    "StartingEmotion": "model.cases",
    "TerminatedBy": "model.results",
    "TokenUsage": "model.usage",
    "TurnMetrics": "model.results",
    "UserSimulatorAgent": "simulation.agents",
    "VercelAISdkTarget": "targets.vercel",
    "apply_perturbation": "generate.perturbation",
    "apply_perturbations_batch": "generate.perturbation",
    "apply_random_perturbation": "generate.perturbation",
    "auto_save_run": "simulation.saving",
    "build_simulation_run": "simulation.saving",
    "compare": "simulation.again",
    "criterion_id_for": "model.cases",
    "export_datapoints_to_jsonl": "store.cases",
    "export_results_to_jsonl": "store.jsonl",
    "from_chat_completions": "targets.published",
    "gate": "simulation.again",
    "generate": "simulation.generation",
    "generate_and_simulate": "simulation.generation",
    "generate_datapoint": "simulation.datapoints",
    "generate_persona": "simulation.generators",
    "generate_personas": "simulation.generators",
    "generate_scenario": "simulation.generators",
    "generate_scenarios": "simulation.generators",
    "get_all_evaluators": "evaluators.builtin",
    "get_evaluator": "evaluators.builtin",
    "get_sim_runs_dir": "store.paths",
    "load_datapoints_from_jsonl": "store.cases",
    "load_results_from_jsonl": "store.jsonl",
    "parse_jsonl": "store.jsonl",
    "results_to_jsonl": "store.jsonl",
    "simulate": "simulation.entry",
    "simulate_sync": "simulation.entry",
    "to_open_responses": "simulation.convert",
    "wrap_simulation_agent": "simulation.runner.simulation",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A public name, from its home; loaded once."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"evaluatorq.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})


__all__ = [
    "CRITERION_ID_PATTERN",
    "DEFAULT_MODEL",
    "SIMULATION_EVALUATORS",
    "SIM_RUNS_DIR_NAME",
    "AgentTarget",
    "BaseAgent",
    "CallableTarget",
    "CommunicationStyle",
    "ConversationStrategy",
    "Criterion",
    "CriterionVerdict",
    "CulturalContext",
    "DatapointGenerator",
    "DefaultHooks",
    "EmotionalArc",
    "FirstMessageGenerationError",
    "FirstMessageGenerator",
    "GeneratedDatapoints",
    "InputFormat",
    "JudgeAgent",
    "Judgment",
    "LLMCallConfig",
    "Message",
    "MustHappenCriterion",
    "MustNotHappenCriterion",
    "Persona",
    "PersonaGenerator",
    "PerturbationType",
    "ReplayError",
    "RichHooks",
    "Scenario",
    "ScenarioGenerator",
    "SimStage",
    "SimulationCancelledError",
    "SimulationDatapoint",
    "SimulationDroppedError",
    "SimulationError",
    "SimulationHooks",
    "SimulationResult",
    "SimulationResults",
    "SimulationRun",
    "SimulationRunMeta",
    "SimulationRunner",
    "SimulationScorer",
    "SimulationScoringConfig",
    "StartingEmotion",
    "TerminatedBy",
    "TokenUsage",
    "TurnMetrics",
    "UserSimulatorAgent",
    "VercelAISdkTarget",
    "apply_perturbation",
    "apply_perturbations_batch",
    "apply_random_perturbation",
    "auto_save_run",
    "build_simulation_run",
    "compare",
    "criterion_id_for",
    "export_datapoints_to_jsonl",
    "export_results_to_jsonl",
    "from_chat_completions",
    "gate",
    "generate",
    "generate_and_simulate",
    "generate_datapoint",
    "generate_persona",
    "generate_personas",
    "generate_scenario",
    "generate_scenarios",
    "get_all_evaluators",
    "get_evaluator",
    "get_sim_runs_dir",
    "load_datapoints_from_jsonl",
    "load_results_from_jsonl",
    "parse_jsonl",
    "results_to_jsonl",
    "simulate",
    "simulate_sync",
    "to_open_responses",
    "wrap_simulation_agent",
]
