"""The on-call desk as a world: metrics that are looked up, services put on record as affected, and the declaration.

Unlike the triage desk its scale is made of words, the gravest last, and what it reads out may be text.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from evaluatorq.environments.toolbox import Toolbox, ToolRefused, tool
from evaluatorq.model.cognition import AcceptPolicy
from evaluatorq.records.accept import Acceptance

SERVICES = AcceptPolicy(keep="normalised", cap=3, per="run")
Severity = Annotated[Literal["minor", "major", "critical"], "How bad the incident is, as you see it now."]
Sure = Annotated[float, Field(ge=0, le=1), "How sure you are, from 0 to 1."]


class IncidentWorld(BaseModel):
    """What monitoring knows, which services are named as affected, and what was declared."""

    model_config = ConfigDict(extra="forbid")

    metrics: dict[str, JsonValue] = Field(default_factory=dict)
    affected: list[str] = Field(default_factory=list)
    declared: str | None = None


@tool(idempotent=True)
def query_metric(
    state: IncidentWorld, metric: Annotated[str, "The metric: error_rate, latency_ms, users_hit or backlog."]
) -> dict[str, object]:
    """Reads one metric of the last five minutes."""
    if metric not in state.metrics:
        raise ToolRefused(f"there is no metric {metric}; there is {', '.join(state.metrics)}", code="unknown_metric")
    return {"metric": metric, "reading": state.metrics[metric]}


@tool
def name_affected(
    state: IncidentWorld,
    services: Annotated[list[str], "Services that do not work; at most three are kept."],
    severity: Severity,
    sure: Sure,
) -> dict[str, object]:
    """Puts affected services on record."""
    del severity, sure
    growing = Acceptance(SERVICES)
    growing.propose([*state.affected])
    verdicts = growing.propose([*services])
    state.affected = growing.accepted
    return {"on_record": state.affected, "refused": [one.value for one in verdicts if one.refused is not None]}


@tool
def declare(
    state: IncidentWorld, severity: Severity, sure: Sure, because: Annotated[str, "Why, in a sentence."]
) -> dict[str, object]:
    """Declares the incident with its severity and ends the call."""
    del sure, because
    if state.declared is not None:
        raise ToolRefused("the incident is declared already", code="declared")
    state.declared = severity
    return {"declared": severity}


def incident_environment(seed: int = 0) -> Toolbox[IncidentWorld]:
    """The desk with its tools; a case's setup says what monitoring knows."""
    del seed
    return Toolbox(IncidentWorld(), (query_metric, name_affected, declare))
