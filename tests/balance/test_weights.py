"""Entropy balancing: closed forms, SciPy as an oracle, what happens out of reach."""

import numpy as np
import pytest
from scipy.optimize import minimize

from itrust.balance import entropy_balance


def features(seed, n=200, k=4, shift=0.4):
    rng = np.random.default_rng(seed)
    there = rng.normal(size=(5 * n, k))
    here = rng.normal(size=(n, k)) + shift
    return here, there.mean(axis=0), there.std(axis=0)


def test_balance_holds_to_1e_8():
    here, means, spread = features(0)
    found = entropy_balance(here, means, spread)
    assert found.is_exact
    assert found.trimmed == 0
    assert found.unbalanced == 0
    assert np.abs(found.weights @ here - means).max() < 1e-8
    assert np.isclose(found.weights.sum(), 1)
    assert (found.weights >= 0).all()


def test_rows_like_the_population_keep_equal_weights():
    here, _, _ = features(1)
    found = entropy_balance(here, here.mean(axis=0), here.std(axis=0))
    assert np.allclose(found.weights, 1 / 200, atol=1e-12)
    assert np.isclose(found.effective, 200)


def test_two_levels_have_the_closed_form():
    """30 rows of 100 are of a level that half of the population has."""
    level = np.zeros((100, 1))
    level[:30] = 1
    found = entropy_balance(level, np.array([0.5]), np.array([0.5]))
    assert np.allclose(found.weights[:30], 0.5 / 30)
    assert np.allclose(found.weights[30:], 0.5 / 70)


@pytest.mark.parametrize("seed", range(3))
def test_the_dual_is_scipys(seed):
    here, means, spread = features(seed, shift=0.3)
    base = np.random.default_rng(seed).uniform(0.5, 2, 200)
    centred = (here - means) / spread

    def dual(b):
        return np.log(base / base.sum() @ np.exp(centred @ b))

    best = minimize(dual, np.zeros(4), method="BFGS", options={"gtol": 1e-10}).x
    raw = base * np.exp(centred @ best)
    found = entropy_balance(here, means, spread, base)
    assert np.allclose(found.weights, raw / raw.sum(), atol=1e-7)


def test_a_soft_feature_is_balanced_up_to_noise():
    here, means, spread = features(2)
    soft = np.array([False, False, False, True])
    found = entropy_balance(here, means, spread, soft=soft)
    assert np.abs(found.imbalance[:3]).max() < 1e-8
    assert 1e-4 < abs(found.imbalance[3]) < 1 / np.sqrt(200)


def test_out_of_reach_weights_are_soft_and_none_is_too_large():
    here, means, spread = features(3, n=60)
    found = entropy_balance(here, means - 5, spread)  # no weights reach that
    assert not found.is_exact
    assert found.unbalanced == 4
    assert found.weights.max() <= found.largest * (1 + 1e-6) == pytest.approx(1 / np.sqrt(60))
    assert np.isclose(found.weights.sum(), 1)
    assert np.isfinite(found.weights).all()


def test_order_of_rows_and_units_do_not_matter():
    here, means, spread = features(4)
    order = np.random.default_rng(0).permutation(200)
    found = entropy_balance(here, means, spread)
    turned = entropy_balance(here[order], means, spread)
    scaled = entropy_balance(1000 * here + 7, 1000 * means + 7, 1000 * spread)
    assert np.allclose(turned.weights, found.weights[order], atol=1e-9)
    assert np.allclose(scaled.weights, found.weights, atol=1e-9)


def test_a_feature_twice_and_a_constant_do_no_harm():
    here, means, spread = features(5)
    twice = np.column_stack([here, here[:, 0], np.ones(200)])
    found = entropy_balance(
        twice, np.append(means, [means[0], 1]), np.append(spread, [spread[0], 0])
    )
    assert np.allclose(found.weights, entropy_balance(here, means, spread).weights, atol=1e-7)


def test_what_is_left_of_a_line_is_told():
    """Rows that cannot reach the mean, and a target that is a line: imbalance times slope."""
    rng = np.random.default_rng(0)
    here = rng.uniform(0, 1, (400, 1))
    found = entropy_balance(here, np.array([2.0]), np.array([0.5]))
    assert not found.is_exact
    assert found.worst > 1
    target = 3 * here[:, 0]
    off = float(found.weights @ target) - 6.0
    assert np.isclose(found.left_over(target), abs(off), rtol=0.05)
    assert entropy_balance(*features(0)).left_over(target[:200]) == 0
