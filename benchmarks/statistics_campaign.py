"""Does a comparison keep its promises? Made-up agents with known chances, compared thousands of times.

    python benchmarks/statistics_campaign.py [comparisons]

Prints how often the same agent is called different from itself (never above 5 %), how often intervals hold the truth
(95 %), and how often the stated smallest difference is shown (80 %), each with its sampling error. Exits with 1 where a
promise is broken.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import stdev

from evaluatorq.model.runs import SimulationRun
from evaluatorq.records.compare import compare_facts
from evaluatorq.records.facts import Case, ConversationFacts, Quoted, RunFacts
from evaluatorq.records.statistics import (
    paired_mean_interval,
    paired_rate_interval,
    paired_test,
    smallest_flip_share,
    smallest_shift,
)

COMPARISONS = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
HEADER = SimulationRun(
    run_name="made", created_at=datetime(2026, 1, 1, tzinfo=UTC), mode="simulate", target_kind="callback",
    evaluator_names=["score"], total_results=0, scorer_averages={}, results=[],
)  # fmt: skip
failures: list[str] = []


@dataclass(frozen=True)
class World:
    """Datapoints in scenarios, each with ``criteria`` of its own that hold with a chance of the datapoint's."""

    datapoints: int
    samples: int
    criteria: int
    scenarios: int = 4

    def chances(self, rng: random.Random) -> list[list[float]]:
        return [[rng.betavariate(4, 1) for _ in range(self.criteria)] for _ in range(self.datapoints)]

    def run(self, chances: Sequence[Sequence[float]], rng: random.Random) -> RunFacts:
        talks = []
        for i, of_datapoint in enumerate(chances):
            case = Case(f"dp_{i}", f"P{i}", f"S{i % self.scenarios}", {"persona": str(i)})
            for sample in range(self.samples):
                mood = rng.random() < 0.15  # what goes wrong in a conversation goes wrong together
                held = [rng.random() < (chance * 0.6 if mood else chance) for chance in of_datapoint]
                talks.append(talk(i * self.samples + sample, case, sample, held, rng))
        return RunFacts(HEADER, talks)


def talk(row: int, case: Case, sample: int, held: Sequence[bool], rng: random.Random) -> ConversationFacts:
    return ConversationFacts(
        row=row, case=case, sample=sample, verdict="passed" if all(held) else "failed", reason="", goal=held[0],
        criteria=tuple(Quoted(f"criteria_{i}", f"c{i}", "must_happen", one) for i, one in enumerate(held)),
        scores={"score": min(1.0, max(0.0, rng.gauss(sum(held) / len(held), 0.1)))}, turns=rng.randint(2, 6), tokens=0,
        cost=0.0, transcript=str(row),
    )  # fmt: skip


def report(what: str, share: float, n: int, holds: Callable[[float, float], bool], promise: str) -> None:
    error = math.sqrt(max(share * (1 - share), 0.0025) / n)
    kept = holds(share, error)
    print(f"  {what:<66} {share:7.2%} ± {2 * error:.2%}   {promise:<16} {'ok' if kept else 'BROKEN'}", flush=True)
    if not kept:
        failures.append(what)


def at_most_five(share: float, _: float) -> bool:
    return share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / COMPARISONS)


# ---------------------------------------------------------------- the same agent twice


def size() -> None:
    print(f"The same agent against itself, {COMPARISONS} comparisons each: called better or worse in")
    for world in (World(6, 1, 3), World(8, 5, 3), World(24, 1, 4), World(24, 3, 4), World(48, 1, 5), World(60, 5, 3)):
        rng = random.Random(repr(world))
        headline = anything = 0
        for _ in range(COMPARISONS):
            chances = world.chances(rng)
            found = compare_facts(world.run(chances, rng), world.run(chances, rng))
            headline += found.word in ("better", "worse")
            anything += any(m.word not in ("no difference shown", "could not measure") for m in found.measures[1:])
        name = f"{world.datapoints} datapoints, {world.samples} samples"
        report(f"{name}: the headline", headline / COMPARISONS, COMPARISONS, at_most_five, "at most 5 %")
        rows = len(compare_facts(world.run(chances, rng), world.run(chances, rng)).measures) - 1
        report(
            f"{name}: any of {rows} other measures", anything / COMPARISONS, COMPARISONS, at_most_five, "at most 5 %"
        )


# ---------------------------------------------------------------- intervals


def paired(rng: random.Random, n: int, k: int, shift: float) -> list[float]:
    differences = []
    for _ in range(n):
        chance = rng.uniform(shift, 1)
        a = sum(rng.random() < chance for _ in range(k)) / k
        b = sum(rng.random() < chance - shift for _ in range(k)) / k
        differences.append(b - a)
    return differences


def coverage() -> None:
    print(f"\nIntervals of the difference, {COMPARISONS} each: hold the truth in")
    near = lambda share, error: share >= 0.95 - 0.02 - 2 * error  # noqa: E731
    for n, k, shift in ((10, 1, 0.0), (10, 4, 0.2), (30, 1, 0.1), (30, 5, 0.1), (100, 1, 0.05), (100, 3, 0.3)):
        rng = random.Random(n * k)
        rates = means = skewed = 0
        for seed in range(COMPARISONS):
            differences = paired(rng, n, k, shift)
            rate, mean = paired_rate_interval(differences), paired_mean_interval(differences, seed)
            rates += rate is not None and rate.low <= -shift <= rate.high
            means += mean is not None and mean.low <= -shift <= mean.high
            drawn = [rng.expovariate(1.0) - 1.0 - shift for _ in range(n)]
            tail = paired_mean_interval(drawn, seed)
            skewed += tail is not None and tail.low <= -shift <= tail.high
        name = f"{n} datapoints, {k} samples, shift {shift:g}"
        report(f"{name}: rates (adjusted Wald)", rates / COMPARISONS, COMPARISONS, near, "about 95 %")
        report(f"{name}: means (cluster bootstrap)", means / COMPARISONS, COMPARISONS, near, "about 95 %")
        floor = 0.90 if n < 20 else 0.93
        long_tail = lambda share, error, floor=floor: share >= floor - 2 * error  # noqa: E731
        report(f"{name}: skewed means", skewed / COMPARISONS, COMPARISONS, long_tail, f"over {floor:.0%}")


# ---------------------------------------------------------------- power


def power() -> None:
    print(f"\nThe smallest difference that was stated, {COMPARISONS} each: shown in")
    near = lambda share, error: abs(share - 0.8) <= 0.03 + 2 * error  # noqa: E731
    for n, noise in ((8, 0.0), (24, 0.0), (48, 0.0), (48, 0.05), (200, 0.1), (3_000, 0.05)):
        share = smallest_flip_share(n, noise)
        assert share is not None
        rng = random.Random(n)
        shown = 0
        for _ in range(COMPARISONS):
            draws = [rng.random() for _ in range(n)]
            differences = [1.0 if d < noise + share else -1.0 if d < 2 * noise + share else 0.0 for d in draws]
            shown += paired_test(differences) <= 0.05
        name = f"{n} datapoints, 1 sample, {noise:.0%} flip for no reason: {share:.1%}"
        report(name, shown / COMPARISONS, COMPARISONS, near, "80 % ± 3")
    for n, k in ((12, 3), (24, 5), (60, 3)):
        rng = random.Random(n * k)
        shown, stated = 0, 0.0
        for seed in range(COMPARISONS):
            noise = paired(rng, n, k, 0.0)
            shift = smallest_shift(n, stdev(noise)) or 0.0
            stated += shift / COMPARISONS
            shown += paired_test([d - shift for d in paired(rng, n, k, 0.0)], seed) <= 0.05
        name = f"{n} datapoints, {k} samples, noise as measured once: {stated:.1%} on average"
        report(name, shown / COMPARISONS, COMPARISONS, near, "80 % ± 3")


if __name__ == "__main__":
    size()
    coverage()
    power()
    print(f"\n{len(failures)} promises broken" if failures else "\nEvery promise is kept")
    sys.exit(bool(failures))
