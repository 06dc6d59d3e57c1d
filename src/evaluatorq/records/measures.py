"""One thing measured on both sides of a comparison, with the datapoint as the unit, and what that shows.

A datapoint's samples are averaged first; tests, intervals and smallest differences are over datapoints.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import truediv
from statistics import stdev
from typing import Literal

from evaluatorq.model.base import Record
from evaluatorq.records.power import LEAST_DATAPOINTS, Noise, smallest_loss, smallest_shift
from evaluatorq.records.statistics import (
    ALPHA,
    Interval,
    benjamini_hochberg,
    least_p,
    paired_mean_interval,
    paired_rate_interval,
    paired_test,
)

Word = Literal["better", "worse", "more", "less", "no difference shown", "could not measure"]
Kind = Literal["conversations", "goal", "criterion", "evaluator", "resource"]
CaseKey = tuple[str, ...]


class Measure(Record):
    """One measure of a comparison. Means, difference and interval are over ``datapoints``; ``up`` and ``down`` count
    those whose mean rose and fell; ``left_out`` counts pairs of conversations in which one side was not decided.

    ``p_value`` is of the paired test; ``adjusted`` is it after correction over all measures that could have shown
    something, and ``None`` where too few datapoints differ. ``smallest`` is the smallest difference that these
    datapoints show four times in five. ``noise`` is the difference between two runs of one agent.
    """

    kind: Kind
    name: str
    scenario: str | None = None
    word: Word = "could not measure"
    why: str = ""
    datapoints: int = 0
    left_out: int = 0
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    up: int = 0
    down: int = 0
    p_value: float | None = None
    adjusted: float | None = None
    smallest: float | None = None
    noise: float | None = None

    @property
    def within_noise(self) -> bool:
        """The same agent run twice differs as much; ``False`` where nobody knows."""
        return None not in (self.noise, self.difference) and abs(self.difference or 0) <= abs(self.noise or 0)

    @property
    def label(self) -> str:
        """What to call it."""
        return f"{self.scenario}: {self.name}" if self.scenario else self.name


@dataclass(slots=True)
class Column:
    """The values of one measure, summed for each datapoint as pairs come in, those of a datapoint one after another."""

    kind: Kind
    name: str
    scenario: str | None = None
    left_out: int = 0
    _cases: list[CaseKey] = field(default_factory=list)
    _a: array[float] = field(default_factory=lambda: array("d"))
    _b: array[float] = field(default_factory=lambda: array("d"))
    _samples: array[int] = field(default_factory=lambda: array("I"))
    _binary: bool = True

    def add(self, case: CaseKey, a: float | bool | None, b: float | bool | None) -> None:
        """Adds one pair of conversations; a pair that is not decided on both sides is left out."""
        if a is None or b is None:
            self.left_out += 1
            return
        if not self._cases or self._cases[-1] != case:
            self._cases.append(case)
            self._a.append(0.0)
            self._b.append(0.0)
            self._samples.append(0)
        self._binary = self._binary and a in (0, 1) and b in (0, 1)
        self._a[-1] += a
        self._b[-1] += b
        self._samples[-1] += 1

    @property
    def differences(self) -> list[float]:
        """B minus A, a mean for each datapoint."""
        return [(b - a) / n for a, b, n in zip(self._a, self._b, self._samples, strict=True)]

    @property
    def down(self) -> int:
        """How many datapoints have less in B than in A."""
        return sum(difference < 0 for difference in self.differences)

    def changes(self) -> dict[CaseKey, float]:
        """The datapoints whose mean differs, and by how much."""
        return {case: change for case, change in zip(self._cases, self.differences, strict=True) if change}

    def measure(self, control: Column | None, seed: int) -> Measure:
        """The measure without its word, which takes all measures together."""
        differences, n = self.differences, len(self._cases)
        base = Measure(kind=self.kind, name=self.name, scenario=self.scenario, datapoints=n, left_out=self.left_out)
        if not n:
            return base.model_copy(update={"why": "nothing was decided on both sides"})
        interval = self._interval(differences, seed)
        up, down = sum(d > 0 for d in differences), self.down
        p_value = paired_test(differences, seed)
        return base.model_copy(
            update={
                "a": math.fsum(map(truediv, self._a, self._samples)) / n,
                "b": math.fsum(map(truediv, self._b, self._samples)) / n,
                "difference": math.fsum(differences) / n,
                "low": interval.low if interval else None,
                "high": interval.high if interval else None,
                "up": up,
                "down": down,
                "p_value": p_value,
                "smallest": self._smallest(differences, control, p_value),
                "noise": control.mean_difference if control else None,
            }
        )

    @property
    def mean_difference(self) -> float | None:
        """B minus A over all datapoints, ``None`` without any."""
        return math.fsum(self.differences) / len(self._cases) if self._cases else None

    def _interval(self, differences: Sequence[float], seed: int) -> Interval | None:
        return paired_rate_interval(differences) if self._binary else paired_mean_interval(differences, seed)

    def _smallest(self, differences: Sequence[float], control: Column | None, p_value: float) -> float | None:
        n, again = len(differences), control.differences if control is not None else []
        if self._binary:
            return smallest_loss(n, self._noise(differences, again, p_value))
        chance = again if len(again) > 1 else differences
        deviation = stdev(chance) if len(chance) > 1 else 0.0
        return smallest_shift(n, deviation) if deviation else None

    def _noise(self, differences: Sequence[float], again: Sequence[float], p_value: float) -> Noise:
        """What differs for no reason: what the control run shows, else all that is not shown to have a reason."""
        samples = max(self._samples)
        if not again and p_value <= ALPHA:
            rarer = min(([d for d in differences if d > 0], [d for d in differences if d < 0]), key=len)
            differences = [*rarer, *rarer, *[0.0] * (len(differences) - 2 * len(rarer))]
        return Noise.of(again or differences, samples)

    def could_show(self) -> bool:
        """Enough datapoints differ for a significant result to be possible at all."""
        return least_p(self.differences) <= ALPHA


def judged(columns: Iterable[tuple[Column, Column | None]], seed: int) -> list[Measure]:
    """The measures with their words. ``columns`` come with those of the control run, where there is one.

    The correction is over the measures in which enough datapoints differ for a result to be possible: how many differ
    says nothing about the direction, so leaving the others out costs no error (Gilbert, JRSS C 54, 2005).
    """
    measures: list[Measure] = []
    family: dict[int, float] = {}
    for i, (column, control) in enumerate(columns):
        measures.append(column.measure(control, seed))
        p_value = measures[i].p_value
        if p_value is not None and column.could_show():
            family[i] = p_value
    adjusted = dict(zip(family, benjamini_hochberg(list(family.values())), strict=True))
    for i, measure in enumerate(measures):  # in place: a run may have ten thousand criteria
        measures[i] = worded(measure.model_copy(update={"adjusted": adjusted.get(i)}), adjusted.get(i))
    return measures


def worded(measure: Measure, p_value: float | None) -> Measure:
    """The measure with the word that ``p_value`` (corrected, where that is due) allows."""
    word, why = _word(measure, p_value)
    return measure.model_copy(update={"word": word, "why": why})


def _word(measure: Measure, p_value: float | None) -> tuple[Word, str]:
    if measure.difference is None:
        return "could not measure", measure.why
    if measure.datapoints < LEAST_DATAPOINTS:
        return "could not measure", f"{measure.datapoints} datapoints are too few to tell any change from chance"
    if p_value is None or p_value > ALPHA:
        return "no difference shown", ""
    if measure.within_noise:
        return "no difference shown", "the same agent run twice differs as much"
    if measure.kind == "resource":
        return ("more" if measure.difference > 0 else "less"), ""
    return ("better" if measure.difference > 0 else "worse"), ""
