import numpy as np
import pytest
from scipy.stats import chi2

from itrust.nulls import weighted_chi2_sf


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 200])
@pytest.mark.parametrize("weight", [1e-6, 1.0, 40.0])
@pytest.mark.parametrize("tail", [0.999, 0.7, 0.05, 1e-6, 1e-12, 1e-40])
def test_equal_weights_are_one_chi_square(degrees, weight, tail):
    value = chi2.isf(tail, degrees)
    found = weighted_chi2_sf(weight * value, np.full(degrees, weight))
    assert found == pytest.approx(chi2.sf(value, degrees), rel=1e-8)


@pytest.mark.parametrize("value", [0.1, 1.0, 10.0, 30.0])
def test_pairs_of_weights_are_a_sum_of_exponentials(value):
    scale = np.array([1.0, 0.7, 0.3])
    mix = [np.prod([a / (a - b) for b in scale if b != a]) for a in scale]
    expected = np.sum(mix * np.exp(-value / scale))
    assert weighted_chi2_sf(value, np.repeat(scale / 2, 2)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("value", [-20.0, -1.0, 0.0, 1e-6, 1.0, 25.0])
def test_weights_of_both_signs_give_the_laplace_law(value):
    expected = 0.5 * np.exp(-value) if value >= 0 else 1 - 0.5 * np.exp(value)
    weights = np.array([0.5, 0.5, -0.5, -0.5])
    assert weighted_chi2_sf(value, weights) == pytest.approx(expected, rel=1e-9)


LOPSIDED = [
    np.concatenate([[1, 1], np.full(200, 0.01)]),
    np.concatenate([[1, 1], np.full(1000, 0.01), [-12.0]]),
    np.concatenate([np.full(30, 0.25), np.full(570, 0.0099), np.full(100, -0.13)]),
    np.concatenate([[100.0], np.full(300, 1.0), np.full(3000, 1e-3)]),
    np.concatenate([[1.0], np.full(50, -3.0)]),
]


@pytest.mark.parametrize("weights", LOPSIDED)
@pytest.mark.slow
def test_one_large_weight_beside_many_small_ones(weights):
    rng = np.random.default_rng(2)
    distinct, copies = np.unique(weights, return_counts=True)
    drawn = rng.chisquare(copies, size=(100_000, distinct.size)) @ distinct
    for level in (0.01, 0.5, 0.9, 0.99):
        value = np.quantile(drawn, level)
        error = np.sqrt(level * (1 - level) / drawn.size)
        assert abs(weighted_chi2_sf(value, weights) - (1 - level)) < 4.5 * error


def test_values_far_below_and_beyond_everything():
    weights = np.concatenate([[1, 1], np.full(200, 0.01)])
    assert weighted_chi2_sf(0.1, weights) == pytest.approx(1.0)
    assert weighted_chi2_sf(1e9, weights) == 0.0


def test_random_weights_agree_with_simulation():
    rng = np.random.default_rng(1)
    weights = rng.normal(size=25)
    drawn = np.square(rng.normal(size=(200_000, 25))) @ weights
    for level in (0.03, 0.4, 0.9, 0.99):
        value = np.quantile(drawn, level)
        error = np.sqrt(level * (1 - level) / drawn.size)
        assert abs(weighted_chi2_sf(value, weights) - (1 - level)) < 4.5 * error


@pytest.mark.parametrize(
    ("value", "weights", "expected"),
    [
        (0.0, [], 1.0),
        (1.0, [], 0.0),
        (-1.0, [1.0, 2.0], 1.0),
        (1.0, [-1.0, -2.0], 0.0),
        (0.0, [1.0], 1.0),
        (0.0, [-1.0], 0.0),
    ],
)
def test_corners(value, weights, expected):
    assert weighted_chi2_sf(value, np.array(weights)) == pytest.approx(expected, abs=1e-12)


def test_many_weights_are_fast_enough_and_monotone():
    weights = np.concatenate([1 / np.arange(1, 2000) ** 2, np.full(500, -1e-3)])
    tails = [weighted_chi2_sf(value, weights) for value in (0.1, 1.0, 5.0, 40.0)]
    assert tails == sorted(tails, reverse=True)
    assert 0 < tails[-1] < 1e-8
