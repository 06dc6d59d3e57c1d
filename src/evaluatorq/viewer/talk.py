"""What a conversation's page shows beside the transcript: what each turn did to the world, and what can be labelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from evaluatorq.model.labels import Label, Source
from evaluatorq.model.observation import Observation
from evaluatorq.records.verdicts import CriterionView
from evaluatorq.reports.transcript import ConversationView
from evaluatorq.viewer.choice import STATES


@dataclass(frozen=True, slots=True)
class StateChange:
    """A resource of the world before and after; ``outside`` where it was not the agent who changed it."""

    resource: str
    before: JsonValue
    after: JsonValue
    outside: bool


@dataclass(slots=True)
class TurnFacts:
    """What is known of one turn beside its words. ``decided`` are criteria whose evidence came up in it."""

    seen: Observation | None = None
    changes: list[StateChange] = field(default_factory=list)
    decided: list[CriterionView] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that can be labelled, with the label it has."""

    key: str
    rule: str
    said: str
    state: str
    source: Source | None
    evidence: str = ""
    criterion: CriterionView | None = None
    label: Label | None = None


def turn_facts(view: ConversationView) -> dict[int, TurnFacts]:
    """The facts of each turn by its number."""
    facts = {turn.number: TurnFacts() for turn in view.turns}
    for seen in view.result.observations:
        turn = facts.setdefault(seen.turn, TurnFacts())
        turn.seen = seen
        turn.changes += _changes(seen)
    for criterion in view.criteria:
        if criterion.turn is not None:
            facts.setdefault(criterion.turn, TurnFacts()).decided.append(criterion)
    return facts


def _changes(seen: Observation) -> Iterator[StateChange]:
    for states, outside in ((seen.outside, True), (seen.states, False)):
        for resource, change in (states or {}).items():
            for place, before, after in _differences(resource, change.before, change.after):
                yield StateChange(place, before, after, outside)


def _differences(place: str, before: JsonValue, after: JsonValue) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Only what differs of two objects, by JSON pointer; anything else as a whole."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        yield place, before, after
        return
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            inner = name.replace("~", "~0").replace("/", "~1")
            yield from _differences(f"{place}/{inner}", before.get(name), after.get(name))


def subjects_of(view: ConversationView, labels: Mapping[tuple[int, str], Label]) -> list[Subject]:
    """The verdicts of a conversation: on criteria, on the goal, and as a whole."""
    number = view.line.index
    goal: Source | None = "judge" if view.judge_goal is None else "check"
    known = {True: ("achieved", "pass"), False: ("not achieved", "fail"), None: ("undecided", "unknown")}
    said, state = known[view.goal_achieved]
    found = [_on_criterion(criterion, labels.get((number, criterion.id))) for criterion in view.criteria]
    found.append(
        Subject("goal", f"goal: {view.goal}" if view.goal else "goal", said, state,
                None if view.goal_achieved is None else goal, label=labels.get((number, "goal")))
    )  # fmt: skip
    whole = labels.get((number, "verdict"))
    return [*found, Subject("verdict", "the conversation as a whole", view.line.verdict, "", None, label=whole)]


def _on_criterion(criterion: CriterionView, label: Label | None) -> Subject:
    source: Source | None = "check" if criterion.by_check else "judge"
    if criterion.state == "unknown":
        source = None
    return Subject(
        criterion.id,
        criterion.rule,
        STATES[criterion.state],
        criterion.state,
        source,
        criterion.evidence,
        criterion,
        label,
    )


def label_of(view: ConversationView, subject: Subject, run_id: str | None, *, agrees: bool, note: str) -> Label:
    """The label that somebody puts on a verdict now."""
    result = view.result
    identity = result.metadata.get("datapoint_id")
    return Label(
        run_id=run_id,
        row=view.line.index,
        thread_id=result.thread_id,
        datapoint_id=identity if isinstance(identity, str) else None,
        persona=view.line.persona,
        scenario=view.line.scenario,
        subject=subject.key,
        rule=subject.rule,
        said=subject.said,
        source=subject.source,
        evidence=subject.evidence,
        agrees=agrees,
        note=note,
        at=datetime.now(UTC),
    )
