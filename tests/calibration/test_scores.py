import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
from scipy.stats import binomtest, norm
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV

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
def test_the_papers_compas_scores(data_file, column, brier, ece, mce):
    frame = pyarrow.csv.read_csv(data_file("compas-fig4-test.csv"))
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


ARRAYS = {
    "one column": lambda s: (s.y, s.p),
    "two columns": lambda s: (s.y, np.column_stack([1 - s.p, s.p])),
    "lists": lambda s: (s.y.astype(int).tolist(), s.p.tolist()),
    "pandas": lambda s: (pd.Series(s.y == 1), pd.Series(s.p)),
    "minus one": lambda s: (2 * s.y - 1, s.p),
}
ALL = [scores.brier, scores.log_loss, scores.ece, scores.mce, scores.smooth_ece, scores.klce]


@pytest.mark.parametrize("score", ALL, ids=lambda score: score.__name__)
@pytest.mark.parametrize("arrays", ARRAYS.values(), ids=list(ARRAYS))
def test_a_score_of_arrays_is_that_of_their_sample(score, arrays):
    s = sample(200)
    assert score(*arrays(s)) == pytest.approx(score(s), rel=1e-12)


@pytest.mark.parametrize("score", ALL, ids=lambda score: score.__name__)
def test_weights_and_words_go_by_scikit_learns_names(score):
    s = sample(200, weighted=True)
    words = np.where(s.y == 1, "bad", "good")  # sorted the other way round
    assert score(words, s.p, sample_weight=s.weights, pos_label="bad") == pytest.approx(score(s))
    both = np.column_stack([s.p, 1 - s.p])
    assert score(words, both, sample_weight=s.weights, pos_label="bad") == pytest.approx(score(s))


def test_bins_stand_beside_a_sample_or_by_name():
    s = sample()
    assert scores.ece(s, EqualMass(5)) == scores.ece(s.y, s.p, bins=EqualMass(5))
    assert scores.mce(s, bins=EqualMass(5)) == scores.mce(s.y, s.p, bins=EqualMass(5))


def test_klce_is_the_root_of_the_statistic_and_covariates_count():
    town = it.simulate.survey(2_000, rng=0).sample.only("age")
    age = {"age": town.column("age").values}
    assert scores.klce(town.y, town.p, x=age) == np.sqrt(it.klce2(town))
    assert scores.klce(town.y, town.p) != scores.klce(town.y, town.p, x=age)
    told = scores.local_calibration_pvalue(town.y, town.p, x=age, draws=99, rng=0)
    assert told == it.klce_test(town, draws=99, rng=0).pvalue
    few = it.simulate.survey(500, rng=0).sample
    assert it.klce2(few) < 0
    assert scores.klce(few) == 0


def test_one_row_has_a_brier_score_and_no_pairs():
    assert scores.brier([1], [0.75]) == 0.0625
    assert np.isnan(scores.klce([1], [0.75]))
    assert np.isnan(scores.local_calibration_pvalue([1], [0.75]))


@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        (([0, 1],), {}, r"a score takes a Sample, or labels and probabilities"),
        ((["no", "yes"], [0.1, 0.9]), {}, r"y_true has the values .* pos_label='no' or pos_label="),
        (([0, 1], [0.1, 1.9]), {}, r"y_prob must lie in \[0, 1\]"),
        (([0, 1], [0.1]), {}, r"y_prob has 1 row, but there are 2 labels"),
        (([0, 1], np.eye(2, 3)), {}, r"y_prob must be one column, not"),
        (([0, 1], [0.1, 0.9]), {"sample_weight": [1, -1]}, r"sample_weight must not be negative"),
        ((sample(), [0.5] * 500), {}, r"y_prob goes with arrays"),
    ],
)
def test_wrong_arrays_are_one_sentence_in_scikit_learns_words(arguments, settings, said):
    with pytest.raises(InputError, match=said):
        scores.brier(*arguments, **settings)


def test_fairlearn_shows_scores_by_group():
    fairlearn = pytest.importorskip("fairlearn.metrics")
    s = sample(300)
    group, age = np.repeat(["a", "b"], [200, 100]), np.random.default_rng(0).normal(size=300)
    frame = fairlearn.MetricFrame(
        metrics={"brier": scores.brier, "klce": scores.klce},
        y_true=s.y,
        y_pred=s.p,
        sensitive_features=group,
        sample_params={"klce": {"x": age}, "brier": {"sample_weight": 1 + age**2}},
    )
    first = group == "a"
    by_hand = scores.klce(s.y[first], s.p[first], x=age[first])
    assert frame.by_group["klce"]["a"] == by_hand
    assert frame.overall["brier"] == scores.brier(s.y, s.p, sample_weight=1 + age**2)


def test_a_search_finds_the_model_that_is_calibrated_given_a_column():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=600), "noise": rng.normal(size=600)})
    y = np.where(rng.random(600) < 1 / (1 + np.exp(-2 * X["age"])), "yes", "no")
    grid = {"C": [1e-4, 1.0]}
    for scoring in (
        scores.scorer(scores.klce, on=["age"]),
        scores.scorer(scores.local_calibration_pvalue, on="age", draws=19, rng=0),
        make_scorer(
            scores.brier, greater_is_better=False, response_method="predict_proba", pos_label="yes"
        ),
    ):
        search = GridSearchCV(LogisticRegression(), grid, scoring=scoring, cv=2).fit(X, y)
        assert search.best_params_ == {"C": 1.0}
    model = LogisticRegression().fit(X, y)
    value = scores.scorer(scores.klce, on=["age"])(model, X, y)
    assert value == -scores.klce(y, model.predict_proba(X), x=X[["age"]], pos_label="yes")


@pytest.mark.parametrize("score", [it.scores.ece, it.scores.brier, it.scores.validation])
def test_rows_without_a_number_are_refused_with_a_cure_that_works(score):
    y, p = [0, 1, 1, 0, 1], [0.1, np.nan, 0.3, 0.4, 0.2]
    with pytest.raises(it.InputError, match=r"it\.Sample\(y_true, y_prob, missing='drop'\)"):
        score(y, p)
    score(it.Sample(y, p, missing="drop"))


@pytest.mark.parametrize("score", [it.scores.ece, it.scores.brier, it.scores.validation])
def test_labels_and_probabilities_the_wrong_way_round_are_told(score):
    with pytest.raises(it.InputError, match="the other way round"):
        score([0.1, 0.3, 0.9], [0, 1, 1])
