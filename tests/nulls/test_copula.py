"""Labels redrawn alike within clusters: probabilities kept, dependence as the normal law has it."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, multivariate_normal, norm

import itrust as it
from itrust import InputError, Sample
from itrust.nulls import GRID, Bernoulli, Copula, compatible_correlations

RHOS = (0.0, 0.5, 1.0)


def labels_of(null, sample, draws=range(2_000), seed=0):
    (chunk,) = sample.chunks(sample.n)
    return null.draw(chunk, draws, seed)


def within_noise(share, p, draws):
    """Whether means of so many draws are within 4 standard errors of their probabilities."""
    return np.abs(share - p) <= 4 * np.sqrt(p * (1 - p) / draws)


def clustered(p, cluster, y=None):
    p = np.asarray(p, dtype=float)
    return Sample(np.zeros(p.size) if y is None else y, p, cluster=cluster)


@pytest.mark.parametrize("rho", RHOS)
def test_every_row_keeps_its_probability(rho):
    p = np.tile([1e-4, 0.01, 0.5, 0.99], 2)
    sample = clustered(p, np.repeat([0, 1], 4))
    draws = 200_000
    share = labels_of(Copula(rho), sample, range(draws), 3).mean(axis=1)
    assert within_noise(share, p, draws).all()


@pytest.mark.parametrize("p", [2.0**-17, 0.5 + 2.0**-17, 3e-6])
def test_probabilities_between_two_digits_are_kept(p):
    """Only the numbers after the first 16 bits tell these from their neighbours."""
    sample = clustered(np.full(2_000, p), np.arange(2_000) // 2)
    count = int(labels_of(Copula(0.3), sample, range(2_000), 1).sum())
    # Pairs of a cluster go together: a binomial count has at most twice its variance.
    assert abs(count - 4e6 * p) <= 4 * np.sqrt(2 * 4e6 * p * (1 - p))


@pytest.mark.parametrize("rho", RHOS)
def test_certain_rows_never_move(rho):
    labels = labels_of(Copula(rho), clustered([0.0, 1.0, 0.5, 0.5], [0, 0, 1, 1]), range(50_000))
    assert not labels[0].any()
    assert labels[1].all()


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("pair", [(0.3, 0.3), (0.02, 0.1), (0.5, 0.9)])
def test_two_rows_of_a_cluster_are_a_bivariate_normal_pair(rho, pair):
    draws = 100_000
    labels = labels_of(Copula(rho), clustered([*pair, *pair], [0, 0, 1, 1]), range(draws), 5)
    law = multivariate_normal([0.0, 0.0], [[1.0, rho], [rho, 1.0]])
    together = float(law.cdf(norm.ppf(pair)))
    for rows in ((0, 1), (2, 3)):
        both = labels[list(rows)].all(axis=0)
        assert within_noise(both.mean(), together, draws)
    for rows in ((0, 2), (0, 3), (1, 2), (1, 3)):  # of two clusters: independent
        p = pair[rows[0] % 2] * pair[rows[1] % 2]
        assert within_noise(labels[list(rows)].all(axis=0).mean(), p, draws)


def test_half_and_half_go_together_as_sheppard_says():
    """P(both) = 1/4 + arcsin(rho) / (2 pi) for two probabilities of a half (Sheppard, 1899)."""
    for rho in (0.2, 0.5, 0.8):
        labels = labels_of(Copula(rho), clustered([0.5] * 4, [0, 0, 1, 1]), range(100_000), 2)
        known = 0.25 + np.arcsin(rho) / (2 * np.pi)
        assert within_noise(labels[:2].all(axis=0).mean(), known, 100_000)


def test_no_correlation_is_the_law_of_independent_rows():
    p = np.linspace(0.05, 0.95, 12)
    sample = clustered(p, np.repeat([0, 1, 2], 4))
    ours, theirs = (labels_of(null, sample, range(50_000)) for null in (Copula(0.0), Bernoulli()))
    noise = np.sqrt(2 * p * (1 - p) / 50_000)
    assert (np.abs(ours.mean(axis=1) - theirs.mean(axis=1)) <= 4.5 * noise).all()
    correlations = np.corrcoef(ours)[np.triu_indices(12, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(50_000)


def test_full_correlation_gives_a_cluster_of_equal_probabilities_one_label():
    cluster = np.repeat(np.arange(20), 5)
    p = np.repeat(np.linspace(0.01, 0.99, 20), 5)
    labels = labels_of(Copula(1.0), clustered(p, cluster)).reshape(20, 5, -1)
    assert (labels == labels[:, :1]).all()
    assert len({tuple(own) for own in labels[:, 0]}) == 20


def test_full_correlation_orders_labels_by_their_probabilities():
    labels = labels_of(Copula(1.0), clustered([0.2, 0.4, 0.6, 0.8] * 2, [0] * 4 + [1] * 4))
    assert (labels[:3] <= labels[1:4]).all()
    assert (labels[4:7] <= labels[5:8]).all()


@given(
    size=st.integers(1, 23),
    start=st.integers(0, 30),
    wide=st.integers(1, 9),
    rho=st.sampled_from(GRID),
)
@settings(max_examples=40, deadline=None)
def test_any_block_of_rows_and_draws_has_the_same_labels(size, start, wide, rho):
    rng = np.random.default_rng(0)
    sample = clustered(rng.random(23), rng.integers(0, 6, 23))
    whole = labels_of(Copula(rho), sample, range(40), 9)
    block = range(start, start + wide)
    parts = [Copula(rho).draw(chunk, block, 9) for chunk in sample.chunks(size)]
    assert np.array_equal(np.vstack(parts), whole[:, start : start + wide])


def test_another_seed_gives_other_labels_and_the_same_seed_the_same():
    sample = clustered(np.full(60, 0.4), np.arange(60) // 3)
    one, again, other = (labels_of(Copula(0.4), sample, range(50), seed) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert 0.4 < (one != other).mean() < 0.56  # 2 p (1 - p) = .48 for independent draws


def simulated(rng, rho, clusters=50, rows=4, low=0.2, high=0.6):
    cluster = np.repeat(np.arange(clusters), rows)
    p = np.repeat(rng.uniform(low, high, clusters), rows)
    shared, own = rng.normal(size=clusters)[cluster], rng.normal(size=cluster.size)
    y = np.sqrt(rho) * shared + np.sqrt(1 - rho) * own < norm.ppf(p)
    return Sample(y, p, cluster=cluster)


@pytest.mark.parametrize("rho", [0.35, pytest.param(0.7, marks=pytest.mark.slow)])
def test_the_true_correlation_is_compatible_with_the_labels_most_of_the_time(rho):
    """Both sides leave 5 % out, so 9 in 10; a correlation far off is not."""
    rng = np.random.default_rng(8)
    found = [compatible_correlations(simulated(rng, rho), seed) for seed in range(40)]
    kept = sum(rho in own for own in found)
    assert binomtest(kept, 40, 0.9, alternative="less").pvalue > 0.01
    assert all(own == tuple(sorted(own)) and own and set(own) <= set(GRID) for own in found)
    assert np.mean([max(own) - min(own) for own in found]) < 0.6


def test_independent_labels_are_compatible_with_little_correlation():
    rng = np.random.default_rng(9)
    found = [compatible_correlations(simulated(rng, 0.0), seed) for seed in range(12)]
    assert sum(own[0] <= 0.05 for own in found) >= 9
    assert sum(0.9 in own for own in found) == 0


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.6), (0.005, 0.04)])
def test_one_label_a_cluster_is_compatible_with_full_correlation(low, high):
    rng = np.random.default_rng(10)
    found = [compatible_correlations(simulated(rng, 1.0, low=low, high=high), k) for k in range(10)]
    assert all(own[-1] == 1.0 for own in found)


@pytest.mark.parametrize(
    "sample",
    [
        clustered([0.01] * 40, np.arange(40) // 2),  # no event
        clustered([0.01] * 40, np.arange(40) // 2, np.ones(40)),  # nothing but events
        clustered([0.5] * 40, np.arange(40), np.arange(40) % 2),  # no two rows in a cluster
        clustered([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1], [0, 0, 1, 1]),  # nothing can vary
        clustered([0.5] * 6, [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]),  # less alike than by chance
    ],
)
def test_some_correlation_is_always_compatible(sample):
    found = compatible_correlations(sample, 0)
    assert found
    assert found == tuple(sorted(found))


def test_the_same_seed_finds_the_same_correlations_whatever_clusters_are_called():
    sample = simulated(np.random.default_rng(3), 0.5)
    renamed = Sample(sample.y, sample.p, cluster=[f"c{1_000 - unit}" for unit in sample.cluster])
    assert compatible_correlations(sample, 5) == compatible_correlations(sample, 5)
    near = [compatible_correlations(some, 5) for some in (sample, renamed)]
    assert len(set(near[0]) & set(near[1])) >= len(near[0]) - 2  # other clusters, other draws


def test_a_known_correlation_is_its_only_law():
    sample = simulated(np.random.default_rng(3), 0.5)
    assert Copula(0.35).laws(sample, 0) == (Copula(0.35),)
    assert [law.rho for law in Copula().laws(sample, 0)] == list(compatible_correlations(sample, 0))


def test_rows_without_clusters_are_refused_in_words():
    rows = Sample([0, 1] * 10, [0.5] * 20)
    with pytest.raises(InputError, match=r"needs rows in memory that have clusters.*Bernoulli\(\)"):
        Copula().laws(rows, 0)
    with pytest.raises(InputError, match=r"needs rows in memory that have clusters"):
        it.klce_test(rows, null=Copula(), draws=19, rng=0)
    for null, sample in ((Copula(0.5), rows), (Copula(), clustered([0.5] * 4, [0, 0, 1, 1]))):
        with pytest.raises(InputError, match="draws for rows with clusters, by one of its laws"):
            labels_of(null, sample)


@pytest.mark.parametrize("rho", [-0.1, 1.01, float("nan")])
def test_a_correlation_outside_0_and_1_is_refused(rho):
    with pytest.raises(InputError, match=re.escape(f"rho is a correlation from 0 to 1, not {rho}")):
        Copula(rho)
