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
from evaluatorq.records.power import Noise, smallest_loss, smallest_shift
from evaluatorq.records.statistics import clustered_wilson, paired_mean_interval, paired_rate_interval, paired_test

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
            case = Case(f"dp_{i}", f"P{i}", f"S{i % self.scenarios}", (str(i),))
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


def at_least(floor: float) -> Callable[[float, float], bool]:
    return lambda share, _: share >= floor - 2 * math.sqrt(floor * (1 - floor) / COMPARISONS)


def four_in_five(share: float, _: float) -> bool:
    return abs(share - 0.8) <= 0.03 + 2 * math.sqrt(0.16 / COMPARISONS)


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


def unequal() -> None:
    """Why samples are compared one to one: each mean is right, but where most pass, that of few is skewed more."""
    print(f"\nMeans over unequal numbers of samples, {COMPARISONS} each: the same agent would be called different in")
    for n, a, b in ((12, 1, 5), (24, 1, 5), (24, 1, 10), (48, 1, 5)):
        rng = random.Random(n * b)
        called = 0
        for seed in range(COMPARISONS):
            differences = [
                sum(rng.random() < 0.95 for _ in range(b)) / b - sum(rng.random() < 0.95 for _ in range(a)) / a
                for _ in range(n)
            ]
            called += paired_test(differences, seed) <= 0.05
        name = f"{n} datapoints that pass in 95 %, {a} sample against {b}"
        print(f"  {name:<66} {called / COMPARISONS:7.2%}   not done")


# ---------------------------------------------------------------- intervals

SHAPES: tuple[tuple[str, Callable[[random.Random], float], float], ...] = (
    ("normal differences", lambda rng: rng.gauss(0, 1), 0.0),
    ("one long tail (exponential)", lambda rng: rng.expovariate(1), 1.0),
    ("two long tails", lambda rng: 1.5 * rng.expovariate(1) - rng.expovariate(1), 0.5),
    ("mostly nothing (70 % zeros)", lambda rng: rng.random() if rng.random() < 0.3 else 0.0, 0.15),
)
FLOORS = {
    ("one long tail (exponential)", 6): 0.93,
    ("one long tail (exponential)", 8): 0.94,
    ("mostly nothing (70 % zeros)", 6): 0.82,
    ("mostly nothing (70 % zeros)", 8): 0.89,
    ("mostly nothing (70 % zeros)", 10): 0.93,
}
"""Where so few datapoints do not hold what an interval would need; as its docstring says."""


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
    for n, k, shift in ((8, 1, 0.0), (10, 4, 0.2), (30, 1, 0.1), (30, 5, 0.1), (100, 1, 0.05), (100, 3, 0.3)):
        rng = random.Random(n * k)
        rates = means = shares = 0
        for seed in range(COMPARISONS):
            differences = paired(rng, n, k, shift)
            rate, bootstrap = paired_rate_interval(differences), paired_mean_interval(differences, seed)
            rates += rate is not None and rate.low <= -shift <= rate.high
            means += bootstrap is not None and bootstrap.low <= -shift <= bootstrap.high
            mean = rng.random()  # a Wilson interval's coverage swings with the share, so it is averaged over shares
            chances = [rng.betavariate(3 * mean, 3 * (1 - mean)) for _ in range(n)]
            share = clustered_wilson([(sum(rng.random() < chance for _ in range(k)), k) for chance in chances])
            shares += share.low <= mean <= share.high
        name = f"{n} datapoints, {k} samples, shift {shift:g}"
        report(f"{name}: rates (adjusted Wald)", rates / COMPARISONS, COMPARISONS, at_least(0.95), "95 %")
        report(f"{name}: means (cluster bootstrap)", means / COMPARISONS, COMPARISONS, at_least(0.95), "95 %")
        report(f"{name}: pass rate (Wilson)", shares / COMPARISONS, COMPARISONS, at_least(0.95), "95 %")
    for name, draw, truth in SHAPES:
        for n in (6, 8, 10, 20, 50):
            rng = random.Random(n)
            held = 0
            for seed in range(COMPARISONS):
                interval = paired_mean_interval([draw(rng) for _ in range(n)], seed)
                held += interval is not None and interval.low <= truth <= interval.high
            floor = FLOORS.get((name, n), 0.95)
            report(f"{n} datapoints: mean of {name}", held / COMPARISONS, COMPARISONS, at_least(floor), f"{floor:.0%}")


# ---------------------------------------------------------------- power


def power() -> None:
    print(f"\nThe smallest difference that was stated, {COMPARISONS} each: shown in")
    for n, noise in (
        (6, 0.0),
        (8, 0.0),
        (24, 0.0),
        (48, 0.0),
        (8, 0.1),
        (24, 0.1),
        (48, 0.1),
        (200, 0.2),
        (3_000, 0.1),
    ):
        rng = random.Random(n)
        shown, stated = 0, 0.0
        for _ in range(COMPARISONS):
            share = smallest_loss(n, Noise.of(flips(rng, n, noise), 1)) or 0.0
            stated += share / COMPARISONS
            shown += paired_test(lost(rng, flips(rng, n, noise), share)) <= 0.05
        name = f"{n} datapoints, 1 sample, {noise:.0%} flip for no reason: {stated:.1%}"
        report(name, shown / COMPARISONS, COMPARISONS, four_in_five, "80 % ± 3")
    for n, k in ((8, 3), (12, 3), (24, 5), (60, 3)):
        rng = random.Random(n * k)
        shown, stated = 0, 0.0
        for seed in range(COMPARISONS):
            share = smallest_loss(n, Noise.of(paired(rng, n, k, 0.0), k)) or 0.0
            stated += share / COMPARISONS
            shown += paired_test(lost(rng, paired(rng, n, k, 0.0), share), seed) <= 0.05
        name = f"{n} datapoints, {k} samples, rates, noise as measured once: {stated:.1%}"
        report(name, shown / COMPARISONS, COMPARISONS, four_in_five, "80 % ± 3")
    for n, draw, what in ((6, gauss, "normal"), (8, gauss, "normal"), (12, gauss, "normal"), (24, gauss, "normal"),
                          (60, gauss, "normal"), (12, thirds, "thirds"), (24, thirds, "thirds")):  # fmt: skip
        rng = random.Random(n)
        shown, stated = 0, 0.0
        for seed in range(COMPARISONS):
            shift = smallest_shift(n, stdev([draw(rng) for _ in range(n)])) or 0.0
            stated += shift / COMPARISONS
            shown += paired_test([draw(rng) - shift for _ in range(n)], seed) <= 0.05
        name = f"{n} datapoints, means, {what} noise as measured once: {stated:.2f}"
        report(name, shown / COMPARISONS, COMPARISONS, four_in_five, "80 % ± 3")


def flips(rng: random.Random, n: int, noise: float) -> list[float]:
    """One sample a datapoint, of which the share ``noise`` flips, either way alike."""
    return [rng.choice((-1.0, 1.0)) if rng.random() < noise else 0.0 for _ in range(n)]


def lost(rng: random.Random, differences: Sequence[float], share: float) -> list[float]:
    """Differences of which a share becomes a whole loss."""
    return [-1.0 if rng.random() < share else difference for difference in differences]


def gauss(rng: random.Random) -> float:
    return rng.gauss(0, 1)


def thirds(rng: random.Random) -> float:
    return paired(rng, 1, 3, 0.0)[0]


if __name__ == "__main__":
    size()
    unequal()
    coverage()
    power()
    print(f"\n{len(failures)} promises broken" if failures else "\nEvery promise is kept")
    sys.exit(bool(failures))
