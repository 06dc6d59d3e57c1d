"""What published documentation imports can be imported from where it says, and is what it says."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import warnings
from io import StringIO
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from rich.console import Console

import evaluatorq.model.responses
from evaluatorq.contracts import AgentResponse, Usage
from evaluatorq.simulation import simulate
from evaluatorq.testing import a_persona, a_scenario

SCORES = (
    "ConversationQualityScore DEFAULT_SCORING_CONFIG SIMULATION_EVALUATORS SimulationScoringConfig "
    "conversation_quality_scorer criteria_met_scorer get_all_evaluators get_evaluator goal_achieved_scorer "
    "turn_efficiency_scorer"
)
JSONL = "export_datapoints_to_jsonl export_results_to_jsonl load_datapoints_from_jsonl parse_jsonl results_to_jsonl"
PROMPTS = "build_datapoint_system_prompt build_persona_system_prompt build_scenario_user_context generate_datapoint"
RECORDS = (
    "CRITERION_ID_PATTERN CommunicationStyle ConversationStrategy CriteriaMeta Criterion CriterionVerdict "
    "CulturalContext DEFAULT_EVALUATOR_NAMES DEFAULT_MAX_TURNS DEFAULT_MODEL DEFAULT_RUN_NAME EmotionalArc InputFormat "
    "Judgment Message MustHappenCriterion MustNotHappenCriterion Persona ResponseTrace Scenario SimulationDatapoint "
    "SimulationRecommendation SimulationResult SimulationRun StartingEmotion TerminatedBy TokenUsage TurnMetrics "
    "criterion_id_for parse_criteria_meta"
)
PATHS = {
    "evaluatorq.contracts": "AgentResponse AgentResponseError AgentTarget ContentPart DEFAULT_FAST_MODEL "
    "DEFAULT_SMART_MODEL FunctionCall LLMCallConfig Message ReasoningOutputItem RunManifest StageRecord "
    "StrategyToolCall TextOutputItem TokenUsage ToolCallOutputItem Usage",
    "evaluatorq.simulation.contracts": RECORDS,
    "evaluatorq.simulation.types": RECORDS,
    "evaluatorq.simulation.evaluators": f"{SCORES} SimulationScorer",
    "evaluatorq.simulation.evaluators.scorers": f"{SCORES} failure_reason read_criteria_meta unverified_reason",
    "evaluatorq.simulation.runner": "AgentTarget SimulationRunner",
    "evaluatorq.simulation.runner.simulation": "SimulationRunner",
    "evaluatorq.simulation.convert": "to_open_responses",
    "evaluatorq.simulation.hooks": "DefaultHooks RichHooks SimStage SimulationHooks SimulationRunMeta",
    "evaluatorq.simulation.replay": "ReplayError SimulationReplay load_simulation_replay",
    "evaluatorq.simulation.utils": f"{JSONL} {PROMPTS} extract_json_from_response",
    "evaluatorq.simulation.utils.run_store": "DEFAULT_RUN_NAME REPLAY_VERSION SIM_RUNS_DIR_NAME auto_save_run "
    "build_simulation_run get_sim_runs_dir sanitise_run_name write_report",
    "evaluatorq.simulation.utils.dataset_export": JSONL,
    "evaluatorq.simulation.utils.prompt_builders": PROMPTS,
    "evaluatorq.simulation.utils.extract_json": "extract_json_from_response",
    "evaluatorq.simulation.reports": "ApplySuggestionsResult SimulationRecommendationConfig apply_suggestions "
    "build_report_sections export_html export_markdown generate_recommendations",
    "evaluatorq.simulation.reports.sections": "build_report_sections",
    "evaluatorq.simulation.reports.display": "print_simulation_summary",
}


PARAMETERS = dict(
    line.split(" ", 1)
    for line in (Path(__file__).parents[1] / "data" / "published_parameters.txt").read_text("utf-8").splitlines()
)
"""Published callables, by module and name, and what they can be called with."""
NOT_HERE = {
    "apply_suggestions": {"agent_key", "orq_client", "temperature"},  # a prompt file instead of an agent of a platform
    "ApplySuggestionsResult": {"agent_key", "new_version"},
    "generate_recommendations": {"llm_kwargs"},  # llm_config says the same
}


def imported(module: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return importlib.import_module(module)


@pytest.mark.parametrize("module", PATHS)
def test_published_names_are_where_they_were(module: str):
    home = imported(module)
    assert [name for name in PATHS[module].split() if not hasattr(home, name)] == []


@pytest.mark.parametrize("module", PATHS)
def test_a_name_is_one_thing_wherever_it_is_imported_from(module: str):
    """A class that differs by its path would fail ``isinstance``."""
    front = importlib.import_module("evaluatorq.simulation")
    home = imported(module)
    both = [name for name in PATHS[module].split() if name in front.__all__]
    assert [name for name in both if getattr(front, name) is not getattr(home, name)] == []


def parameters_of(value: object) -> set[str]:
    """What a callable can be called with; the members of ``**options`` are those of its typed dictionary."""
    found = dict(inspect.signature(value).parameters)
    options = [name for name, parameter in found.items() if parameter.kind is inspect.Parameter.VAR_KEYWORD]
    hints = [get_type_hints(value).get(name) for name in options if inspect.isfunction(value)]
    return {*found, *(key for hint in hints for named in get_args(hint) for key in get_type_hints(named))}


@pytest.mark.parametrize("called", PARAMETERS)
def test_what_published_code_passes_is_taken(called: str):
    module, _, name = called.partition(":")
    value: object = imported(module)
    for part in name.split("."):
        value = getattr(value, part)
    absent = set(PARAMETERS[called].split()) - parameters_of(value)
    assert absent == NOT_HERE.get(name, set())


def test_the_older_name_of_the_records_says_what_it_is_called_now():
    sys.modules.pop("evaluatorq.simulation.types", None)
    with pytest.warns(DeprecationWarning, match=r"evaluatorq\.simulation\.contracts"):
        importlib.import_module("evaluatorq.simulation.types")


@pytest.mark.parametrize(
    ("answer", "json"),
    [
        ('{"a":1}', '{"a":1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ("```\n[1, 2]\n```", "[1, 2]"),
        ('Sure: {"a":1} ok', '{"a":1}'),
        ("text [1,2] more", "[1,2]"),
        ('[{"a": 1}]', '[{"a": 1}]'),
        ("no json here", "no json here"),
        ("", ""),
    ],
)
def test_json_is_taken_out_of_an_answer(answer: str, json: str):
    extract = importlib.import_module("evaluatorq.simulation.utils.extract_json").extract_json_from_response
    assert extract(answer) == json


def test_the_prompt_of_a_datapoint_is_that_of_its_persona_and_its_scenario():
    prompts = importlib.import_module("evaluatorq.simulation.utils.prompt_builders")
    persona, scenario = a_persona(), a_scenario()
    whole = prompts.build_datapoint_system_prompt(persona, scenario)
    assert whole == prompts.generate_datapoint(persona, scenario).user_system_prompt
    assert prompts.build_persona_system_prompt(persona) in whole
    assert prompts.build_scenario_user_context(scenario) in whole


async def test_a_summary_is_printed_where_it_is_wanted():
    printed = StringIO()
    show = importlib.import_module("evaluatorq.simulation.reports.display").print_simulation_summary
    results = await simulate(target="demo", offline=True, only="Refund within*")
    total = Usage(total_tokens=77)
    show(results, executive_summary="All went well.", console=Console(file=printed, width=80),
         run_token_usage_total=total)  # fmt: skip
    assert "Conversations" in printed.getvalue()
    assert "All went well." in printed.getvalue()
    assert "beside the conversations 77" in printed.getvalue()


def test_a_type_checker_sees_every_way_to_make_a_reply():
    """``text=`` is read by a validator, so its signature is written out; it must follow the fields."""
    source = ast.parse(inspect.getsource(evaluatorq.model.responses))
    [reply] = [node for node in source.body if isinstance(node, ast.ClassDef) and node.name == "AgentResponse"]
    [init] = [node for node in ast.walk(reply) if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    assert {argument.arg for argument in init.args.kwonlyargs} == {*AgentResponse.model_fields, "text"}
    assert AgentResponse(text="hello").text == "hello"
