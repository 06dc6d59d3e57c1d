"""A conversation as a run artifact: one plain JSON object with seven keys, enough to be analysed without anything else.

``run_id``, ``ground_truth``, ``state``, ``history`` (the transcript), ``trace`` (what the agent held at each step),
``belief`` (the flat view) and ``red_flags`` (what was accepted). The words of the shape are those of its first domain
and stay the same in any other: the agent is a ``nurse``, the user a ``patient``, a reading a ``vital``, a level a
``triage``. A conversation of a case without rules has an artifact too; what nobody told is then absent or null.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from evaluatorq.model.assessments import Assessment, Level, StepAssessment
from evaluatorq.model.cognition import CognitionRecord, Reading
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.belief import flat_view
from evaluatorq.records.cognition import NO_RULES
from evaluatorq.records.steps import Step, steps_of

KEYS = ("run_id", "ground_truth", "state", "history", "trace", "belief", "red_flags")
LIST = "red_flags"
SOURCES: Mapping[str, str] = {
    "user": "patient", "agent": "nurse", "tool": "system_vital", "other": "system_other",
}  # fmt: skip
_NOTHING = CognitionRecord()
Row = dict[str, JsonValue]


def to_artifact(result: SimulationResult) -> dict[str, JsonValue]:
    """The artifact of one conversation, JSON-native. The same result always gives the same artifact."""
    reader = _Reader(result)
    truth: JsonValue = {} if reader.record.truth is None else reader.record.truth
    flags: list[JsonValue] = [*reader.accepted()]
    return {
        "run_id": _run_id(result),
        "ground_truth": truth,
        "state": {"ground_truth": truth, "turn": reader.turns, "done": not result.errored},
        "history": [*reader.history()],
        "trace": [*reader.trace()],
        "belief": reader.belief(),
        "red_flags": flags,
    }


def _run_id(result: SimulationResult) -> str:
    """A UUID in the form of version 4, made of the conversation's identity so that exporting twice gives it twice."""
    identity = result.thread_id or f"{result.metadata.get('datapoint_id')}:{result.row}"
    digest = hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    variant = "89ab"[int(digest[16], 16) % 4]
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:]}"


class _Reader:
    """One result, looked at for its artifact."""

    def __init__(self, result: SimulationResult) -> None:
        self._messages = result.messages
        self.record = result.cognition or _NOTHING
        self._rules = self.record.rules or NO_RULES
        self._steps = list(steps_of(result.messages))
        self._own = {(one.row, one.call): one.assessment for one in self.record.assessments}
        self._held = dict(_held(self._steps, self.record.assessments))
        self._readings = {reading.call: reading for reading in self.record.readings}
        self.turns = sum(row.role == "user" for row in result.messages)

    # ------------------------------------------------------------ history

    def history(self) -> Iterator[Row]:
        """Who said what, what was read out and the end, in order."""
        at = {step.row: [other for other in self._steps if other.row == step.row] for step in self._steps}
        turn = 0
        for index, row in enumerate(self._messages):
            if row.role == "user":
                yield {"turn": turn, "actor": "patient", "utterance": row.text}
                turn += 1
            for step in at.get(index, ()):
                yield from self._told(step)

    def _told(self, step: Step) -> Iterator[Row]:
        if step.call is None:
            yield {"turn": step.turn, "actor": "nurse", "utterance": step.text, "triage": self._level(step)}
        elif (reading := self._readings.get(step.call.id)) is not None:
            yield {"turn": step.turn, "actor": "system", "event": "vital", "name": reading.name, "value": reading.value}
        elif step.tool in self._rules.ends and step.done:
            yield {"turn": step.turn, "actor": "system", "event": "triage_end"}

    # ------------------------------------------------------------ trace

    def trace(self) -> Iterator[Row]:
        """Every step with what was held at it. A step that says nothing of its own has the level held so far."""
        for step in self._steps:
            own, held = self._own.get(_key(step)), self._held.get(_key(step))
            confidence = None if held is None else held.confidence
            yield {
                "turn": step.turn,
                "actor": "nurse",
                "action": self._action(step),
                "triage": self._level(step),
                "confidence": confidence,
                "explanation": "" if own is None else own.rationale or "",
                "red_flags_proposed": self._proposed(step, own),
            }

    def _action(self, step: Step) -> Row:
        rule = self._rules.lists.get(LIST)
        if step.call is None:
            return {"type": "utterance", "utterance": step.text, "triage": self._level(step)}
        if self._rules.reads is not None and step.tool == self._rules.reads.tool:
            asked = step.arguments.get(self._rules.reads.name)
            reading: Reading | None = self._readings.get(step.call.id)
            return {"type": "check_vital", "vital": asked if reading is None else reading.name}
        if rule is not None and step.tool == rule.tool:
            return {"type": "log_red_flag", "red_flags": step.arguments.get(rule.argument, [])}
        if step.tool in self._rules.ends:
            return {"type": "end", "triage": self._level(step)}
        own = {} if _key(step) not in self._own else {"triage": self._level(step)}
        return {"type": step.tool, **step.arguments, **own}

    def _proposed(self, step: Step, own: Assessment | None) -> JsonValue:
        if own is not None and LIST in own.proposed:
            return [*own.proposed[LIST]]
        rule = self._rules.lists.get(LIST)
        if rule is None or step.tool != rule.tool:
            return []
        given = step.arguments.get(rule.argument, [])
        return given if isinstance(given, list) else [given]

    def _level(self, step: Step) -> JsonValue:
        held = self._held.get(_key(step))
        if held is None:
            return None
        level: Level | None = None if self._rules.scale is None else self._rules.scale.level(held.value)
        return held.value if level is None else level

    # ------------------------------------------------------------ beliefs

    def accepted(self) -> list[str]:
        """The accepted items, in the order in which they were put on record."""
        return [one.stored for one in self.record.lists.get(LIST, ()) if one.stored is not None]

    def belief(self) -> Row:
        """The flat view, with what was read out and what was put on record."""
        known: list[JsonValue] = [*sorted({reading.name for reading in self.record.readings})]
        logged: list[JsonValue] = [*sorted({flag.strip() for flag in self.accepted()})]
        view = flat_view(self.record.belief, sources=SOURCES, reserved=("vitals_known", "red_flags_logged"))
        slots: Row = {slot: [*rows] for slot, rows in view.items()}
        return {**slots, "vitals_known": known, "red_flags_logged": logged}


def _key(step: Step) -> tuple[int, str | None]:
    return step.row, None if step.call is None else step.call.id


def _held(
    steps: Sequence[Step], assessments: Sequence[StepAssessment]
) -> Iterator[tuple[tuple[int, str | None], Assessment]]:
    """What was held at each step: its own assessment, else the latest before it. Words that come with a call are held
    with what the call says.
    """
    own = {(one.row, one.call): one.assessment for one in assessments}
    beside = {one.row: one.assessment for one in reversed(assessments)}
    held: Assessment | None = None
    for step in steps:
        held = own.get(_key(step)) or (beside.get(step.row) if step.call is None else None) or held
        if held is not None:
            yield _key(step), held


__all__ = ["KEYS", "SOURCES", "to_artifact"]
