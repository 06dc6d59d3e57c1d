"""Severity of IT incidents: a second domain, unlike the first in scale, readings, lists and who speaks first."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import JsonValue, TypeAdapter

from evaluatorq.model.assessments import Scale
from evaluatorq.model.base import Strict
from evaluatorq.model.cases import Check, CommunicationStyle, Persona, Scenario, SimulationDatapoint, ToolCheck
from evaluatorq.model.cognition import AssessmentRule, Cognition, Detector, ListRule, ReadingRule
from evaluatorq.packs.data import read_data
from evaluatorq.packs.incident.responder import incident_responder, responder_instructions
from evaluatorq.packs.incident.world import SERVICES, incident_environment
from evaluatorq.packs.pack import Pack

SEVERITY = Scale(name="severity", levels=("minor", "major", "critical"), gravest="last")
RULES = Cognition(
    scale=SEVERITY,
    decides="/severity",
    assess=AssessmentRule(
        value="severity", confidence="sure", rationale="because", says=r"looks (?P<value>minor|major|critical)"
    ),
    lists={"services": ListRule(tool="name_affected", argument="services", policy=SERVICES, expected="/services")},
    reads=ReadingRule(tool="query_metric", name="metric", value="reading"),
    ends=("declare",),
    detectors=(
        Detector(
            slot="symptom",
            words={"down": ("cannot", "nobody can"), "slow": ("ages", "slow", "late"), "wrong": ("wrong", "missing")},
            even_denied=True,
        ),
        Detector(slot="since", pattern=r"\bsince (?P<value>[\w ]{3,20})"),
    ),
    slots=("symptom", "since"),
)
REPORTER = Persona(
    name="Support lead", patience=0.4, assertiveness=0.7, politeness=0.6, technical_level=0.6,
    communication_style=CommunicationStyle.CASUAL, background="You lead the support desk and pass on complaints.",
)  # fmt: skip


class Incident(Strict):
    """One invented incident, as the data file has it."""

    id: str
    says: str
    more: str
    severity: str
    metrics: dict[str, float]
    services: tuple[str, ...]


@cache
def incidents() -> tuple[Incident, ...]:
    """All incidents."""
    return read_data(Path(__file__).parent / "incidents.yaml", TypeAdapter(tuple[Incident, ...]))


def incident_cases(variant: str, seed: int) -> list[SimulationDatapoint]:
    """One datapoint for each incident."""
    del variant, seed
    return [_case(incident) for incident in incidents()]


def _case(incident: Incident) -> SimulationDatapoint:
    metrics: dict[str, JsonValue] = dict(incident.metrics.items())
    scenario = Scenario(
        name=incident.id,
        goal="Report the problem to the engineer on call",
        knows={"problem": incident.says, "details": incident.more},
        script=[incident.says, incident.more, "I do not know more than that."],
        environment="incident",
        setup={"metrics": metrics},
        goal_check=Check(tool_called=ToolCheck(name="declare", outcome="accepted")),
        truth={"severity": incident.severity, "services": [*incident.services]},
        cognition=RULES,
    )
    return SimulationDatapoint(id=incident.id, persona=REPORTER, scenario=scenario)


PACK = Pack(
    name="incident",
    about="An engineer on call finds out how bad an incident is.",
    cases=incident_cases,
    agent=incident_responder,
    instructions=responder_instructions,
    evaluators=("goal_achieved", "decision_correct", "decision_closeness", "slot_coverage", "list_f1"),
)

__all__ = ["PACK", "incident_environment"]
