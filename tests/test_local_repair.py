"""`Local`: its features, its regression, its promises."""

import math

import numpy as np
import pyarrow.csv
import pytest
from scipy.optimize import minimize
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust.errors import InputError
from itrust.recalibrate import METHODS as ALL_METHODS
from itrust.recalibrate import Local
from itrust.recalibrate.features import Basis, Scale, fading
from itrust.recalibrate.logistic import Block, fit_logistic
from test_recalibrate import tilted

METHODS = {name: method for name, method in ALL_METHODS.items() if name != "mcgrad"}


def blocks_of(*arrays, pieces=1):
    rows = np.array_split(np.arange(arrays[0].shape[0]), pieces)
    made = [Block(*(array[some] for array in arrays)) for some in rows]
    return lambda: iter(made)


def problem(n=300, k=3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, k))
    y = (rng.random(n) < 1 / (1 + np.exp(-features[:, 0]))).astype(float)
    return features, y, rng.normal(size=n), rng.random(n)


def test_regression_without_offset_is_scikit_learns():
    features, y, _, w = problem()
    ours = fit_logistic(blocks_of(features, y, np.zeros(300), w), 3, ridge=2.0)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=1_000).fit(features, y, w)
    np.testing.assert_allclose(ours.coefficients, theirs.coef_[0], atol=1e-5)
    assert ours.intercept == pytest.approx(theirs.intercept_[0], abs=1e-5)


def test_regression_with_offset_minimises_its_loss():
    features, y, offset, w = problem()

    def loss(theta):
        z = offset + features @ theta[:3] + theta[3]
        return w @ (np.logaddexp(0, z) - y * z) + 0.35 * theta[:3] @ theta[:3]

    ours = fit_logistic(blocks_of(features, y, offset, w), 3, ridge=0.7)
    best = minimize(loss, np.zeros(4), tol=1e-12)
    assert loss(np.append(ours.coefficients, ours.intercept)) <= best.fun + 1e-7


def test_blocks_do_not_change_the_regression():
    parts = problem()
    one = fit_logistic(blocks_of(*parts), 3, 1.0)
    many = fit_logistic(blocks_of(*parts, pieces=7), 3, 1.0)
    np.testing.assert_allclose(one.coefficients, many.coefficients, atol=1e-10)


def test_regression_survives_labels_that_are_told_apart():
    x = np.linspace(-1, 1, 40)[:, None]
    y = (x[:, 0] > 0).astype(float)
    fit = fit_logistic(blocks_of(100 * x, y, 500 * x[:, 0], np.ones(40)), 1, ridge=0.01)
    assert np.isfinite(fit.coefficients).all()


def test_features_are_the_factor_of_their_kernel():
    """F F' is the product over coordinates of 1 + k, in closed form, where nothing is cut."""
    rng = np.random.default_rng(0)
    sample = it.Sample(rng.integers(0, 2, 60), rng.random(60), {"g": rng.choice(["u", "v"], 60)})
    basis = Basis.of(sample.points, width=0.8, most=10_000)
    gram = basis.matrix(sample.points) @ basis.matrix(sample.points).T + 1
    height = Scale.of(sample.p)(sample.p)
    wave = math.sqrt(2) * np.cos(np.pi * height) * 0.5 * fading(0.8, 1)
    line = math.sqrt(12) * (height - 0.5) * 0.5
    smooth = 1 + np.outer(line, line) + np.outer(wave, wave)
    same = 1 + np.equal.outer(sample.columns[0].values, sample.columns[0].values)
    np.testing.assert_allclose(gram, smooth * same, atol=1e-9)


def test_the_largest_features_are_kept_and_no_label_is_seen():
    sample = tilted(500)
    whole = Basis.of(sample.points, 0.1, 10_000)
    cut = Basis.of(sample.points, 0.1, 20)
    assert len(cut) == 20
    np.testing.assert_array_equal(cut.sizes, np.sort(whole.sizes)[::-1][:20])


def test_fifty_covariates_make_no_more_features_than_asked_for():
    x = np.random.default_rng(0).normal(size=(200, 50))
    sample = it.Sample([0, 1] * 100, np.linspace(0.1, 0.9, 200), x)
    basis = Basis.of(sample.points, 0.2, 150)
    assert basis.matrix(sample.points).shape == (200, 150)


def test_scale_rises_and_outliers_do_not_squeeze_the_rest():
    values = np.append(np.random.default_rng(0).normal(size=2_000), 1e9)
    scale = Scale.of(values)
    heights = scale(np.sort(values))
    assert (np.diff(heights) >= 0).all()
    assert heights[-2] - heights[0] > 0.9


def test_local_bias_is_repaired_and_the_test_confirms_it():
    calibration, test = tilted(6_000).split([0.5, 0.5], rng=0)
    fix = Local().fit(calibration)
    assert it.klce_test(test, draws=199, rng=0).pvalue == 0.005
    assert it.klce_test(fix.apply(test), draws=199, rng=0).pvalue > 0.05
    told = fix.predict([0.5] * 4, {"x": [0.05, 0.95, 0.05, 0.95], "group": list("aabb")})
    truth = 1 / (1 + np.exp([0.675, -0.675, 0, 0]))
    np.testing.assert_allclose(told, truth, atol=0.1)


def test_steps_tell_what_was_tried():
    fix = Local().fit(tilted(3_000))
    assert [step.stage for step in fix.steps_][:3] == ["as given", "monotone (as given)", "local 1"]
    assert fix.steps_[0].pvalue <= 0.1
    assert fix.steps_[2].gain > 0
    assert len(fix.corrections_) == sum(s.kept for s in fix.steps_ if s.stage.startswith("local"))


def test_a_right_model_is_left_as_it_is():
    """The gate has level .1, so at most about 10 % of right models get a local correction."""
    touched = 0
    for seed in range(60):
        fix = Local(draws=19, widths=(0.4,)).fit(tilted(200, seed=seed, bias=0.0))
        touched += bool(fix.corrections_)
    assert binomtest(touched, 60, 0.1, alternative="greater").pvalue > 0.01


def test_certainty_is_given_up_even_where_nothing_else_is_wrong():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(500), 1)
    fix = Local().fit(it.Sample(rng.random(500) < np.clip(p, 0.02, 0.98), p))
    assert fix.predict([0.0, 1.0]).tolist() != [0.0, 1.0]
    assert 0 < fix.predict([0.0])[0] < 0.1


def test_repeats_to_the_last_bit_and_row_order_does_not_matter_much():
    sample = tilted(1_000)
    told = [Local().fit(sample).predict([0.3], {"x": [0.9], "group": ["a"]})[0] for _ in "ab"]
    assert told[0] == told[1]


def test_clusters_are_never_torn_apart():
    sample = tilted(600)
    cluster = np.repeat(np.arange(120), 5)
    values = {"x": sample.columns[0].values, "group": sample.columns[1].values}
    fix = Local().fit(it.Sample(sample.y, sample.p, values, cluster=cluster))
    assert np.isfinite(fix.predict([0.5], {"x": [0.2], "group": [0]})).all()


def test_many_rows_take_passes_instead_of_memory(monkeypatch):
    """The same repair whether features are kept or made again, and from a start on few rows."""
    sample = tilted(3_000)
    kept = Local().fit(sample).predict(sample.p, sample)
    monkeypatch.setattr("itrust.recalibrate.local.MOST_NUMBERS_KEPT", 1)
    monkeypatch.setattr("itrust.recalibrate.local.BLOCK_ROWS", 1_000)
    np.testing.assert_allclose(Local().fit(sample).predict(sample.p, sample), kept, atol=1e-9)


def test_settings_may_be_chosen_on_fewer_rows_than_are_fitted(monkeypatch):
    sample, test = tilted(6_000, bias=4.0).split([0.5, 0.5], rng=0)
    monkeypatch.setattr("itrust.recalibrate.local.TUNING_ROWS", 500)
    told = Local().fit(sample).apply(test)
    assert it.scores.log_loss(told) < it.scores.log_loss(test)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 0}, "level must lie between 0 and 1, not 0"),
        ({"rounds": 0}, "rounds must be a whole number of at least 1, not 0"),
        ({"widths": ()}, r"widths must be positive numbers, not \(\)"),
        ({"ridges": (-1.0,)}, "ridges must be positive numbers"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        Local(**settings).fit(tilted(100))


def test_the_papers_forest_is_repaired(data_folder):
    """Its own split: KLCE^2 at most half of any method's of the paper, and the best Brier score."""
    calibration, test = (
        it.Sample.from_frame(
            pyarrow.csv.read_csv(data_folder / f"compas-fig4-{part}.csv"),
            label="y",
            prob="p",
            on=["age10", "female", "african_american"],
        )
        for part in ("calibration", "test")
    )
    told = {name: method().fit(calibration).apply(test) for name, method in METHODS.items()}
    floored = {name: max(it.klce2(s), it.null_sd(s)) for name, s in told.items()}
    briers = {name: it.scores.brier(s) for name, s in told.items()}
    others = [name for name in METHODS if name != "local"]
    assert floored["local"] <= min(floored[name] for name in others) / 2
    assert briers["local"] <= min(briers[name] for name in others) + 0.0005
