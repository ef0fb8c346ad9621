"""Bias by group: plain means, exact and adjusted p-values, nobody hidden."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust._core import InputError
from oracles import plausible


def test_rates_are_weighted_means(mixed_sample):
    table = it.bias_groups(mixed_sample, "race", "urban", draws=19, rng=0)
    w = mixed_sample.weights_or_ones
    race = mixed_sample.column("race")
    for level in race.levels:
        inside = race.values == race.levels.index(level)
        group = table[f"race = {level}"]
        assert group.rows == inside.sum()
        assert group.predicted == pytest.approx(
            np.average(mixed_sample.p[inside], weights=w[inside])
        )
        assert group.observed == pytest.approx(
            np.average(mixed_sample.y[inside], weights=w[inside])
        )
        assert group.bias == pytest.approx(group.observed - group.predicted)
        assert group.share == pytest.approx(w[inside].sum() / w.sum())
    crossed = [group for group in table if " and " in group.name]
    assert sum(group.rows for group in crossed) == mixed_sample.n
    assert len(crossed) <= 6


def test_one_group_of_fair_coins_has_the_binomial_p_value():
    y = np.arange(200) < 117
    table = it.bias_groups(
        it.Sample(y, np.full(200, 0.5), {"g": ["a"] * 200}), "g", rng=0, draws=9_999
    )
    exact = binomtest(117, 200, 0.5).pvalue
    assert table[0].unadjusted_pvalue == pytest.approx(exact, abs=0.004)
    assert table[0].pvalue == table[0].unadjusted_pvalue


def test_missing_rare_and_small_groups_are_there():
    rng = np.random.default_rng(0)
    g = np.array(["big"] * 90 + ["b1"] * 4 + ["b2"] * 3 + [None] * 3, dtype=object)
    sample = it.Sample(rng.random(100) < 0.5, np.full(100, 0.5), {"g": g}, missing="level")
    table = it.bias_groups(sample, "g", draws=19, rng=0)
    assert {group.name: group.rows for group in table} == {
        "g missing": 3,
        "g = b1": 4,
        "g = b2": 3,
        "g = big": 90,
    }
    assert {group.name for group in table if not group.small} == {"g = big"}
    assert str(table).count("few rows") == 3
    pooled = it.bias_groups(sample, "g", pool=5, draws=19, rng=0)
    assert {group.name: group.rows for group in pooled} == {
        "g = big": 90,
        "g = any of b1, b2, (missing)": 10,
    }


def test_numbers_are_cut_into_quarters_or_taken_by_value():
    rng = np.random.default_rng(0)
    x = {"age": rng.integers(18, 90, 400), "children": rng.integers(0, 3, 400)}
    sample = it.Sample(rng.random(400) < 0.5, np.full(400, 0.5), x)
    table = it.bias_groups(sample, "age", "children", draws=19, rng=0)
    assert len(table) == 4 + 3 + 12
    assert table["children = 2"].rows == (x["children"] == 2).sum()
    assert sum(group.rows for group in table[:4]) == 400


def test_missing_numbers_are_a_group():
    x = {"lab": [1.0, np.nan, 2.0, np.nan] * 25}
    sample = it.Sample([0, 0, 1, 1] * 25, [0.5] * 100, x, missing="level")
    assert it.bias_groups(sample, "lab", draws=19, rng=0)["lab missing"].rows == 50


@pytest.mark.slow
def test_any_group_is_blamed_in_at_most_5_percent_of_calibrated_samples():
    runs, wrong = 100, 0
    for run in range(runs):
        rng = np.random.default_rng([1, run])
        p = rng.beta(0.6, 2.0, 300)
        x = {"a": rng.choice(list("uvw"), 300, p=[0.7, 0.25, 0.05]), "b": rng.random(300) < 0.3}
        table = it.bias_groups(it.Sample(rng.random(300) < p, p, x), "a", "b", draws=39, rng=run)
        wrong += min(group.pvalue for group in table) <= 0.05
    assert wrong / runs <= 0.05 or plausible(wrong, runs, doubt=0.02)


@pytest.mark.slow
def test_biases_that_cancel_within_a_group_do_not_blame_it():
    """The weak null: without studentising, far more than 5 % of such groups are blamed."""
    runs, wrong = 160, 0
    for run in range(runs):
        rng = np.random.default_rng([2, run])
        p = np.where(rng.random(300) < 0.5, 0.05, 0.95)
        sample = it.Sample(rng.random(300) < 0.5, p, {"g": ["a"] * 300})
        wrong += it.bias_groups(sample, "g", draws=39, rng=run)[0].pvalue <= 0.05
    assert wrong / runs <= 0.05 or plausible(wrong, runs, doubt=0.02)


@pytest.mark.slow
def test_intervals_cover_all_groups_together():
    runs, missed = 120, 0
    shift = {"u": 0.1, "v": -0.08, "w": 0.0}
    for run in range(runs):
        rng = np.random.default_rng([3, run])
        g, p = rng.choice(list("uvw"), 400, p=[0.5, 0.3, 0.2]), rng.uniform(0.2, 0.6, 400)
        truth = p + np.vectorize(shift.get)(g)
        table = it.bias_groups(
            it.Sample(rng.random(400) < truth, p, {"g": g}), "g", draws=99, rng=run
        )
        missed += not all(x.lower <= shift[x.name[-1]] <= x.upper for x in table)
    assert plausible(missed, runs, doubt=0.02)


def test_single_intervals_are_narrower_and_say_so():
    town = it.simulate.survey(500, rng=0).sample
    together = it.bias_groups(town, "region", draws=199, rng=0)
    alone = it.bias_groups(town, "region", simultaneous=False, draws=199, rng=0)
    assert all(
        a.lower > t.lower and a.upper < t.upper for a, t in zip(alone, together, strict=True)
    )
    assert "intervals and p-values hold each on its own" in str(alone)
    assert all(group.pvalue == group.unadjusted_pvalue for group in alone)


def test_weights_of_another_scale_change_nothing():
    town = it.simulate.survey(300, rng=0).sample
    x = {"region": town.column("region").values}
    w = np.random.default_rng(0).exponential(size=300)
    tables = [
        it.bias_groups(it.Sample(town.y, town.p, x, weights=s * w), "region", draws=49, rng=0)
        for s in (1, 1_000)
    ]
    for a, b in zip(*tables, strict=True):
        assert (a.pvalue, a.lower, a.share) == pytest.approx((b.pvalue, b.lower, b.share))


@pytest.mark.parametrize(
    ("names", "settings", "message"),
    [
        ((), {}, "name the covariates to group by"),
        (("regoin",), {}, "did you mean 'region'"),
        (("region",), {"alpha": 0}, "alpha must lie between"),
    ],
)
def test_wrong_input_gets_one_sentence(names, settings, message):
    with pytest.raises(InputError, match=message):
        it.bias_groups(it.simulate.survey(50, rng=0).sample, *names, **settings)


def test_too_many_groups_are_refused_before_any_work():
    x = {"a": [f"u{k % 60}" for k in range(6_000)], "b": [f"v{k // 60}" for k in range(6_000)]}
    sample = it.Sample([0, 1] * 3_000, [0.5] * 6_000, x)
    with pytest.raises(InputError, match="more than 2,000; name fewer covariates"):
        it.bias_groups(sample, "a", "b")


def test_an_unknown_group_is_named(mixed_sample):
    table = it.bias_groups(mixed_sample, "race", draws=19, rng=0)
    with pytest.raises(InputError, match="did you mean 'race = a'"):
        table["race = aa"]
    assert table.to_arrow().num_rows == len(table.to_dict()["groups"]) == 3


def test_an_impossible_label_hides_no_other_group():
    rng = np.random.default_rng(0)
    g = np.repeat(["a", "c"], 500)
    p = np.repeat([0.3, 0.0], 500)
    y = np.concatenate([rng.random(500) < 0.58, np.arange(500) == 7])
    table = it.bias_groups(it.Sample(y, p, {"g": g}), "g", draws=99, rng=0)
    assert [group.pvalue for group in table] == [0.01, 0.01]
    assert "1 row with a label that the model called impossible" in str(table)


def test_the_prediction_is_a_covariate_like_any_other():
    sample = it.simulate.survey(800, rng=0).sample
    table = it.bias_groups(sample, "prediction", draws=39, rng=0)
    assert len(table) == 4
    assert table[0].name.startswith("prediction ")


def test_names_come_in_a_list_too():
    sample = it.simulate.survey(300, rng=0).sample
    one, two = (it.bias_groups(sample, *n, draws=39, rng=0) for n in ((["region"],), ("region",)))
    assert one.groups == two.groups
    for wrong in (3, ["region", 3], None):
        with pytest.raises(InputError, match="name covariates by text"):
            it.bias_groups(sample, wrong)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pool": "x"}, "pool must be a whole number of at least 0"),
        ({"simultaneous": "no"}, "simultaneous must be True or False"),
        ({"alpha": 0.95}, "alpha is the error that is allowed"),
        (
            {"draws": 5},
            "cannot be reached with 5 draws, whose smallest p-value is 0.167; take at least 19",
        ),
    ],
)
def test_settings_that_are_easily_mistaken(settings, message):
    with pytest.raises(InputError, match=message):
        it.bias_groups(it.simulate.survey(50, rng=0).sample, "region", **settings)


def households(rng, units: int, size: int, groups: int) -> it.Sample:
    """A calibrated model on units that share part of their labels; units lie within groups."""
    p = np.repeat(rng.uniform(0.2, 0.8, units), size)
    common = np.repeat(rng.random(units), size)
    own = np.where(rng.random(units * size) < 0.5, common, rng.random(units * size))
    unit = np.repeat(np.arange(units), size)
    g = [f"g{k % groups}" for k in unit]
    return it.Sample(own < p, p, {"g": g}, cluster=unit)


@pytest.mark.parametrize(("units", "groups"), [(80, 2), (40, 4)])
@pytest.mark.slow
def test_clusters_keep_level_and_coverage(units, groups):
    runs, wrong, missed = 100, 0, 0
    for run in range(runs):
        sample = households(np.random.default_rng([9, run]), units, 6, groups)
        table = it.bias_groups(sample, "g", draws=99, rng=run)
        wrong += min(group.pvalue for group in table) <= 0.05
        missed += not all(group.lower <= 0 <= group.upper for group in table)
    assert wrong / runs <= 0.05 or plausible(wrong, runs, doubt=0.02)
    assert missed / runs <= 0.05 or plausible(missed, runs, doubt=0.02)


def test_a_group_that_is_one_household_knows_nothing():
    sample = households(np.random.default_rng(0), 30, 20, 30)
    table = it.bias_groups(sample, "g", draws=39, rng=0)
    assert all(group.small for group in table)
    for group in table:
        assert group.lower == pytest.approx(-group.predicted, abs=1e-6)
        assert group.upper == pytest.approx(1 - group.predicted, abs=1e-6)


@pytest.mark.slow
def test_intervals_hold_where_hardly_any_event_is_expected():
    runs, missed = 25, 0
    for run in range(runs):
        rng = np.random.default_rng([10, run])
        g = np.repeat(np.arange(100), 30)
        p = (10 ** rng.uniform(-4.5, -3, 100))[g]
        x = {"g": [f"l{k}" for k in g]}
        table = it.bias_groups(it.Sample(rng.random(3_000) < p, p, x), "g", draws=39, rng=run)
        missed += not all(group.lower <= 1e-12 and group.upper >= -1e-12 for group in table)
    assert missed / runs <= 0.05 or plausible(missed, runs, doubt=0.02)


@pytest.mark.slow
def test_single_precision_keeps_the_level_where_draws_tie(monkeypatch):
    monkeypatch.setattr("itrust.bias.averages.MAX_IN_DOUBLE", 0)
    runs, wrong = 160, 0
    for run in range(runs):
        rng = np.random.default_rng([11, run])
        p = np.full(40, 0.09)
        sample = it.Sample(rng.random(40) < p, p, {"g": ["a"] * 4 + ["b"] * 36})
        wrong += it.bias_groups(sample, "g", draws=39, rng=run)[0].unadjusted_pvalue <= 0.05
    assert wrong / runs <= 0.05


def test_a_group_without_weight_is_small_and_has_no_numbers():
    w = np.array([1.0] * 50 + [0.0] * 50)
    x = {"g": ["a"] * 50 + ["b"] * 50}
    sample = it.Sample([0, 1] * 50, [0.5] * 100, x, weights=w)
    empty = it.bias_groups(sample, "g", draws=19, rng=0)["g = b"]
    assert empty.small
    assert empty.to_dict()["bias"] is None


def test_tables_of_out_of_fold_predictions_are_called_approximate():
    rng = np.random.default_rng(0)
    x = {"g": np.repeat(["a", "b"], 60), "z": rng.normal(size=120)}
    y = rng.integers(0, 2, 120)
    judged = it.Sample.from_estimator(LogisticRegression(), np.c_[x["z"]], y, on=x, cv=3, rng=0)
    plain = it.Sample(y, judged.p, x)
    for make in (
        lambda s: it.bias_groups(s, "g", draws=39, rng=0),
        lambda s: it.bias_slices(s, draws=39),
    ):
        table = make(judged)
        assert not table.is_exact
        assert table.to_dict()["is_exact"] is False
        assert make(plain).is_exact
    told = str(it.bias_groups(judged, "g", draws=39, rng=0))
    assert "approximate, as for out-of-fold predictions" in told
    assert "exact for" not in told
    assert "exact for" in str(it.bias_groups(plain, "g", draws=39, rng=0))
