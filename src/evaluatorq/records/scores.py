"""Evaluator scores as they were saved: which are numbers that a mean may use, and why the others are not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from evaluatorq.model.results import SimulationResult

Unscored = Literal["missing", "not a number", "abstained", "out of range"]


def read_score(value: object) -> float | Unscored:
    """The score, or why it is none: only finite numbers from 0 to 1 can be averaged into a rate."""
    if value is None:
        return "missing"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "abstained"
    if math.isnan(value):
        return "not a number"
    return float(value) if 0 <= value <= 1 else "out of range"


def scores_by_name(result: SimulationResult, names: Iterable[str] = ()) -> dict[str, float | Unscored]:
    """Every evaluator's score of a result; ``names`` are evaluators that should have one."""
    given, failed = result.metadata.get("evaluator_scores"), result.metadata.get("evaluator_errors")
    read: dict[str, float | Unscored] = dict.fromkeys(names, "missing")
    if isinstance(failed, dict):
        read.update(dict.fromkeys(failed, "missing"))
    if isinstance(given, dict):
        read.update({name: read_score(value) for name, value in given.items()})
    return read


@dataclass(slots=True)
class ScoreTally:
    """One evaluator over a run: the mean of what is valid, and how many are left out for which reason."""

    total: float = 0.0
    valid: int = 0
    left_out: Counter[Unscored] = field(default_factory=Counter)

    def add(self, score: float | Unscored) -> None:
        """Counts one more conversation."""
        if isinstance(score, str):
            self.left_out[score] += 1
        else:
            self.valid += 1
            self.total += score

    @property
    def missing(self) -> int:
        """How many conversations have no valid score."""
        return self.left_out.total()

    @property
    def mean(self) -> float | None:
        """The mean of the valid scores, ``None`` without any."""
        return self.total / self.valid if self.valid else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """What the mean of all could be, were every missing score 0 or 1; ``None`` without conversations."""
        count = self.valid + self.missing
        return (self.total / count, (self.total + self.missing) / count) if count else None


def tally(scores: Iterable[object]) -> ScoreTally:
    """The tally of raw values as they stand in a file."""
    counted = ScoreTally()
    for value in scores:
        counted.add(read_score(value))
    return counted
