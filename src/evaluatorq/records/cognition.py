"""What the agent of a conversation believed and why, read off its transcript by the rules of its case.

Pure over rows: a saved transcript can be read again by other rules. Only two things come from elsewhere: assessments
that the agent returned beside its words, and beliefs that were noted while the conversation went on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue, ValidationError

from evaluatorq.conversation.machine import Conversation
from evaluatorq.model.assessments import Assessment, StepAssessment
from evaluatorq.model.belief import BeliefGraph, BeliefUpdate
from evaluatorq.model.cognition import (
    AssessmentRule,
    Cognition,
    CognitionRecord,
    Decided,
    ListRule,
    Reading,
    ReadingRule,
    compiled,
)
from evaluatorq.model.messages import Message
from evaluatorq.records.accept import Acceptance
from evaluatorq.records.belief import graph_of
from evaluatorq.records.detectors import detect
from evaluatorq.records.secrecy import secrecy_of
from evaluatorq.records.steps import Step, steps_of, turn_at

NO_RULES = Cognition()


def cognition_of(conversation: Conversation) -> CognitionRecord | None:
    """The record of a conversation; ``None`` where its case has no rules and no truth and its agent told nothing."""
    scenario = conversation.scenario
    if (
        scenario.cognition is None
        and scenario.truth is None
        and not conversation.assessments
        and not conversation.beliefs
    ):
        return None
    record = read_cognition(
        scenario.cognition or NO_RULES,
        conversation.messages,
        returned=dict(conversation.assessments),
        noted=_updates(conversation.beliefs, conversation.messages),
    )
    secrecy = None if scenario.truth is None else secrecy_of(conversation.datapoint, conversation.messages)
    return record.model_copy(update={"truth": scenario.truth, "secrecy": secrecy})


def read_cognition(
    rules: Cognition,
    messages: Sequence[Message],
    *,
    returned: Mapping[int, Assessment] | None = None,
    noted: Iterable[BeliefUpdate] = (),
) -> CognitionRecord:
    """A transcript read by ``rules``. ``returned`` are assessments by row that stand in no row, ``noted`` beliefs that
    somebody else put forward.
    """
    steps = list(steps_of(messages))
    lists = {name: tuple(_decided(rule, steps)) for name, rule in rules.lists.items()}
    readings = tuple(_readings(rules.reads, steps)) if rules.reads is not None else ()
    return CognitionRecord(
        rules=None if rules is NO_RULES else rules.model_copy(update={"detectors": ()}),
        assessments=tuple(_assessments(rules.assess, steps, returned or {})),
        lists=lists,
        readings=readings,
        belief=_beliefs(rules, messages, lists, readings, noted),
    )


# ---------------------------------------------------------------- assessments


def _assessments(
    rule: AssessmentRule, steps: Sequence[Step], returned: Mapping[int, Assessment]
) -> Iterator[StepAssessment]:
    """One for each step that has one. What a call says of itself goes before what was returned with its row."""
    for step in steps:
        found = _by_tool(rule, step) or returned.get(step.row) or _by_words(rule, step)
        if found is not None:
            call = None if step.call is None else step.call.id
            yield StepAssessment(turn=step.turn, row=step.row, call=call, assessment=found)


def _by_tool(rule: AssessmentRule, step: Step) -> Assessment | None:
    arguments = step.arguments
    if step.call is None or (rule.tools is not None and step.tool not in rule.tools):
        return None
    value = arguments.get(rule.value)
    if value is None:
        return None
    confidence, rationale = arguments.get(rule.confidence), arguments.get(rule.rationale)
    return Assessment(
        value=value,
        confidence=confidence if isinstance(confidence, str | float | int) else None,
        rationale=rationale if isinstance(rationale, str) and rationale.strip() else None,
        proposed={name: _texts(arguments[key]) for name, key in rule.proposes.items() if key in arguments},
        source="tool",
    )


def _texts(value: JsonValue) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    return tuple(item for item in given if isinstance(item, str))


def _by_words(rule: AssessmentRule, step: Step) -> Assessment | None:
    """What the words themselves say; the last mention counts."""
    if rule.says is None or not step.text:
        return None
    match = None
    for match in compiled(rule.says).finditer(step.text):  # noqa: B007  the last one is wanted
        pass
    if match is None:
        return None
    groups = match.groupdict()
    return Assessment(
        value=groups["value"],
        confidence=groups.get("confidence"),
        rationale=groups.get("rationale"),
        source="extractor",
    )


# ---------------------------------------------------------------- lists and readings


def _decided(rule: ListRule, steps: Sequence[Step]) -> Iterator[Decided]:
    """What became of each item that was put forward; a call that the tool refused put nothing forward."""
    growing = Acceptance(rule.policy)
    for step in steps:
        if step.call is None or step.tool != rule.tool or not step.done or rule.argument not in step.arguments:
            continue
        for verdict in growing.propose(step.arguments[rule.argument], step.turn):
            yield Decided(
                turn=step.turn,
                row=step.row,
                call=step.call.id,
                value=verdict.value,
                stored=verdict.stored,
                refused=verdict.refused,
            )


def _readings(rule: ReadingRule, steps: Sequence[Step]) -> Iterator[Reading]:
    for step in steps:
        if step.call is None or step.tool != rule.tool or not step.done or step.answer is None:
            continue
        answer = _object(step.answer.text)
        name = answer.get(rule.name, step.arguments.get(rule.name))
        if isinstance(name, str):
            value = answer.get(rule.value)
            yield Reading(turn=step.turn, row=step.row, call=step.call.id, name=name, value=value)


def _object(text: str) -> dict[str, JsonValue]:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# ---------------------------------------------------------------- beliefs


def _beliefs(
    rules: Cognition,
    messages: Sequence[Message],
    lists: Mapping[str, Sequence[Decided]],
    readings: Sequence[Reading],
    noted: Iterable[BeliefUpdate],
) -> BeliefGraph:
    """Everything put forward, in the transcript's order: words, notes on them, readings, what was put on record."""
    updates = [*detect(rules.detectors, messages), *noted]
    updates += [_as_belief(reading) for reading in readings if reading.value is not None]
    for name, decided in lists.items():
        slot = rules.lists[name].slot
        if slot is not None:
            updates += [
                BeliefUpdate(slot=slot, value=one.stored, source="agent", turn=one.turn, row=one.row)
                for one in decided
                if one.accepted
            ]
    return graph_of(sorted(updates, key=lambda update: len(messages) if update.row is None else update.row))


def _as_belief(reading: Reading) -> BeliefUpdate:
    evidence = f"{reading.name} = {json.dumps(reading.value, ensure_ascii=False)}"
    return BeliefUpdate(
        slot=reading.name, value=reading.value, source="tool", turn=reading.turn, evidence=evidence, row=reading.row
    )


def _updates(noted: Iterable[JsonValue], messages: Sequence[Message]) -> Iterator[BeliefUpdate]:
    """Beliefs as they were noted: one, or several in a list. One without a turn gets that of its row."""
    for data in noted:
        for raw in data if isinstance(data, list) else [data]:
            try:
                update = BeliefUpdate.model_validate(raw)
            except ValidationError:
                continue
            if update.turn is None:
                row = len(messages) if update.row is None else update.row
                update = update.model_copy(update={"turn": turn_at(messages, row)})
            yield update
