"""Datapoint rows in every shape they come in, and back: raw, a data set's ``{"inputs": {...}}``, and legacy flat rows.

In a data set persona and scenario are JSON text inside JSON; other columns of its rows are not ours and are ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from evaluatorq.errors import CaseError
from evaluatorq.model.cases import CommunicationStyle, Persona, Scenario, SimulationDatapoint
from evaluatorq.records.fingerprint import case_id
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.case_rules import (
    DATAPOINT_FIELDS,
    Problem,
    Rule,
    anything,
    near_or_known,
    persona_rule,
    record,
    scenario_rule,
    text,
)
from evaluatorq.store.documents import read_json

M = TypeVar("M", Persona, Scenario)

_PARTS = {"persona": anything, "scenario": anything}
_RAW = record("a datapoint", _PARTS, DATAPOINT_FIELDS)
_INPUTS = record("a datapoint", _PARTS, {**DATAPOINT_FIELDS, "category": anything})
_FLAT_NAMES = {"persona_name": text, "scenario_name": text}
_FLAT = record(
    "a legacy row", {"goal": text}, {**_FLAT_NAMES, **DATAPOINT_FIELDS, "context": text, "category": anything}
)


@dataclass(frozen=True, slots=True)
class Row:
    """What a row says: a datapoint (with a minted id where ``has_id`` is false), or what is wrong with it."""

    datapoint: SimulationDatapoint | None = None
    has_id: bool = False
    problems: list[Problem] = field(default_factory=list)


def read_row(
    value: JsonValue,
    *,
    personas: Mapping[str, Persona] | None = None,
    scenarios: Mapping[str, Scenario] | None = None,
    legacy: bool = False,
) -> Row:
    """The datapoint in one row; names are looked up in ``personas`` and ``scenarios``."""
    known = (personas or {}, scenarios or {})
    if not isinstance(value, dict) or "inputs" not in value:
        return _read(value, _RAW, known, legacy=legacy)
    inputs = value["inputs"]
    if not isinstance(inputs, dict):
        return Row(problems=[Problem("holds no mapping with persona and scenario", ("inputs",))])
    unpacked = dict(inputs)
    problems = [problem for part in _PARTS for problem in _unpack(unpacked, part)]
    row = Row(problems=problems) if problems else _read(unpacked, _INPUTS, ({}, {}), legacy=legacy)
    return replace(row, problems=[problem.under("inputs") for problem in row.problems])


def _unpack(inputs: dict[str, JsonValue], part: str) -> Iterable[Problem]:
    """Puts the value of a JSON text in its place."""
    packed = inputs.get(part)
    if isinstance(packed, str):
        try:
            inputs[part] = read_json(packed, part).value
        except CaseError as error:
            return [Problem(f"{error.reason}; in a data set it is a {part} as JSON text", (part,))]
    return ()


def _read(
    value: JsonValue, rule: Rule, known: tuple[Mapping[str, Persona], Mapping[str, Scenario]], *, legacy: bool
) -> Row:
    if isinstance(value, dict) and not _PARTS.keys() & value.keys() and _FLAT_NAMES.keys() & value.keys():
        if not legacy:
            return Row(
                problems=[Problem("is a flat row without persona and scenario; write both, or read it as legacy")]
            )
        return _row(value, list(_FLAT(value)), *_invented(value))
    problems = list(rule(value))
    if not isinstance(value, dict):
        return Row(problems=problems)
    persona = _part(value.get("persona"), "persona", (persona_rule, Persona), known[0], problems)
    scenario = _part(value.get("scenario"), "scenario", (scenario_rule, Scenario), known[1], problems)
    return _row(value, problems, persona, scenario)


def _part(
    value: JsonValue,
    noun: str,
    shape: tuple[Rule, type[M]],
    known: Mapping[str, M],
    problems: list[Problem],
) -> M | None:
    """A persona or scenario, inline or by name; ``None`` after noting why there is none."""
    rule, model = shape
    if value is None:
        return None
    if not isinstance(value, str):
        found = [problem.under(noun) for problem in rule(value)]
        problems += found
        return None if found else model.model_validate(value)
    if value in known:
        return known[value]
    where = near_or_known(value, known) if known else f"no {noun}s were given to find it in, so write it out here"
    problems.append(Problem(f"no {noun} is called {value!r}; {where}", (noun,)))
    return None


def _row(
    value: dict[str, JsonValue], problems: list[Problem], persona: Persona | None, scenario: Scenario | None
) -> Row:
    if problems or persona is None or scenario is None:
        return Row(problems=problems)
    sample = value.get("sample")
    datapoint = SimulationDatapoint(
        id=str(value.get("id") or ""),
        persona=persona,
        scenario=scenario,
        user_system_prompt=str(value.get("user_system_prompt") or ""),
        first_message=str(value.get("first_message") or ""),
        sample=sample if isinstance(sample, int) else None,
    )
    if datapoint.id:
        return Row(datapoint, has_id=True)
    return Row(datapoint.model_copy(update={"id": case_id(datapoint)}))


def _invented(value: dict[str, JsonValue]) -> tuple[Persona, Scenario]:
    """The middling persona that the published reader makes of a flat row."""
    persona = Persona(
        name=str(value.get("persona_name") or "Unknown"),
        patience=0.5,
        assertiveness=0.5,
        politeness=0.5,
        technical_level=0.5,
        communication_style=CommunicationStyle.CASUAL,
        background="",
    )
    context = value.get("context")
    name = str(value.get("scenario_name") or "Unknown")
    return persona, Scenario(name=name, goal=str(value.get("goal")), context=str(context) if context else None)


def export_datapoints_to_jsonl(datapoints: Iterable[SimulationDatapoint], output_path: str | os.PathLike[str]) -> None:
    """Writes datapoints as rows of a data set, ``{"inputs": {...}, "expected_output": ""}``; ids are not kept."""
    replace_file(Path(output_path), (_packed(datapoint) for datapoint in datapoints))


def _packed(datapoint: SimulationDatapoint) -> bytes:
    inputs = {
        "category": f"{datapoint.persona.name} - {datapoint.scenario.name}",
        "first_message": datapoint.first_message,
        "user_system_prompt": datapoint.user_system_prompt,
        "persona": datapoint.persona.model_dump_json(),
        "scenario": datapoint.scenario.model_dump_json(),
    }
    return json.dumps({"inputs": inputs, "expected_output": ""}, ensure_ascii=False).encode() + b"\n"
