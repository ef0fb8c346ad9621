"""Scores in other people's machinery: fairlearn's MetricFrame, scikit-learn's searches."""

import pickle
from functools import partial, update_wrapper

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate

import itrust as it
from itrust import scores

N = 240
RNG = np.random.default_rng(0)
AGE, W = RNG.normal(size=N), RNG.uniform(0.5, 2, N)
P = 1 / (1 + np.exp(-AGE))
Y = (RNG.random(N) < P).astype(int)
GROUP = np.repeat(["a", "b", "c"], [120, 80, 40])
OF_ARRAYS = {
    "brier": scores.brier,
    "log_loss": scores.log_loss,
    "ece": scores.ece,
    "mce": scores.mce,
    "smooth_ece": scores.smooth_ece,
}
WITH_COVARIATES = {"klce": scores.klce, "local_calibration_pvalue": scores.local_calibration_pvalue}
OTHERS = {"Bins", "EqualMass", "EqualWidth", "CalibrationScorer", "ReliabilityCurve"}
OTHERS |= {"reliability_curve", "scorer"}
OTHERS |= {"DecisionPoint", "Grade", "Validation", "ValidationStatistic", "validation"}
OTHERS |= {"ValidationTable"}


def test_every_public_score_is_among_those_that_are_tried_here():
    assert set(scores.__all__) <= {*OF_ARRAYS, *WITH_COVARIATES, *OTHERS}


@pytest.mark.parametrize("name", [*OF_ARRAYS, *WITH_COVARIATES])
def test_a_metric_frame_scores_every_group_as_the_score_does_by_hand(name):
    fairlearn = pytest.importorskip("fairlearn.metrics", reason="comes with the test extra")
    score, of_rows = {**OF_ARRAYS, **WITH_COVARIATES}[name], {"sample_weight": W}
    if name in WITH_COVARIATES:
        of_rows["x"] = AGE
    if name == "local_calibration_pvalue":
        score = update_wrapper(partial(score, draws=19, rng=0), score)
    frame = fairlearn.MetricFrame(
        metrics=score, y_true=Y, y_pred=P, sensitive_features=GROUP, sample_params=of_rows
    )
    assert frame.overall == score(Y, P, **of_rows)
    by_hand = {}
    for group in "abc":
        rows = group == GROUP
        own = {key: values[rows] for key, values in of_rows.items()}
        by_hand[group] = score(Y[rows], P[rows], **own)
    assert frame.by_group.to_dict() == by_hand
    values = list(by_hand.values())
    assert frame.difference() == max(values) - min(values)
    if max(values) > 0:
        assert frame.ratio() == min(values) / max(values)


def test_a_metric_frame_takes_a_frame_of_covariates_and_bootstraps():
    fairlearn = pytest.importorskip("fairlearn.metrics", reason="comes with the test extra")
    frame = fairlearn.MetricFrame(
        metrics={"klce": scores.klce, "brier": scores.brier},
        y_true=pd.Series(Y),
        y_pred=pd.Series(P),
        sensitive_features=pd.Series(GROUP, name="group"),
        sample_params={"klce": {"x": pd.DataFrame({"age": AGE})}, "brier": {"sample_weight": W}},
        n_boot=5,
        ci_quantiles=[0.1, 0.9],
        random_state=0,
    )
    rows = GROUP == "c"
    assert frame.by_group["klce"]["c"] == scores.klce(Y[rows], P[rows], x={"age": AGE[rows]})
    low, high = (own["brier"] for own in frame.overall_ci)
    assert low < high
    assert abs(frame.overall["brier"] - (low + high) / 2) < 0.05


@pytest.fixture
def rows():
    X = pd.DataFrame({"age": AGE, "noise": RNG.normal(size=N)})
    return X, np.where(Y, "yes", "no")


def test_a_scorer_is_a_value_that_can_be_copied_kept_and_read():
    made = scores.scorer(scores.klce, on=["age"], pos_label="yes")
    assert repr(made) == "scorer(klce, on=['age'], pos_label='yes')"
    for copy in (pickle.loads(pickle.dumps(made)), clone(made, safe=False)):
        assert copy == made
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=made)
    assert clone(search).scoring == made
    assert "scoring=scorer(klce, on=['age'], pos_label='yes')" in repr(search)


@pytest.mark.parametrize("score", [*OF_ARRAYS.values(), scores.klce, it.klce2])
def test_a_scorer_gives_the_score_of_each_fold(score, rows):
    X, y = rows
    several = {"ours": scores.scorer(score, on=["age"]), "theirs": "neg_brier_score"}
    made = cross_validate(LogisticRegression(), X, y == "yes", scoring=several, cv=3)
    assert np.isfinite(made["test_ours"]).all()
    if score is scores.brier:
        np.testing.assert_allclose(made["test_ours"], made["test_theirs"], rtol=1e-12)
    model = LogisticRegression().fit(X, y)
    sample = it.Sample.from_estimator(model, X, y, on=["age"], pos_label="yes")
    assert check_scoring(model, scoring=several["ours"])(model, X, y) == -score(sample)


def test_plain_scores_are_metrics_for_make_scorer(rows):
    X, y = rows
    for score in OF_ARRAYS.values():
        made = make_scorer(
            score, greater_is_better=False, response_method="predict_proba", pos_label="yes"
        )
        model = LogisticRegression().fit(X, y)
        expected = -score(y, model.predict_proba(X)[:, 1], pos_label="yes")
        assert made(model, X, y) == pytest.approx(expected, rel=1e-12)


def test_weights_are_routed_to_a_scorer_that_asks_for_them(rows):
    X, y = rows
    plain = scores.scorer(scores.brier, on=["age"])
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=False)

        def scored(scoring, **params):
            return cross_validate(model, X, y, scoring=scoring, cv=3, **params)["test_score"]

        with pytest.raises(ValueError, match=r"sample_weight.*are passed.* are not explicitly"):
            scored(plain, params={"sample_weight": W})
        weighted = scored(plain.set_score_request(sample_weight=True), params={"sample_weight": W})
        named = scored(plain.set_score_request(sample_weight="w"), params={"w": W})
        theirs = make_scorer(
            scores.brier, greater_is_better=False, response_method="predict_proba", pos_label="yes"
        ).set_score_request(sample_weight=True)
        np.testing.assert_allclose(
            weighted, scored(theirs, params={"sample_weight": W}), rtol=1e-12
        )
    np.testing.assert_array_equal(named, weighted)
    assert (weighted != scored(plain)).all()
    assert plain.weight_request is None
