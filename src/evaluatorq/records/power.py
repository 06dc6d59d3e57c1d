"""The smallest difference that so many datapoints show four times in five, by the test that decides.

What is stated is what ``paired_test`` would find at this size, with its steps: half a datapoint cannot be lost, and of
few datapoints an exact test falls short of its level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from evaluatorq.records.distributions import binomial_mass, binomial_tail, t_quantile
from evaluatorq.records.statistics import ALPHA

POWER = 0.8
LEAST_DATAPOINTS = math.ceil(1 - math.log2(ALPHA))
"""Fewer than this cannot be significant, even if all of them change."""
_NORMAL = NormalDist()
_Z = _NORMAL.inv_cdf(1 - ALPHA / 2)
_COUNTED = 2_000
_COUNTED_SAMPLES = 500
_ALL_ONE_WAY = 5.247
"""At the least number of datapoints all have to differ one way: c of (mean of Phi(c V / sqrt(6)) ** 6) = 0.8."""


class Noise(NamedTuple):
    """How datapoints differ for no reason: the ``share`` that does, by what ``size`` (root mean square, 1 for a whole
    flip), in steps of 1 / ``samples``.
    """

    share: float = 0.0
    size: float = 1.0
    samples: int = 1

    @classmethod
    def of(cls, differences: Sequence[float], samples: int) -> Noise:
        """The noise in differences of rates that nothing but chance made."""
        sizes = [value * value for value in differences if value]
        if not sizes:
            return QUIET
        return cls(len(sizes) / len(differences), math.sqrt(math.fsum(sizes) / len(sizes)), samples)


QUIET = Noise()


@lru_cache(maxsize=1024)
def smallest_loss(n: int, noise: Noise = QUIET) -> float | None:
    """The smallest difference of rates that ``n`` datapoints show four times in five; ``None`` when they can show none.

    That share of the datapoints is lost in all its samples, the others differ as ``noise`` says. Solved from the power
    of the paired test, averaged over how many datapoints are lost and how many differ (for single samples McNemar's
    exact test: Duffy, Biometrics 40, 1984); for very many datapoints from the normal approximation (Connor, Biometrics
    43, 1987).
    """
    if n < LEAST_DATAPOINTS:
        return None
    power = _power_of(n, noise)
    if power(1.0) < POWER:
        return None
    low, high = 0.0, 1.0
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high


def _power_of(n: int, noise: Noise) -> Callable[[float], float]:
    """The power as a function of the share that is lost."""
    flips_wholly = noise.samples == 1
    if n > (_COUNTED if flips_wholly or not noise.share else _COUNTED_SAMPLES):
        return lambda share: _normal_power(n, share, noise)
    if flips_wholly or not noise.share:
        return lambda share: _flip_power(n, share + (1 - share) * noise.share / 2, (1 - share) * noise.share / 2)
    return lambda share: _sampled_power(n, share, noise)


def _flip_power(n: int, lost: float, gained: float) -> float:
    """The chance that McNemar's exact test rejects when a datapoint is lost and gained with these chances."""
    flips = lost + gained
    one_way = lost / flips if flips else 0.5
    total = 0.0
    for m in _likely(n, flips):
        least = _critical(m)
        if least <= m:
            rejects = binomial_tail(least, m, one_way) + binomial_tail(least, m, 1 - one_way)
            total += binomial_mass(m, n, flips) * rejects
    return total


def _sampled_power(n: int, share: float, noise: Noise) -> float:
    """The same where noise moves a datapoint by some of its samples: normal, given how many are lost and how many move.

    A step of the sum of differences is two samples; on average the test falls short of its level by half a step.
    """
    total = 0.0
    for lost in _likely(n, share):
        mass = binomial_mass(lost, n, share)
        if mass < 1e-9:
            continue
        for moved in _likely(n - lost, noise.share, 4):
            if lost + moved < LEAST_DATAPOINTS:
                continue
            rejects = float(_critical(lost) <= lost)
            if moved:
                spread = noise.size * math.sqrt(moved)
                needed = _Z * math.sqrt(lost + spread * spread) + 1 / noise.samples
                rejects = _NORMAL.cdf((lost - needed) / spread)
            total += mass * binomial_mass(moved, n - lost, noise.share) * rejects
    return total


def _normal_power(n: int, share: float, noise: Noise) -> float:
    moved = share + (1 - share) * noise.share * noise.size**2
    spread = math.sqrt(max(moved - share * share, 1e-12))
    return _NORMAL.cdf((share * math.sqrt(n) - 1 / (noise.samples * math.sqrt(n)) - _Z * math.sqrt(moved)) / spread)


def _likely(n: int, chance: float, deviations: int = 8) -> range:
    """The counts that a binomial ever gives, within so many standard deviations."""
    reach = deviations * math.sqrt(n * chance * (1 - chance)) + deviations
    return range(max(0, math.floor(n * chance - reach)), min(n, math.ceil(n * chance + reach)) + 1)


@lru_cache(maxsize=8192)
def _critical(m: int) -> int:
    """The least number of flips one way, of ``m``, that the sign test calls significant; ``m + 1`` when none is."""
    low, high = m // 2 + 1, m + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if 2 * binomial_tail(middle, m, 0.5) <= ALPHA else (middle + 1, high)
    return low


def smallest_shift(n: int, deviation: float) -> float | None:
    """The smallest mean difference that ``n`` datapoints show four times in five; ``None`` when they can show none.

    ``deviation`` is the standard deviation of the differences as measured in ``n`` datapoints, which is itself known
    within a share of about 1 / sqrt(2n) only; the power is averaged over that. For differences near to normal.
    """
    return None if n < LEAST_DATAPOINTS else _multiple(n) * deviation / math.sqrt(n)


@lru_cache(maxsize=1024)
def _multiple(n: int) -> float:
    """Of the standard error, for power of the paired t-test, which the randomisation test equals from 7 datapoints on.

    With Z normal, V and W independent estimates of the deviation over its true value (mean m, variance 1 - m**2), c
    solves P(Z + c V > t W) = 0.8, and Z + c V - t W is close to normal. The level is the nearest that 2**n signs have.
    """
    if n == LEAST_DATAPOINTS:
        return _ALL_ONE_WAY
    step = 2.0 ** -min(n, 60)
    t = t_quantile(1 - math.floor(ALPHA / 2 / step) * step, n - 1)
    mean = math.exp(math.lgamma(n / 2) - math.lgamma((n - 1) / 2)) * math.sqrt(2 / (n - 1))
    wanted, c = _NORMAL.inv_cdf(POWER), t
    for _ in range(40):
        c = t + wanted * math.sqrt(1 + (t * t + c * c) * (1 - mean * mean)) / mean
    return c
