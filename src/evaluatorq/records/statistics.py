"""Statistics of repeated and paired conversations: intervals, exact tests, corrections, and what a sample could show.

The unit of every paired function is the datapoint: samples of one datapoint are not independent, so the caller first
averages them. Random draws come from a hash of the seed, so that the same numbers give the same answer everywhere.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from operator import getitem
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95
ALPHA = 0.05
POWER = 0.8
RESAMPLES = 2_000
SIGN_FLIPS = 9_999
MOST_RESAMPLED = 2_000
"""Above this many datapoints a mean is normal to well within the error of resampling, and is not resampled."""
_EXACT_FLIPS = 16
_EXACT_POWER = 2_000
_NORMAL = NormalDist()


class Interval(NamedTuple):
    """A confidence interval, both ends included."""

    low: float
    high: float


# ---------------------------------------------------------------- rates


def wilson(successes: float, n: float, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a share. ``n`` may be an effective size, and then need not be whole.

    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    if n <= 0:
        return Interval(0.0, 1.0)
    z2 = _NORMAL.inv_cdf(0.5 + confidence / 2) ** 2
    share = successes / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Interval(0.0 if successes <= 0 else middle - half, 1.0 if successes >= n else middle + half)


def clustered_wilson(clusters: Sequence[tuple[int, int]], confidence: float = CONFIDENCE) -> Interval:
    """The interval of a pooled share whose outcomes come in clusters, each given as (successes, size).

    Wilson's interval at the effective size: the number of independent outcomes that would have the same variance, by
    the linearised ratio estimator (Kish, Survey Sampling, 1965, 6.3), never more than the outcomes there are. Where
    all outcomes agree nothing can be said about the variance, and each cluster counts as one outcome; the outcomes of
    a single cluster speak of that cluster only.
    """
    sizes = [(successes, n) for successes, n in clusters if n]
    total, count = sum(n for _, n in sizes), len(sizes)
    if not total:
        return Interval(0.0, 1.0)
    share = sum(successes for successes, _ in sizes) / total
    spread = sum((successes - share * n) ** 2 for successes, n in sizes)
    if count < 2 or (spread == 0 and 0 < share < 1):
        size = float(total)
    elif spread == 0:
        size = float(count)
    else:
        size = share * (1 - share) * total * total * (count - 1) / (count * spread)
    size = min(size, float(total))
    return wilson(share * size, size, confidence)


def pass_at_k(n: int, passed: int, k: int) -> float | None:
    """The chance that at least one of ``k`` fresh samples passes; ``None`` when fewer than ``k`` were measured.

    Unbiased: 1 - C(n-c, k) / C(n, k). Chen et al., Evaluating large language models trained on code (2021), eq. 1.
    """
    return None if n < k or k < 1 else 1 - math.comb(n - passed, k) / math.comb(n, k)


def pass_hat_k(n: int, passed: int, k: int) -> float | None:
    """The chance that ``k`` fresh samples all pass (pass^k); ``None`` when fewer than ``k`` were measured.

    Unbiased: C(c, k) / C(n, k). Yao et al., tau-bench (2024), section 3.
    """
    return None if n < k or k < 1 else math.comb(passed, k) / math.comb(n, k)


# ---------------------------------------------------------------- tests


def sign_test(up: int, down: int) -> float:
    """The exact two-sided p-value of ``up`` against ``down`` changes, ties left out; 1.0 where nothing changed.

    With one sample on each side this is McNemar's exact test on the discordant pairs. Dixon and Mood, The statistical
    sign test, JASA 41 (1946); McNemar, Psychometrika 12 (1947).
    """
    n, k = up + down, min(up, down)
    if 2 * k >= n:
        return 1.0
    term = tail = 1
    for i in range(k):
        term = term * (n - i) // (i + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << n))


def paired_test(differences: Sequence[float], seed: int = 0) -> float:
    """The two-sided p-value of the paired randomisation test: how often random signs give a mean as far from zero.

    ``differences`` are one number for each datapoint. If both sides are the same agent, each difference is as likely
    with the other sign, whatever its distribution, so the level holds for any sample size. Where all differences are
    of one size this is the sign test (McNemar's exact test); with at most 16 that are not zero every combination is
    counted; beyond that 9,999 are drawn and the observed one is added (Fisher, The Design of Experiments, 1935, 21;
    Phipson and Smyth, Permutation p-values should never be zero, 2010).
    """
    sizes = [abs(value) for value in differences if value]
    if not sizes:
        return 1.0
    largest = max(sizes)
    if math.isclose(min(sizes), largest, rel_tol=1e-9):
        up = sum(value > 0 for value in differences)
        return sign_test(up, len(sizes) - up)
    reached = abs(math.fsum(differences)) - largest * 1e-9
    tables = [_signed_sums(sizes[i : i + 8]) for i in range(0, len(sizes), 8)]
    if len(sizes) <= _EXACT_FLIPS:
        sums = [math.fsum(parts) for parts in product(*tables)]
        return sum(abs(value) >= reached for value in sums) / len(sums)
    # Signs are drawn eight datapoints at a time: a byte picks one of the 256 signed sums of its group.
    tables[-1] = (tables[-1] * 256)[:256]
    width = len(tables)
    drawn = _random_bytes(seed, "signs", width * SIGN_FLIPS)
    hits = sum(
        abs(sum(map(getitem, tables, drawn[i : i + width]))) >= reached for i in range(0, width * SIGN_FLIPS, width)
    )
    return (hits + 1) / (SIGN_FLIPS + 1)


def _signed_sums(sizes: Sequence[float]) -> list[float]:
    sums = [0.0]
    for size in sizes:
        sums = [total + sign * size for total in sums for sign in (1, -1)]
    return sums


def least_p(differences: Sequence[float]) -> float:
    """The smallest p-value that these datapoints could have given, had all that differ gone the same way."""
    return min(1.0, 2.0 ** (1 - min(sum(1 for value in differences if value), 1000)))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: calling those up to ``q`` changes keeps the expected share of false calls at or below ``q``.

    Where nothing changed at all, that is the chance of any false call. Benjamini and Hochberg, JRSS B 57 (1995).
    """
    m = len(p_values)
    adjusted = [1.0] * m
    least = 1.0
    for rank, i in enumerate(sorted(range(m), key=lambda i: p_values[i], reverse=True)):
        least = min(least, p_values[i] * m / (m - rank))
        adjusted[i] = least
    return adjusted


# ---------------------------------------------------------------- intervals of paired differences


def paired_rate_interval(differences: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of a mean difference of rates, each difference in [-1, 1]; ``None`` without any.

    Two pseudo-datapoints (half a gain, half a loss, one tie) keep it honest where few or no datapoints differ. Agresti
    and Min, Simple improved confidence intervals for comparing matched proportions, Stat. in Medicine 24 (2005).
    """
    n = len(differences) + 2
    if n == 2:
        return None
    mean = math.fsum(differences) / n
    variance = (math.fsum(value * value for value in differences) + 1) / n - mean * mean
    half = _NORMAL.inv_cdf(0.5 + confidence / 2) * math.sqrt(variance / n)
    return Interval(max(-1.0, mean - half), min(1.0, mean + half))


def paired_mean_interval(
    differences: Sequence[float], seed: int = 0, confidence: float = CONFIDENCE
) -> Interval | None:
    """The cluster bootstrap interval of a mean difference; ``None`` for fewer than two datapoints.

    Datapoints are drawn, each with all its samples. Bias-corrected and accelerated (Efron, Better bootstrap confidence
    intervals, JASA 82, 1987), at tail shares widened to those of Student's t, because a small sample's bootstrap is
    too narrow by sqrt((n-1)/n) and knows no t (Hesterberg, What teachers should know about the bootstrap, 2015, 3.3).
    """
    n = len(differences)
    if n < 2:
        return None
    mean = math.fsum(differences) / n
    squares = math.fsum((value - mean) ** 2 for value in differences)
    if squares**1.5 <= 0 or math.sqrt(squares) <= 1e-12 * n * abs(mean):
        return Interval(mean, mean)
    t = t_quantile(0.5 + confidence / 2, n - 1)
    if n > MOST_RESAMPLED:
        half = t * math.sqrt(squares / n / (n - 1))
        return Interval(mean - half, mean + half)
    means = sorted(_resampled_means(differences, seed))
    slack = 1e-12 * max(map(abs, differences))
    below = sum(value < mean - slack for value in means) + sum(abs(value - mean) <= slack for value in means) / 2
    bias = _NORMAL.inv_cdf(min(max(below, 0.5), len(means) - 0.5) / len(means))
    acceleration = math.fsum((value - mean) ** 3 for value in differences) / (6 * squares**1.5)
    wide = t * math.sqrt(n / (n - 1))

    def end(z: float) -> float:
        shifted = bias + z
        share = _NORMAL.cdf(bias + shifted / (1 - acceleration * shifted))
        return means[min(len(means) - 1, max(0, math.floor(share * len(means))))]

    return Interval(end(-wide), end(wide))


def _resampled_means(values: Sequence[float], seed: int) -> Iterator[float]:
    n = len(values)
    drawn = array("I", _random_bytes(seed, "bootstrap", 4 * n * RESAMPLES))
    for i in range(0, n * RESAMPLES, n):
        yield sum([values[number % n] for number in drawn[i : i + n]]) / n


def _random_bytes(seed: int, use: str, count: int) -> bytes:
    return hashlib.shake_128(f"{use}/{seed}".encode()).digest(count)


# ---------------------------------------------------------------- what a sample could have shown


def smallest_shift(n: int, deviation: float, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest mean difference that ``n`` datapoints show with ``power``; ``None`` when they can show none.

    ``deviation`` is the standard deviation of the differences. (t(1-alpha/2) + t(power)) * s / sqrt(n), as for the
    paired t-test, which the randomisation test equals in power (Cohen, Statistical Power Analysis, 1988, 2.3).
    """
    if n < _least_datapoints(alpha):
        return None
    return (t_quantile(1 - alpha / 2, n - 1) + t_quantile(power, n - 1)) * deviation / math.sqrt(n)


def smallest_flip_share(n: int, noise: float = 0.0, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest difference of rates that ``n`` datapoints of one sample show with ``power``; ``None`` for none.

    ``noise`` is the share of datapoints that flip each way for no reason. Solved from the exact power of McNemar's
    exact test, averaged over how many datapoints differ (Duffy, Biometrics 40, 1984); beyond 2,000 datapoints from
    the normal approximation (Connor, Biometrics 43, 1987).
    """
    most = 1 - 2 * noise
    if n < _least_datapoints(alpha) or most <= 0:
        return None
    chance = _flip_power if n <= _EXACT_POWER else _normal_flip_power
    if chance(n, noise + most, noise, alpha) < power:
        return None
    low, high = 0.0, most
    for _ in range(30):
        middle = (low + high) / 2
        enough = chance(n, noise + middle, noise, alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def _least_datapoints(alpha: float) -> int:
    """Fewer datapoints than this cannot be significant, even if all of them change."""
    return math.ceil(1 - math.log2(alpha))


def _flip_power(n: int, up: float, down: float, alpha: float) -> float:
    """The chance that McNemar's exact test rejects when a datapoint flips up and down with these chances."""
    flips = up + down
    upward = up / flips if flips else 0.5
    spread = 8 * math.sqrt(n * flips * (1 - flips)) + 8
    first, last = max(0, math.floor(n * flips - spread)), min(n, math.ceil(n * flips + spread))
    total = 0.0
    for m in range(first, last + 1):
        least = _critical(m, alpha)
        if least <= m:
            rejects = binomial_tail(least, m, upward) + binomial_tail(least, m, 1 - upward)
            total += _binomial_mass(m, n, flips) * rejects
    return total


def _normal_flip_power(n: int, up: float, down: float, alpha: float) -> float:
    flips, shift = up + down, up - down
    spread = math.sqrt(max(flips - shift * shift, 1e-12))
    return _NORMAL.cdf((shift * math.sqrt(n) - _NORMAL.inv_cdf(1 - alpha / 2) * math.sqrt(flips)) / spread)


@lru_cache(maxsize=8192)
def _critical(m: int, alpha: float) -> int:
    """The least number of flips one way, of ``m``, that the sign test calls significant; ``m + 1`` when none is."""
    least = m // 2 + 1
    low, high = least, m + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if 2 * binomial_tail(middle, m, 0.5) <= alpha else (middle + 1, high)
    return low


# ---------------------------------------------------------------- distributions


def binomial_tail(k: int, n: int, p: float) -> float:
    """P(X >= k) of a binomial, by the regularised incomplete beta function (DLMF 8.17.5)."""
    if k <= 0:
        return 1.0
    return 0.0 if k > n else _beta(k, n - k + 1, p)


def _binomial_mass(k: int, n: int, p: float) -> float:
    if p <= 0 or p >= 1:
        return 1.0 if k == (0 if p <= 0 else n) else 0.0
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


def t_quantile(p: float, df: float) -> float:
    """The quantile of Student's t, by bisection of the incomplete beta function (DLMF 8.17; A&S 26.7.1)."""
    if p < 0.5:
        return -t_quantile(1 - p, df)
    low, high = 0.0, 1.0
    while _t_above(high, df) > 1 - p:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_above(middle, df) > 1 - p else (low, middle)
    return high


def _t_above(t: float, df: float) -> float:
    return _beta(df / 2, 0.5, df / (df + t * t)) / 2


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) / a * _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, evaluated forwards (Lentz, Applied Optics 15, 1976)."""
    tiny = 1e-300
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 10_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _nonzero(1 + numerator * d, tiny)
            c = _nonzero(1 + numerator / c, tiny)
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return value


def _nonzero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
