"""Intra-cluster correlation and design effects: closed forms, naive loops and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from itrust import InputError, Sample
from itrust.calibration import design_effect, intra_cluster_correlation, within_pairs
from itrust.data import Design


def copula_labels(rng, truth, cluster, rho):
    """Labels with these probabilities; normal scores of a cluster are correlated by rho."""
    shared = rng.normal(size=cluster.max() + 1)[cluster]
    scores = np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.normal(size=cluster.size)
    return scores < norm.ppf(truth)


def clustered(rng, clusters=30, rows=8, rho=0.2, low=0.3, high=0.7, **settings):
    cluster = np.repeat(np.arange(clusters), rows)
    p = rng.uniform(low, high, cluster.size)
    return Sample(copula_labels(rng, p, cluster, rho), p, cluster=cluster, **settings)


def naive_effect(noise, cluster, icc):
    """Oracle: every pair of rows by itself."""
    variance = 0.0
    for i in range(noise.size):
        for j in range(noise.size):
            if i == j:
                variance += noise[i] ** 2
            elif cluster[i] == cluster[j]:
                variance += icc * noise[i] * noise[j]
    return variance / np.square(noise).sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_estimate_is_the_ratio_of_sums_over_pairs(weighted):
    rng = np.random.default_rng(0)
    s = clustered(rng, 12, 4, weights=rng.uniform(0.5, 2, 48) if weighted else None)
    w, shown, possible = s.weights_or_ones, 0.0, 0.0
    for i in range(s.n):
        for j in range(s.n):
            if i != j and s.cluster[i] == s.cluster[j]:
                shown += w[i] * w[j] * (s.y[i] - s.p[i]) * (s.y[j] - s.p[j])
                v = s.p[[i, j]] * (1 - s.p[[i, j]])
                possible += w[i] * w[j] * np.sqrt(v[0] * v[1])
    found = intra_cluster_correlation(s)
    assert found.estimate == pytest.approx(shown / possible)
    assert (found.clusters, found.pairs) == (12, 12 * 6)
    assert found.lower < found.estimate < found.upper <= 1
    assert found.to_dict()["upper"] == found.upper


def test_one_label_a_cluster_is_a_correlation_of_one():
    cluster = np.repeat(np.arange(40), 5)
    y = (np.arange(40) % 2)[cluster]
    found = intra_cluster_correlation(Sample(y, np.full(200, 0.5), cluster=cluster))
    assert found.estimate == pytest.approx(1.0)
    assert found.upper == 1.0


def test_equal_clusters_have_the_closed_form():
    design = Design(12, cluster=np.repeat(np.arange(3), 4))
    even, contrast = np.full(12, 0.4), np.tile([1.0, -1.0, 1.0, -1.0], 3)
    assert design_effect(even, design, 0.1) == pytest.approx(1 + 3 * 0.1)
    assert design_effect(contrast, design, 0.1) == pytest.approx(1 - 0.1)
    both = design_effect([even, contrast], design, 0.1)
    assert both == pytest.approx([1.3, 0.9])
    assert design_effect(np.zeros(12), design, 0.1) == 1.0
    assert design_effect(even, Design(12), 0.7) == pytest.approx(1.0)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(0, 1))
def test_the_design_effect_is_that_of_all_pairs(seed, icc):
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 5, 20)
    noise = rng.normal(size=20)
    design = Design(20, cluster=cluster)
    assert design_effect(noise, design, icc) == pytest.approx(naive_effect(noise, cluster, icc))
    assert design_effect(noise, design, 0.0) == 1.0
    order = rng.permutation(20)
    shuffled = Design(20, cluster=cluster[order])
    assert within_pairs(noise[order], shuffled).sum() == pytest.approx(
        within_pairs(noise, design).sum()
    )


@pytest.mark.parametrize(
    ("clusters", "rows", "rho", "low", "high", "truth"),
    [
        (60, 20, 0.2, 0.3, 0.7, 0.125),
        (12, 30, 0.3, 0.2, 0.8, 0.18),
        (60, 20, 0.2, 0.01, 0.05, 0.044),  # few events
        (200, 5, 0.0, 0.001, 0.03, 0.0),
    ],
)
def test_the_upper_end_lies_above_the_truth(clusters, rows, rho, low, high, truth):
    rng = np.random.default_rng(1)
    runs = 150
    found = [
        intra_cluster_correlation(clustered(rng, clusters, rows, rho, low, high))
        for _ in range(runs)
    ]
    assert np.mean([own.estimate for own in found]) == pytest.approx(truth, abs=0.02)
    above = sum(own.upper >= truth for own in found)
    assert binomtest(above, runs, 0.95, alternative="less").pvalue > 0.01
    below = sum(own.lower <= truth for own in found)
    assert binomtest(below, runs, 0.95, alternative="less").pvalue > 0.01


def test_what_cannot_be_estimated_is_refused():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 60)
    y = rng.random(60) < p
    cases = [
        (Sample(y, p), "no clusters"),
        (Sample(y, p, cluster=np.arange(60) % 9), "has 9 clusters; it takes 10"),
        (Sample(np.zeros(60), p, cluster=np.arange(60) // 3), "labels that are all alike"),
        (Sample(y, p, cluster=np.arange(60)), "no cluster with two rows"),
    ]
    for sample, words in cases:
        with pytest.raises(InputError, match=words):
            intra_cluster_correlation(sample)
