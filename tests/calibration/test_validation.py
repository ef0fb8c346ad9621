"""What validators print, held against other packages, closed forms and naive loops."""

import itertools

import numpy as np
import patsy
import probcal.metrics as probcal
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats
from scipy.special import logit
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from statsmodels.stats.multitest import multipletests

import itrust as it
from itrust.calibration.validation import (
    CELLS,
    FINENESS,
    PredictionCells,
    fine_cell,
    grade_tests,
    quantile_of,
    restricted_cubic,
)

SAME = {"rtol": 1e-8, "atol": 1e-10}
validation = it.scores.validation


def rows(n=800, seed=0, shift=0.3, spread=0.8, rounded=False):
    """A model that is off a little."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-rng.normal(-0.7, 1.1, n)))
    p = np.clip(np.round(p, 1), 0.05, 0.95) if rounded else p
    y = rng.random(n) < 1 / (1 + np.exp(-(shift + spread * logit(p))))
    return y.astype(float), p


def found(y, p, **more):
    return validation(y, p, draws=19, rng=0, **more)


@pytest.fixture(scope="module", params=[False, True], ids=["continuous", "tied"])
def pair(request):
    y, p = rows(rounded=request.param)
    return y, p, found(y, p)


# Other packages


def test_intercept_and_slope_equal_statsmodels(pair):
    y, p, own = pair
    family = sm.families.Binomial()
    large = sm.GLM(y, np.ones(y.size), family=family, offset=logit(p)).fit(tol=1e-14)
    line = sm.GLM(y, sm.add_constant(logit(p)), family=family).fit(tol=1e-14)
    for name, fit, null in (("intercept", large, 0.0), ("slope", line, 1.0)):
        value, error = fit.params[-1], fit.bse[-1]
        lower, upper = fit.conf_int()[-1]
        pvalue = 2 * stats.norm.sf(abs(value - null) / error)
        told = own[name]
        np.testing.assert_allclose(
            [told.value, told.lower, told.upper, told.pvalue], [value, lower, upper, pvalue], **SAME
        )


def test_intercept_and_slope_equal_the_sandwich_with_weights():
    y, p = rows(500)
    w = np.random.default_rng(1).exponential(size=500) + 0.1
    own = found(y, p, sample_weight=w)
    design = sm.add_constant(logit(p))
    fit = sm.GLM(y, design, family=sm.families.Binomial(), freq_weights=w).fit(tol=1e-14)
    scores = design * (w * (y - fit.fittedvalues))[:, None]
    bread = np.linalg.inv(
        design.T @ ((w * fit.fittedvalues * (1 - fit.fittedvalues))[:, None] * design)
    )
    error = np.sqrt((bread @ (scores.T @ scores) @ bread)[1, 1])
    np.testing.assert_allclose(own["slope"].value, fit.params[1], **SAME)
    np.testing.assert_allclose(
        own["slope"].upper - own["slope"].value, stats.norm.isf(0.025) * error, **SAME
    )


def test_the_smooth_curve_equals_a_natural_spline_of_statsmodels(pair):
    y, p, own = pair
    cells = PredictionCells.of_rows(y, p, np.ones(y.size))
    share = np.cumsum(cells.sums.rows) / y.size
    levels = (0.05, 0.275, 0.5, 0.725, 0.95)
    knots = np.unique([cells.logit[np.flatnonzero(share >= level)[0]] for level in levels])
    inner = list(knots[1:-1])
    basis = patsy.dmatrix(
        "cr(x, knots=inner, lower_bound=low, upper_bound=high) - 1",
        {"x": logit(p), "inner": inner, "low": knots[0], "high": knots[-1]},
    )
    # Beyond its outer knots patsy's basis goes on as cubics do: the line there is made from ours.
    inside = (logit(p) >= knots[0]) & (logit(p) <= knots[-1])
    harrell = restricted_cubic(logit(p), knots)
    mixed, *_ = np.linalg.lstsq(harrell[inside], np.asarray(basis)[inside], rcond=None)
    assert np.abs(harrell[inside] @ mixed - np.asarray(basis)[inside]).max() < 1e-8
    fit = sm.GLM(y, harrell @ mixed, family=sm.families.Binomial()).fit(tol=1e-14, maxiter=200)
    error = np.abs(fit.fittedvalues - p)
    named = {"ici": error.mean(), "e50": np.median(error), "e90": np.quantile(error, 0.9)}
    for name, value in {**named, "emax": error.max()}.items():
        np.testing.assert_allclose(own[name].value, value, rtol=1e-7, atol=1e-9, err_msg=name)
    assert own.knots == knots.size


def test_the_spline_is_a_line_beyond_its_last_knots():
    knots = np.array([-2.0, -0.5, 0.0, 1.0, 1.5])
    x = np.array([-5.0, -4.0, -3.0, 2.0, 3.0, 4.0])
    cubics = restricted_cubic(x, knots)[:, 2:]
    assert np.abs(np.diff(cubics[:3], 2, axis=0)).max() < 1e-12
    assert np.abs(np.diff(cubics[3:], 2, axis=0)).max() < 1e-12


def test_hosmer_lemeshow_spiegelhalter_and_grades_equal_probcal():
    y, p = rows()
    grades = np.searchsorted([0.2, 0.4, 0.6], p, side="right")
    own = found(y, p, grades=grades)
    theirs = probcal.hosmer_lemeshow(y, p)
    told = own["hosmer_lemeshow"]
    np.testing.assert_allclose(
        [told.value, told.pvalue], [theirs.statistic, theirs.p_value], **SAME
    )
    assert told.freedom == theirs.df == 10
    z = probcal.spiegelhalter_z(y, p)
    told = own["spiegelhalter"]
    np.testing.assert_allclose([told.value, told.pvalue], [z.z, z.p_value], **SAME)
    np.testing.assert_allclose(own["intercept"].value, probcal.calibration_intercept(y, p), **SAME)
    np.testing.assert_allclose(own["slope"].value, probcal.calibration_slope(y, p), **SAME)
    jeffreys = probcal.jeffreys_grade_test(y, p, grades)
    binomial = probcal.binomial_grade_test(y, p, grades)
    np.testing.assert_allclose([own.jeffreys for own in own.grades], jeffreys.p_value, **SAME)
    np.testing.assert_allclose([own.binomial for own in own.grades], binomial.p_exact, **SAME)
    assert [own.rows for own in own.grades] == list(jeffreys.n)
    assert [own.events for own in own.grades] == list(jeffreys.k)


def test_hosmer_lemeshow_equals_the_textbook_on_pandas_groups():
    pd = pytest.importorskip("pandas")
    y, p = rows(1_000)
    told = found(y, p)["hosmer_lemeshow"]
    parts = pd.DataFrame({"y": y, "p": p}).groupby(pd.qcut(p, 10), observed=True)
    events, rows_, mean = parts.y.sum(), parts.y.count(), parts.p.mean()
    value = ((events - rows_ * mean) ** 2 / (rows_ * mean * (1 - mean))).sum()
    np.testing.assert_allclose([told.value, told.pvalue], [value, stats.chi2.sf(value, 10)], **SAME)


def test_tests_by_grade_equal_scipy():
    for n, events, p in ((100, 5, 0.02), (40, 0, 0.1), (7, 7, 0.6), (5_000, 4, 0.001)):
        own = grade_tests(n, events, p)
        tails = [
            stats.binomtest(events, n, p, alternative=side).pvalue for side in ("greater", "less")
        ]
        low = stats.beta.cdf(p, events + 0.5, n - events + 0.5)
        expected = tails[0], low, min(2 * min(tails), 1), min(2 * min(low, 1 - low), 1)
        names = ("binomial", "jeffreys", "binomial_two_sided", "jeffreys_two_sided")
        np.testing.assert_allclose([own[name] for name in names], expected, **SAME)


def test_adjusted_p_values_lie_between_the_tests_and_holms():
    y, p = rows(500, shift=0.5, rounded=True)
    own = validation(y, p, draws=1_999, rng=0)
    plain = [grade.binomial for grade in own.grades]
    holm = multipletests(plain, method="holm")[1]
    adjusted = np.array([grade.adjusted for grade in own.grades])
    assert (adjusted >= np.array(plain) - 0.03).all()
    assert (adjusted <= holm + 0.03).all()


def test_auc_equals_scikit_learn_and_its_interval_delongs(pair):
    y, p, own = pair
    np.testing.assert_allclose(own["auc"].value, roc_auc_score(y, p), **SAME)
    positives, negatives = p[y == 1], p[y == 0]
    wins = (positives[:, None] > negatives) + 0.5 * (positives[:, None] == negatives)
    variance = wins.mean(axis=1).var(ddof=1) / positives.size
    variance += wins.mean(axis=0).var(ddof=1) / negatives.size
    half = stats.norm.isf(0.025) * np.sqrt(variance)
    np.testing.assert_allclose(own["auc"].upper - own["auc"].value, half, **SAME)
    np.testing.assert_allclose(own["gini"].lower, 2 * own["auc"].lower - 1, **SAME)


def test_weighted_auc_equals_scikit_learn():
    y, p = rows(300, rounded=True)
    w = np.random.default_rng(2).exponential(size=300)
    own = found(y, p, sample_weight=w)
    np.testing.assert_allclose(own["auc"].value, roc_auc_score(y, p, sample_weight=w), **SAME)


def test_the_split_of_scores_equals_isotonic_regression_of_scikit_learn(pair):
    y, p, own = pair
    place = np.unique(p, return_inverse=True)[1]
    weight = np.bincount(place).astype(float)
    fitted = isotonic_regression(np.bincount(place, y) / weight, sample_weight=weight)[place]
    rate = np.full(y.size, y.mean())
    for score, names in (
        (brier_score_loss, ("brier", "miscalibration", "discrimination", "uncertainty")),
        (
            lambda y, q: log_loss(y, q, labels=[0, 1]),
            (
                "log_loss",
                *(f"log_{n}" for n in ("miscalibration", "discrimination", "uncertainty")),
            ),
        ),
    ):
        own_score, best, least = (score(y, np.clip(q, 1e-15, 1 - 1e-15)) for q in (p, fitted, rate))
        expected = (own_score, own_score - best, least - best, least)
        np.testing.assert_allclose([own[n].value for n in names], expected, rtol=1e-8, atol=1e-9)
    whole, off, apart, spread = (own[name].value for name in names[:1] + names[1:])
    assert abs(off - apart + spread - whole) < 1e-12


def test_net_benefit_equals_counting_rows(pair):
    y, p, own = pair
    assert 5 <= len(own.decision) <= 11
    for point in own.decision:
        acted = p >= point.threshold
        odds = point.threshold / (1 - point.threshold)
        worth = ((acted & (y == 1)).sum() - odds * (acted & (y == 0)).sum()) / y.size
        np.testing.assert_allclose(point.net_benefit, worth, **SAME)
        np.testing.assert_allclose(point.treat_all, y.mean() - odds * (1 - y.mean()), **SAME)
        assert point.rows == acted.sum()
        assert point.treat_none == 0


# Closed forms and properties


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40), st.integers(0, 10_000))
def test_the_split_adds_up_and_no_part_is_negative(n, seed):
    rng = np.random.default_rng(seed)
    y, p = rng.integers(0, 2, n), np.round(rng.random(n), 1)
    own = validation(y, p, draws=1, rng=0)
    score, off, apart, spread = (
        own[name].value for name in ("brier", "miscalibration", "discrimination", "uncertainty")
    )
    assert abs(off - apart + spread - score) < 1e-12
    assert min(off, apart, spread) > -1e-12
    np.testing.assert_allclose(score, it.scores.brier(y, p), atol=1e-12)


def test_whole_weights_are_repeated_rows():
    y, p = rows(600)
    w = np.random.default_rng(3).integers(1, 4, 600)
    one, other = found(y, p, sample_weight=w), found(np.repeat(y, w), np.repeat(p, w))
    for name in ("intercept", "slope", "ici", "emax", "brier", "miscalibration", "auc"):
        np.testing.assert_allclose(one[name].value, other[name].value, rtol=1e-7, err_msg=name)
    for mine, theirs in zip(one.decision, other.decision, strict=True):
        np.testing.assert_allclose(mine.net_benefit, theirs.net_benefit, **SAME)


def test_order_of_rows_does_not_matter():
    y, p = rows(300)
    order = np.random.default_rng(0).permutation(300)
    one, other = found(y, p), found(y[order], p[order])
    for mine, theirs in zip(one, other, strict=True):
        assert mine.value == pytest.approx(theirs.value, rel=1e-9)
        assert mine.exact_pvalue == theirs.exact_pvalue


def test_one_slope_is_known_in_closed_form():
    # Predictions 1/4 and 3/4, rates 1/3 and 2/3: logits -log 3 and log 3 become -log 2 and log 2.
    p = np.repeat([0.25, 0.75], 300)
    y = np.concatenate([np.arange(300) < 100, np.arange(300) < 200])
    own = found(y, p)
    np.testing.assert_allclose(own["slope"].value, np.log(2) / np.log(3), **SAME)
    np.testing.assert_allclose(own["intercept"].value, 0, atol=1e-10)
    np.testing.assert_allclose(own["ici"].value, 1 / 3 - 1 / 4, **SAME)


def test_quantiles_of_cells_equal_numpys():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(57), 1)
    cells = PredictionCells.of_rows(np.zeros(57), p, np.ones(57))
    value = rng.random(cells.p.size)
    each = np.repeat(value, cells.sums.rows.astype(int))
    for level in (0.0, 0.1, 0.5, 0.9, 1.0):
        np.testing.assert_allclose(
            quantile_of(value, cells, level), np.quantile(each, level), **SAME
        )


# Predictions of 0 and 1, one label, few rows


def test_predictions_of_0_and_1_are_counted_and_not_moved():
    y, p = rows(400)
    more = found(np.append(y, [0, 0, 1]), np.append(p, [0, 0, 1]))
    assert (more.certain, more.contrary) == (3, 0)
    plain = found(y, p)
    for name in ("intercept", "slope"):
        np.testing.assert_allclose(more[name].value, plain[name].value, **SAME)
    # The three rows are right, so the mean distance falls by their share.
    np.testing.assert_allclose(more["ici"].value, plain["ici"].value * 400 / 403, rtol=1e-3)
    assert "3 predictions of exactly 0 or 1 have no logit, and none is moved" in str(more)


def test_a_contrary_label_leaves_no_finite_fit():
    y, p = rows(400)
    own = found(np.append(y, 1), np.append(p, 0.0))
    assert (own.certain, own.contrary) == (1, 1)
    for name in ("intercept", "slope", "log_loss", "log_miscalibration"):
        assert own[name].value is None
        assert "impossible" in own[name].reason
    assert own["brier"].value is not None
    assert "labels that the model called impossible came true" in " ".join(str(own).split())


@pytest.mark.parametrize(
    ("y", "p", "missing", "why"),
    [
        ([1, 1, 1], [0.5, 0.6, 0.7], ("intercept", "slope", "auc"), "all labels are alike"),
        ([0, 1, 1], [0.5, 0.5, 0.5], ("slope",), "all predictions are alike"),
        ([0, 1], [0.2, 0.9], ("slope",), "the predictions separate the labels"),
        ([1, 0], [0.2, 0.9], ("slope",), "the predictions separate the labels"),
        ([0, 1], [0, 1], ("intercept", "slope"), "every prediction is 0 or 1"),
        ([0, 1], [0, 1], ("hosmer_lemeshow", "spiegelhalter"), "no label can vary"),
        ([0, 1, 0], [0.5, 0.5, 0.5], ("spiegelhalter",), "it asks nothing"),
    ],
)
def test_what_has_no_value_says_why(y, p, missing, why):
    own = found(y, p)
    for name in missing:
        assert own[name].value is None
        assert why in own[name].reason
    assert why in str(own).replace("\n  ", " ")


def test_where_labels_are_separated_the_smooth_curve_is_its_limit():
    own = found([0, 1], [0.2, 0.9])
    np.testing.assert_allclose(own["ici"].value, (0.2 + 0.1) / 2, atol=1e-9)
    own = found([1, 1, 1], [0.5, 0.6, 0.7])
    np.testing.assert_allclose(own["ici"].value, 0.4, atol=1e-9)


def test_a_grade_that_cannot_vary_has_no_jeffreys_test():
    own = found([0, 0, 1, 0], [0, 0, 0.5, 0.5], cuts=[0.2])
    assert own.grades[0].jeffreys is None
    assert own.grades[0].binomial == 1
    assert own.grades[1].jeffreys is not None


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"cuts": [0.1, 1.5]}, "cuts must be numbers above 0 and below 1"),
        ({"thresholds": ["a"]}, "thresholds must be numbers above 0 and below 1"),
        ({"grades": "rating"}, "arrays have no covariates"),
        ({"grades": ["a"]}, "grades has 1 values for 300 rows"),
        ({"grades": ["a"] * 300, "cuts": [0.5]}, "give grades or cuts, not both"),
        ({"confidence": 2}, "confidence"),
        ({"draws": 0}, "draws"),
    ],
)
def test_bad_settings_are_told(settings_, words):
    y, p = rows(300)
    with pytest.raises(it.InputError, match=words):
        validation(y, p, **settings_)


def test_an_unknown_statistic_is_told():
    with pytest.raises(it.InputError, match="there is no statistic"):
        found(*rows(300))["slop"]


# Grades


def test_grades_by_cut_points_column_and_name_are_the_same():
    y, p = rows(500)
    name = np.array(["a", "b", "c"])[np.searchsorted([0.2, 0.5], p, side="right")]
    by_cuts = found(y, p, cuts=[0.2, 0.5])
    by_column = found(y, p, grades=name)
    by_name = validation(it.Sample(y, p, {"rating": name}), grades="rating", draws=19, rng=0)
    told = [
        [(g.rows, g.events, g.binomial) for g in v.grades] for v in (by_cuts, by_column, by_name)
    ]
    assert told[1] == told[2]
    np.testing.assert_allclose(told[0], told[1], rtol=1e-12)
    assert [g.name for g in by_cuts.grades] == ["below 0.2", "0.2 to 0.5", "0.5 or more"]
    assert [g.name for g in by_name.grades] == ["a", "b", "c"]


def test_numbers_are_grades_in_their_order_and_missing_ones_last():
    grades = [10.0, 2.0, 2.0, np.nan, 10.0, np.nan]
    own = found([0, 1, 0, 1, 1, 0], [0.2, 0.3, 0.4, 0.5, 0.6, 0.7], grades=grades)
    assert [grade.name for grade in own.grades] == ["2", "10", "(missing)"]


# Designs


def test_clusters_give_the_design_s_variance_and_no_law_for_groups():
    y, p = rows(300)
    cluster = np.arange(300) // 5
    sample = it.Sample(np.repeat(y[::5], 5), np.repeat(p[::5], 5), cluster=cluster)
    own = validation(sample, draws=19, rng=0)
    once = found(y[::5], p[::5])
    assert own.clustered
    # Five copies of a row are one row: the sandwich of 60 rows, and Student's quantile.
    np.testing.assert_allclose(own["slope"].value, once["slope"].value, **SAME)
    wide = (own["slope"].upper - own["slope"].lower) / (once["slope"].upper - once["slope"].lower)
    assert 0.7 < wide < 1.5
    for name, why in (
        ("hosmer_lemeshow", "Hosmer-Lemeshow has no law for clustered rows"),
        ("ici", "cannot be redrawn one by one"),
    ):
        assert own[name].value is not None
        assert own[name].pvalue is None
        assert own[name].exact_pvalue is None
        assert why in own[name].reason
    assert own["spiegelhalter"].pvalue is not None
    assert all(g.binomial is None and g.adjusted is None for g in own.grades)
    assert "Hosmer-Lemeshow has no law for clustered rows" in str(own)


def test_the_slope_of_clusters_has_the_cluster_sandwich_of_statsmodels():
    y, p = rows(400)
    cluster = np.random.default_rng(0).integers(0, 40, 400)
    own = validation(it.Sample(y, p, cluster=cluster), draws=19, rng=0)["slope"]
    fit = sm.GLM(y, sm.add_constant(logit(p)), family=sm.families.Binomial()).fit(
        tol=1e-14,
        cov_type="cluster",
        cov_kwds={"groups": cluster, "use_correction": False, "df_correction": False},
    )
    error = fit.bse[1] * np.sqrt(40 / 39)  # of clusters around their mean, which is 0
    np.testing.assert_allclose(own.upper - own.value, stats.t.isf(0.025, 39) * error, rtol=1e-6)


def test_strata_keep_redraws_and_replicates_do_not():
    y, p = rows(200)
    strata = it.Sample(y, p, strata=np.arange(200) % 4)
    assert validation(strata, draws=19, rng=0)["hosmer_lemeshow"].exact_pvalue is not None
    rng = np.random.default_rng(0)
    sets = rng.integers(0, 2, (20, 16)).repeat(10, axis=0) * 2.0
    sample = it.Sample(y, p, weights=np.ones(200), replicate_weights=sets, replicate_method="brr")
    own = validation(sample, draws=19, rng=0)
    assert own.clustered
    assert own["slope"].lower < own["slope"].value < own["slope"].upper


# Many rows, in files


def test_fine_cells_are_in_the_order_of_predictions():
    p = np.sort(
        np.concatenate([[0, 1, 0.5, 1e-12, 1 - 1e-12], np.random.default_rng(0).random(999)])
    )
    place = fine_cell(p)
    assert (np.diff(place) >= 0).all()
    assert place[0] == 0
    assert place[-1] == CELLS - 1
    distance = np.minimum(p, 1 - p)
    for k in np.unique(place[(distance > 1e-9)]):
        own = distance[(place == k) & (distance > 1e-9)]
        assert own.max() / own.min() <= 1 + 2.0**-FINENESS


def test_rows_in_files_are_rows_in_memory(tmp_path):
    y, p = rows(2_000)
    grade = np.array(["a", "b"])[(p > 0.4).astype(int)]
    pq.write_table(pa.table({"y": y, "p": p, "grade": grade}), tmp_path / "rows.parquet")
    scanned = it.scan(tmp_path / "rows.parquet", label="y", prob="p", on=["grade"])
    one = validation(scanned, grades="grade", draws=19, rng=0)
    other = validation(it.Sample(y, p, {"grade": grade}), grades="grade", draws=19, rng=0)
    assert one.to_dict() == other.to_dict()
    assert not one.gathered


def test_gathered_rows_move_statistics_by_next_to_nothing(monkeypatch, tmp_path):
    y, p = rows(20_000)
    exact = found(y, p)
    pq.write_table(pa.table({"y": y, "p": p}), tmp_path / "rows.parquet", row_group_size=3_000)
    monkeypatch.setattr("itrust.data.survey.EXTRACT_ROWS", 5_000)
    scanned = it.scan(tmp_path / "rows.parquet", label="y", prob="p", on=[])
    gathered = validation(scanned, draws=19, rng=0)
    assert gathered.gathered
    assert gathered.to_dict() == validation(it.Sample(y, p), draws=19, rng=0).to_dict()
    for name in [own.name for own in exact if own.name != "hosmer_lemeshow"]:
        moved = abs(gathered[name].value - exact[name].value)
        assert moved < max(1e-4, 1e-5 * abs(exact[name].value)), name
        if name in ("intercept", "slope", "ici", "brier", "auc"):
            assert moved < 1e-6, name
    assert gathered.decision == exact.decision


def test_a_result_is_a_table_a_text_and_a_picture():
    own = found(*rows(300))
    assert own.to_arrow().num_rows == len(own) == 18
    assert own.to_pandas().name[1] == "slope"
    assert "calibration slope" in own._repr_html_()
    assert own.plot().ax_.get_ylabel() == "net benefit by row"
    assert repr(own) == "<Validation: 18 statistics, 300 rows>"
    assert max(map(len, str(own).splitlines())) <= 88


# Predictions and weights at the ends of what a double holds


def test_logits_far_beyond_those_of_a_rounded_1_are_fitted_as_they_are():
    """Naive Bayes calls things as unlikely as 1e-50."""
    rng = np.random.default_rng(0)
    x = rng.normal(0.0, 40.0, 1_500)
    p = np.clip(1 / (1 + np.exp(-x)), 1e-300, np.nextafter(1, 0))
    y = (rng.random(p.size) < 1 / (1 + np.exp(-x / 30))).astype(float)
    own = found(y, p)
    root = optimize.brentq(lambda a: (y - special.expit(a + logit(p))).sum(), -500, 500)
    assert own["intercept"].value == pytest.approx(root, abs=1e-8)
    fit = sm.GLM(y, sm.add_constant(logit(p)), family=sm.families.Binomial()).fit(tol=1e-14)
    assert own["slope"].value == pytest.approx(fit.params[1], rel=1e-8)
    assert own["slope"].lower == pytest.approx(fit.conf_int()[1, 0], rel=1e-6)


def test_the_slope_is_found_where_logits_go_on_to_hundreds():
    rng = np.random.default_rng(1)
    p = 10 ** rng.uniform(-300, -1, 5_000)
    y = np.zeros(p.size)
    y[:3] = 1
    fit = sm.GLM(y, sm.add_constant(logit(p)), family=sm.families.Binomial()).fit(tol=1e-14)
    assert found(y, p)["slope"].value == pytest.approx(fit.params[1], abs=1e-8)


@pytest.mark.parametrize("unit", [1e-200, 1e-12, 1e200])
def test_the_unit_of_weights_does_not_matter(unit):
    y, p = rows(300)
    w = np.random.default_rng(0).exponential(size=300)
    one, other = found(y, p, sample_weight=w), found(y, p, sample_weight=unit * w)
    for mine, theirs in zip(one, other, strict=True):
        assert mine.value == pytest.approx(theirs.value, rel=1e-9)
        assert mine.exact_pvalue == theirs.exact_pvalue


def test_gathered_predictions_of_1_stay_at_1_and_those_below_it_do_not_get_there(monkeypatch):
    """Weights of both labels, added up apart, do not divide to 1."""
    monkeypatch.setattr("itrust.data.survey.EXTRACT_ROWS", 500)
    rng = np.random.default_rng(3)
    for last in (1.0, np.nextafter(1, 0)):
        p = np.concatenate([rng.uniform(0.1, 0.9, 1_500), np.full(1_500, last)])
        y = (rng.random(p.size) < p).astype(float)
        y[-20:] = 0
        for seed in range(5):
            w = np.random.default_rng(seed).exponential(size=p.size)
            own = found(y, p, sample_weight=w)
            assert own.gathered
            assert (own.certain, own.contrary) == ((1_500, 20) if last == 1 else (0, 0))
            assert (own["log_loss"].value is None) == (last == 1)


def test_gathered_predictions_next_to_0_and_1_are_told_apart(monkeypatch):
    rng = np.random.default_rng(0)
    p = 10 ** rng.uniform(-15, -8, 3_000)
    y = np.zeros(p.size)
    y[:5] = 1
    for own in (p, 1 - p):
        whole = found(y, own)
        with monkeypatch.context() as few:
            few.setattr("itrust.data.survey.EXTRACT_ROWS", 500)
            gathered = found(y, own)
        assert gathered.gathered
        for name in ("auc", "slope", "intercept"):
            assert gathered[name].value == pytest.approx(whole[name].value, abs=1e-4)


def test_a_group_of_predictions_of_1_cannot_vary_whatever_its_weights():
    rng = np.random.default_rng(0)
    p = np.concatenate([np.ones(900), rng.uniform(0.1, 0.9, 100)])
    y = (rng.random(p.size) < p).astype(float)
    y[:5] = 0
    for seed in range(10):
        w = np.random.default_rng(seed).exponential(size=p.size)
        own = found(y, p, sample_weight=w, grades=(p == 1).astype(int))
        assert own.grades[1].predicted == 1


def test_a_small_upper_tail_of_jeffreys_law_is_not_0():
    tail = 2 * stats.beta.sf(0.5, 0.5, 1_000.5)
    assert 0 < tail < 1e-100
    assert grade_tests(1_000, 0, 0.5)["jeffreys_two_sided"] == pytest.approx(tail)


def test_what_weights_must_not_tell_is_said():
    y, p = rows(200)
    assert "unless weights go with the label" in str(found(y, p, sample_weight=1 + p)).replace(
        "\n  ", " "
    )
    assert "unless" not in str(found(y, p))


def test_the_p_value_of_miscalibration_is_that_of_the_value_that_is_printed():
    rng = np.random.default_rng(5)
    p = rng.beta(0.5, 6, 3_000)
    y = rng.random(3_000) < p
    found = validation(y, p, draws=199, rng=0)["miscalibration"]
    order = np.argsort(p)

    def lost(labels):
        recalibrated = isotonic_regression(labels[order].astype(float))
        return np.mean((labels - p) ** 2) - np.mean((labels[order] - recalibrated) ** 2)

    drawn = np.array([lost(rng.random(3_000) < p) for _ in range(400)])
    assert found.value == pytest.approx(lost(y))
    assert found.expected == pytest.approx(drawn.mean(), rel=0.1)
    assert found.exact_pvalue == pytest.approx(np.mean(drawn >= lost(y)), abs=0.12)


# Tables, thresholds and weights


@pytest.mark.parametrize("shape", [(2, 60), (0.4, 300), (1, 1), (300, 0.4)])
def test_default_thresholds_tell_rows_apart_without_a_look_at_labels(shape):
    rng = np.random.default_rng(1)
    p = rng.beta(*shape, 4_000)
    own, other = (validation(rng.random(p.size) < q, p, draws=1, rng=0) for q in (p, 0.5))
    assert [point.threshold for point in own.decision] == [
        point.threshold for point in other.decision
    ]
    assert 8 <= len(own.decision) <= 11
    rows = [point.rows for point in own.decision]
    assert all(0 < few < many < p.size for many, few in itertools.pairwise(rows))


@pytest.mark.parametrize("p", [[0.3] * 20, [0.0] * 10 + [1.0] * 10, [0.301] * 10 + [0.302] * 10])
def test_predictions_that_hardly_differ_have_a_decision_curve(p):
    own = validation([0, 1] * 10, p, draws=1, rng=0)
    assert len(own.decision) >= 1


def test_grades_and_the_decision_curve_are_tables():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    own = validation(rng.random(500) < p, p, grades=np.where(p < 0.5, "B", "A"), draws=9, rng=0)
    frame = own.grades.to_pandas()
    assert list(frame["name"]) == ["A", "B"]
    assert list(frame["binomial"]) == [grade.binomial for grade in own.grades]
    table = own.decision.to_arrow()
    assert table["net_benefit"].to_pylist() == [point.net_benefit for point in own.decision]
    assert isinstance(own.grades, tuple)


def test_weights_that_are_all_1_change_nothing():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    plain, weighted = (
        validation(y, p, sample_weight=w, draws=19, rng=0) for w in (None, np.ones(300))
    )
    assert weighted.to_dict() == plain.to_dict()
    assert weighted.grades[0].jeffreys is not None
    halves = validation(y, p, sample_weight=np.where(y, 1.0, 0.5), draws=19, rng=0)
    assert halves.weighted
    assert halves.grades[0].jeffreys is None


def test_one_row_of_a_label_has_an_area_without_an_interval_and_says_why():
    own = validation([1, 0, 0, 0], [0.9, 0.2, 0.3, 0.1], draws=9, rng=0)["auc"]
    assert own.value == 1
    assert own.lower is None
    assert "one row only" in own.reason


def test_a_name_that_nobody_knows_is_answered_with_all_names():
    own = validation([1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1], draws=9, rng=0)
    with pytest.raises(it.InputError, match="hosmer_lemeshow"):
        own["hl"]


def test_grades_that_are_large_numbers_keep_their_names():
    own = validation(
        [1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1], grades=[1000001, 1000002] * 2, draws=9, rng=0
    )
    assert [grade.name for grade in own.grades] == ["1000001", "1000002"]


def test_out_of_fold_predictions_have_approximate_p_values_and_say_so():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    y = rng.random(200) < 1 / (1 + np.exp(-x[:, 0]))
    sample = it.Sample.from_estimator(LogisticRegression(), x, y, cv=4, rng=0)
    found = validation(sample, draws=9, rng=0)
    assert found.folds == 4
    words = "Predictions come from folds of these rows, so exact p-values are approximate here."
    assert words in " ".join(str(found).split())
    assert words not in " ".join(str(validation(y, sample.p, draws=9, rng=0)).split())
