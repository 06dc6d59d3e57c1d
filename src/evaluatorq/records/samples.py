"""Repeats of a datapoint counted together: how often it passes, how sure that is, and whether it is flaky.

A sample that errored or that nobody decided is unmeasured: it is neither a pass nor a failure, and a number that needs
it is not given. Flaky by verdict (some samples pass, some fail) and flaky by behaviour (the agent did different things)
are two findings: an agent can do the same thing every time and be judged differently, and the reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaluatorq.model.base import Record
from evaluatorq.records.facts import Case, ConversationFacts, RunFacts
from evaluatorq.records.statistics import clustered_wilson, pass_at_k, pass_hat_k

Level = Literal["run", "persona", "scenario", "datapoint"]
Outcome = Literal["verdict", "goal", "decided"]
"""What counts as a pass: everything was decided and held; the goal was achieved; whatever was decided held."""

OUTCOMES: Mapping[Outcome, Callable[[ConversationFacts], bool | None]] = {
    "verdict": lambda talk: talk.measured,
    "goal": lambda talk: talk.goal,
    "decided": lambda talk: talk.held,
}


class PassRate(Record):
    """Samples of one or more datapoints. ``rate`` is over what was measured; ``strict`` counts the rest as failures,
    ``best`` as passes.

    ``coverage`` is the share that was measured. ``low`` and ``high`` are the 95 % interval, in which the samples of a
    datapoint are not taken for independent ones. ``pass_hat_k`` (all of ``k`` samples pass) and ``pass_at_k`` (at least
    one does) are means over datapoints, and ``None`` as soon as one of them has fewer than ``k`` measured samples.
    ``unknown_verdict`` counts datapoints of which nobody knows whether they are flaky by verdict: not all of their
    samples were measured, or they have only one, and those that were agree.
    """

    level: Level
    name: str
    datapoints: int
    samples: int
    measured: int
    passed: int
    errored: int
    errored_by_agent: int
    k: int
    rate: float | None
    strict: float | None
    best: float | None = None
    coverage: float
    low: float
    high: float
    pass_at_k: float | None
    pass_hat_k: float | None
    flaky_verdict: int
    unknown_verdict: int = 0
    behaviours: int | None
    flaky_behaviour: int | None
    rows: tuple[int, ...] = ()


class SampleReport(Record):
    """Every level of a run. ``of`` says what counts as a pass; a datapoint is flaky where its own counts say 1."""

    of: Outcome
    k: int
    run: PassRate
    personas: tuple[PassRate, ...]
    scenarios: tuple[PassRate, ...]
    datapoints: tuple[PassRate, ...]

    @property
    def flaky(self) -> list[PassRate]:
        """The datapoints that are flaky in either way."""
        return [rate for rate in self.datapoints if rate.flaky_verdict or rate.flaky_behaviour]


@dataclass(slots=True)
class _Cluster:
    """One datapoint's samples; ``missing`` are those without a result."""

    case: Case
    talks: list[ConversationFacts] = field(default_factory=list)
    outcomes: list[bool] = field(default_factory=list)
    missing: int = 0

    @property
    def slots(self) -> int:
        return len(self.talks) + self.missing

    @property
    def passed(self) -> int:
        return sum(self.outcomes)

    @property
    def is_flaky(self) -> bool:
        return 0 < self.passed < len(self.outcomes)

    @property
    def may_be_flaky(self) -> bool:
        return not self.is_flaky and (self.slots < 2 or len(self.outcomes) < self.slots)

    @property
    def signatures(self) -> set[str]:
        return {talk.signature for talk in self.talks if talk.signature is not None}


def sample_report(facts: RunFacts, of: Outcome = "verdict") -> SampleReport:
    """The run's repeats, counted at every level."""
    clusters: dict[tuple[str, ...], _Cluster] = {}
    for talk in facts.conversations:
        cluster = clusters.setdefault(talk.case.key, _Cluster(talk.case))
        cluster.talks.append(talk)
        outcome = OUTCOMES[of](talk)
        if outcome is not None and not talk.errored:
            cluster.outcomes.append(outcome)
    for case in facts.missing:
        clusters.setdefault(case.key, _Cluster(case)).missing += 1
    found = list(clusters.values())
    k = max((cluster.slots for cluster in found), default=1)

    def by(level: Level, name: Callable[[Case], str]) -> tuple[PassRate, ...]:
        groups: dict[str, list[_Cluster]] = {}
        for cluster in found:
            groups.setdefault(name(cluster.case), []).append(cluster)
        return tuple(_rate(level, title, members, k) for title, members in groups.items())

    return SampleReport(
        of=of,
        k=k,
        run=_rate("run", facts.label, found, k),
        personas=by("persona", lambda case: case.persona),
        scenarios=by("scenario", lambda case: case.scenario),
        datapoints=tuple(_rate("datapoint", cluster.case.name, [cluster], k) for cluster in found),
    )


def _rate(level: Level, name: str, clusters: Sequence[_Cluster], k: int) -> PassRate:
    talks = [talk for cluster in clusters for talk in cluster.talks]
    slots = sum(cluster.slots for cluster in clusters)
    counts = [(cluster.passed, len(cluster.outcomes)) for cluster in clusters]
    passed, measured = sum(c for c, _ in counts), sum(n for _, n in counts)
    low, high = clustered_wilson(counts)
    behaviours = [len(cluster.signatures) for cluster in clusters if cluster.signatures]
    return PassRate(
        level=level,
        name=name,
        datapoints=len(clusters),
        samples=slots,
        measured=measured,
        passed=passed,
        errored=sum(talk.errored for talk in talks),
        errored_by_agent=sum(talk.errored and talk.component == "target" for talk in talks),
        k=k,
        rate=passed / measured if measured else None,
        strict=passed / slots if slots else None,
        best=(passed + slots - measured) / slots if slots else None,
        coverage=measured / slots if slots else 0.0,
        low=low,
        high=high,
        pass_at_k=_mean([pass_at_k(n, c, k) for c, n in counts]),
        pass_hat_k=_mean([pass_hat_k(n, c, k) for c, n in counts]),
        flaky_verdict=sum(cluster.is_flaky for cluster in clusters),
        unknown_verdict=sum(cluster.may_be_flaky for cluster in clusters),
        behaviours=max(behaviours, default=None),
        flaky_behaviour=sum(count > 1 for count in behaviours) if behaviours else None,
        rows=tuple(talk.row for talk in talks) if level == "datapoint" else (),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
