"""Statistics of repeated and paired conversations: intervals, exact tests, and corrections.

The unit of every paired function is the datapoint: samples of one datapoint are not independent, so the caller first
averages them. Random draws come from a hash of the seed, so that the same numbers give the same answer everywhere.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import getitem
from statistics import NormalDist
from typing import NamedTuple

from evaluatorq.records.distributions import t_quantile

CONFIDENCE = 0.95
ALPHA = 0.05
RESAMPLES = 2_000
SIGN_FLIPS = 9_999
MOST_RESAMPLED = 1_000
"""Above this many datapoints a mean is normal to well within the error of resampling, and is not resampled."""
_EXACT_FLIPS = 20
_NORMAL = NormalDist()


class Interval(NamedTuple):
    """A confidence interval, both ends included."""

    low: float
    high: float


# ---------------------------------------------------------------- rates


def wilson(successes: float, n: float, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a share. ``n`` may be an effective size, and then need not be whole.

    Its coverage swings about ``confidence`` from one true share to the next, by 3 points with ten outcomes. Wilson,
    Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    return _score_interval(successes, n, _NORMAL.inv_cdf(0.5 + confidence / 2))


def _score_interval(successes: float, n: float, z: float) -> Interval:
    if n <= 0:
        return Interval(0.0, 1.0)
    z2 = z * z
    share = successes / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Interval(0.0 if successes <= 0 else middle - half, 1.0 if successes >= n else middle + half)


def clustered_wilson(clusters: Sequence[tuple[int, int]], confidence: float = CONFIDENCE) -> Interval:
    """The interval of a pooled share whose outcomes come in clusters, each given as (successes, size).

    Wilson's interval at the effective size: the number of independent outcomes that would have the same variance, by
    the linearised ratio estimator (Kish, Survey Sampling, 1965, 6.3), never more than the outcomes there are, and at
    the quantile of Student's t, because that variance is estimated from the clusters. Where all outcomes agree nothing
    can be said about it, and each cluster counts as one outcome; those of a single cluster speak of that cluster only.
    Clusters of one outcome each are independent outcomes, and the interval is Wilson's own.
    """
    sizes = [(successes, n) for successes, n in clusters if n]
    total, count = sum(n for _, n in sizes), len(sizes)
    if not total:
        return Interval(0.0, 1.0)
    if total == count:
        return wilson(sum(successes for successes, _ in sizes), total, confidence)
    tail = 0.5 + confidence / 2
    z = _NORMAL.inv_cdf(tail)
    share = sum(successes for successes, _ in sizes) / total
    spread = sum((successes - share * n) ** 2 for successes, n in sizes)
    if count < 2 or (spread == 0 and 0 < share < 1):
        size = float(total)
    elif spread == 0:
        size = float(count)
    else:
        size = share * (1 - share) * total * total * (count - 1) / (count * spread)
        z = t_quantile(tail, count - 1)
    size = min(size, float(total))
    return _score_interval(share * size, size, z)


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
    of one size this is the sign test (McNemar's exact test); with at most 20 that are not zero every combination is
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
    if len(sizes) <= _EXACT_FLIPS:
        return _exact_share(sizes, reached)
    # Signs are drawn eight datapoints at a time: a byte picks one of the 256 signed sums of its group.
    tables = [_signed_sums(sizes[i : i + 8]) for i in range(0, len(sizes), 8)]
    tables[-1] = (tables[-1] * 256)[:256]
    width = len(tables)
    drawn = _random_bytes(seed, "signs", width * SIGN_FLIPS)
    hits = sum(
        abs(sum(map(getitem, tables, drawn[i : i + width]))) >= reached for i in range(0, width * SIGN_FLIPS, width)
    )
    return (hits + 1) / (SIGN_FLIPS + 1)


def _exact_share(sizes: Sequence[float], reached: float) -> float:
    """The share of all signed sums that are ``reached`` or more from zero, in two halves to write down few of them."""
    half = len(sizes) // 2
    left, right = _signed_sums(sizes[:half]), sorted(_signed_sums(sizes[half:]))
    above = sum(len(right) - bisect_left(right, reached - value) for value in left)
    return min(1.0, 2 * above / (len(left) * len(right)))


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

    Datapoints are drawn, each with all its samples, and the mean of a draw is studentised by the draw's own spread, so
    that a skewed sample gets the longer end it needs (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
    12.5). No end is nearer than Student's, which draws from few or mostly equal values fall short of, nor than that of
    Student's t with the sample's skewness taken out, which few and mostly equal values need most. Where a rare value
    far from the others may not be among them, no interval holds the truth 95 times in 100; of six to ten mostly equal
    values this one does so 82 to 94 times.
    """
    n = len(differences)
    if n < 2:
        return None
    mean = math.fsum(differences) / n
    centred = [value - mean for value in differences]
    squares = math.fsum(value * value for value in centred)
    if squares <= 0 or math.sqrt(squares) <= 1e-12 * n * abs(mean):
        return Interval(mean, mean)
    error, tail = math.sqrt(squares / n / (n - 1)), 0.5 + confidence / 2
    below = above = t_quantile(tail, n - 1)
    if n <= MOST_RESAMPLED:
        drawn = sorted(_studentised(centred, seed, squares * 1e-12))
        skewness = math.fsum(value**3 for value in centred) / n / (squares / n) ** 1.5
        below, above = (
            max(below, drawn[min(len(drawn) - 1, math.floor(tail * len(drawn)))], _skewed(below, skewness, n)),
            max(above, -drawn[math.floor((1 - tail) * len(drawn))], -_skewed(-above, skewness, n)),
        )
    return Interval(mean - below * error, mean + above * error)


def _skewed(t: float, skewness: float, n: int) -> float:
    """The studentised mean of skewed values that stands where ``t`` would without the skewness.

    The inverse of a monotone cubic. Hall, On the removal of skewness by transformation, JRSS B 54 (1992), 2.
    """
    if abs(skewness) < 1e-6:
        return t
    root = math.sqrt(n)
    return root * 3 / skewness * (math.cbrt(1 + skewness * (t / root - skewness / (6 * n))) - 1)


def _studentised(centred: Sequence[float], seed: int, least: float) -> Iterator[float]:
    """The means of resamples over their standard errors. Resamples without any spread tell of none and are left out."""
    n = len(centred)
    both = [complex(value, value * value) for value in centred]  # one sum gives the sum and the sum of squares
    drawn = array("I", _random_bytes(seed, "bootstrap", 4 * n * RESAMPLES))
    for i in range(0, n * RESAMPLES, n):
        total = sum([both[number % n] for number in drawn[i : i + n]])
        squares = total.imag - total.real**2 / n
        if squares > least:
            yield total.real / math.sqrt(squares * n / (n - 1))


def _random_bytes(seed: int, use: str, count: int) -> bytes:
    return hashlib.shake_128(f"{use}/{seed}".encode()).digest(count)
