"""Every formula against scipy, and the claims that no oracle has: levels and coverage, by simulation."""

from __future__ import annotations

import math
import random
from itertools import combinations

import numpy as np
import pytest
import scipy.stats as oracle
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from evaluatorq.records import statistics as ours

DIFFERENCES = st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=10)
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


# ---------------------------------------------------------------- against scipy


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (0, 7), (3, 7), (7, 7), (40, 48), (9_990, 10_000)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_wilson_interval_is_scipys(successes: int, n: int, confidence: float) -> None:
    expected = oracle.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    assert ours.wilson(successes, n, confidence) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_sign_test_is_scipys_binomial_test(up: int, down: int) -> None:
    expected = oracle.binomtest(up, up + down, 0.5).pvalue if up + down else 1.0
    assert ours.sign_test(up, down) == pytest.approx(expected, rel=1e-9)


def test_the_sign_test_is_exact_where_floats_run_out() -> None:
    assert ours.sign_test(1_000, 0) == 2.0**-999
    assert ours.sign_test(5_300, 4_700) == pytest.approx(oracle.binomtest(5_300, 10_000).pvalue, rel=1e-9)


@given(DIFFERENCES)
def test_the_paired_test_is_scipys_permutation_test(differences: list[float]) -> None:
    def mean(values: np.ndarray, axis: int) -> np.ndarray:
        return np.mean(values, axis=axis)

    expected = oracle.permutation_test(
        (np.array(differences),), mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    assert ours.paired_test(differences) == pytest.approx(expected.pvalue, rel=1e-9)


def test_drawn_signs_agree_with_the_t_test_where_both_are_good() -> None:
    rng = random.Random(3)
    for n, shift in ((40, 0.0), (40, 0.4), (501, 0.1)):
        differences = [rng.gauss(shift, 1) for _ in range(n)]
        expected = oracle.ttest_1samp(differences, 0).pvalue
        assert ours.paired_test(differences) == pytest.approx(expected, abs=0.02)


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=60))
def test_the_correction_is_scipys(p_values: list[float]) -> None:
    assert ours.benjamini_hochberg(p_values) == pytest.approx(list(oracle.false_discovery_control(p_values)))


@pytest.mark.parametrize("tail", [1, -1])
def test_the_interval_of_a_mean_is_scipys_students_with_the_long_end_of_the_studentised_bootstrap(tail: int) -> None:
    rng = random.Random(5)
    values = np.array([tail * rng.expovariate(1) for _ in range(25)])
    error = values.std(ddof=1) / math.sqrt(25)
    student = oracle.t.interval(0.95, 24, values.mean(), error)

    draws = np.random.default_rng(1).choice(values, (40_000, 25))
    studentised = (draws.mean(1) - values.mean()) / (draws.std(1, ddof=1) / math.sqrt(25))
    low, high = (values.mean() - error * np.quantile(studentised, share) for share in (0.975, 0.025))
    interval = ours.paired_mean_interval(list(values))
    assert interval is not None
    assert interval.low == pytest.approx(min(student[0], low), abs=0.06)
    assert interval.high == pytest.approx(max(student[1], high), abs=0.06)


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.25]), min_size=2, max_size=12))
def test_no_end_of_an_interval_is_nearer_than_students(values: list[float]) -> None:
    interval = ours.paired_mean_interval(values)
    assert interval is not None
    if len(set(values)) > 1:
        error = np.std(values, ddof=1) / math.sqrt(len(values))
        low, high = oracle.t.interval(0.95, len(values) - 1, np.mean(values), error)
        assert interval.low <= low + 1e-9
        assert interval.high >= high - 1e-9


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.25]), min_size=3, max_size=12))
def test_no_end_is_nearer_than_that_of_the_cubic_that_takes_skewness_out(values: list[float]) -> None:
    interval, n = ours.paired_mean_interval(values), len(values)
    if interval is None or len(set(values)) == 1:
        return
    skewness = float(oracle.skew(values))

    def without_skewness(t: float) -> float:
        return t + skewness / math.sqrt(n) * (t * t / 3 + 1 / 6) + skewness**2 * t**3 / (27 * n)

    student, error = oracle.t.ppf(0.975, n - 1), np.std(values, ddof=1) / math.sqrt(n)
    above, below = (brentq(lambda t, end=end: without_skewness(t) - end, -200, 200) for end in (-student, student))
    assert interval.high >= np.mean(values) - above * error - 1e-6
    assert interval.low <= np.mean(values) - below * error + 1e-6


# ---------------------------------------------------------------- by counting


@given(st.integers(1, 9), st.integers(0, 9), st.integers(1, 9))
def test_pass_at_k_and_pass_hat_k_are_what_counting_subsets_gives(n: int, passed: int, k: int) -> None:
    passed = min(passed, n)
    samples = [True] * passed + [False] * (n - passed)
    if k > n:
        assert ours.pass_at_k(n, passed, k) is None
        assert ours.pass_hat_k(n, passed, k) is None
        return
    subsets = list(combinations(samples, k))
    assert ours.pass_at_k(n, passed, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert ours.pass_hat_k(n, passed, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


def test_repeats_of_four_tasks_are_not_twelve_tasks() -> None:
    assert ours.paired_test([1.0, 2 / 3, 1.0, 1 / 3]) == 0.125
    assert ours.sign_test(4, 0) == 0.125


def test_the_sign_of_the_difference_does_not_matter_and_its_unit_neither() -> None:
    differences = [0.5, -0.25, 1.0, 0.75, -0.5, 0.25] * 4
    p = ours.paired_test(differences)
    assert p == ours.paired_test([-value for value in differences])
    assert p == ours.paired_test([1000 * value for value in differences])


@given(DIFFERENCES)
def test_no_p_value_is_below_the_least_that_the_sample_could_give(differences: list[float]) -> None:
    assert ours.paired_test(differences) >= ours.least_p(differences) * (1 - 1e-12)


@given(SHARES, st.integers(0, 5))
def test_the_same_seed_gives_the_same_interval(values: list[float], seed: int) -> None:
    assert ours.paired_mean_interval(values, seed) == ours.paired_mean_interval(values, seed)


def test_too_few_values_have_no_interval_and_equal_ones_a_point() -> None:
    assert ours.paired_mean_interval([]) is None
    assert ours.paired_mean_interval([0.5]) is None
    assert ours.paired_mean_interval([0.1] * 3) == pytest.approx((0.1, 0.1))
    assert ours.paired_rate_interval([]) is None


def test_no_flip_in_few_datapoints_is_no_proof_of_no_difference() -> None:
    interval = ours.paired_rate_interval([0.0] * 10)
    assert interval is not None
    assert interval.low < -0.1
    assert interval.high > 0.1


def test_samples_that_agree_within_a_datapoint_count_as_one() -> None:
    agreeing = ours.clustered_wilson([(5, 5), (0, 5)] * 10)
    assert agreeing == pytest.approx(ours.wilson(10, 20), abs=0.02)
    mixed = ours.clustered_wilson([(3, 5), (2, 5)] * 10)
    assert mixed.high - mixed.low < agreeing.high - agreeing.low
    assert ours.clustered_wilson([(1, 1), (0, 1)] * 10) == ours.wilson(10, 20)
    assert ours.clustered_wilson([(5, 5)] * 4) == ours.wilson(4, 4)
    assert ours.clustered_wilson([(2, 5)]) == ours.wilson(2, 5)
    assert ours.clustered_wilson([]) == (0.0, 1.0)


# ---------------------------------------------------------------- by simulation


def clusters(rng: random.Random, n: int, k: int, shift: float = 0.0) -> tuple[list[float], list[float]]:
    """Two runs of ``n`` datapoints with ``k`` samples: each datapoint has its own chance to pass."""
    a, b = [], []
    for _ in range(n):
        chance = rng.betavariate(2, 1)
        a.append(sum(rng.random() < chance for _ in range(k)) / k)
        b.append(sum(rng.random() < max(0.0, chance - shift) for _ in range(k)) / k)
    return a, b


@pytest.mark.parametrize(("n", "k"), [(8, 1), (8, 4), (30, 1), (30, 3)])
def test_the_same_agent_twice_is_called_different_at_most_one_time_in_twenty(n: int, k: int) -> None:
    rng, rounds = random.Random(n * k), 400
    calls = 0
    for seed in range(rounds):
        a, b = clusters(rng, n, k)
        calls += ours.paired_test([y - x for x, y in zip(a, b, strict=True)], seed) <= 0.05
    assert calls / rounds <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / rounds)


@pytest.mark.parametrize(("n", "k", "shift"), [(12, 3, 0.0), (40, 1, 0.1), (40, 4, 0.2)])
def test_intervals_hold_the_truth_nineteen_times_in_twenty(n: int, k: int, shift: float) -> None:
    rng, rounds = random.Random(7), 300
    rates = means = 0
    truth = -sum(min(shift, rng.betavariate(2, 1)) for _ in range(40_000)) / 40_000
    for seed in range(rounds):
        a, b = clusters(rng, n, k, shift)
        differences = [y - x for x, y in zip(a, b, strict=True)]
        rate, mean = ours.paired_rate_interval(differences), ours.paired_mean_interval(differences, seed)
        assert rate is not None
        assert mean is not None
        rates += rate.low <= truth <= rate.high
        means += mean.low <= truth <= mean.high
    assert rates / rounds >= 0.95 - 0.04
    assert means / rounds >= 0.95 - 0.04


def test_the_pass_rate_of_few_datapoints_with_samples_is_within_its_interval_nineteen_times_in_twenty() -> None:
    rng, rounds, held = random.Random(2), 1_000, 0
    for _ in range(rounds):
        chances = [rng.betavariate(4, 1) for _ in range(8)]
        interval = ours.clustered_wilson([(sum(rng.random() < chance for _ in range(5)), 5) for chance in chances])
        held += interval.low <= 0.8 <= interval.high
    assert held / rounds >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / rounds)


def test_eight_values_of_which_most_are_nothing_hold_the_mean_as_often_as_promised() -> None:
    rng, rounds, held = random.Random(5), 400, 0
    for seed in range(rounds):
        interval = ours.paired_mean_interval([rng.random() if rng.random() < 0.3 else 0.0 for _ in range(8)], seed)
        held += interval is not None and interval.low <= 0.15 <= interval.high
    assert held / rounds >= 0.89 - 2 * math.sqrt(0.89 * 0.11 / rounds)


def test_a_long_tail_in_ten_datapoints_is_within_its_interval_nineteen_times_in_twenty() -> None:
    rng, rounds, held = random.Random(11), 400, 0
    for seed in range(rounds):
        interval = ours.paired_mean_interval([rng.expovariate(1) for _ in range(10)], seed)
        held += interval is not None and interval.low <= 1 <= interval.high
    assert held / rounds >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / rounds)
