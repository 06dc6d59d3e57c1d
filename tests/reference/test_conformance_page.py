"""The conformance page is complete and true: every published field, flag and name has a row, and the rows hold."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest
from pydantic import BaseModel

import evaluatorq.simulation
from evaluatorq import contracts
from evaluatorq.cli.app import ROOT, SIM, Command, _group_parser
from evaluatorq.cli.parsing import Parser
from evaluatorq.evaluators.scoring import SimulationScoringConfig
from evaluatorq.model import cases, judgments, messages, results, runs
from evaluatorq.simulation.config import ALIASES, SimulationConfig
from evaluatorq.simulation.elsewhere import ELSEWHERE
from evaluatorq.simulation.hook_stream import HOOK_NAMES
from evaluatorq.simulation.hooks import SimulationHooks, SimulationRunMeta
from evaluatorq.simulation.orders import GenerateConfig, RunConfig

ROOT_FOLDER = Path(__file__).parents[2]
SURFACE = json.loads((ROOT_FOLDER / "tests/data/published_surface.json").read_text(encoding="utf-8"))
SCHEMA = json.loads((ROOT_FOLDER / "tests/data/published_schema.json").read_text(encoding="utf-8"))["SimulationRun"]
FLAGS = ("same", "better", "absent")
RENAMED = {
    "StrategyToolCall": "ToolCall", "InputTextContent": "InputText", "InputImageContent": "InputImage",
    "InputFileContent": "InputFile",
}  # fmt: skip


def rows() -> Iterator[tuple[str, str, str]]:
    """First cell, what it says, flag; of every table."""
    for line in (ROOT_FOLDER / "docs/conformance.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and cells[2] != "flag" and not set(cells[0]) <= {"-"}:
            yield cells[0], cells[1], cells[2]


ROWS = list(rows())
FLAG_OF = {match.group(1): flag for first, _, flag in ROWS if (match := re.match(r"`([^`]+)`", first))}


def test_every_row_has_a_flag_and_says_something():
    assert [row for row in ROWS if row[2] not in FLAGS or len(row[1]) < 1] == []
    assert len(ROWS) > 500


# ---------------------------------------------------------------- complete


def published_fields() -> list[str]:
    found = [f"{model}.{name}" for model, names in SURFACE["models"].items() for name in names]
    found = [name for name in found if not name.startswith(("LLMCallConfig.", "AgentResponse."))]
    found += [f"LLMCallConfig({name})" for name in SURFACE["models"]["LLMCallConfig"]]
    found += [f"Usage.{name}" for name in SURFACE["usage"]]
    found += [
        f"{RENAMED.get(model, model)}.{name}"
        for model, schema in SCHEMA["$defs"].items()
        for name in schema.get("properties", ())
    ]
    return found


def published_flags() -> list[str]:
    return [
        f"{f'sim {name}' if name else 'evaluatorq'} {flag}"
        for name, flags in SURFACE["flags"].items()
        for flag in flags
    ]


def published_options() -> list[str]:
    return [f"{name}({option})" for name, options in SURFACE["callables"].items() for option in options]


PUBLISHED = {
    "fields": published_fields(),
    "flags": published_flags(),
    "options": published_options(),
    "names": SURFACE["names"],
    "hooks": [f"SimulationHooks.{name}" for name in SURFACE["hooks"]]
    + [f"SimulationRunMeta.{name}" for name in SURFACE["run_meta"]],
    "metadata": [f"metadata.{name}" for name in SURFACE["metadata"]],
    "faults": [f"W{number}" for number in range(1, 50)],
}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_everything_published_has_a_row(kind: str):
    assert [name for name in PUBLISHED[kind] if name not in FLAG_OF] == []


# ---------------------------------------------------------------- true

MODELS: dict[str, type[BaseModel]] = {
    model.__name__: model
    for model in (
        runs.SimulationRun, runs.SimulationRecommendation, runs.RunManifest, runs.StageRecord, results.SimulationResult,
        results.TurnMetrics, results.ResponseTrace, messages.Message, messages.ToolCall, messages.FunctionCall,
        messages.InputText, messages.InputImage, messages.InputFile, contracts.Usage, cases.Persona, cases.Scenario,
        cases.Criterion, cases.SimulationDatapoint, judgments.Judgment, judgments.CriterionVerdict,
        judgments.CriteriaMeta, SimulationScoringConfig,
    )
}  # fmt: skip
OPTIONS = {
    "simulate": {*SimulationConfig.model_fields, *ALIASES} - set(ELSEWHERE),
    "generate_and_simulate": {*RunConfig.model_fields, *ALIASES, "emit_datapoints"} - set(ELSEWHERE),
    "generate": set(GenerateConfig.model_fields),
    "LLMCallConfig": set(contracts.LLMCallConfig.model_fields),
}


def flags_of(command: Command) -> set[str]:
    module = importlib.import_module(f"evaluatorq.cli.{command.module}")
    parser = Parser("x", "")
    module.configure(parser)
    return {flag for action in parser._actions for flag in action.option_strings}


def exists(name: str) -> bool | None:
    """Whether the code has it; ``None`` where a row is prose."""
    if match := re.fullmatch(r"sim ([a-z-]+) (-.+)", name):
        command = SIM.commands.get(match.group(1))
        return isinstance(command, Command) and match.group(2) in flags_of(command)
    if match := re.fullmatch(r"evaluatorq (--.+)", name):
        return match.group(1) in _group_parser("evaluatorq", ROOT).format_help()
    if match := re.fullmatch(r"([\w.]+)\((\w+)\)", name):
        return has_option(match.group(1), match.group(2))
    if match := re.fullmatch(r"(\w+)\.(\w+)", name):
        return has_member(match.group(1), match.group(2))
    return name in evaluatorq.simulation.__all__ if name in SURFACE["names"] else None


def has_option(name: str, option: str) -> bool:
    if name in OPTIONS:
        return option in OPTIONS[name]
    value: object = evaluatorq.simulation
    for part in name.split("."):
        value = getattr(value, part)
    return option in inspect.signature(value).parameters  # type: ignore[arg-type]  # a callable, by its row


def has_member(owner: str, member: str) -> bool | None:
    if owner in MODELS:
        model = MODELS[owner]
        return member in {*model.model_fields, *model.model_computed_fields}
    if owner == "SimulationHooks":
        return member in HOOK_NAMES and hasattr(SimulationHooks, member)
    if owner == "SimulationRunMeta":
        return member in get_type_hints(SimulationRunMeta)
    return None


CHECKED = [(name, flag) for name, flag in FLAG_OF.items() if exists(name) is not None]


def test_most_rows_can_be_checked():
    assert len(CHECKED) > 400


@pytest.mark.parametrize("flag", FLAGS)
def test_rows_say_of_the_code_what_is_true(flag: str):
    wrong = [name for name, said in CHECKED if said == flag and exists(name) is not (flag != "absent")]
    assert wrong == [], (
        f"docs/conformance.md says {flag} of these, which the code {'has' if flag == 'absent' else 'lacks'}"
    )


@pytest.mark.filterwarnings("ignore:evaluatorq.simulation.types is now called")
def test_documented_modules_can_be_imported():
    for name, flag in FLAG_OF.items():
        if name.startswith("evaluatorq."):
            if flag == "absent":
                with pytest.raises(ModuleNotFoundError):
                    importlib.import_module(name)
            else:
                importlib.import_module(name)
