"""One conversation read out of a run as a trace document; also of one that failed, broke off or was killed.

A pure projection: the plan says what was asked for, the events what happened. ``trace_events`` is its inverse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from evaluatorq.conversation.machine import Conversation, apply, begin
from evaluatorq.errors import ProtocolError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import REDACTED, Event, Noted, Resumed, Scored, Started
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.model.trace import DatapointRef, EnvironmentRef, RunRef, Start, Step, TargetRef, Trace
from evaluatorq.records.fingerprint import fingerprint
from evaluatorq.records.trace_case import case_document, content_hash
from evaluatorq.records.trace_outcome import Reached, caveats_of, outcome_of, totals_of, verdicts_of
from evaluatorq.records.trace_rules import rules_of
from evaluatorq.records.trace_steps import Calls, Place, note, steps_of

OWN_PARTS = {"own_user": "user_simulator", "own_judge": "judge", "own_scoring": "scoring"}
"""Flags for what was not the package's own, so that a replay does not take it for that; and the options that say so."""


def trace_of(plan: RunPlan, row: int, events: Iterable[Event]) -> Trace:
    """The trace of the conversation of datapoint ``row``, made of its events in order."""
    walk = Walk(begin(plan.datapoints[row], plan.limits))
    for event in events:
        walk.take(event)
    return document_of(walk, run_ref(plan), plan.thread_id(row), row)


def document_of(walk: Walk, run: RunRef, thread_id: str, row: int, *, saved: SimulationResult | None = None) -> Trace:
    """The trace of the events that a walk has taken; ``saved`` is what they came to where they do not tell it."""
    datapoint = walk.state.datapoint
    reached = Reached.of(walk.state, walk.events, thread_id, row, walk.damaged)
    if saved is not None:
        reached = replace(reached, result=saved, recorded=True)
    return Trace(
        thread_id=thread_id,
        row=row,
        run=run,
        datapoint=DatapointRef(id=datapoint.id, fingerprint=fingerprint(datapoint)),
        environment=_environment(datapoint, walk.started),
        caveats=caveats_of(reached) or None,
        started=_start(walk.started),
        input=case_document(datapoint),
        steps=tuple(walk.steps),
        outcome=outcome_of(reached),
        verdicts=verdicts_of(reached),
        totals=totals_of(reached, walk.steps),
        snapshots=dict(walk.snapshots) or None,
        states=dict(walk.states) or None,
    )


@dataclass(slots=True)
class Walk:
    """Takes a conversation's events one by one: the state so far, the steps made of it, the states between them."""

    state: Conversation
    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    snapshots: dict[str, str] = field(default_factory=dict)
    states: dict[str, JsonValue] = field(default_factory=dict)
    started: Started | None = None
    damaged: int = 0
    redacted: bool = False
    _broken: bool = False
    _calls: Calls = field(default_factory=Calls)

    def take(self, event: Event) -> list[Step]:
        """The steps of the next event; none for one that does not fit, which is counted."""
        restart = isinstance(event, Resumed) and event.restart
        if self._broken and not restart:
            self.damaged += 1
            return []
        before = self.state
        try:
            self.state = apply(before, event)
        except ProtocolError:
            self._broken = True
            self.damaged += 1
            return []
        self._broken = False
        if isinstance(event, Started):
            self.started = event
            self._calls.tools = event.tools
        if restart:
            self._abandon()
        self.redacted = self.redacted or (isinstance(event, Noted) and event.what == REDACTED)
        made = self._steps(Place(len(self.events), event, before, self.state, self._calls, self.redacted))
        self.events.append(event)
        self.steps += made
        self._snapshot()
        return made

    def _steps(self, place: Place) -> list[Step]:
        made: list[Step] = [note(place)] if isinstance(place.event, Noted | Scored) else steps_of(place)
        return [*made, *rules_of(place, made)]

    def _abandon(self) -> None:
        """What was said before a restart is kept, and is not part of the conversation any more."""
        self.steps = [step.model_copy(update={"abandoned": True, "loss_mask": True}) for step in self.steps]
        self._calls = Calls(self._calls.tools)

    def _snapshot(self) -> None:
        world = self.state.environment
        if world.present:
            reference = content_hash(world.state)
            self.snapshots[f"s{len(self.steps)}"] = reference
            self.states[reference] = world.state


# ---------------------------------------------------------------- header


def run_ref(plan: RunPlan) -> RunRef:
    """The run as its traces name it."""
    target = TargetRef(kind=plan.target_kind, name=plan.target, type=plan.target_type, model=plan.target_model)
    own = {flag: True for flag, option in OWN_PARTS.items() if plan.config.get(option) is not None}
    return RunRef.model_validate(
        {
            "id": plan.run_id,
            "name": plan.run_name,
            "created_at": plan.created_at,
            "mode": plan.mode,
            "target": target,
            "limits": plan.limits,
            "seed": plan.seed,
            "offline": plan.offline,
            "config_hash": content_hash(dict(plan.config)),
            "models": plan.models or None,
            "versions": plan.versions or None,
            "replayed_from": plan.replayed_from,
            "pack": plan.config.get("pack"),
            **own,
        }
    )


def _start(started: Started | None) -> Start | None:
    if started is None:
        return None
    return Start(at=started.at, attempt=started.attempt, has_environment=started.has_environment)


def _environment(datapoint: SimulationDatapoint, started: Started | None) -> EnvironmentRef | None:
    name = datapoint.scenario.environment
    tools = started.tools if started is not None else {}
    if name is None and not (started is not None and started.has_environment):
        return None
    scenario = case_document(datapoint)["scenario"]
    said = scenario if isinstance(scenario, dict) else {}
    declared: dict[str, JsonValue] = {key: said[key] for key in ("setup", "events", "tools") if key in said}
    facts: JsonValue = {"name": name, **declared, "registered": dict(tools)}
    return EnvironmentRef(name=name, hash=content_hash(facts), tools=dict(tools) or None)
