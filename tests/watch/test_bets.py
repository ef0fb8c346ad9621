"""Bets are fair, or worse, whatever the labels' probabilities within the tolerance are."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from itrust.watch.bets import CHANCES, STAKES, bet_sums, log_factors

SHARE = st.floats(0, 1)
FUNCTION = st.floats(-1, 1)


def factors(phi, y, p, tolerance=0.0, share=None):
    rows = (np.array(y, float), np.array(p, float), share)
    return np.exp(log_factors(bet_sums(np.array([phi], float), rows, tolerance)))[:, 0]


@settings(max_examples=150, deadline=None)
@given(FUNCTION, SHARE, st.floats(0, 0.3), SHARE)
def test_a_bet_on_one_label_has_mean_1_at_most_at_every_probability_within_the_tolerance(
    phi, p, tolerance, where
):
    low, high = max(p - tolerance, 0), min(p + tolerance, 1)
    truth = low + where * (high - low)
    mean = truth * factors([phi], [1], [p], tolerance)
    mean = mean + (1 - truth) * factors([phi], [0], [p], tolerance)
    assert mean.shape == (2, STAKES.size)
    assert (mean <= 1 + 1e-9).all()


@settings(max_examples=100, deadline=None)
@given(FUNCTION, FUNCTION, SHARE, SHARE, SHARE, st.floats(0, 0.2))
def test_a_cluster_of_two_labels_is_one_bet_whatever_their_dependence(a, b, p, q, how, tolerance):
    share = np.full(2, 0.5)
    for first, second in ((p, q), (min(p + tolerance, 1), max(q - tolerance, 0))):
        least, most = max(0.0, first + second - 1), min(first, second)
        both = least + how * (most - least)  # P(both labels are 1), from one extreme to the other
        law = {
            (1, 1): both,
            (1, 0): first - both,
            (0, 1): second - both,
            (0, 0): 1 - first - second + both,
        }
        mean = sum(
            chance * factors([a, b], labels, [p, q], tolerance, share)
            for labels, chance in law.items()
        )
        assert (mean <= 1 + 1e-9).all()


def test_one_label_at_one_half_has_the_closed_form():
    rows = (np.array([1.0]), np.array([0.5]), None)
    u, a, b = bet_sums(np.array([[1.0]]), rows)
    assert u[:, 0].tolist() == [0.5, -0.5]
    assert a[:, 0].tolist() == [0.0, 0.0]  # away from 1/2 both ways: the variance only falls
    assert b[:, 0].tolist() == [0.25, 0.25]


def test_sums_equal_a_loop_over_rows():
    rng = np.random.default_rng(0)
    matrix, p, m = rng.uniform(-1, 1, (3, 40)), rng.uniform(0, 1, 40), 0.07
    y = (rng.random(40) < p).astype(float)
    found = bet_sums(matrix, (y, p, None), m)
    for k in range(3):
        for side, sign in enumerate((1, -1)):
            u = a = b = 0.0
            for phi, label, chance in zip(matrix[k], y, p, strict=True):
                rises = sign * phi > 0
                worst = min(chance + m, 1) if rises else max(chance - m, 0)
                u += sign * phi * (label - chance) - abs(phi) * abs(worst - chance)
                v = phi**2 * worst * (1 - worst)
                towards = worst < 0.5 if rises else worst > 0.5
                a, b = (a + v, b) if towards else (a, b + v)
            np.testing.assert_allclose(found[:, side, k], [u, a, b], atol=1e-12)


def test_several_batches_at_once_are_the_batches_one_by_one():
    rng = np.random.default_rng(1)
    matrix, p = rng.uniform(-1, 1, (4, 3, 25)), rng.uniform(0, 1, (4, 25))
    y = (rng.random((4, 25)) < p).astype(float)
    together = log_factors(bet_sums(matrix, (y, p, None)))
    for k in range(4):
        alone = log_factors(bet_sums(matrix[k], (y[k], p[k], None)))
        np.testing.assert_allclose(together[k], alone, atol=1e-12)


def test_labels_that_agree_with_0_and_1_change_nothing():
    assert (factors([0.7, -0.3], [0, 1], [0, 1]) == 1).all()


def test_chances_of_stakes_sum_to_1():
    assert np.isclose(CHANCES.sum(), 1)
