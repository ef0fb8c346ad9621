"""What the test looks at: names, weights, features, and that labels have no part in it."""

import numpy as np
import pytest

import itrust as it
from itrust import Dictionary, InputError, Sample
from itrust.calibration import make_bank
from itrust.kernels import RBF, Constant, Delta, LocalKernel


def mixed(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = {
        "age": rng.integers(18, 90, n),
        "income": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(size=n)),
        "race": rng.choice(list("abc"), n, p=[0.6, 0.3, 0.1]),
        "urban": rng.random(n) < 0.5,
    }
    p = rng.uniform(0.05, 0.95, n)
    return Sample(rng.random(n) < p, p, x, missing="level")


def test_every_family_has_its_entries():
    d = it.default_dictionary(mixed())
    for name in (
        "overall level",
        "prediction: slope",
        "age: trend",
        "age: quadratic",
        "age alone",
        "age x prediction",
        "income missing",
        "race = c",
        "urban = 1",
        "race x urban",
        "race = b, urban = 0",
        "race x age",
        "age x income",
        "income: ranges",
        "prediction x race: regions",
        "race x age x income: triples",
        "everything together, width x 0.5",
    ):
        assert name in d.names, name
    assert sum(d.weights()) == pytest.approx(1)
    assert "urban = 0" not in d.names  # of two levels, one says all
    assert {"linear", "pairs", "full"} < set(d.families)


def test_labels_do_not_change_the_dictionary():
    s = mixed()
    other = Sample(1 - s.y, s.p, {c.name: c.values for c in s.columns if c.name == "age"})
    same = Sample(s.y, s.p, {c.name: c.values for c in s.columns if c.name == "age"})
    assert it.default_dictionary(other) == it.default_dictionary(same)


def test_a_monotone_change_of_a_covariate_changes_no_single_covariate_entry():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y, p = rng.random(300) < 0.5, rng.uniform(size=300)
    raw, changed = (
        {f.name: f.score for f in it.klce_test(Sample(y, p, v), draws=99, rng=0).findings}
        for v in (x, np.exp(3 * x))
    )
    for name in ("x1: trend", "x1: quadratic", "x1 alone", "x1 alone, fine", "x1 x prediction"):
        assert raw[name] == pytest.approx(changed[name], rel=1e-9)


def test_features_are_uncorrelated_with_the_overall_level_under_the_null():
    s = mixed()
    entries = [e for e in it.default_dictionary(s).entries if e.kernel is None]
    v = s.p * (1 - s.p)
    bank = make_bank(entries, s.pilot(s.n), 1.0)
    correlated = bank.matrix(s.points) @ v
    assert np.abs(correlated[1:]).max() < 1e-9
    assert correlated[0] == pytest.approx(v.sum())  # the level itself


def test_null_moments_are_those_of_many_draws():
    s = mixed(250)
    entries = [e for e in it.default_dictionary(s).entries if e.kernel is None]
    v = s.p * (1 - s.p)
    bank = make_bank(entries, s.pilot(s.n), 1.0)
    rng = np.random.default_rng(0)
    e = (rng.random((s.n, 20_000)) < s.p[:, None]) - s.p[:, None]
    f = bank.matrix(s.points)
    squares = bank.selector @ np.square(f)
    forms = bank.selector @ np.square(f @ e) - squares @ np.square(e)
    expected = squares @ v
    np.testing.assert_allclose(bank.moments.expected, expected)
    sd, skewness = bank.moments.of_forms(expected)
    for k, entry in enumerate(bank.entries):
        if entry.rank > 1:
            drawn = forms[k]
            assert drawn.std() == pytest.approx(sd[k], rel=0.05), entry.name
            third = np.mean(drawn**3) / drawn.std() ** 3
            assert third == pytest.approx(skewness[k], abs=0.35 + 0.15 * skewness[k]), entry.name
        else:
            drawn = f[bank.single[k]] @ e
            assert drawn.var() == pytest.approx(expected[k], rel=0.06), entry.name


def test_many_levels_and_many_covariates_stay_small():
    rng = np.random.default_rng(0)
    n = 600
    x = {f"x{k}": rng.normal(size=n) for k in range(60)}
    x["shop"] = rng.integers(0, 200, n).astype(str)
    d = it.default_dictionary(Sample(rng.random(n) < 0.5, rng.uniform(size=n), x))
    assert "shop alone" in d.names
    assert sum(e.rank or 0 for e in d.entries) < 4_000
    assert len([e for e in d.entries if e.name.startswith("shop = ")]) <= 100


def test_what_is_left_out_is_said():
    rng = np.random.default_rng(0)
    n = 200
    s = Sample(rng.random(n) < 0.5, rng.uniform(size=n), rng.normal(size=(n, 90)))
    r = it.klce_test(s, draws=19, rng=0)
    assert any("4,005 pairs" in note for note in r.notes)


def test_only_without_and_weighted():
    d = it.default_dictionary(mixed())
    assert set(d.only(families=["linear", "pairs"]).families) == {"linear", "pairs"}
    assert all("age" in e.covariates or not e.covariates for e in d.only(covariates="age").entries)
    assert "race" not in d.without(covariates=["race"]).covariates
    assert "full" not in d.without(families="full").families
    heavy = d.weighted(with_prediction=5.0)
    plain, heavy = (own.to_dict() for own in (d, heavy))
    odds = [own["with prediction"]["share"] / own["linear"]["share"] for own in (plain, heavy)]
    base = d.shares
    assert odds == pytest.approx([base["with prediction"] / base["linear"], 5.0 / base["linear"]])
    with pytest.raises(InputError, match=r"no family 'linar'; did you mean 'linear'"):
        d.only(families=["linar"])
    with pytest.raises(InputError, match=r"no covariate 'rice'; did you mean 'race'"):
        d.without(covariates=["rice"])
    with pytest.raises(InputError, match="at least one entry"):
        d.only(families=[])
    with pytest.raises(InputError, match=r"'linear' needs a positive share, not -1"):
        d.weighted(linear=-1)


def test_numbers_with_few_values_are_checked_as_numbers_and_value_by_value():
    rng = np.random.default_rng(0)
    y, p, k = rng.random(300) < 0.5, rng.uniform(size=300), rng.integers(0, 3, 300)
    names = [e.name for e in it.default_dictionary(Sample(y, p, {"k": k})).entries]
    assert {"k: trend", "k = 0", "k = 1", "k = 2", "values of k alone"} <= {*names}
    said = it.default_dictionary(Sample(y, p, {"k": k}, numbers="k"))
    assert not {"k = 0", "values of k alone"} & {e.name for e in said.entries}
    coded = it.default_dictionary(Sample(y, p, {"k": k}, categories="k"))
    assert "k: trend" not in [e.name for e in coded.entries]
    for source in (said, coded):  # values are regions, whatever they are called
        (scan,) = (e for e in source.entries if e.crossed == ("k",))
        (grid,) = make_bank([scan], Sample(y, p, {"k": k}).pilot(300), 1.0).grids
        assert {str(where) for where in grid.a.conditions} == {"k = 0", "k = 1", "k = 2"}
    r = it.klce_test(Sample(y, p, {"k": k}, numbers="k"), said, draws=19, rng=0)
    scans = [f.weight for f in r.findings if f.family == "ranges"]
    assert scans == pytest.approx([scans[0]] * 2)  # the prediction and k


def test_trends_within_a_group_are_uncorrelated_with_the_group():
    s = mixed()
    d = it.default_dictionary(s)
    entries = [e for e in d.entries if e.name in ("race = b", "age: trend where race = b")]
    v = s.p * (1 - s.p)
    bank = make_bank(entries, s.pilot(s.n), 1.0)
    group, trend = bank.matrix(s.points)
    assert abs(np.sum(v * group * trend)) < 1e-9


def test_a_dictionary_of_ones_own():
    s = mixed()
    d = Dictionary.of({"narrow": LocalKernel(RBF(0.05)), "age": RBF(5.0).on("age")})
    r = it.klce_test(s, d, draws=99, rng=0)
    assert {f.name for f in r.findings} == {"narrow", "age"}
    again = it.klce_test(
        s, {"narrow": LocalKernel(RBF(0.05)), "age": RBF(5.0).on("age")}, draws=99, rng=0
    )
    assert again.pvalue == r.pvalue
    assert r.statistic == pytest.approx(it.klce2(s), rel=1e-9)
    with pytest.raises(InputError, match=r"entry 'b' must be a kernel .*, not 3"):
        Dictionary.of({"b": 3})
    with pytest.raises(InputError, match="takes one kernel"):
        it.klce_test(s, d, null=it.nulls.Permutation())


def test_names_made_equal_by_covariates_are_told_apart():
    rng = np.random.default_rng(0)
    x = {"prediction": rng.normal(size=100), "a": rng.normal(size=100)}
    d = it.default_dictionary(Sample(rng.random(100) < 0.5, rng.uniform(size=100), x))
    assert "prediction alone (2)" in d.names


def test_one_entry_is_the_single_kernel_test():
    """A dictionary of one kernel gives the p-value of that kernel, up to studentisation."""
    s = it.simulate.survey(300, rng=3).sample
    k = LocalKernel(Constant(), Delta().on("region") * RBF(10.0).on("age") * Constant())
    one = it.klce_test(s, {"it": k.x}, draws=499, rng=0)
    alone = it.klce_test(
        s,
        LocalKernel(Constant(), {"region": Delta(), "age": RBF(10.0), "income": Constant()}),
        draws=499,
        rng=0,
    )
    assert one.pvalue == pytest.approx(alone.pvalue, abs=0.02)
