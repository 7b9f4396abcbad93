"""Expected values come from theory, printed tables, or scipy's own tests."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from plumbline_analysis.intervals import blocks_needed, bootstrap, holm, sign_flip, student

SAMPLE = np.array([0.3, -1.2, 0.9, 2.4, 1.1, 0.2, -0.5, 1.7])


def test_the_t_interval_is_the_one_of_the_printed_table():
    # t(.975, 5 degrees of freedom) = 2.5706 in every table; this sample has sd exactly sqrt(3.5).
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    found = student(values)
    assert found.point == 3.5
    assert found.half_width == pytest.approx(2.570582 * math.sqrt(3.5 / 6), rel=1e-6)


def test_the_t_interval_agrees_with_scipy():
    bounds = stats.ttest_1samp(SAMPLE, 0).confidence_interval(0.95)
    found = student(SAMPLE)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high), rel=1e-12)


def test_one_value_has_no_interval():
    found = student(np.array([4.0]))
    assert found.point == 4.0
    assert not found.known


def test_the_t_interval_covers_95_of_100_even_over_six_pairs():
    rng = np.random.default_rng(5)
    draws = rng.normal(0, 1, (4000, 6))
    covered = sum(found.low <= 0 <= found.high for found in map(student, draws))
    # Four standard errors of a binomial share of .95.
    assert covered / 4000 == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 4000))


@pytest.mark.parametrize("m", [2, 6, 7, 9, 12])
def test_the_smallest_p_of_the_sign_flip_test_is_two_to_the_one_minus_m(m):
    assert sign_flip(np.linspace(1, 2, m)) == 2.0 ** (1 - m)


def test_the_sign_flip_p_agrees_with_scipys_permutation_test():
    found = stats.permutation_test(
        (SAMPLE,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert sign_flip(SAMPLE) == pytest.approx(found.pvalue, rel=1e-12)


def test_the_sign_flip_p_agrees_with_a_plain_walk_over_all_signs():
    values = SAMPLE[:6]
    hits = [
        abs(np.dot(signs, values)) >= abs(values.sum()) - 1e-12
        for signs in itertools.product((1, -1), repeat=6)
    ]
    assert sign_flip(values) == np.mean(hits)


def test_differences_of_zero_give_p_one():
    assert sign_flip(np.zeros(6)) == 1.0
    assert math.isnan(sign_flip(np.array([])))


def test_drawn_patterns_agree_with_the_exact_distribution():
    # 20 equal differences: the sum of signs is binomial, so p of |sum| >= 10 is known exactly.
    values = np.array([1.0] * 15 + [-1.0] * 5)
    exact = stats.binomtest(15, 20, 0.5).pvalue
    assert sign_flip(values) == pytest.approx(exact, abs=4 * math.sqrt(exact / 100_000))


def test_holm_follows_the_textbook():
    # Holm (1979) by hand: .01*4, .02*3, .03*2, .04*1, made monotone.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_holm_agrees_with_false_discovery_free_definition():
    # By definition: adjusted p of the i-th smallest = max over j <= i of (k - j + 1) p_j.
    rng = np.random.default_rng(2)
    p = rng.random(7).tolist()
    order = np.argsort(p)
    want = np.empty(7)
    for i, place in enumerate(order):
        want[place] = min(1.0, max((7 - j) * p[order[j]] for j in range(i + 1)))
    assert holm(p) == pytest.approx(want.tolist())


def test_holm_leaves_unknown_values_out_of_the_count():
    adjusted = holm([0.02, math.nan, 0.03])
    assert adjusted[0] == pytest.approx(0.04)
    assert math.isnan(adjusted[1])


@pytest.mark.parametrize(("k", "m"), [(0, 6), (1, 6), (2, 7), (4, 8), (10, 9)])
def test_blocks_needed_are_those_of_the_protocol(k, m):
    assert blocks_needed(k) == m


def test_the_bootstrap_begins_at_twenty_blocks():
    assert bootstrap(np.arange(19.0)) is None
    assert bootstrap(np.arange(20.0)) is not None


def test_the_bootstrap_agrees_with_scipys():
    values = np.random.default_rng(1).normal(3, 1, 40)
    bounds = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    found = bootstrap(values)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high), abs=0.02)
