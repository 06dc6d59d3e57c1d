"""The metrics of many conversations as one: rates and means, each with its interval and with what was left out.

Samples of one case are not independent, so rates use an interval for clusters of samples and means are taken over
cases. A conversation that broke for no fault of the agent's is left out of everything, by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from statistics import fmean

from pydantic import Field

from evaluatorq.model.assessments import Scale
from evaluatorq.model.base import Record
from evaluatorq.records.metrics import BeliefMetrics, ListMatch, Match
from evaluatorq.records.statistics import clustered_wilson, paired_mean_interval


class Estimate(Record):
    """A rate or a mean over ``n`` conversations, with its 95 % interval; ``left_out`` counts the others by reason.

    ``None`` where there is nothing to take it of; no interval where one case alone says nothing about others.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    left_out: dict[str, int] = Field(default_factory=dict)


class ConfidenceBin(Record):
    """How often decisions made with one confidence were right; ``stated`` is the probability that it stands for."""

    confidence: str
    right: Estimate
    stated: float | None = None


class Calibration(Record):
    """Whether being sure goes with being right. ``brier`` and ``expected_error`` need stated probabilities."""

    bins: tuple[ConfidenceBin, ...] = ()
    brier: Estimate = Estimate()
    expected_error: float | None = None
    missing: dict[str, str] = Field(default_factory=dict)


class ListSummary(Record):
    """One list over all conversations: means over conversations, and the counts pooled."""

    precision: Estimate
    recall: Estimate
    f1: Estimate
    hits: int = 0
    surplus: int = 0
    lacking: int = 0


class MetricsSummary(Record):
    """A run's beliefs in numbers."""

    conversations: int
    correct: Estimate
    absolute_error: Estimate
    over: Estimate
    under: Estimate
    first_correct_turn: Estimate
    flips: Estimate
    wrong_share: Estimate
    slots: Estimate
    rationale: Estimate
    rationale_words: Estimate
    lists: dict[str, ListSummary] = Field(default_factory=dict)
    calibration: Calibration = Calibration()


Reader = Callable[[BeliefMetrics], tuple[float | None, str | None]]
"""A number of one conversation, or why there is none."""


def summarise(several: Iterable[BeliefMetrics], scale: Scale | None = None) -> MetricsSummary:
    """The summary of conversations in any order; ``scale`` says which probabilities confidences stand for."""
    every = list(several)
    names = dict.fromkeys(name for one in every for name in one.lists)
    return MetricsSummary(
        conversations=len(every),
        correct=_rate(every, _decision("correct")),
        absolute_error=_mean(every, _decision("absolute_error")),
        over=_rate(every, _decision("over")),
        under=_rate(every, _decision("under")),
        first_correct_turn=_mean(every, _decision("first_correct_turn")),
        flips=_mean(every, _decision("flips")),
        wrong_share=_mean(every, _wrong_share, 1),
        slots=_mean(every, lambda one: (one.slots.share, one.slots.missing.get("share")), 1),
        rationale=_mean(every, lambda one: (one.rationale.share, one.rationale.missing.get("share")), 1),
        rationale_words=_mean(every, lambda one: (one.rationale.mean_words, one.rationale.missing.get("mean_words"))),
        lists={name: _listed(every, name) for name in names},
        calibration=_calibration(every, scale),
    )


def _decision(name: str) -> Reader:
    def read(one: BeliefMetrics) -> tuple[float | None, str | None]:
        value: float | None = getattr(one.decision, name)
        return value, one.decision.missing.get(name)

    return read


def _wrong_share(one: BeliefMetrics) -> tuple[float | None, str | None]:
    decision = one.decision
    if decision.wrong_turns is None or not decision.held_turns:
        return None, decision.missing.get("wrong_turns")
    return decision.wrong_turns / decision.held_turns, None


# ---------------------------------------------------------------- estimates


def _by_case(every: Sequence[BeliefMetrics], read: Reader) -> tuple[dict[str, list[float]], Counter[str]]:
    cases: dict[str, list[float]] = {}
    left_out: Counter[str] = Counter()
    for one in every:
        value, reason = (None, one.left_out) if one.left_out else read(one)
        if value is None:
            left_out[reason or "unknown"] += 1
        else:
            cases.setdefault(one.case, []).append(float(value))
    return cases, left_out


def _rate(every: Sequence[BeliefMetrics], read: Reader) -> Estimate:
    cases, left_out = _by_case(every, read)
    clusters = [(round(sum(values)), len(values)) for values in cases.values()]
    n = sum(size for _, size in clusters)
    if not n:
        return Estimate(left_out=dict(left_out))
    hits = sum(right for right, _ in clusters)
    interval = clustered_wilson(clusters)
    share = hits / n
    return Estimate(value=share, low=interval.low, high=interval.high, n=n, left_out=dict(left_out))


def _mean(every: Sequence[BeliefMetrics], read: Reader, most: float = inf) -> Estimate:
    """The mean over cases, each with the mean of its samples, and its bootstrap interval.

    Every measure here is 0 or more and at most ``most``. The interval is cut at both, because the true mean is not
    beyond them: no interval loses the truth by it.
    """
    cases, left_out = _by_case(every, read)
    means = [fmean(values) for values in cases.values()]
    if not means:
        return Estimate(left_out=dict(left_out))
    interval = paired_mean_interval(means)
    low, high = (None, None) if interval is None else (max(0.0, interval.low), min(most, interval.high))
    n = sum(len(values) for values in cases.values())
    return Estimate(value=fmean(means), low=low, high=high, n=n, left_out=dict(left_out))


def _listed(every: Sequence[BeliefMetrics], name: str) -> ListSummary:
    def of(part: str) -> Reader:
        def read(one: BeliefMetrics) -> tuple[float | None, str | None]:
            match = _match(one.lists, name)
            value: float | None = None if match is None else getattr(match, part)
            return value, "the conversation has no such list" if match is None else match.missing.get(part)

        return read

    matches = [match for one in every if not one.left_out and (match := _match(one.lists, name)) is not None]
    return ListSummary(
        precision=_mean(every, of("precision"), 1),
        recall=_mean(every, of("recall"), 1),
        f1=_mean(every, of("f1"), 1),
        hits=sum(len(match.hits) for match in matches),
        surplus=sum(len(match.surplus) for match in matches),
        lacking=sum(len(match.lacking) for match in matches),
    )


def _match(lists: Mapping[str, ListMatch], name: str) -> Match | None:
    return lists[name].normalised if name in lists else None


# ---------------------------------------------------------------- calibration


def _calibration(every: Sequence[BeliefMetrics], scale: Scale | None) -> Calibration:
    """Final decisions by the confidence they were made with (Brier, Mon. Weather Rev. 78, 1950)."""
    words = [_word(one) for one in every]
    order = [*(scale.confidences if scale else ()), *sorted({word for word in words if word})]
    bins: list[ConfidenceBin] = []
    for word in dict.fromkeys(order):
        several = [one for one, said in zip(every, words, strict=True) if said == word]
        right = _rate(several, _decision("correct"))
        if right.n:
            bins.append(ConfidenceBin(confidence=word, right=right, stated=_stated(several, scale)))
    if not bins:
        return Calibration(missing=dict.fromkeys(("brier", "expected_error"), "no decision has a confidence"))
    if any(one.stated is None for one in bins):
        reason = "the scale declares no probabilities for its confidences"
        return Calibration(bins=tuple(bins), missing=dict.fromkeys(("brier", "expected_error"), reason))
    total = sum(one.right.n for one in bins)
    gaps = sum(one.right.n * abs((one.stated or 0.0) - (one.right.value or 0.0)) for one in bins)
    return Calibration(bins=tuple(bins), brier=_mean(every, _squared_error(scale), 1), expected_error=gaps / total)


def _stated(several: Sequence[BeliefMetrics], scale: Scale | None) -> float | None:
    """The mean of the probabilities that these decisions stated; ``None`` where one stated none."""
    stated = [None if scale is None else scale.probability(one.decision.confidence) for one in several]
    known = [value for value in stated if value is not None]
    return fmean(known) if len(known) == len(stated) else None


def _word(one: BeliefMetrics) -> str | None:
    said = one.decision.confidence
    if said is None:
        return None
    return said.strip().lower() if isinstance(said, str) else f"{said:.1f}"


def _squared_error(scale: Scale | None) -> Reader:
    def read(one: BeliefMetrics) -> tuple[float | None, str | None]:
        stated = None if scale is None else scale.probability(one.decision.confidence)
        if one.decision.correct is None:
            return None, one.decision.missing.get("correct")
        return (None, "no confidence") if stated is None else ((stated - one.decision.correct) ** 2, None)

    return read
