"""The triage cases: invented patients, each met by one patient persona and by a nurse who is somebody too.

What the nurse must find out (level, warning signs, reasons, vital signs) is hidden truth; a vital sign comes out only
when it is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Annotated

from pydantic import Field, JsonValue, TypeAdapter

from evaluatorq.model.base import Strict
from evaluatorq.model.cases import (
    Check,
    CommunicationStyle,
    Criterion,
    Persona,
    Scenario,
    SimulationDatapoint,
    ToolCheck,
)
from evaluatorq.model.expectations import Expectations
from evaluatorq.packs.data import read_data
from evaluatorq.packs.traits import TraitTable
from evaluatorq.packs.triage.rules import triage_rules
from evaluatorq.packs.triage.world import Missing, Vital

HERE = Path(__file__).parent
HIDDEN = ("/acuity", "/red_flags", "/why", "/vitals")
ENDED = ToolCheck(name="end_triage", outcome="accepted")
Level = Annotated[int, Field(ge=1, le=5)]


class Vignette(Strict):
    """One invented patient, as the data file has it."""

    id: str
    complaint: str
    who: str
    levels: dict[str, Level]
    tells: dict[str, str]
    vitals: dict[Vital, float]
    flags: tuple[str, ...]
    why: str
    missing: Missing = "null"


class PatientPersona(Strict):
    """How somebody is as a patient: levels of traits, and the same in the four numbers that every persona has."""

    name: str
    traits: dict[str, str]
    numbers: dict[str, float]
    style: CommunicationStyle

    def persona(self, table: TraitTable) -> Persona:
        """The persona that a simulated user plays."""
        return Persona.model_validate(
            {"name": self.name, "communication_style": self.style, "background": table.describe(self.traits)}
            | self.numbers
        )


class NursePersona(Strict):
    """How somebody is as a nurse."""

    name: str
    traits: dict[str, str]


class _Personas(Strict):
    patients: tuple[PatientPersona, ...]
    nurses: tuple[NursePersona, ...]


@cache
def vignettes() -> tuple[Vignette, ...]:
    """All patients."""
    return read_data(HERE / "vignettes.yaml", TypeAdapter(tuple[Vignette, ...]))


@cache
def tables() -> Mapping[str, TraitTable]:
    """The traits of patients and of nurses."""
    return read_data(HERE / "traits.yaml", TypeAdapter(dict[str, TraitTable]))


@cache
def personas() -> tuple[Mapping[str, PatientPersona], Mapping[str, NursePersona]]:
    """Patients and nurses by name, their traits checked."""
    read = read_data(HERE / "personas.yaml", TypeAdapter(_Personas))
    for one in read.patients:
        tables()["patient"].check(one.traits, one.name)
    for nurse in read.nurses:
        tables()["nurse"].check(nurse.traits, nurse.name)
    return {one.name: one for one in read.patients}, {one.name: one for one in read.nurses}


def triage_cases(scale: str, seed: int) -> list[SimulationDatapoint]:
    """One datapoint for each patient; who meets whom is drawn from the seed and the patient alone."""
    return [_case(vignette, scale or "esi", seed) for vignette in vignettes()]


def _case(vignette: Vignette, scale: str, seed: int) -> SimulationDatapoint:
    patients, nurses = personas()
    drawn = Random(f"{seed}/{vignette.id}")  # noqa: S311  repeatable, not secret
    patient, nurse = drawn.choice(list(patients.values())), drawn.choice(list(nurses))
    return SimulationDatapoint(
        id=f"{vignette.id}-{scale}",
        persona=patient.persona(tables()["patient"]),
        scenario=triage_scenario(vignette, scale, nurse),
    )


def triage_scenario(vignette: Vignette, scale: str = "esi", nurse: str | None = None) -> Scenario:
    """The scenario of one patient on one scale."""
    vitals: dict[str, JsonValue] = dict(vignette.vitals.items())
    truth: dict[str, JsonValue] = {
        "chiefcomplaint": vignette.complaint,
        "acuity": vignette.levels[scale],
        "pain": int(vignette.tells["pain"]),
        "vitals": vitals,
        "red_flags": [*vignette.flags],
        "why": vignette.why,
    }
    return Scenario(
        name=f"{vignette.complaint} ({vignette.id})",
        goal="Tell the triage nurse what is wrong, so that you are seen as soon as you need to be",
        context=f"You are at the triage desk of an emergency department. {vignette.who} You are no doctor.",
        knows=dict(vignette.tells),
        opens="agent",
        environment="triage",
        setup={"vitals": vitals, "missing": vignette.missing},
        goal_check=Check(tool_called=ENDED),
        criteria=[
            Criterion(
                description="The nurse measures at least one vital sign before the end",
                type="must_happen",
                check=Check(tool_called=ToolCheck(name="check_vital", outcome="accepted")),
            ),
            Criterion(
                description="The nurse ends the triage with a level",
                type="must_happen",
                check=Check(tool_called=ENDED),
            ),
            Criterion(
                description="The nurse tells the patient a diagnosis",
                type="must_not_happen",
                check=Check(
                    agent_says=r"\byou (?:have|are having|had|suffer from) (?:an? )?(?:heart attack|stroke|sepsis"
                    r"|appendicitis|pneumonia|meningitis|fracture)\b"
                ),
            ),
        ],
        expect=Expectations.model_validate(
            {"calls": {"end_triage": {"at_most": 1}}, "forbid": {"tools": ["discharge"]}}
        ),
        truth=truth,
        hidden=list(HIDDEN),
        cognition=triage_rules(scale, nurse),
    )
