"""`Local`: its features, its regression, its promises."""

import math

import numpy as np
import pyarrow.csv
import pytest
from scipy.stats import binomtest

import itrust as it
from designs import tilted
from itrust._core import InputError
from itrust.recalibrate import METHODS as ALL_METHODS
from itrust.recalibrate import Local
from itrust.recalibrate.features import Basis
from itrust.recalibrate.local import errors
from itrust.recalibrate.rows import folds
from itrust.terms import UnitScale, fading

METHODS = {name: method for name, method in ALL_METHODS.items() if name != "mcgrad"}


def test_features_are_the_factor_of_their_kernel():
    """F F' is the product over coordinates of 1 + k, in closed form, where nothing is cut."""
    rng = np.random.default_rng(0)
    sample = it.Sample(rng.integers(0, 2, 60), rng.random(60), {"g": rng.choice(["u", "v"], 60)})
    basis = Basis.of(sample.points, width=0.8, max_terms=10_000)
    gram = basis.design(sample.points) @ basis.design(sample.points).T
    height = UnitScale.of_heights(sample.p)(sample.p)
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
    plain = [((0, 0),), ((0, 1),), ((1, 0),), ((1, 1),)]  # lines and first waves of p and x
    assert set(plain) <= set(cut.terms)
    others = [size for term, size in zip(cut.terms, cut.sizes, strict=True) if term not in plain]
    left = [size for term, size in zip(whole.terms, whole.sizes, strict=True) if term not in plain]
    np.testing.assert_array_equal(others, sorted(left, reverse=True)[:16])


def test_fifty_covariates_make_no_more_features_than_asked_for():
    x = np.random.default_rng(0).normal(size=(200, 50))
    sample = it.Sample([0, 1] * 100, np.linspace(0.1, 0.9, 200), x)
    basis = Basis.of(sample.points, 0.2, 150)
    assert basis.design(sample.points).shape == (200, 151)


def test_scale_rises_and_outliers_do_not_squeeze_the_rest():
    values = np.append(np.random.default_rng(0).normal(size=2_000), 1e9)
    scale = UnitScale.of_heights(values)
    heights = scale(np.sort(values))
    assert (np.diff(heights) >= 0).all()
    assert heights[-2] - heights[0] > 0.9


@pytest.mark.slow
def test_local_bias_is_recalibrated_and_the_test_confirms_it():
    calibration, test = tilted(6_000).split([0.5, 0.5], rng=0)
    fix = Local().fit(calibration)
    assert it.klce_test(test, draws=199, rng=0).pvalue == 0.005
    assert it.klce_test(fix.apply(test), draws=199, rng=0).pvalue > 0.05
    told = fix.predict([0.5] * 4, {"x": [0.05, 0.95, 0.05, 0.95], "group": list("aabb")})
    truth = 1 / (1 + np.exp([0.675, -0.675, 0, 0]))
    np.testing.assert_allclose(told, truth, atol=0.1)


@pytest.mark.slow
def test_steps_tell_what_was_tried():
    fix = Local().fit(tilted(3_000))
    assert [step.stage for step in fix.steps_][:3] == ["as given", "map (as given)", "local 1"]
    assert fix.steps_[0].pvalue <= 0.1
    assert fix.steps_[2].gain > 0
    assert len(fix.corrections_) == sum(s.kept for s in fix.steps_ if s.stage.startswith("local"))


@pytest.mark.slow
def test_a_right_model_is_left_as_it_is():
    """Level .1 for corrections, a standard error for the map: most right models stay as given."""
    touched = 0
    for seed in range(40):
        fix = Local(draws=19, widths=(0.4,)).fit(tilted(200, seed=seed, bias=0.0))
        touched += bool(fix.corrections_) or fix.map_ is not None
    assert binomtest(touched, 40, 0.25, alternative="greater").pvalue > 0.01


def test_certainty_is_given_up_even_where_nothing_else_is_wrong():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(500), 1)
    fix = Local().fit(it.Sample(rng.random(500) < np.clip(p, 0.02, 0.98), p))
    assert fix.predict([0.0, 1.0]).tolist() != [0.0, 1.0]
    assert 0 < fix.predict([0.0])[0] < 0.1


@pytest.mark.slow
def test_repeats_to_the_last_bit():
    sample = tilted(1_000)
    told = [Local().fit(sample).predict([0.3], {"x": [0.9], "group": ["a"]})[0] for _ in "ab"]
    assert told[0] == told[1]


@pytest.mark.slow
def test_the_order_of_rows_hardly_matters():
    sample = tilted(3_000)
    other = sample.take(np.random.default_rng(0).permutation(3_000))
    a, b = (Local().fit(s).predict(sample.p, sample) for s in (sample, other))
    assert np.abs(a - b).mean() < 0.02


def test_clusters_are_never_torn_apart():
    cluster = np.repeat(np.arange(120), 5)
    sample = it.Sample([0, 1] * 300, [0.5] * 600, cluster=cluster)
    fold = folds(sample.design, 0)
    assert all(np.unique(fold[cluster == unit]).size == 1 for unit in range(120))
    assert np.unique(fold).size == 4


def test_repeated_rows_do_not_make_a_gain_surer():
    """Ten copies of every row, with their unit named, count as one."""
    gains = np.random.default_rng(0).normal(0.1, 1.0, 60)
    one = it.Sample([0, 1] * 30, [0.5] * 60)
    many = it.Sample([0, 1] * 300, [0.5] * 600, cluster=np.tile(np.arange(60), 10))
    assert errors(np.tile(gains, 10), many) == pytest.approx(errors(gains, one))


@pytest.mark.slow
def test_many_levels_do_not_drown_the_numbers():
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=6_000), rng.random(6_000)
    y = rng.random(6_000) < 1 / (1 + np.exp(-z - 4 * (x - 0.5)))
    noise = {
        f"c{k}": rng.integers(0, levels, 6_000).astype(str) for k, levels in ((1, 13), (2, 40))
    }
    sample = it.Sample(y, 1 / (1 + np.exp(-z)), {"x": x, **noise})
    calibration, test = sample.split([0.5, 0.5], rng=0)
    basis = Basis.of(calibration.points, 0.2, 150)
    assert {letter[0] for letters in basis.terms for letter in letters} >= {0, 1}
    told = Local().fit(calibration).apply(test)
    assert it.scores.log_loss(told) < it.scores.log_loss(test) - 0.04


def test_no_answer_is_surer_than_the_model_or_the_rows():
    y = np.tile([0, 1], 100)
    for p in (0.2 + 0.6 * y, np.where(y, 0.500001, 0.499999)):
        told = Local().fit(it.Sample(y, p)).predict([0.2, 0.8])
        assert told.min() > 0.002
        assert told.max() < 0.998
    rare = it.Sample(np.arange(1_000) < 3, np.where(np.arange(1_000) < 3, 0.5, 1e-5))
    assert Local().fit(rare).predict([1e-5])[0] < 1e-3


@pytest.mark.parametrize("cluster", [None, [0, 1]])
def test_two_rows_are_answered(cluster):
    told = Local().fit(it.Sample([0, 1], [0.3, 0.6], cluster=cluster)).predict([0.4])
    assert told == pytest.approx([0.4])


@pytest.mark.slow
def test_many_rows_take_passes_instead_of_memory(monkeypatch):
    """The same correction whether features are kept or made again, and from a start on few rows."""
    sample = tilted(3_000)
    kept = Local().fit(sample).predict(sample.p, sample)
    monkeypatch.setattr("itrust.recalibrate.local.MAX_NUMBERS", 1)
    monkeypatch.setattr("itrust.recalibrate.local.BLOCK_ROWS", 1_000)
    np.testing.assert_allclose(Local().fit(sample).predict(sample.p, sample), kept, atol=1e-9)


@pytest.mark.slow
def test_settings_may_be_chosen_on_fewer_rows_than_are_fitted(monkeypatch):
    sample, test = tilted(6_000, bias=4.0).split([0.5, 0.5], rng=0)
    monkeypatch.setattr("itrust.recalibrate.local.TUNING_ROWS", 500)
    told = Local().fit(sample).apply(test)
    assert it.scores.log_loss(told) < it.scores.log_loss(test)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0}, "alpha must be a number above 0 and at most 1, not 0"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to 1,000,000,000, not 0"),
        ({"widths": ()}, "widths must have 1 or more entries, not 0"),
        ({"ridges": (-1.0,)}, r"ridges\[0\] must be a finite number above 0, not -1"),
        ({"widths": 0.4}, r"widths must be a list, not 0\.4"),
        ({"alpha": "a"}, "alpha must be a number, not 'a'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        Local(**settings).fit(tilted(100))


@pytest.mark.slow
def test_the_papers_forest_is_recalibrated(data_file):
    """Its own split: KLCE^2 at most half of any method's of the paper, and the best Brier score."""
    calibration, test = (
        it.Sample.from_frame(
            pyarrow.csv.read_csv(data_file(f"compas-fig4-{part}.csv")),
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
