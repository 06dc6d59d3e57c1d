"""What the gate snippet of the published output reference objects to, read from a result exactly as it reads it.

It looks at the raw entries of ``criteria_meta``, so an entry that lacks what it looks at is an objection too (there the
snippet ends with an exception, which fails a build as well).
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from evaluatorq.model.results import SimulationResult
from evaluatorq.records.verdicts import goal_of


def objections(result: SimulationResult) -> Iterator[str]:
    """Why this conversation breaks a build; nothing when it does not."""
    if result.errored:
        yield f"{result.terminated_by.value}: {result.reason}"
    elif not result.goal_achieved:
        undecided = goal_of(result) is None
        yield "nobody could decide whether the goal was reached" if undecided else f"goal not achieved: {result.reason}"
    yield from _of_criteria(result.metadata.get("criteria_meta"))
    if result.criteria_verified is not True:
        yield "criteria not verified"


def _of_criteria(entries: JsonValue) -> Iterator[str]:
    if not entries:
        return
    if not isinstance(entries, list):
        yield "the record of its criteria cannot be read"
        return
    for entry in entries:
        if not isinstance(entry, dict) or "passed" not in entry:
            yield "a criterion's record cannot be read"
        elif not entry["passed"]:
            yield f"failed {_named(entry)}"
        elif entry.get("audited") is False:
            yield f"{_named(entry)} never audited"


def _named(entry: dict[str, JsonValue]) -> str:
    return f"{entry.get('id', 'a criterion without id')} {entry.get('description', '')}".rstrip()
