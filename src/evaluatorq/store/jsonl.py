"""Results as JSON Lines, one a line, and any JSON Lines as values."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, overload

from pydantic import BaseModel, JsonValue

from evaluatorq.errors import CaseError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import SimulationResult
from evaluatorq.store.atomic import replace_file

M = TypeVar("M", bound=BaseModel)
_FLAT = (
    "goal_achieved", "goal_completion_score", "terminated_by", "turn_count", "messages", "rules_broken", "token_usage",
    "turn_metrics", "metadata", "evaluator_details",
)  # fmt: skip
_log = logging.getLogger(__name__)


def export_results_to_jsonl(results: Iterable[SimulationResult], output_path: str | os.PathLike[str]) -> None:
    """Writes one result a line, whole or not at all; a file that is there is replaced."""
    replace_file(Path(output_path), (result.model_dump_json().encode() + b"\n" for result in results))


def load_results_from_jsonl(input_path: str | os.PathLike[str]) -> list[SimulationResult]:
    """The results in a file of JSON Lines, of any age; ``CaseError`` with the line of the first that is none."""
    path, results = Path(input_path), []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                results.append(SimulationResult.model_validate_json(line))
            except ValueError as error:
                reason = f"this is no SimulationResult: {' '.join(str(error).split())[:200]}"
                raise CaseError(reason, file=str(path), line=number) from None
    return results


def results_to_jsonl(results: Sequence[Mapping[str, SimulationDatapoint | SimulationResult]]) -> str:
    """Pairs ``{"datapoint": ..., "result": ...}`` as flat rows, a line each. ``TypeError`` for anything else."""
    return "\n".join(json.dumps(_flat(pair.get("datapoint"), pair.get("result"))) for pair in results)


def _flat(datapoint: object, result: object) -> dict[str, JsonValue]:
    if not isinstance(datapoint, SimulationDatapoint):
        raise TypeError(f"'datapoint' is a SimulationDatapoint, not {type(datapoint).__name__}")
    if not isinstance(result, SimulationResult):
        raise TypeError(f"'result' is a SimulationResult, not {type(result).__name__}")
    dumped: dict[str, JsonValue] = result.model_dump(mode="json")
    return {
        "id": datapoint.id,
        "persona": datapoint.persona.name,
        "scenario": datapoint.scenario.name,
        "first_message": datapoint.first_message,
        **{name: dumped[name] for name in _FLAT},
    }


@overload
def parse_jsonl(content: str) -> list[JsonValue]: ...
@overload
def parse_jsonl(content: str, cls: None) -> list[JsonValue]: ...
@overload
def parse_jsonl(content: str, cls: type[M]) -> list[M]: ...
def parse_jsonl(content: str, cls: type[M] | None = None) -> list[JsonValue] | list[M]:
    """The values in JSON Lines, or models of them. A line that is no JSON is left out with a warning in the log."""
    values: list[JsonValue] = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except ValueError as error:
                _log.warning("line %d is left out, it is not JSON: %s", number, error)
    return values if cls is None else [cls.model_validate(value) for value in values]
