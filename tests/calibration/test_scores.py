import numpy as np
import pyarrow.csv
import pytest
from scipy.stats import binomtest, norm
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

import itrust as it
from itrust import InputError, Sample, scores
from itrust.calibration import EqualMass
from itrust.calibration.scores import EqualWidth


def sample(n=500, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, n)
    weights = rng.exponential(size=n) if weighted else None
    return Sample(rng.random(n) < p**1.3, p, weights=weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_brier_and_log_loss_are_scikit_learns(weighted):
    s = sample(weighted=weighted)
    expected = brier_score_loss(s.y, s.p, sample_weight=s.weights)
    assert scores.brier(s) == pytest.approx(expected, rel=1e-14)
    expected = log_loss(s.y, s.p, sample_weight=s.weights)
    assert scores.log_loss(s) == pytest.approx(expected, rel=1e-14)


def test_one_class_has_scores_too():
    s = Sample([0, 0], [0.5, 0.0])
    assert scores.brier(s) == 0.125
    assert scores.log_loss(s) == pytest.approx(np.log(2) / 2, rel=1e-9)


def test_impossible_labels_make_the_log_loss_infinite():
    assert scores.log_loss(Sample([1, 0], [0.0, 0.5])) == np.inf
    assert scores.log_loss(Sample([0, 1], [1.0, 0.5])) == np.inf
    assert scores.log_loss(Sample([1, 1], [1e-30, 1.0])) == pytest.approx(15 * np.log(10))
    unseen = Sample([1, 1, 0], [0.0, 0.5, 0.5], weights=[0, 1, 1])
    assert scores.log_loss(unseen) == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("bins", "strategy"),
    [(EqualWidth(10), "uniform"), (EqualWidth(7), "uniform"), (EqualMass(5), "quantile")],
)
def test_curve_is_scikit_learns(bins, strategy):
    s = sample()
    curve = scores.reliability_curve(s, bins)
    observed, predicted = calibration_curve(s.y, s.p, n_bins=bins.number, strategy=strategy)
    np.testing.assert_allclose(curve.predicted, predicted, rtol=1e-12)
    np.testing.assert_allclose(curve.observed, observed, rtol=1e-12)
    assert curve.rows.sum() == s.n
    assert curve.share.sum() == pytest.approx(1)


def test_intervals_are_wilsons():
    s = sample()
    curve = scores.reliability_curve(s, confidence=0.9)
    ones = np.rint(curve.observed * curve.rows).astype(int)
    for k, (count, rows) in enumerate(zip(ones, curve.rows, strict=True)):
        interval = binomtest(count, rows).proportion_ci(0.9, method="wilson")
        assert (curve.lower[k], curve.upper[k]) == pytest.approx((interval.low, interval.high))


def test_intervals_cover():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        p = rng.uniform(0.05, 0.95, 400)
        w = rng.exponential(size=400)
        curve = scores.reliability_curve(Sample(rng.random(400) < p, p, weights=w), EqualMass(4))
        covered.extend((curve.lower <= curve.predicted) & (curve.predicted <= curve.upper))
    assert 0.93 < np.mean(covered) < 0.97


def test_ece_and_mce_by_hand():
    s = Sample([0, 1, 1, 1], [0.2, 0.2, 0.8, 0.9])
    assert scores.ece(s, EqualWidth(2)) == pytest.approx((2 * 0.3 + 2 * 0.15) / 4)
    assert scores.mce(s, EqualWidth(2)) == pytest.approx(0.3)
    weighted = Sample([0, 1, 1, 1], [0.2, 0.2, 0.8, 0.9], weights=[3, 1, 0, 4])
    assert scores.ece(weighted, EqualWidth(2)) == pytest.approx((4 * 0.05 + 4 * 0.1) / 8)


def test_equal_mass_bins_hold_equal_rows():
    for n in (10, 100):
        s = Sample([0, 1] * (n // 2), np.linspace(0.01, 0.99, n))
        assert scores.reliability_curve(s, EqualMass(10)).rows.tolist() == [n // 10] * 10


def test_equal_mass_bins_survive_ties():
    s = Sample([0, 1] * 50, [0.3] * 90 + [0.8] * 10)
    curve = scores.reliability_curve(s, EqualMass(10))
    assert curve.rows.tolist() == [90, 10]


@pytest.mark.parametrize(
    ("column", "brier", "ece", "mce"),
    [
        ("p", 0.262, 0.160, 0.269),
        ("p_platt", 0.231, 0.022, 0.037),
        ("p_temperature", 0.241, 0.091, 0.207),
        ("p_isotonic", 0.231, 0.018, 0.046),
        ("p_bbq", 0.232, 0.009, 0.027),
    ],
)
def test_the_papers_compas_scores(data_folder, column, brier, ece, mce):
    frame = pyarrow.csv.read_csv(data_folder / "compas-fig4-test.csv")
    s = Sample.from_frame(frame, label="y", prob=column, on="age10")
    found = scores.brier(s), scores.ece(s, EqualWidth(20)), scores.mce(s, EqualWidth(20))
    assert tuple(round(value, 3) for value in found) == (brier, ece, mce)


def test_smooth_ece_of_one_prediction_is_the_bias():
    assert scores.smooth_ece(Sample([1, 1, 1, 0], [0.5] * 4)) == pytest.approx(0.25, abs=1e-6)


def test_smooth_ece_equals_a_naive_integral():
    """Reflected Gaussians summed one by one; the width is the fixed point of the integral."""
    s = sample(200, seed=3)
    width = scores.smooth_ece(s)
    t = (np.arange(4000) + 0.5) / 4000
    total = np.zeros_like(t)
    for image in range(-4, 5):
        for sign in (1, -1):
            centre = 2 * image + sign * s.p
            total += norm.pdf((t[:, None] - centre) / width) @ s.residuals / width / s.n
    assert np.abs(total).mean() == pytest.approx(width, rel=2e-3)


def test_smooth_ece_falls_with_calibration_and_knows_zero():
    assert scores.smooth_ece(Sample([0, 1], [0.0, 1.0])) == 0.0
    right, wrong = (it.simulate.uniform_shift(2000, shift, rng=1).sample for shift in (0.0, 0.12))
    assert scores.smooth_ece(right) < 0.05 < scores.smooth_ece(wrong)


def test_curves_print_as_a_table():
    curve = scores.reliability_curve(Sample([0, 1, 1, 1], [0.2, 0.2, 0.8, 0.9]), EqualWidth(2))
    assert "2      0.200     0.500" in str(curve)
    assert "positive: the model underestimates" in str(curve)
    assert "0.095 to 0.905" in curve._repr_html_()
    assert curve.to_dict()["rows"] == [2, 2]
    assert curve.to_arrow()["gap"].to_pylist() == curve.gap.tolist()


def test_odd_settings_are_refused():
    with pytest.raises(
        InputError, match=r"bins must be EqualWidth\(10\) or EqualMass\(10\), not 10"
    ):
        scores.ece(sample(), 10)
    with pytest.raises(InputError, match="number must be a whole number of at least 1, not 0"):
        EqualWidth(0)
    with pytest.raises(InputError, match="confidence must lie between 0 and 1"):
        scores.reliability_curve(sample(), confidence=95)
