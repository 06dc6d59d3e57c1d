"""Where a replay parted from its recording: which step, which place in it, what was recorded and what came now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from evaluatorq.conversation.checks import same_json
from evaluatorq.model.trace import Step

DriftKind = Literal["request_drift", "result_drift", "missing_step", "extra_step", "terminal_drift"]
Mode = Literal["reexecuted", "substituted", "live", "skipped"]
NOT_COMPARED = {"at", "latency_ms"}
"""When something happened and how long it took."""
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference.

    ``request_drift``: another question is asked now. ``result_drift``: a step came to something else. ``missing_step``:
    a step is due now that was not recorded. ``extra_step``: a recorded step is not due now. ``terminal_drift``: the
    conversation ends otherwise. ``step`` counts the recorded steps from 0; ``path`` is a JSON pointer into the step, or
    into the document where ``step`` is ``None``. An absent value is ``None``.
    """

    kind: DriftKind
    step: int | None
    path: str
    recorded: JsonValue
    replayed: JsonValue

    def __str__(self) -> str:
        place = "" if self.step is None else f"step {self.step} "
        return (
            f"{self.kind} at {place}{self.path or '/'}: recorded {_short(self.recorded)}, now {_short(self.replayed)}"
        )


def _short(value: JsonValue) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def differences(recorded: JsonValue, replayed: JsonValue, path: str = "") -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Every innermost place where two JSON values differ, with both values."""
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        for key in dict.fromkeys((*recorded, *replayed)):
            token = key.replace("~", "~0").replace("/", "~1")
            yield from differences(recorded.get(key), replayed.get(key), f"{path}/{token}")
    elif isinstance(recorded, list) and isinstance(replayed, list) and len(recorded) == len(replayed):
        for number, pair in enumerate(zip(recorded, replayed, strict=True)):
            yield from differences(*pair, f"{path}/{number}")
    elif not same_json(recorded, replayed):
        yield path, recorded, replayed


def step_drifts(recorded: Sequence[Step], replayed: Sequence[Step], first: int) -> Iterator[Drift]:
    """The differences between two lists of steps that were made of one event."""
    for number, (old, new) in enumerate(zip(recorded, replayed, strict=False)):
        for path, before, after in differences(_document(old), _document(new)):
            yield Drift("result_drift", first + number, path, before, after)
    for number, step in enumerate(recorded[len(replayed) :], len(replayed)):
        yield Drift("extra_step", first + number, "", _document(step), None)
    for number, step in enumerate(replayed[len(recorded) :], len(recorded)):
        yield Drift("missing_step", first + number, "", None, _document(step))


def _document(step: Step) -> dict[str, JsonValue]:
    return step.model_dump(mode="json", exclude_none=True, exclude=NOT_COMPARED)
