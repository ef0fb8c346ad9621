"""Tails on the log scale against SciPy, and beyond where it underflows."""

import numpy as np
import pytest
from scipy.stats import chi2, norm, pearson3, t

from itrust.calibration import (
    from_normal_score,
    normal_score,
    pearson3_log_sf,
    student_quantile,
    student_tail,
    upper_score,
)


@pytest.mark.parametrize("skewness", [0.0, 1e-4, 0.01, 0.3, 1.0, np.sqrt(8), 6.0])
def test_tails_agree_with_scipy(skewness):
    z = np.linspace(-3, 12, 61)
    expected = norm.logsf(z) if skewness < 1e-3 else np.log(pearson3.sf(z, skewness))
    np.testing.assert_allclose(pearson3_log_sf(z, np.array(skewness)), expected, rtol=1e-6)


@pytest.mark.parametrize("k", [1.0, 3.0, 40.0, 400.0])
def test_deep_tails_follow_the_chi_square_where_probabilities_underflow(k):
    x = np.array([900.0, 3000.0, 50_000.0]) + 4 * k
    found = pearson3_log_sf((x - k) / np.sqrt(2 * k), np.sqrt(8 / k))
    a, half = k / 2, x / 2
    from scipy.special import gammaln

    leading = (a - 1) * np.log(half) - half - gammaln(a)
    correction = np.log1p((a - 1) / half + (a - 1) * (a - 2) / half**2)
    np.testing.assert_allclose(found, leading + correction, rtol=2e-3)
    shallow = chi2.logsf(600.0 + k, k)
    here = pearson3_log_sf(np.array(600 / np.sqrt(2 * k)), np.sqrt(8 / k))
    assert here == pytest.approx(shallow, rel=1e-8)


def test_the_two_ways_meet_without_a_step():
    """Across the switch to the continued fraction the log tail stays smooth."""
    for skewness in (0.2, 1.0, np.sqrt(8)):
        z = np.linspace(5, 900, 4000)
        steps = np.diff(pearson3_log_sf(z, np.array(skewness)))
        assert (steps < 0).all()
        assert np.abs(np.diff(steps)).max() < 0.03


@pytest.mark.parametrize("skewness", [-0.4, -0.3, 0.0, 1e-5, 0.5, 1.5])
def test_normal_scores_turn_back_into_values(skewness):
    z = np.linspace(-0.9, 4.0, 30)
    assert from_normal_score(normal_score(z, skewness), skewness) == pytest.approx(z)


def test_normal_scores_mirror_the_skewness():
    z = np.linspace(-2, 2, 9)
    assert normal_score(z, 0.7) == pytest.approx(-normal_score(-z, -0.7))


@pytest.mark.parametrize("skewness", [0.1, 0.5, 1.0])
def test_normal_scores_have_nearly_the_tails_of_a_gamma_law(skewness):
    z = np.array([1.0, 2.0, 3.0, 4.0])
    exact = pearson3_log_sf(z, np.full(4, skewness))
    assert norm.logsf(normal_score(z, skewness)) == pytest.approx(exact, abs=0.06)


@pytest.mark.parametrize("skewness", [-1.5, -0.2, 0.0, 0.3, 2.0])
def test_upper_scores_are_those_of_scipys_tail(skewness):
    z = np.array([0.0, 0.5, 1.0, 1.2])
    expected = norm.isf(pearson3.sf(z, skewness))
    np.testing.assert_allclose(upper_score(z, np.array(skewness)), expected, atol=1e-6)


def test_nothing_lies_beyond_the_end_of_the_support():
    assert upper_score(np.array([3.0]), np.array([-1.5]))[0] == np.inf


def test_student_has_the_tails_and_quantiles_of_scipy():
    z = np.array([-np.inf, -2.0, 0.0, 1.5, 40.0, np.inf])
    tail = np.array([0.0, 1e-12, 0.025, 0.5, 0.9, 1.0])
    for freedom in (0.7, 1.0, 9.0, 1e6, np.inf):
        assert student_tail(z, freedom) == pytest.approx(t.sf(z, freedom), rel=1e-12)
        assert student_quantile(tail, freedom) == pytest.approx(t.isf(tail, freedom), rel=1e-12)
