"""The permutation test: every choice of rows counted, and its level."""

from itertools import combinations

import numpy as np
import pytest

from itrust.balance import permutation_test
from oracles import plausible

SINGLE = np.array([False])


@pytest.mark.parametrize("seed", range(3))
def test_the_pvalue_is_that_of_all_subsets(seed):
    """Of one feature all statistics order choices alike, by the size of its difference."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=9) + np.where(np.arange(9) < 4, 0.8, 0.0)
    sums = np.array([x[list(rows)].sum() - 4 * x.mean() for rows in combinations(range(9), 4)])
    exact = np.mean(np.abs(sums) >= abs(x[:4].sum() - 4 * x.mean()) - 1e-9)
    pvalue, _, adjusted = permutation_test(x[:, None], 4, SINGLE, 20_000, np.random.default_rng(0))
    assert abs(pvalue - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4
    assert pvalue == adjusted[0]


def test_differences_are_in_standard_deviations_of_permuted_rows():
    x = np.random.default_rng(0).normal(size=(40, 1))
    _, z, _ = permutation_test(x, 10, SINGLE, 9, np.random.default_rng(0))
    error = x.std(ddof=1) * np.sqrt(1 / 10 - 1 / 40)
    assert np.isclose(z[0], (x[:10].mean() - x.mean()) / error)


def test_the_level_is_exact_for_discrete_features():
    runs, rejected = 400, 0
    for seed in range(runs):
        rng = np.random.default_rng([3, seed])
        x = rng.integers(0, 2, size=(30, 3)).astype(float)
        pvalue, *_ = permutation_test(x, 8, np.array([False, False, True]), 39, rng)
        rejected += pvalue <= 0.1
    assert plausible(runs - rejected, runs, 0.9) or rejected < 0.1 * runs


def test_rows_that_are_all_alike_differ_in_nothing():
    pvalue, _, adjusted = permutation_test(
        np.ones((20, 2)), 5, np.zeros(2, dtype=bool), 9, np.random.default_rng()
    )
    assert pvalue == 1
    assert (adjusted == 1).all()
