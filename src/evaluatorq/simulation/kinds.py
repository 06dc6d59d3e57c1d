"""The kinds of values that options have: text that is not blank, lists that hold something, cases held to rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Tag

from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.store.case_rules import (
    Problem,
    Rule,
    made_persona_rule,
    made_scenario_rule,
    persona_rule,
    scenario_rule,
)
from evaluatorq.store.datapoint_rows import read_row


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank; say what it should be, or leave it out")
    return text.strip()


def _listed(value: object) -> object:
    """One path or case stands for a list of one."""
    return [value] if isinstance(value, str | PathLike | Persona | Scenario) else value


def _case_or_path(value: object) -> str:
    return "path" if isinstance(value, str | PathLike) else "case"


def _by(written: Rule, made: Rule, value: object) -> object:
    """Holds a case to the rules of case files where it is a mapping, to those of records where it is one."""
    if isinstance(value, BaseModel):
        _refuse(made(value.model_dump(mode="json", warnings=False)))
    elif isinstance(value, dict):
        _refuse(written(value))
    return value


def _row(value: object) -> object:
    """A datapoint written as a mapping, in any form that a file may have."""
    if not isinstance(value, dict):
        return value
    row = read_row(value)
    _refuse(row.problems)
    return row.datapoint


def _refuse(problems: Iterable[Problem]) -> None:
    for problem in problems:
        place = ".".join(str(key) for key in problem.keys)
        raise ValueError(f"{place}: {problem.reason}" if place else problem.reason)


def _not_empty(values: Sequence[object] | None) -> Sequence[object] | None:
    if values is not None and not values:
        raise ValueError("is empty; leave it out or give at least one")
    return values


def _distinct(names: Sequence[str] | None) -> Sequence[str] | None:
    twice = sorted({name for name in names or () if (names or ()).count(name) > 1})
    if twice:
        raise ValueError(f"names {', '.join(twice)} more than once")
    return names


def _one_or_unbounded(value: int) -> int:
    if value < 1 and value != -1:
        raise ValueError("must be at least 1, or -1 for no limit")
    return value


Text = Annotated[str, AfterValidator(_not_blank)]
PathItem = Annotated[Path, Tag("path")]
PersonaCase = Annotated[Persona, BeforeValidator(partial(_by, persona_rule, made_persona_rule)), Tag("case")]
ScenarioCase = Annotated[Scenario, BeforeValidator(partial(_by, scenario_rule, made_scenario_rule)), Tag("case")]
PersonaItem = Annotated[PersonaCase | PathItem, Discriminator(_case_or_path)]
ScenarioItem = Annotated[ScenarioCase | PathItem, Discriminator(_case_or_path)]
Personas = Annotated[tuple[PersonaItem, ...] | None, BeforeValidator(_listed), AfterValidator(_not_empty)]
Scenarios = Annotated[tuple[ScenarioItem, ...] | None, BeforeValidator(_listed), AfterValidator(_not_empty)]
DatapointItem = Annotated[SimulationDatapoint, BeforeValidator(_row)]
Datapoints = Annotated[tuple[DatapointItem, ...] | None, AfterValidator(_not_empty)]
Names = Annotated[
    tuple[Text, ...] | None, BeforeValidator(_listed), AfterValidator(_not_empty), AfterValidator(_distinct)
]
Parallelism = Annotated[int, AfterValidator(_one_or_unbounded)]
