"""Classes redrawn alike within clusters: probabilities kept, no class before another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from itrust import MulticlassSample
from itrust.nulls import (
    GRID,
    MAX_LAWS,
    Copula,
    classes_alike,
    compatible_class_correlations,
    redrawn_classes,
)

RHOS = (0.0, 0.4, 1.0)
UNITS = np.repeat(np.arange(50), 4)


def drawn(p, units, rho, draws=20_000, seed=1):
    p = np.asarray(p, dtype=float)
    return classes_alike(p, np.asarray(units), rho, range(len(p)), range(draws), seed)


def many(n=200, classes=3, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(classes), n)


def shares_of(codes, classes):
    return np.stack([(codes == k).mean(axis=1) for k in range(classes)], axis=1)


@pytest.mark.parametrize("rho", RHOS)
def test_every_row_keeps_the_probability_of_every_class(rho):
    p = np.array([[0.5, 0.3, 0.2], [0.001, 0.009, 0.99], [0.2, 0.3, 0.5], [1 / 3] * 3])
    share = shares_of(drawn(p, [0, 0, 0, 1], rho, 60_000), 3)
    assert (np.abs(share - p) <= 4.5 * np.sqrt(p * (1 - p) / 60_000)).all()


@pytest.mark.parametrize("rho", RHOS)
def test_classes_of_probability_0_never_come_and_certain_ones_always(rho):
    p = [[0.0, 0.4, 0.6], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1e-300, 1.0, 0.0]]
    codes = drawn(p, [0, 0, 1, 1], rho)
    assert set(np.unique(codes[0])) == {1, 2}
    assert (codes[1:].T == [1, 2, 1]).all()


def test_without_correlation_rows_are_independent_and_with_1_a_cluster_has_one_class():
    p = np.tile([0.5, 0.3, 0.2], (4, 1))
    units = [0, 0, 1, 1]
    together = [(c[0] == c[1]).mean() for c in (drawn(p, units, rho) for rho in (0.0, 0.4, 1.0))]
    assert together[0] == pytest.approx(np.square(p[0]).sum(), abs=0.015)
    assert together[0] + 0.05 < together[1] < 0.95
    assert together[2] == 1.0
    apart = drawn(p, units, 1.0)
    assert (apart[1] == apart[2]).mean() == pytest.approx(np.square(p[0]).sum(), abs=0.015)


def test_two_rows_go_together_as_the_integral_over_waiting_times_says():
    """P(both k) by a plain simulation with NumPy's normal numbers."""
    rng, p, rho, size = np.random.default_rng(0), np.array([0.6, 0.3, 0.1]), 0.5, 60_000
    shared, own = rng.normal(size=(size, 1, 3)), rng.normal(size=(size, 2, 3))
    waits = -np.log1p(-ndtr(np.sqrt(rho) * shared + np.sqrt(1 - rho) * own)) / p
    first = waits.argmin(axis=2)
    codes = drawn(np.tile(p, (2, 1)), [0, 0], rho, size)
    for a in range(3):
        for b in range(3):
            known = ((first[:, 0] == a) & (first[:, 1] == b)).mean()
            found = ((codes[0] == a) & (codes[1] == b)).mean()
            assert found == pytest.approx(known, abs=5 * np.sqrt(2 * known / size))


def test_no_class_comes_before_another():
    """With equal probabilities all classes are alike, whichever their columns."""
    codes = drawn(np.full((2, 4), 0.25), [0, 0], 0.6, 40_000)
    joint = np.array(
        [[((codes[0] == a) & (codes[1] == b)).mean() for b in range(4)] for a in range(4)]
    )
    same, others = np.diag(joint), joint[~np.eye(4, dtype=bool)]
    assert np.ptp(same) < 0.012
    assert np.ptp(others) < 0.012
    assert same.min() > others.max() + 0.02


@given(
    first=st.integers(0, 150),
    rows=st.integers(1, 50),
    begun=st.integers(0, 90),
    draws=st.integers(1, 80),
    rho=st.sampled_from(RHOS),
)
@settings(max_examples=25, deadline=None)
def test_a_draw_depends_on_its_row_and_its_number_alone(first, rows, begun, draws, rho):
    some, more = slice(first, first + rows), range(begun, begun + draws)
    whole = classes_alike(many(), UNITS, rho, range(200), range(170), 3)
    part = classes_alike(many()[some], UNITS[some], rho, range(200)[some], more, 3)
    np.testing.assert_array_equal(part, whole[first : first + rows, begun : begun + draws])


@pytest.mark.parametrize(
    ("truth", "low", "high"), [(0.0, 0.0, 0.1), (0.5, 0.3, 0.8), (1.0, 1.0, 1.0)]
)
def test_the_correlation_is_among_those_that_the_labels_do_not_contradict(truth, low, high):
    p, units = np.tile([0.5, 0.3, 0.2], (400, 1)), np.repeat(np.arange(80), 5)
    observed = classes_alike(p, units, truth, range(400), range(5), 5)
    kept = [compatible_class_correlations(p, units, y, None, 0) for y in observed.T]
    assert all(own == tuple(sorted(own)) for sets in kept for own in sets)
    assert np.mean([truth in own for sets in kept for own in sets]) >= 0.8
    middle = np.median([np.median(own) for sets in kept for own in sets])
    assert low <= middle <= high


def test_a_rare_class_that_comes_in_clusters_is_seen_beside_frequent_ones_that_do_not():
    p, units = np.tile([0.49, 0.49, 0.02], (1_000, 1)), np.repeat(np.arange(250), 4)
    y = classes_alike(p, units, (0.0, 0.0, 1.0), range(1_000), range(1), 2)[:, 0]
    first, second, rare = compatible_class_correlations(p, units, y, None, 0)
    assert max(first) <= 0.2
    assert max(second) <= 0.2
    assert min(rare) >= 0.35
    laws = Copula().laws(MulticlassSample(y, p, cluster=units), 0)
    assert 1 <= len(laws) <= MAX_LAWS
    assert laws[0].rho == (min(first), min(second), min(rare))
    assert laws[-1].rho == (max(first), max(second), max(rare))


def test_weights_that_count_alike_rows_more_keep_more_correlations():
    p, units = np.tile([0.4, 0.3, 0.3], (400, 1)), np.repeat(np.arange(100), 4)
    alike = classes_alike(p, units, 1.0, range(400), range(1), 2)[:, 0]
    alone = redrawn_classes(p, range(400), range(1), 2)[:, 0]
    heavy = units < 20
    y = np.where(heavy, alike, alone)
    plain = compatible_class_correlations(p, units, y, None, 0)
    weighed = compatible_class_correlations(p, units, y, np.where(heavy, 20.0, 1.0), 0)
    assert all(set(a) <= set(b) for a, b in zip(plain, weighed, strict=True))
    assert max(weighed[0]) > max(plain[0])


def test_a_class_that_never_occurs_leaves_the_correlation_of_the_others_alone():
    p = np.tile([0.5, 0.5, 0.0], (40, 1))
    sets = compatible_class_correlations(p, np.arange(40) // 4, np.arange(40) % 2, None, 0)
    assert sets[2] == (0.0,)
    assert set(sets[0]) <= set(GRID)
