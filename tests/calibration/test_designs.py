"""The test and tables of biases in designs that break simple nulls: level, refusal, agreement."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import binomtest, norm

import itrust as it
from itrust.nulls import Copula, Rademacher

DRAWS = 99


@pytest.fixture(autouse=True)
def _no_assumption_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        yield


def alike(rng, truth, cluster, rho):
    """Labels with these probabilities; normal scores of a cluster are correlated by rho."""
    shared = rng.normal(size=cluster.max() + 1)[cluster]
    return np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.normal(size=truth.size) < norm.ppf(truth)


def rows_of(run, clusters, rows, low, high, *, rho=1.0, strata=None, wrong=0.0):
    """Probabilities go with a covariate of the cluster; in group "a" they are wrong if asked."""
    rng = np.random.default_rng(run)
    cluster = np.repeat(np.arange(clusters), rows)
    x, group = rng.uniform(size=clusters)[cluster], rng.choice(list("abcd"), clusters)[cluster]
    p = low + (high - low) * x
    y = alike(rng, np.where(group == "a", p + wrong, p), cluster, rho)
    of_cluster = None if strata is None else cluster // strata
    return it.Sample(y, p, {"x": x, "group": group}, cluster=cluster, strata=of_cluster)


def rare(run):
    """Sixty clusters of four with one label each, of which about one is positive."""
    return rows_of(run, 60, 4, 0.001, 0.03)


def shared_labels(run):
    """Sixty clusters of twenty with one label each, p near .05."""
    return rows_of(run, 60, 20, 0.02, 0.08)


def paired(run):
    """Two clusters in each of 31 strata, as health surveys have them."""
    return rows_of(run, 62, 6, 0.1, 0.4, rho=0.3, strata=2)


def thin(run, wrong=0.0):
    """Eighty clusters of three with one label each: flipped signs marked groups in 72 of 100."""
    return rows_of(run, 80, 3, 0.001, 0.03, wrong=wrong)


def few(clusters=6):
    rng = np.random.default_rng(0)
    n = 20 * clusters
    columns = {"x": rng.normal(size=n), "group": rng.choice(["a", "b"], n)}
    cluster = np.repeat(np.arange(clusters), 20)
    return it.Sample(rng.random(n) < 0.4, np.full(n, 0.4), columns, cluster=cluster)


def outcome(sample, rng=0, **settings):
    return it.klce_test(sample, draws=DRAWS, rng=rng, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "runs"),
    [(rare, 20), (shared_labels, 15), (paired, 60)],
    ids=["rare", "shared labels", "paired"],
)
def test_a_calibrated_model_is_not_rejected_too_often(design, runs):
    """Approximate nulls may be off a little: more than .065 is refuted, .05 nearly never."""
    rejected = sum(outcome(design(run), run).pvalue <= 0.05 for run in range(runs))
    assert binomtest(rejected, runs, 0.065, alternative="greater").pvalue > 0.005


def test_hard_designs_have_the_nulls_that_fit_them():
    for design, null in ((rare, Copula()), (shared_labels, Copula()), (paired, Rademacher())):
        assert it.nulls.fitting_null(design(0)) == null


@pytest.mark.parametrize("design", [rare, paired])
def test_no_finding_has_a_smaller_p_value_than_the_test(design):
    for run in range(5):
        found = outcome(design(run), run)
        assert found.findings
        assert min(finding.pvalue for finding in found.findings) >= found.pvalue - 1e-12
        assert all(0 < f.unadjusted_pvalue <= f.pvalue + 1e-12 for f in found.findings)


@pytest.mark.parametrize("design", [rare, paired])
def test_the_same_seed_gives_the_same_p_value(design):
    one, again = outcome(design(2), 5), outcome(design(2), 5)
    assert one.pvalue == again.pvalue
    assert np.array_equal(one.null_distribution, again.null_distribution)


@pytest.mark.parametrize("design", [rare, paired])
def test_names_of_clusters_do_not_matter(design):
    """In the same order, that is: clusters are numbered by it, and draws go by the numbers."""
    sample = design(3)
    columns = {"x": sample.column("x").values, "group": sample.column("group").values.astype(str)}
    results = [
        outcome(it.Sample(sample.y, sample.p, columns, cluster=names, strata=sample.strata), 1)
        for names in (sample.cluster, [f"c{1_000 + unit}" for unit in sample.cluster])
    ]
    assert results[0].pvalue == results[1].pvalue
    assert np.array_equal(results[0].null_distribution, results[1].null_distribution)


def test_the_p_value_is_the_largest_of_all_laws():
    sample = rare(1)
    found = outcome(sample, 4)
    laws = Copula().laws(sample, found.seed)
    alone = [outcome(sample, found.seed, null=law).pvalue for law in laws]
    assert len(laws) > 1
    assert found.pvalue == max(alone)


def test_few_clusters_have_no_p_value_and_no_findings():
    found = outcome(few())
    assert math.isnan(found.pvalue)
    assert found.findings == ()
    assert found.evidence() == ()
    assert (found.refused.clusters, found.refused.needed) == (6, 7.0)
    assert found.refused.effective == pytest.approx(6.0)
    assert found.to_dict()["refused"] == vars(found.refused)
    assert math.isfinite(found.statistic)


def test_a_large_cluster_beside_many_small_ones_has_no_p_value():
    rng = np.random.default_rng(0)
    cluster = np.append(np.zeros(300, dtype=int), np.arange(1, 31))
    found = outcome(it.Sample(rng.random(330) < 0.5, np.full(330, 0.5), cluster=cluster))
    assert math.isnan(found.pvalue)
    assert found.refused.clusters == 31
    assert 1 < found.refused.effective < 1.01


def test_clusters_enough_have_a_p_value():
    assert outcome(few(10)).refused is None
    assert 0 < outcome(few(10)).pvalue <= 1


def test_no_label_decides_whether_there_is_a_p_value():
    sample = few()
    other = it.Sample(1 - sample.y, sample.p, cluster=sample.cluster)
    assert outcome(other).refused == outcome(sample).refused


def test_a_null_that_was_asked_for_is_used_however_few_clusters_are():
    found = outcome(few(), null=Rademacher())
    assert found.refused is None
    assert 0 < found.pvalue <= 1


@pytest.mark.parametrize(
    "design",
    [
        few,
        pytest.param(lambda: rare(0), marks=pytest.mark.slow),
        pytest.param(lambda: paired(0), marks=pytest.mark.slow),
    ],
    ids=["few", "rare", "paired"],
)
def test_an_audit_runs_to_the_end(design, tmp_path):
    audit = it.audit(design(), draws=DRAWS, rng=0)
    told = audit.to_dict()
    assert (told["test"]["pvalue"] is None) == (told["test"]["refused"] is not None)
    audit.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1_000
    assert str(audit)


def test_an_audit_of_few_clusters_shows_nothing_as_found():
    audit = it.audit(few(), draws=DRAWS, rng=0)
    assert audit.to_dict()["test"]["findings"] == []
    assert "miscalibrated" not in str(audit.verdict)


def test_words_of_a_result_without_a_p_value_do_not_call_it_nan():
    assert "nan" not in str(outcome(few())).split()
    assert "nan %" not in str(outcome(few()))


def marked(table):
    return any(group.pvalue <= 0.05 for group in table)


def test_groups_of_a_calibrated_model_with_rare_events_are_hardly_ever_marked():
    count = 0
    for run in range(30):
        table = it.bias_groups(thin(run), "group", draws=DRAWS, rng=run)
        count += marked(table)
        assert all((g.lower <= 0 <= g.upper) == (g.pvalue > 0.05) for g in table)
    assert count <= 4


@pytest.mark.parametrize(
    "design", [thin, lambda run: rows_of(run, 150, 3, 0.01, 0.1)], ids=["rare", "less rare"]
)
def test_slices_of_a_calibrated_model_with_one_label_a_cluster_are_hardly_ever_confirmed(design):
    tables = [it.bias_slices(design(run), draws=DRAWS, rng=run) for run in range(30)]
    assert all(table.regions > 20 for table in tables)
    assert sum(bool(table.confirmed) for table in tables) <= 4


def test_slices_that_are_far_off_are_confirmed():
    for run in range(3):
        sample = rows_of(run, 150, 3, 0.001, 0.03, wrong=0.5)
        table = it.bias_slices(sample, draws=DRAWS, rng=run)
        assert any("group = a" in str(part.where) for part in table.confirmed)


def test_a_group_that_is_far_off_is_marked_and_the_others_are_not():
    for run in range(5):
        table = it.bias_groups(thin(run, wrong=0.5), "group", draws=DRAWS, rng=run)
        verdicts = {str(group.where): group.pvalue <= 0.05 for group in table}
        assert sum(verdicts.values()) == 1
        (name,) = (where for where, found in verdicts.items() if found)
        assert "a" in name.split()


def test_the_test_sees_a_group_that_is_far_off():
    seen = sum(outcome(thin(run, wrong=0.5), run).pvalue <= 0.05 for run in range(8))
    assert seen >= 6


def crossed(run):
    """A slope that differs between regions, far from what the model says; clusters are harmless."""
    rng = np.random.default_rng(run)
    x, region = rng.normal(size=(400, 2)), rng.choice(["north", "south", "west"], 400)
    known = x.sum(axis=1) / 2
    wrong = 1.2 * x[:, 0] * np.select([region == "south", region == "west"], [1, -1], 0)
    p, truth = (1 / (1 + np.exp(-z)) for z in (known, known + wrong))
    columns = {"a": x[:, 0], "b": x[:, 1], "region": region}
    return it.Sample(rng.random(400) < truth, p, columns, cluster=np.arange(400) // 4)


def test_few_draws_see_what_many_draws_see():
    """The data are one of the values that checks are scaled by, and must not hide themselves."""
    assert sum(outcome(crossed(run), run).pvalue <= 0.05 for run in range(6)) >= 5
