"""What an agent held, was told and had refused, as lines beside the rows of the transcript in which they came up.

A level that is held on is said once: the next line comes when value, confidence or reasons are other ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from evaluatorq.conversation.checks import value_at
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.cognition import CognitionRecord
from evaluatorq.reports.text import one_line

Line = tuple[str, str]
"""What kind of line it is (``holds``, ``learns``, ``refused``), and its text."""
_SOURCES = {"structured_output": "returned with the words", "tool": "from the call", "extractor": "read in the words"}


def lines_beside(record: CognitionRecord | None) -> Mapping[int, tuple[Line, ...]]:
    """The lines by row of the transcript."""
    found: defaultdict[int, list[Line]] = defaultdict(list)
    for row, line in _all(record or CognitionRecord()):
        found[row].append(line)
    return {row: tuple(lines) for row, lines in found.items()}


def _all(record: CognitionRecord) -> Iterator[tuple[int, Line]]:
    before: Assessment | None = None
    for step in record.assessments:
        held = step.assessment
        if before is None or _held(held) != _held(before):
            yield step.row, ("holds", _told(held))
        before = held
    for decided in (one for items in record.lists.values() for one in items if not one.accepted):
        yield decided.row, ("refused", f"{_value(decided.value)}: {decided.refused}")
    yield from _learnt(record)


def _learnt(record: CognitionRecord) -> Iterator[tuple[int, Line]]:
    """Values from what was said; what a tool read out stands in its answer."""
    graph = record.belief
    for slot, items in graph.slots.items():
        for index, item in enumerate(items):
            for evidence in graph.evidence_for(slot, index):
                if evidence.row is not None and item.source != "tool":
                    name = one_line(slot.replace("_", " "))
                    yield evidence.row, ("learns", f"{name}: {_value(item.value)} ({item.source}, {item.certainty})")


def _held(one: Assessment) -> tuple[JsonValue, ...]:
    return one.value, one.confidence, one.rationale


def _told(held: Assessment) -> str:
    sure = "" if held.confidence is None else f", {_value(held.confidence)}"
    why = "" if held.rationale is None else f": {one_line(held.rationale, 300)}"
    return f"{_value(held.value)}{sure}{why} ({_SOURCES[held.source]})"


def _value(value: JsonValue) -> str:
    return "nothing" if value is None else one_line(str(value), 120)


def path_of(record: CognitionRecord | None) -> str | None:
    """The levels one after the other with the turns that they began in, and the right one where it is known."""
    if record is None or not record.assessments:
        return None
    path: list[str] = []
    last: JsonValue = None
    for step in record.assessments:
        if step.assessment.value != last and step.assessment.value is not None:
            path.append(f"{_value(step.assessment.value)} (turn {step.turn})")
            last = step.assessment.value
    right = None if record.rules is None else value_at(record.truth, record.rules.decides)
    return (" → ".join(path) or "no level") + ("" if right is None else f"; right is {_value(right)}")


__all__ = ["Line", "lines_beside", "path_of"]
