"""Is the smallest difference that is stated really shown four times in five? Against scipy, and by simulation."""

from __future__ import annotations

import math
import random
from statistics import stdev

import pytest
import scipy.stats as oracle
from hypothesis import given
from hypothesis import strategies as st

from evaluatorq.records.distributions import binomial_mass, binomial_tail, t_quantile
from evaluatorq.records.power import Noise, smallest_loss, smallest_shift
from evaluatorq.records.statistics import paired_test

NEAR = 0.03
"""The promise is 80 % within this."""


@pytest.mark.parametrize("df", [1, 2, 3, 7, 30, 500, 9_999])
@pytest.mark.parametrize("p", [0.025, 0.2, 0.5, 0.8, 0.975, 0.9995])
def test_the_t_quantile_is_scipys(p: float, df: int) -> None:
    assert t_quantile(p, df) == pytest.approx(oracle.t.ppf(p, df), abs=1e-9)


@given(st.integers(0, 60), st.integers(1, 60), st.floats(0.01, 0.99))
def test_the_binomial_tail_is_scipys(k: int, n: int, p: float) -> None:
    assert binomial_tail(k, n, p) == pytest.approx(oracle.binom.sf(k - 1, n, p), abs=1e-11)


@given(st.integers(0, 40), st.integers(1, 40), st.floats(0.01, 0.99))
def test_the_binomial_mass_is_scipys(k: int, n: int, p: float) -> None:
    k = min(k, n)
    assert binomial_mass(k, n, p) == pytest.approx(oracle.binom.pmf(k, n, p), abs=1e-11)


def tolerance(rounds: int) -> float:
    return NEAR + 2 * math.sqrt(0.16 / rounds)


# ---------------------------------------------------------------- what nobody can show


@pytest.mark.parametrize("n", [0, 1, 5])
def test_five_datapoints_can_show_no_difference_at_all(n: int) -> None:
    assert smallest_loss(n) is None
    assert smallest_shift(n, 1.0) is None


def test_six_datapoints_show_only_what_nearly_all_of_them_show() -> None:
    assert smallest_loss(6) == pytest.approx(0.8 ** (1 / 6), abs=1e-4)


@given(st.integers(6, 25), st.floats(0, 0.9), st.sampled_from([1, 3, 5]))
def test_what_is_shown_is_a_share_and_more_datapoints_show_less(n: int, share: float, samples: int) -> None:
    noise = Noise(share, 1.0 if samples == 1 else 0.4, samples)
    few, many = smallest_loss(n, noise), smallest_loss(4 * n, noise)
    assert few is not None
    assert many is not None
    assert 0 < many < few <= 1


def test_counting_and_the_normal_approximation_meet_where_one_takes_over() -> None:
    for noise, last in ((Noise(0.1, 1.0, 1), 2_000), (Noise(0.5, 0.4, 3), 500)):
        counted, approximated = smallest_loss(last, noise), smallest_loss(last + 1, noise)
        assert counted == pytest.approx(approximated, rel=0.06)


# ---------------------------------------------------------------- four times in five


def lose(rng: random.Random, differences: list[float], share: float) -> list[float]:
    return [-1.0 if rng.random() < share else difference for difference in differences]


def chance(rng: random.Random, n: int, samples: int, wavering: float) -> list[float]:
    """The same agent twice: some datapoints waver, each with a chance of its own."""
    rates = [rng.random() if rng.random() < wavering else 1.0 for _ in range(n)]
    runs = [[sum(rng.random() < rate for _ in range(samples)) / samples for rate in rates] for _ in range(2)]
    return [b - a for a, b in zip(*runs, strict=True)]


@pytest.mark.parametrize(("n", "samples", "wavering"), [(8, 1, 0.0), (24, 1, 0.3), (10, 3, 1.0), (24, 5, 0.2)])
def test_a_loss_of_the_stated_size_is_shown_four_times_in_five(n: int, samples: int, wavering: float) -> None:
    rng, rounds, shown = random.Random(n * samples), 400, 0
    for seed in range(rounds):
        share = smallest_loss(n, Noise.of(chance(rng, n, samples, wavering), samples))
        assert share is not None
        shown += paired_test(lose(rng, chance(rng, n, samples, wavering), share), seed) <= 0.05
    assert shown / rounds == pytest.approx(0.8, abs=tolerance(rounds))


@pytest.mark.parametrize("n", [6, 8, 15])
def test_a_shift_of_the_stated_size_is_shown_four_times_in_five_though_the_noise_was_measured_once(n: int) -> None:
    rng, rounds, shown = random.Random(n), 600, 0
    for seed in range(rounds):
        shift = smallest_shift(n, stdev([rng.gauss(0, 2) for _ in range(n)]))
        assert shift is not None
        shown += paired_test([rng.gauss(shift, 2) for _ in range(n)], seed) <= 0.05
    assert shown / rounds == pytest.approx(0.8, abs=tolerance(rounds))
