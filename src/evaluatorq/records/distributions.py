"""Tails and quantiles of the binomial and of Student's t: what tests, intervals and power are made of.

Written out because no core dependency brings them; the tests hold them against scipy.
"""

from __future__ import annotations

import math


def binomial_tail(k: int, n: int, p: float) -> float:
    """P(X >= k) of a binomial, by the regularised incomplete beta function (DLMF 8.17.5)."""
    if k <= 0:
        return 1.0
    return 0.0 if k > n else _beta(k, n - k + 1, p)


def binomial_mass(k: int, n: int, p: float) -> float:
    """P(X = k) of a binomial, for k from 0 to n."""
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
