"""Reads personas, scenarios and datapoints from files; strict, so that a typo never changes the test set in silence.

One parser serves loading and validating: ``read_cases`` collects every case that is right and every error; ``load_*``
raise the first error, ``validate_paths`` reports them all. A file holds one case, a list of them, or a mapping with the
one key ``personas``, ``scenarios`` or ``datapoints``; a line of JSON Lines holds one case.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from typing import Literal, get_args

from pydantic import JsonValue

from evaluatorq.errors import CaseError, ConfigError
from evaluatorq.model.cases import CommunicationStyle, Persona, Scenario, SimulationDatapoint
from evaluatorq.model.rules import Misfit, dotted
from evaluatorq.store.case_rules import (
    DATAPOINT_MARKS,
    PERSONA_KEYS,
    SCENARIO_KEYS,
    Problem,
    made_datapoint_rule,
    persona_rule,
    scenario_rule,
    shown,
)
from evaluatorq.store.datapoint_rows import export_datapoints_to_jsonl, read_row
from evaluatorq.store.documents import find_files, read_documents
from evaluatorq.store.located import Document, Keys
from evaluatorq.store.selection import product, repeated, select

Kind = Literal["personas", "scenarios", "datapoints"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CasePath = str | os.PathLike[str]
Doubts = Callable[[Scenario, JsonValue], Iterable[Problem]]
"""What is suspicious about a right scenario, given as a record and as it is written; ``ConfigError`` for one that no
run would take."""
Secrets = Callable[[SimulationDatapoint], Problem | None]
"""What a right datapoint tells that it must not, with the place below its scenario."""
_WORLD = ("environment", "setup", "tools", "events")
_ANYBODY = Persona(
    name="", patience=0.5, assertiveness=0.5, politeness=0.5, technical_level=0.5,
    communication_style=CommunicationStyle.CASUAL, background="",
)  # fmt: skip
_ONE = {"personas": "a persona", "scenarios": "a scenario", "datapoints": "a datapoint"}


# ---------------------------------------------------------------- public


def load_personas(*paths: CasePath) -> list[Persona]:
    """The personas of files, folders or globs, by file and place; ``CaseError`` for the first that is wrong."""
    return read_cases(paths, "personas").or_raise().personas


def load_scenarios(*paths: CasePath) -> list[Scenario]:
    """The scenarios of files, folders or globs, by file and place; ``CaseError`` for the first that is wrong."""
    return read_cases(paths, "scenarios").or_raise().scenarios


def load_datapoints(
    *paths: CasePath, personas: Sequence[Persona] = (), scenarios: Sequence[Scenario] = (), legacy: bool = False
) -> list[SimulationDatapoint]:
    """The datapoints of files, folders or globs, by file and place; ``CaseError`` for the first that is wrong.

    A row is a datapoint or a data set's ``{"inputs": {...}}``. A persona or scenario given by name is looked up in
    ``personas`` and ``scenarios``. Rows without an id get a stable one. ``legacy`` also reads flat rows
    (``persona_name``, ``goal``, ...), which say next to nothing about the persona.
    """
    return read_cases(paths, "datapoints", personas=personas, scenarios=scenarios, legacy=legacy).or_raise().datapoints


def load_datapoints_from_jsonl(input_path: CasePath, *, legacy: bool = False) -> list[SimulationDatapoint]:
    """``load_datapoints`` under its published name, for one file."""
    return load_datapoints(input_path, legacy=legacy)


def check_files(paths: Iterable[CasePath], kind: Kind | None = None) -> list[CaseError]:
    """Everything that is wrong with a set of files, by file and line; without ``kind`` each case says what it is."""
    return read_cases(paths, kind).errors


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """How many cases of each kind are right, everything that is wrong, and what is only suspicious."""

    counts: Mapping[Kind, int]
    errors: list[CaseError]
    warnings: list[CaseError] = field(default_factory=list)

    @property
    def valid(self) -> int:
        """Cases without an error."""
        return sum(self.counts.values())


def validate_paths(
    paths: Iterable[CasePath],
    kind: Kind | None = None,
    *,
    doubts: Doubts | None = None,
    secrets: Secrets | None = None,
) -> ValidationReport:
    """What ``sim validate`` says; without ``kind`` each case says itself what it is. ``doubts`` become warnings,
    ``secrets`` errors.
    """
    cases = read_cases(paths, kind, doubts=doubts, secrets=secrets)
    counts: dict[Kind, int] = {
        "personas": len(cases.personas),
        "scenarios": len(cases.scenarios) - cases.unfit["scenarios"],
        "datapoints": len(cases.datapoints) - cases.unfit["datapoints"],
    }
    return ValidationReport(counts, cases.errors, cases.warnings)


def check_datapoints(datapoints: Sequence[SimulationDatapoint]) -> None:
    """Holds datapoints that code made to the rules for records; ``CaseError`` has a field like ``datapoints[0].id``."""
    seen: dict[tuple[str, int | None], int] = {}
    for row, datapoint in enumerate(datapoints):
        raw: JsonValue = datapoint.model_dump(mode="json", warnings=False)
        problem = next(iter(made_datapoint_rule(raw)), None)
        same = datapoint.id, datapoint.sample
        if problem is None and same in seen:
            problem = Problem(f"{datapoint.id!r} is also datapoints[{seen[same]}]; ids are unique", ("id",))
        if problem is not None:
            raise CaseError(problem.reason, field=dotted(("datapoints", row, *problem.keys)))
        seen[same] = row


def bundled(kind: Literal["personas", "scenarios"]) -> Path:
    """The folder of the cases that ship with the package: the repository's own in a clone, else the installed copy."""
    package = Path(__file__).parents[1]
    clone = package.parents[1]
    for folder in (clone / kind if (clone / "pyproject.toml").is_file() else None, package / "_bundled" / kind):
        if folder is not None and folder.is_dir():
            return folder
    raise ConfigError(f"this installation carries no {kind}; give your own")


# ---------------------------------------------------------------- one pass over files


@dataclass
class Cases:
    """What a set of files holds: the cases that are right, and what is wrong with the others."""

    personas: list[Persona] = field(default_factory=list)
    scenarios: list[Scenario] = field(default_factory=list)
    datapoints: list[SimulationDatapoint] = field(default_factory=list)
    errors: list[CaseError] = field(default_factory=list)
    warnings: list[CaseError] = field(default_factory=list)
    unfit: Counter[Kind] = field(default_factory=Counter)
    """How many of them do not fit the environment that they name, or tell what they hide."""

    def or_raise(self) -> Cases:
        """Itself, or the first error, with a note on how many more there are."""
        if not self.errors:
            return self
        first, *more = self.errors
        if more:
            first.add_note(f"{len(more)} more in these files; 'evaluatorq sim validate' lists them all")
        raise first


@dataclass(frozen=True, slots=True)
class _Case:
    """One case as it stands in a document."""

    kind: Kind
    value: JsonValue
    document: Document
    keys: Keys

    def place(self, *keys: str) -> str:
        return f"{self.document.file}:{self.document.line((*self.keys, *keys))}"

    def error(self, problem: Problem) -> CaseError:
        line = self.document.line((*self.keys, *problem.keys))
        return CaseError(problem.reason, file=self.document.file, line=line, field=dotted(problem.keys) or None)


def read_cases(
    paths: Iterable[CasePath],
    kind: Kind | None = None,
    *,
    personas: Sequence[Persona] = (),
    scenarios: Sequence[Scenario] = (),
    legacy: bool = False,
    doubts: Doubts | None = None,
    secrets: Secrets | None = None,
) -> Cases:
    """Every case in these files; a datapoint may name personas and scenarios of the same files as well."""
    reading = _Reading(legacy=legacy, doubts=doubts, secrets=secrets)
    places: list[SimulationDatapoint | _Case | None] = []
    for found in (case for path in paths for case in _cases(path, kind)):
        if isinstance(found, CaseError):
            reading.cases.errors.append(found)
        elif found.kind == "datapoints":
            places.append(found if _refers_to_others(found.value) else reading.datapoint(found, {}, {}))
        else:
            reading.persona_or_scenario(found)
    known_personas = {persona.name: persona for persona in (*personas, *reading.cases.personas)}
    known_scenarios = {scenario.name: scenario for scenario in (*scenarios, *reading.cases.scenarios)}
    reading.secrets_of_scenarios(known_personas.values())
    for place in places:
        point = reading.datapoint(place, known_personas, known_scenarios) if isinstance(place, _Case) else place
        if point is not None:
            reading.cases.datapoints.append(point)
    for told in (reading.cases.errors, reading.cases.warnings):
        told.sort(key=lambda error: (error.file or "", error.line or 0))
    return reading.cases


def _refers_to_others(value: JsonValue) -> bool:
    """A datapoint that names its persona or scenario, which may be read later."""
    inner = value.get("inputs", value) if isinstance(value, dict) else None
    return not isinstance(inner, dict) or any(not isinstance(inner.get(key), dict) for key in ("persona", "scenario"))


class _Reading:
    """Turns cases into models, and keeps what must be unique among them."""

    def __init__(self, *, legacy: bool, doubts: Doubts | None, secrets: Secrets | None) -> None:
        self.cases = Cases()
        self._legacy = legacy
        self._doubts = doubts
        self._secrets = secrets
        self._scenarios: list[tuple[Scenario, _Case, bool]] = []
        self._telling: set[str] = set()
        self._places: dict[tuple[Kind, str], str] = {}
        self._personas: dict[Persona, Persona] = {}
        self._given: dict[frozenset[str], set[str]] = {}

    def persona_or_scenario(self, case: _Case) -> None:
        rule = persona_rule if case.kind == "personas" else scenario_rule
        problems = list(rule(case.value)) or list(self._twice(case, "name", _name_of(case.value)))
        if problems:
            self.cases.errors += [case.error(problem) for problem in problems]
            if case.kind == "scenarios":
                self._doubt_rest(case, problems)
        elif case.kind == "personas":
            self.cases.personas.append(Persona.model_validate(case.value))
        else:
            self.cases.scenarios.append(Scenario.model_validate(case.value))
            fits = self._doubt(self.cases.scenarios[-1], case, case.value, ())
            self.cases.unfit["scenarios"] += not fits
            self._scenarios.append((self.cases.scenarios[-1], case, fits))

    def secrets_of_scenarios(self, personas: Iterable[Persona]) -> None:
        """Tells which scenarios tell what they hide to any of the personas that a run would pair them with."""
        users = [*personas] or [_ANYBODY]
        for scenario, case, fits in self._scenarios:
            pairs = (SimulationDatapoint(id="", persona=user, scenario=scenario) for user in users)
            if self._secrets is not None and (problem := next(filter(None, map(self._secrets, pairs)), None)):
                self.cases.errors.append(case.error(problem))
                self.cases.unfit["scenarios"] += fits
                self._telling.add(scenario.name)

    def datapoint(
        self, case: _Case, personas: Mapping[str, Persona], scenarios: Mapping[str, Scenario]
    ) -> SimulationDatapoint | None:
        """The datapoint, or ``None`` for one that is wrong."""
        row = read_row(case.value, personas=personas, scenarios=scenarios, legacy=self._legacy)
        datapoint, problems = row.datapoint, row.problems
        if datapoint is not None and row.has_id:
            which = datapoint.id if datapoint.sample is None else f"{datapoint.id}, sample {datapoint.sample}"
            problems = list(self._twice(case, "id", which))
        if datapoint is None or problems:
            self.cases.errors += [case.error(problem) for problem in problems]
            return None
        if not row.has_id:
            datapoint = datapoint.model_copy(update={"id": self._free(datapoint.id)})
            self._places["datapoints", datapoint.id] = case.place()
        self._look_inside(datapoint, case)
        return self._lean(datapoint)

    def _look_inside(self, datapoint: SimulationDatapoint, case: _Case) -> None:
        """Looks at the scenario of a datapoint; one that is only named is looked at where it stands."""
        inputs = case.value.get("inputs") if isinstance(case.value, dict) else None
        holder, keys = (inputs, ("inputs", "scenario")) if isinstance(inputs, dict) else (case.value, ("scenario",))
        written = holder.get("scenario") if isinstance(holder, dict) else None
        if isinstance(written, str) and holder is inputs:
            written = datapoint.scenario.model_dump(mode="json", exclude_none=True)
        fits = not isinstance(written, dict) or self._doubt(datapoint.scenario, case, written, keys)
        told = None if self._secrets is None else self._secrets(datapoint)
        if told is not None and (isinstance(written, dict) or datapoint.scenario.name not in self._telling):
            self.cases.errors.append(case.error(Problem(told.reason, (*keys, *told.keys))))
            fits = False
        self.cases.unfit["datapoints"] += not fits

    def _doubt(self, scenario: Scenario, case: _Case, written: JsonValue, keys: Keys) -> bool:
        """Tells what is doubtful or does not fit; ``False`` where something does not."""
        try:
            for problem in () if self._doubts is None else self._doubts(scenario, written):
                self.cases.warnings.append(case.error(Problem(problem.reason, (*keys, *problem.keys))))
        except ConfigError as error:
            found = error.problems if isinstance(error, Misfit) else (Problem(str(error), ("environment",)),)
            self.cases.errors += [case.error(Problem(problem.reason, (*keys, *problem.keys))) for problem in found]
            return False
        return True

    def _doubt_rest(self, case: _Case, problems: Sequence[Problem]) -> None:
        """Looks at what is right of a wrong scenario, unless it is in doubt what world that plays in."""
        wrong = {str(problem.keys[0]) for problem in problems if problem.keys}
        if not isinstance(case.value, dict) or any(get_close_matches(key, _WORLD, n=1) for key in wrong):
            return
        rest = {"name": "?", "goal": "?", **{key: value for key, value in case.value.items() if key not in wrong}}
        if not list(scenario_rule(rest)):
            self._doubt(Scenario.model_validate(rest), case, rest, ())

    def _lean(self, datapoint: SimulationDatapoint) -> SimulationDatapoint:
        """The same, in a third of the memory: equal personas are one object, and so are equal sets of given fields.

        Tens of thousands of cases are held for as long as their run takes. Nobody changes a frozen record.
        """
        persona = self._personas.setdefault(datapoint.persona, datapoint.persona)
        if persona is not datapoint.persona:
            datapoint = datapoint.model_copy(update={"persona": persona})
        for record in (datapoint, persona, datapoint.scenario, *datapoint.scenario.criterion_list):
            given = record.model_fields_set
            record.__pydantic_fields_set__ = self._given.setdefault(frozenset(given), given)
        return datapoint

    def _twice(self, case: _Case, key: str, name: JsonValue) -> Iterator[Problem]:
        if isinstance(name, str) and self._places.setdefault((case.kind, name), case.place(key)) != case.place(key):
            first = self._places[case.kind, name]
            yield Problem(f"{name!r} is also {_ONE[case.kind]} at {first}; give each {key} once", (key,))

    def _free(self, minted: str) -> str:
        """The id itself, or with a number when the same case was read before."""
        copies = (f"{minted}-{number}" if number > 1 else minted for number in count(1))
        return next(name for name in copies if ("datapoints", name) not in self._places)


def _cases(path: CasePath, kind: Kind | None) -> Iterator[_Case | CaseError]:
    try:
        files = find_files(path)
    except CaseError as error:
        yield error
        return
    for file in files:
        for document in read_documents(file):
            if isinstance(document, CaseError):
                yield document
            elif file.suffix.lower() == ".jsonl":
                yield _case(document, document.value, (), kind)
            else:
                yield from _unwrapped(document, kind)


def _unwrapped(document: Document, kind: Kind | None) -> Iterator[_Case | CaseError]:
    """The cases of a YAML or JSON file: the one it holds, or those in its list."""
    value, keys = document.value, Keys()
    wrappers = [key for key in KINDS if isinstance(value, dict) and key in value]
    if isinstance(value, dict) and wrappers:
        wrapper = wrappers[0]
        if len(value) > 1:
            reason = f"{wrapper} stands beside other keys ({shown(value)}); a file with {wrapper}: holds nothing else"
            yield CaseError(reason, file=document.file, line=document.line((wrapper,)), field=wrapper)
            return
        if kind is not None and wrapper != kind:
            reason = f"this file holds {wrapper}, not {kind}"
            yield CaseError(reason, file=document.file, line=document.line((wrapper,)))
            return
        value, keys, kind = value[wrapper], (wrapper,), wrapper
    if not isinstance(value, list):
        yield _case(document, value, keys, kind)
        return
    if not value:
        yield CaseError("the list is empty; write at least one case", file=document.file, line=document.line(keys))
    for position, item in enumerate(value):
        yield _case(document, item, (*keys, position), kind)


def _case(document: Document, value: JsonValue, keys: Keys, kind: Kind | None) -> _Case | CaseError:
    guess = _kind_of(value)
    says = kind or guess
    if says is None:
        reason = f"this is no case ({shown(value)}): a persona has traits, a scenario a goal, a datapoint one of each"
        return CaseError(reason, file=document.file, line=document.line(keys))
    if guess not in (None, says):
        reason = f"this looks like {_ONE[guess]}, not {_ONE[says]}"
        return CaseError(reason, file=document.file, line=document.line(keys))
    return _Case(says, value, document, keys)


def _kind_of(value: JsonValue) -> Kind | None:
    """What a case is by its keys; ``None`` where they do not tell."""
    if not isinstance(value, dict):
        return None
    if value.keys() & DATAPOINT_MARKS:
        return "datapoints"
    persona, scenario = len(value.keys() & PERSONA_KEYS), len(value.keys() & SCENARIO_KEYS)
    if persona == scenario:
        return None
    return "personas" if persona > scenario else "scenarios"


def _name_of(value: JsonValue) -> JsonValue:
    return value.get("name") if isinstance(value, dict) else None


__all__ = [
    "Cases", "Kind", "ValidationReport", "bundled", "check_datapoints", "check_files", "export_datapoints_to_jsonl",
    "load_datapoints", "load_datapoints_from_jsonl", "load_personas", "load_scenarios", "product", "read_cases",
    "repeated", "select", "validate_paths",
]  # fmt: skip
