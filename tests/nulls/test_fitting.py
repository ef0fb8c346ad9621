"""Which null fits: known without labels, from what carries the sum of residuals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itrust import Sample
from itrust.nulls import (
    MAX_SKEWNESS2,
    MIN_CLUSTERS,
    Bernoulli,
    Carriers,
    Copula,
    Rademacher,
    Replicates,
    carriers_of,
    fitting_null,
    places_null,
)


def rows_of(clusters=60, rows=4, low=0.5, high=0.5, seed=0, **settings):
    rng = np.random.default_rng(seed)
    p = rng.uniform(low, high, clusters * rows)
    return Sample(
        rng.random(p.size) < p, p, cluster=np.repeat(np.arange(clusters), rows), **settings
    )


def replicated(n=80, sets=20, clusters=None):
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 2.0, n)
    sets = weights[:, None] * rng.choice([0.0, 2.0], size=(n, sets))
    return Sample(
        rng.integers(0, 2, n),
        rng.uniform(0.2, 0.8, n),
        weights=weights,
        cluster=clusters,
        replicate_weights=sets,
        replicate_method="brr",
    )


def relabelled(sample, y):
    design = sample.design
    return Sample(
        y,
        sample.p,
        weights=design.weights,
        cluster=design.cluster,
        strata=design.strata,
        replicate_weights=design.replicate_weights,
        replicate_method=design.replication,
    )


def same(one, other):
    """Replicates hold arrays: they are alike where these are."""
    if not isinstance(one, Replicates):
        return one == other
    return type(other) is Replicates and np.array_equal(one.deviations, other.deviations)


def naive_carriers(sample):
    """Oracle: one cluster at a time, as if it had a single label with the mean probability."""
    w = sample.weights_or_ones
    variances, thirds = [], []
    for unit in np.unique(sample.design.units):
        inside = sample.design.units == unit
        mass = sum(w[inside])
        mean = sum(w[inside] * sample.p[inside]) / mass
        outcomes = [(mass * (1 - mean), mean), (-mass * mean, 1 - mean)]
        variances.append(sum(chance * value**2 for value, chance in outcomes))
        thirds.append(sum(chance * value**3 for value, chance in outcomes))
    effective = sum(variances) ** 2 / sum(v**2 for v in variances)
    return len(variances), effective, sum(thirds) ** 2 / sum(variances) ** 3


def test_independent_rows_have_their_labels_redrawn():
    rng = np.random.default_rng(0)
    for p in (rng.uniform(0.4, 0.6, 50), rng.uniform(0.001, 0.03, 50)):
        sample = Sample(rng.random(50) < p, p, weights=rng.exponential(size=50))
        assert fitting_null(sample) == Bernoulli() == places_null(sample)


def test_signs_are_flipped_where_sums_over_clusters_are_symmetric():
    assert fitting_null(rows_of(60, 4, 0.5, 0.5)) == Rademacher()
    assert fitting_null(rows_of(200, 3, 0.3, 0.7)) == Rademacher()


def test_labels_are_redrawn_alike_where_events_are_rare():
    assert fitting_null(rows_of(60, 4, 0.001, 0.03)) == Copula()
    assert fitting_null(rows_of(60, 4, 0.97, 0.999)) == Copula()  # the other label is rare


def test_groups_and_points_have_labels_redrawn_however_many_clusters_there_are():
    assert places_null(rows_of(60, 4, 0.5, 0.5)) == Copula() == places_null(rows_of(60, 4, 0, 0.03))


def test_replicate_weights_count_where_they_are_all_there_is():
    alone, beside = replicated(), replicated(clusters=np.arange(80) // 2)
    for rule in (fitting_null, places_null):
        found = rule(alone)
        assert isinstance(found, Replicates)
        assert np.array_equal(found.deviations, alone.design.replicate_deviations)
        assert found.freedom == alone.design.freedom
        assert not isinstance(rule(beside), Replicates)


def test_rows_drawn_by_themselves_within_strata_are_independent():
    p = np.full(400, 0.5)
    strata = np.arange(400) // 10
    for scale in (1, 100):
        assert fitting_null(Sample(np.arange(400) % 2, p / scale, strata=strata)) == Bernoulli()


@given(seed=st.integers(0, 10_000), high=st.sampled_from([0.01, 0.1, 0.3, 0.9]))
@settings(max_examples=30, deadline=None)
def test_no_label_changes_the_choice(seed, high):
    rng = np.random.default_rng(seed)
    sample = rows_of(int(rng.integers(4, 80)), 3, 0.0, high, seed)
    others = (relabelled(sample, y) for y in (1 - sample.y, sample.y * 0, sample.y * 0 + 1))
    for other in others:
        assert fitting_null(other) == fitting_null(sample)
        assert places_null(other) == places_null(sample)
        assert carriers_of(other) == carriers_of(sample)


def test_no_label_changes_the_choice_with_replicate_weights():
    sample = replicated()
    other = relabelled(sample, 1 - sample.y)
    assert same(fitting_null(sample), fitting_null(other))
    assert carriers_of(other) == carriers_of(sample)


@given(seed=st.integers(0, 10_000), weighted=st.booleans(), of_rows=st.booleans())
@settings(max_examples=30, deadline=None)
def test_carriers_equal_a_naive_loop(seed, weighted, of_rows):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.0, rng.choice([0.05, 1.0]), 60) + 1e-6
    sample = Sample(
        rng.integers(0, 2, 60),
        np.minimum(p, 1.0),
        weights=rng.exponential(size=60) + 0.01 if weighted else None,
        cluster=None if of_rows else np.append([0, 1], rng.integers(0, 12, 58)),
    )
    found, (count, effective, skewness2) = carriers_of(sample), naive_carriers(sample)
    assert found.clusters == count
    assert found.effective == pytest.approx(effective)
    assert found.skewness2 == pytest.approx(skewness2, abs=1e-12)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("clusters", [5, 60])
def test_equal_clusters_of_equal_probabilities_by_hand(p, clusters):
    found = carriers_of(rows_of(clusters, 7, p, p))
    assert found.clusters == clusters
    assert found.effective == pytest.approx(clusters)
    assert found.skewness2 == pytest.approx((1 - 2 * p) ** 2 / (p * (1 - p) * clusters), abs=1e-12)


def test_clusters_of_equal_size_in_replicate_weights_by_hand():
    found, sample = carriers_of(replicated()), replicated()
    mean = np.average(sample.p, weights=sample.design.weights)
    assert found.clusters == found.effective == sample.design.freedom + 1
    by_hand = (1 - 2 * mean) ** 2 / (mean * (1 - mean) * found.clusters)
    assert found.skewness2 == pytest.approx(by_hand)


def test_one_large_cluster_counts_for_little_more_than_one():
    cluster = np.append(np.zeros(970, dtype=int), np.arange(1, 31))
    found = carriers_of(Sample(np.arange(1_000) % 2, np.full(1_000, 0.5), cluster=cluster))
    assert found.clusters == 31
    assert found.effective == pytest.approx((970**2 + 30) ** 2 / (970**4 + 30))
    assert not found.enough


def test_certain_predictions_carry_nothing():
    found = carriers_of(Sample([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0], cluster=[0, 0, 1, 1]))
    assert (found.effective, found.enough, found.symmetric) == (0.0, False, False)


@pytest.mark.parametrize(("low", "high"), [(0.03, 0.5), (0.02, 0.98)])
def test_rare_events_among_some_clusters_are_not_hidden_by_the_others(low, high):
    """Sums of all clusters are nearly symmetric; signs of those with rare events are not."""
    p = np.repeat(np.append(np.full(30, low), np.full(30, high)), 4)
    found = carriers_of(Sample(np.arange(p.size) % 2, p, cluster=np.arange(p.size) // 4))
    assert found.skewness2 <= MAX_SKEWNESS2
    assert found.skewness2_of_thirds == pytest.approx((1 - 2 * low) ** 2 / (20 * low * (1 - low)))
    assert not found.symmetric


def test_what_is_enough_and_symmetric_includes_the_limits():
    assert Carriers(10, MIN_CLUSTERS, MAX_SKEWNESS2).enough
    assert Carriers(10, MIN_CLUSTERS, MAX_SKEWNESS2).symmetric
    beyond = Carriers(10, np.nextafter(MIN_CLUSTERS, 0), np.nextafter(MAX_SKEWNESS2, 1))
    assert not beyond.enough
    assert not beyond.symmetric
