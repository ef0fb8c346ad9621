"""Power with clusters: naive sums, what icc=0 gives, and promises kept in simulation."""

import json

import numpy as np
import pytest
from scipy.stats import norm, t

import itrust as it
from itrust import InputError, Sample
from itrust.calibration.power import ClusterNoise, Sensitivity, assumed_clustering

CLUSTERS, ROWS, RHO = 60, 20, 0.2


def labels(rng, truth, cluster):
    shared = rng.normal(size=cluster.max() + 1)[cluster]
    scores = np.sqrt(RHO) * shared + np.sqrt(1 - RHO) * rng.normal(size=cluster.size)
    return scores < norm.ppf(truth)


@pytest.fixture(scope="module")
def wards():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(CLUSTERS), ROWS)
    p = rng.uniform(0.3, 0.7, cluster.size)
    x = {"g": rng.choice(list("abc"), p.size), "site": np.array(list("uv"))[cluster % 2]}
    return Sample(labels(rng, p, cluster), p, x, cluster=cluster)


def without_clusters(s):
    x = {c.name: np.array(c.levels)[c.values] for c in s.columns}
    return Sample(s.y, s.p, x)


@pytest.fixture(scope="module")
def found(wards):
    return it.detectable(wards, draws=499, rng=0)


def rejects(s, inside, y):
    """An oracle: Student's test of the mean residual of a region, by clusters."""
    totals = np.bincount(s.cluster, (y - s.p) * inside, CLUSTERS)
    spread = np.sqrt(CLUSTERS * totals.var(ddof=1))
    return abs(totals.sum()) / spread > t.isf(0.025, CLUSTERS - 1)


@pytest.mark.parametrize("where", ["everywhere", "g = a", "site = u"])
def test_a_shift_that_is_promised_is_seen_by_a_test_of_its_region(wards, found, where):
    region = found.region(where)
    inside = region.where.rows(wards.points)
    truth = wards.p + region.up * inside
    runs = [
        rejects(wards, inside, labels(np.random.default_rng(k), truth, wards.cluster))
        for k in range(150)
    ]
    assert np.mean(runs) >= 0.75


@pytest.mark.slow
def test_a_shift_within_clusters_that_is_promised_is_seen_by_the_test(wards, found):
    region = found.region("g = a")
    truth = wards.p + region.up * region.where.rows(wards.points)
    x = {c.name: np.array(c.levels)[c.values] for c in wards.columns}
    seen = 0
    for k in range(24):
        y = labels(np.random.default_rng(k), truth, wards.cluster)
        shifted = Sample(y, wards.p, x, cluster=wards.cluster)
        seen += it.klce_test(shifted, draws=99, rng=k).pvalue <= 0.05
    assert seen >= 0.7 * 24


def test_clusters_cost_most_where_they_lie_within_a_region(wards, found):
    plain = it.detectable(without_clusters(wards), draws=499, simulations=0, rng=0)
    worse = {
        str(mine.where): mine.shift / own.shift
        for mine, own in zip(found.regions, plain.regions, strict=True)
    }
    assert min(worse.values()) >= 1
    assert worse["everywhere"] > 1.8
    assert worse["site = u"] > 1.8
    assert worse["g = a"] < 1.4
    assert found.simulations == 0


def test_results_say_what_clusters_cost(wards, found):
    own = found.clustering.correlation
    assert found.icc == own.upper > own.estimate > 0.05
    assert found.design_effect == pytest.approx(1 + (ROWS - 1) * found.icc, rel=0.01)
    assert found.effective_rows == pytest.approx(wards.n / found.design_effect)
    told = " ".join(str(found).split())
    assert "approximate, by clusters: rows of a cluster go together" in told
    assert f"at most {found.icc:.2g}): 1,200 rows count as {found.effective_rows:,.0f}" in told
    assert "rows of a cluster go together" in found._repr_html_()
    facts = json.loads(json.dumps(found.to_dict()))
    assert facts["icc"] == found.icc
    assert facts["effective_rows"] == found.effective_rows
    assert facts["clustering"]["correlation"]["clusters"] == CLUSTERS


def test_a_correlation_of_0_gives_the_answer_of_independent_rows(wards):
    stated = it.detectable(wards, draws=99, simulations=0, rng=0, icc=0)
    plain = it.detectable(without_clusters(wards), draws=99, simulations=0, rng=0)
    assert [r.shift for r in stated.regions] == [r.shift for r in plain.regions]
    assert [r.shift for r in stated.pairs] == [r.shift for r in plain.pairs]
    assert (stated.icc, stated.design_effect, plain.icc, plain.design_effect) == (0, 1, None, 1)


def test_shifts_grow_with_the_correlation(wards):
    shifts = [
        it.detectable(wards, draws=99, rng=0, icc=icc).everywhere.shift
        for icc in (0.0, 0.02, 0.1, 0.3)
    ]
    assert shifts == sorted(shifts)
    assert shifts[0] < shifts[-1] / 2


def test_one_direction_has_a_closed_form(wards):
    only = it.default_dictionary(wards).only(families=["overall"])
    found = it.detectable(wards, dictionary=only, draws=1999, rng=0, icc=0.1)
    sd = np.sqrt(np.sum(wards.p * (1 - wards.p)) * found.design_effect) / wards.n
    expected = (t.isf(0.025, CLUSTERS - 1) + norm.isf(0.2)) * sd
    assert found.everywhere.up == pytest.approx(expected, rel=0.08)
    asked = {"where": "everywhere", "dictionary": only, "draws": 1999, "rng": 0, "icc": 0.1}
    size = it.sample_size(wards, expected, **asked)
    assert size.rows == pytest.approx(wards.n, rel=0.12)
    assert size.clusters == pytest.approx(CLUSTERS, rel=0.12)


def test_rows_needed_grow_by_the_design_effect_and_are_told_in_clusters(wards):
    few = it.sample_size(wards, 0.05, where="everywhere", draws=99, rng=0, icc=0)
    many = it.sample_size(wards, 0.05, where="everywhere", draws=99, rng=0)
    assert many.icc == pytest.approx(many.clustering.correlation.estimate)
    assert many.rows / few.rows == pytest.approx(many.design_effect, rel=0.25)
    assert many.clusters == -(-many.rows // ROWS)
    assert f"{many.rows:,} labelled rows in {many.clusters} clusters" in str(many)
    assert many.to_dict()["clusters"] == many.clusters
    assert many.effective_rows == pytest.approx(many.rows / many.design_effect)


def test_sums_along_features_have_the_naive_variance(wards):
    rng = np.random.default_rng(2)
    rows = np.sort(rng.choice(wards.n, 150, replace=False))
    some = Sample(
        wards.y[rows],
        wards.p[rows],
        {"g": np.array(list("abc"))[rows % 3]},
        weights=rng.uniform(0.5, 2, 150),
        cluster=wards.cluster[rows] % 12,
    )
    clustering = assumed_clustering(some, 0.3, careful=True)
    setting = Sensitivity.of(some, draws=99, rng=0, clustering=clustering)
    bank = setting.prepared.bank
    # A kernel, on all rows in the order of the pilot.
    order = np.argsort(it._core.tickets(0, 150))
    v = (some.weights_or_ones**2 * some.p * (1 - some.p))[order]
    law = ClusterNoise(clustering, some, bank, v)
    noise = (
        bank.matrix(some.points) * some.weights_or_ones * np.sqrt(some.p * (1 - some.p)) / bank.unit
    )
    same = some.cluster[:, None] == some.cluster
    covariance = np.where(np.eye(150, dtype=bool), 1.0, 0.3 * same)
    full = noise @ covariance @ noise.T
    independent = noise @ noise.T
    columns = np.arange(noise.shape[0])
    assert law.covariances(columns, independent)[1] == pytest.approx(full)
    varying = np.diagonal(independent) > 1e-9
    naive = np.diagonal(full)[varying] / np.diagonal(independent)[varying]
    assert law.effects[varying] == pytest.approx(naive)
    root = np.sqrt(v)
    sigma = covariance[np.ix_(order, order)] * root * root[:, None]
    shares = rng.normal(size=(150, 3))
    naive = np.einsum("ik,ij,jk->k", shares, sigma, shares)
    assert law.variance(shares) == pytest.approx(naive)
    kernel = np.exp(-np.square(shares[:, :1] - shares[:, 0]))
    pairs = kernel - np.diag(np.diagonal(kernel))
    ratio = np.trace(pairs @ sigma @ pairs @ sigma) / np.trace(
        pairs @ np.diag(v) @ pairs @ np.diag(v)
    )
    assert law.form_effect(kernel) == pytest.approx(np.sqrt(ratio))


def test_many_clusters_are_stood_for_by_some(monkeypatch, wards):
    clustering = assumed_clustering(wards, 0.2, careful=True)
    bank = Sensitivity.of(wards, draws=99, rng=0, clustering=clustering).prepared.bank
    whole = ClusterNoise(clustering, wards, bank, np.zeros(0)).effects
    monkeypatch.setattr("itrust.calibration.power.clusters.MAX_CLUSTERS", 40)
    some = ClusterNoise(clustering, wards, bank, np.zeros(0)).effects
    assert np.median(np.abs(some / whole - 1)) < 0.2


def test_clusters_of_one_row_cost_next_to_nothing():
    s = it.simulate.survey(300, rng=0, trustworthy=True).sample
    x = {"age": s.column("age").values}
    alone = it.detectable(Sample(s.y, s.p, x, cluster=np.arange(300)), draws=99, rng=0)
    plain = it.detectable(Sample(s.y, s.p, x), draws=99, simulations=0, rng=0)
    assert alone.design_effect == 1
    assert alone.everywhere.shift == pytest.approx(plain.everywhere.shift, rel=0.02)


def test_what_is_asked_of_a_correlation(wards):
    with pytest.raises(InputError, match=r"icc must lie between 0 and 1, not 1\.5"):
        it.detectable(wards, icc=1.5)
    with pytest.raises(InputError, match=r"icc must lie between 0 and 1, not 'much'"):
        it.sample_size(wards, icc="much")
    with pytest.raises(InputError, match="there are no clusters; name them with cluster="):
        it.detectable(without_clusters(wards), icc=0.1)
    x = {"g": np.array(list("abc"))[wards.column("g").values]}
    few = Sample(wards.y, wards.p, x, cluster=wards.cluster % 6)
    with pytest.raises(InputError, match=r"6 clusters; it takes 10 .*; state it with icc="):
        it.detectable(few)
    zeros = Sample(np.zeros(wards.n), wards.p, x, cluster=wards.cluster)
    with pytest.raises(InputError, match=r"all alike; .*; state it with icc="):
        it.sample_size(zeros)
    assert it.sample_size(zeros, icc=0.1, where="everywhere", draws=99, rng=0).rows > 500
    stated = it.detectable(few, icc=0.1, draws=99, rng=0)
    assert stated.everywhere.shift > it.detectable(wards, icc=0.1, draws=99, rng=0).everywhere.shift
