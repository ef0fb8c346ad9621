"""Each method against a hand-worked example, an oracle or the published figures."""

import math

import numpy as np
import pyarrow.csv
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import beta as beta_function
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust._core import InputError
from itrust.recalibrate import (
    BBQ,
    Beta,
    HistogramBinning,
    Isotonic,
    Multicalibration,
    Platt,
    ProportionalMulticalibration,
    Temperature,
)


def bold(n=4_000, slope=2.0, shift=0.3, seed=0):
    """Logits that should be halved and raised."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return it.Sample(rng.random(n) < expit((z - shift) / slope), expit(z))


def test_platt_is_maximum_likelihood_on_the_logit():
    sample = bold()
    fix = Platt().fit(sample)
    z = logit(sample.p)
    told = expit(fix.slope_ * z + fix.intercept_)
    assert abs(np.mean(sample.y - told)) < 1e-5  # score equations
    assert abs(np.mean(z * (sample.y - told))) < 1e-5
    assert fix.slope_ == pytest.approx(0.5, abs=0.1)


def test_published_platt_is_a_default_logistic_regression_on_p():
    sample = bold()
    theirs = LogisticRegression(tol=1e-8).fit(sample.p[:, None], sample.y)
    np.testing.assert_allclose(
        Platt(raw=True).fit(sample).apply(sample).p, theirs.predict_proba(sample.p[:, None])[:, 1]
    )


def test_temperature_solves_its_score_equation():
    sample = bold(shift=0.0)
    fix = Temperature().fit(sample)
    z = logit(sample.p)
    assert abs(np.sum(z * (sample.y - expit(z / fix.temperature_)))) < 1e-4
    assert fix.temperature_ == pytest.approx(2.0, rel=0.1)


def test_temperature_of_a_model_that_is_upside_down_is_infinite():
    fix = Temperature().fit(it.Sample([1, 1, 0, 0], [0.1, 0.2, 0.8, 0.9]))
    assert fix.temperature_ == math.inf
    np.testing.assert_array_equal(fix.predict([0.3, 0.9]), 0.5)


def test_temperature_on_the_papers_forest_depends_on_the_edge(data_file):
    """REFERENCE: clipped at 2e-16 the paper's artefact, 1/T = .058; at .005 it is .263."""
    sample = figure_4(data_file, "calibration")
    assert 1 / Temperature(edge=2.2e-16).fit(sample).temperature_ == pytest.approx(0.058, abs=1e-3)
    assert 1 / Temperature(edge=0.005).fit(sample).temperature_ == pytest.approx(0.263, abs=1e-3)
    assert Temperature().fit(sample).edge_ < 0.01


def figure_4(data_file, part):
    table = pyarrow.csv.read_csv(data_file(f"compas-fig4-{part}.csv"))
    return it.Sample.from_frame(
        table, label="y", prob="p", on=["age10", "female", "african_american"]
    )


@pytest.mark.parametrize(
    ("method", "column"), [(Platt(raw=True), "p_platt"), (Isotonic(), "p_isotonic")]
)
def test_figure_4_of_the_paper_to_the_third_digit(method, column, data_file):
    table = pyarrow.csv.read_csv(data_file("compas-fig4-test.csv"))
    fix = method.fit(figure_4(data_file, "calibration"))
    np.testing.assert_allclose(fix.predict(table["p"].to_numpy()), table[column], atol=5e-4)


def test_beta_is_the_best_monotone_map_of_its_kind():
    sample = bold()
    fix = Beta().fit(sample)
    assert min(fix.a_, fix.b_) >= 0

    def loss(theta):
        z = theta[0] * np.log(sample.p) - theta[1] * np.log1p(-sample.p) + theta[2]
        return np.mean(np.logaddexp(0, z) - sample.y * z)

    theirs = minimize(loss, [0.5, 0.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-6})
    assert loss([fix.a_, fix.b_, fix.c_]) <= theirs.fun + 1e-8


@pytest.mark.parametrize("weighted", [False, True])
def test_beta_is_a_logistic_regression_where_both_slopes_are_positive(weighted):
    sample = bold()
    w = np.random.default_rng(1).uniform(0.2, 3, sample.n) if weighted else np.ones(sample.n)
    fix = Beta().fit(it.Sample(sample.y, sample.p, weights=w))
    design = np.column_stack([np.log(sample.p), -np.log1p(-sample.p)])
    scale = design.std(axis=0)
    theirs = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
    theirs.fit(design / scale, sample.y, sample_weight=w)
    assert min(fix.a_, fix.b_) > 0
    np.testing.assert_allclose(
        [fix.a_, fix.b_, fix.c_], [*(theirs.coef_[0] / scale), theirs.intercept_[0]], rtol=1e-8
    )


@settings(max_examples=30, deadline=None)
@example(seed=695, n=32, slope=1.25, skew=1.0117)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(30, 300),
    slope=st.floats(-1, 3),
    skew=st.floats(0.3, 3),
)
def test_beta_leaves_no_gradient_but_towards_slopes_below_0(seed, n, slope, skew):
    rng = np.random.default_rng(seed)
    p = np.clip(rng.beta(1, skew, n), 1e-6, 1 - 1e-6)
    y = rng.random(n) < 0.1 + 0.8 * expit(slope * logit(p))  # never separated, so wild p is mixed
    assume(0.1 < y.mean() < 0.9)
    fix = Beta().fit(it.Sample(y, p))
    design = np.column_stack([np.log(p), -np.log1p(-p), np.ones(n)])
    gradient = design.T @ (fix.predict(p) - y) / n
    held = np.array([fix.a_ == 0, fix.b_ == 0, False])
    assert np.all(gradient[held] >= -1e-9)
    np.testing.assert_allclose(gradient[~held], 0, atol=1e-9)


def test_beta_of_labels_that_are_separated_is_finite():
    """The likelihood has no maximum; next to no penalty gives it one."""
    p = np.linspace(0.1, 0.9, 9)
    fix = Beta().fit(it.Sample((p > 0.5).astype(int), p))
    assert np.isfinite([fix.a_, fix.b_, fix.c_]).all()
    assert fix.predict(p).round(2).tolist() == (p > 0.5).tolist()


def test_beta_of_two_predictions_gives_their_rates():
    """Three coefficients for two numbers: what is told of them is determined, they are not."""
    p, y = np.repeat([0.3, 0.6], 10), np.r_[np.arange(10) < 2, np.arange(10) < 7]
    np.testing.assert_allclose(
        Beta().fit(it.Sample(y.astype(int), p)).predict([0.3, 0.6]), [0.2, 0.7], rtol=1e-9
    )


def test_histogram_bins_hold_the_rates_of_their_rows():
    sample = it.Sample([0, 1, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
    fix = HistogramBinning(bins=3).fit(sample)
    np.testing.assert_array_equal(fix.edges_, [0.2, 0.6])
    np.testing.assert_array_equal(fix.rates_, [0.5, 1.0, 0.5])
    np.testing.assert_array_equal(fix.predict([0.0, 0.2, 0.21, 1.0]), [0.5, 0.5, 1.0, 0.5])


def test_isotonic_pools_adjacent_violators():
    fix = Isotonic().fit(it.Sample([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_allclose(fix.predict([0.1, 0.2, 0.3, 0.4]), [0, 0.5, 0.5, 1])


def test_bbq_by_hand_with_two_binnings():
    """Four rows; B = 1 and B = 2. Scores are beta functions, worked out here.

    One bin, prior rows 2, middle 1/2: alpha = beta = 1; m = 2 of 4.
    Two bins cut at .4, prior rows 1 each, middles .2 and .7: m = 0 of 2 and 2 of 2.
    """
    sample = it.Sample([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    fix = BBQ(min_bins=1, max_bins=2).fit(sample)
    one = beta_function(2 + 1, 2 + 1) / beta_function(1, 1)
    two = (
        beta_function(0 + 0.2, 2 + 0.8)
        / beta_function(0.2, 0.8)
        * beta_function(2 + 0.7, 0 + 0.3)
        / beta_function(0.7, 0.3)
    )
    weight = two / (one + two)
    assert fix.weights_ == pytest.approx([1 - weight, weight])
    low = (1 - weight) * 3 / 6 + weight * (0 + 0.2) / (2 + 1)
    high = (1 - weight) * 3 / 6 + weight * (2 + 0.7) / (2 + 1)
    np.testing.assert_allclose(fix.predict([0.0, 0.4, 0.41, 1.0]), [low, low, high, high])


def test_bbq_looks_at_every_number_of_bins_around_the_cube_root():
    rng = np.random.default_rng(0)
    p = rng.random(1_000)
    fix = BBQ().fit(it.Sample(rng.random(1_000) < p, p))
    sizes = [rates.size for rates in fix.rates_]
    assert (min(sizes), max(sizes)) == (1, 100)
    assert fix.weights_.sum() == pytest.approx(1)
    assert np.abs(fix.predict(p) - p).mean() < 0.06


def test_bbq_counts_equal_binnings_once():
    sample = it.Sample([0, 1, 0, 1], [0.2, 0.2, 0.8, 0.8])
    assert len(BBQ(1, 4).fit(sample).edges_) == 2


def test_bbq_refuses_bins_that_make_no_sense():
    with pytest.raises(InputError, match="min_bins <= max_bins, not 3 and 2"):
        BBQ(3, 2).fit(it.Sample([0, 1], [0.2, 0.8]))


def test_multicalibration_by_hand():
    """Groups a and b with p = .5 throughout; rates .9 and .1, so all rows together are right.

    All rows: rate .5, no patch. Group a: +.4, in bin 5. Group b: -.4, in bin 5.
    """
    y = [1] * 9 + [0] + [0] * 9 + [1]
    sample = it.Sample(y, [0.5] * 20, {"g": ["a"] * 10 + ["b"] * 10})
    fix = Multicalibration(alpha=0.1, bins=10, min_rows=1).fit(sample)
    assert [patch[1:3] for patch in fix.patches_] == [((0,), 5), ((1,), 5)]
    assert [patch[3] for patch in fix.patches_] == pytest.approx([0.4, -0.4])
    assert fix.converged_
    assert fix.sweeps_ == 2  # one that patches, one that finds nothing
    np.testing.assert_allclose(
        fix.predict([0.5, 0.5, 0.5], {"g": ["a", "b", "c"]}), [0.9, 0.1, 0.5]
    )


def test_multicalibration_ignores_small_categories_and_small_gaps():
    """alpha lambda |S| = .5 * .1 * 20 = 1 row: a category of one row counts, by its definition."""
    p = [0.05] + [0.55] * 19
    sample = it.Sample([1] + [1, 0] * 9 + [1], p)
    assert len(Multicalibration(alpha=0.5, min_rows=1).fit(sample).patches_) == 1
    assert not Multicalibration(alpha=0.96, min_rows=1).fit(sample).patches_
    many = it.Sample([1] + [1, 0] * 30, [0.05] + [0.55] * 60)
    assert not Multicalibration(alpha=0.5, min_rows=1).fit(many).patches_  # 3.05 rows are needed
    assert not Multicalibration(alpha=0.5, min_rows=2).fit(sample).patches_


def test_small_groups_are_not_memorised():
    """A right model with 300 levels of nothing: held-out Brier may rise by noise alone."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 6_000)
    x = {"g": rng.integers(0, 300, 6_000).astype(str), "h": rng.random(6_000)}
    calibration, test = it.Sample(rng.random(6_000) < p, p, x).split([0.5, 0.5], rng=0)
    for method in (Multicalibration(), ProportionalMulticalibration()):
        told = method.fit(calibration).apply(test)
        assert it.scores.brier(told) < it.scores.brier(test) + 0.005


@pytest.mark.parametrize(("gamma", "patched"), [(0.1, True), (0.3, False)])
@pytest.mark.parametrize("method", [Multicalibration, ProportionalMulticalibration])
def test_groups_below_gamma_are_left_alone(method, gamma, patched):
    """Group b has 20 % of the rows; all rows together are within alpha."""
    y = [1, 0] * 40 + [1] * 16 + [0] * 4
    sample = it.Sample(y, [0.5] * 100, {"g": ["a"] * 80 + ["b"] * 20})
    fix = method(alpha=0.2, gamma=gamma).fit(sample)
    assert bool(fix.patches_) == patched


def test_multicalibration_ends_within_its_promise():
    """Every category that counts is within alpha of its rate, as the definition asks."""
    sample = it.simulate.survey(3_000, rng=1).sample
    fix = Multicalibration(alpha=0.05, gamma=0.01, min_rows=1).fit(sample)
    assert fix.converged_
    p, codes = fix.apply(sample).p, fix._codes(sample.points)
    for columns, cells in fix._groups(codes):
        rows = np.ones(codes[0].size, dtype=bool)
        for column, cell in zip(columns, cells, strict=True):
            rows &= codes[column] == cell
        if rows.mean() < 0.01:
            continue
        for number in range(10):
            inside = rows & (fix._bin(p) == number)
            if inside.sum() >= max(0.05 * 0.1 * rows.sum(), 1):
                assert abs(np.mean(sample.y[inside] - p[inside])) <= 0.05 + 1e-9


def test_discretised_multicalibration_gives_one_value_a_bin():
    sample = it.simulate.survey(1_000, rng=1).sample
    fix = Multicalibration(discretised=True).fit(sample)
    told = fix.apply(sample).p
    assert np.unique(told).size <= 10
    plain = Multicalibration().fit(sample).apply(sample).p
    for number in range(10):
        inside = fix._bin(plain) == number
        if inside.any():
            np.testing.assert_allclose(told[inside], plain[inside].mean())


def test_proportional_multicalibration_by_hand():
    """Rates .2 and .8, both .04 above the prediction: 20 % of the rate, and 5 %. alpha = .1."""
    y = [1, 0, 0, 0, 0] * 5 + [1, 1, 1, 1, 0] * 5
    sample = it.Sample(y, [0.16] * 25 + [0.76] * 25)
    fix = ProportionalMulticalibration(alpha=0.1).fit(sample)
    assert [patch[2:] for patch in fix.patches_] == [(1, pytest.approx(0.04))]
    np.testing.assert_allclose(fix.predict([0.16, 0.76]), [0.2, 0.76])
    assert not ProportionalMulticalibration(alpha=0.1, rho=0.5).fit(sample).patches_  # .04 < .05
    half = ProportionalMulticalibration(alpha=0.1, eta=0.5, max_sweeps=1).fit(sample)
    np.testing.assert_allclose(half.predict([0.16]), 0.18)
    assert not half.converged_


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Multicalibration(alpha=0), "alpha must be a number above 0 and at most 1, not 0"),
        (Multicalibration(bins=0), "bins must be a whole number from 1 to 1,000,000,000, not 0"),
        (Multicalibration(crossings=1.5), "crossings must be a whole number"),
        (ProportionalMulticalibration(rho=2), "rho must be a number above 0 and at most 1, not 2"),
        (HistogramBinning(bins=-1), "bins must be a whole number"),
        (Temperature(edge=0), "edge must be a number above 0 and at most 0.5, not 0"),
        (Temperature(edge=0.7), r"edge must be a number above 0 and at most 0\.5, not 0\.7"),
        (BBQ(min_bins=True), "min_bins must be a whole number"),
        (Multicalibration(alpha="a"), "alpha must be a number, not 'a'"),
    ],
)
def test_settings_are_checked(method, message):
    with pytest.raises(InputError, match=message):
        method.fit(it.Sample([0, 1], [0.2, 0.8]))
