"""What scikit-learn asks of estimators, by its own checks and on rows of ours."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import itrust as it
from itrust.recalibrate import METHODS, RecalibratedClassifier

SPLIT = "rows that stand twice are divided otherwise than rows of weight 2"
EXPECTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": SPLIT for kind in ("dense", "sparse")
}
# One of each family; all but MCGrad, which wants five rows of each label, pass.
CHECKED = ("local", "platt", "isotonic", "multicalibration")
# Those that call `fit(X, y)` cannot be applied: a recalibrator learns from a Sample.
WITHOUT_FIT = {
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}
needs_named_checks = pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 6),
    reason="scikit-learn 1.6 is the first whose checks can be named",
)
SAMPLE = it.simulate.survey(150, rng=0).sample
SETTLED = {name: method() for name, method in METHODS.items()}
each_method = pytest.mark.parametrize("method", SETTLED.values(), ids=SETTLED)


@pytest.fixture(autouse=True)
def ready(request):
    if request.node.name.endswith("[mcgrad]"):
        pytest.importorskip("mcgrad.methods", reason="`make` installs it by itself")


def outcomes(estimator, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks bring odd data, and warn of it
        found = check_estimator(estimator, on_skip=None, **settings)
    return {own["check_name"]: own["status"] for own in found}


@pytest.mark.slow
@needs_named_checks
@pytest.mark.parametrize("name", CHECKED)
def test_a_recalibrated_classifier_passes_every_check_but_that_of_weights(name):
    model = RecalibratedClassifier(LogisticRegression(), METHODS[name]())
    found = outcomes(model, expected_failed_checks=EXPECTED)
    dense_only = model.recalibrator.reads_covariates
    assert {own for own, status in found.items() if status == "xfail"} == {
        own for own in EXPECTED if not (dense_only and "sparse" in own)
    }
    assert {own for own, status in found.items() if status == "skipped"} == {
        "check_array_api_input"
    }
    assert len(found) > 50


@needs_named_checks
@each_method
def test_a_recalibrator_passes_every_check_that_does_not_fit_it(method):
    found = outcomes(clone(method), on_fail=None)
    assert {name for name, status in found.items() if status == "passed"} == WITHOUT_FIT


@each_method
def test_fit_and_predict_keep_the_habits_of_scikit_learn(method):
    fix, settings = clone(method), method.get_params()
    arrays = [SAMPLE.y, SAMPLE.p, *(column.values for column in SAMPLE.columns)]
    before = [values.copy() for values in arrays]
    assert fix.fit(SAMPLE) is fix
    assert fix.get_params() == settings
    assert all(map(np.array_equal, arrays, before))
    assert all(name.endswith("_") for name in set(vars(fix)) - set(settings))
    check_is_fitted(fix)
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(fix))

    told = fix.predict(SAMPLE.p, SAMPLE)
    kept = pickle.loads(pickle.dumps(fix))
    assert repr(kept) == repr(method)
    assert (kept.predict(SAMPLE.p, SAMPLE) == told).all()
    part = SAMPLE.take(some := np.arange(140, 0, -7))
    np.testing.assert_allclose(fix.predict(part.p, part), told[some], rtol=0, atol=1e-12)
    assert (fix.fit(SAMPLE).predict(SAMPLE.p, SAMPLE) == told).all()


def test_labels_and_weights_of_a_classifier_are_refused_with_a_sentence():
    X, y = np.arange(40.0)[:, None], [0, 1] * 20
    model = RecalibratedClassifier(LogisticRegression(), it.recalibrate.Platt())
    for labels, weights, message in [
        ([1] * 40, None, "y has one class only, 1; two are needed"),
        (y, np.tile([0.0, 1.0], 20), "one class only, 1, where weights are positive"),
        (y, np.zeros(40), "every weight is zero or less"),
        (y, np.ones((40, 2)), r"one column, not an array of shape \(40, 2\)"),
        (None, None, "requires y"),
    ]:
        with pytest.raises(it.InputError, match=message):
            clone(model).fit(X, labels, sample_weight=weights)


def test_features_are_named_as_the_classifier_names_them():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["age", "income"])
    y = rng.random(200) < 1 / (1 + np.exp(-frame["age"]))
    model = RecalibratedClassifier(LogisticRegression(), it.recalibrate.Local(), on=["age"])
    model.fit(frame, y)
    assert model.feature_names_in_.tolist() == ["age", "income"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["income", "age"]].rename(columns={"age": "years"}))
    model.set_params(on=[0]).fit(frame.to_numpy(), y)
    assert not hasattr(model, "feature_names_in_")
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.predict_proba(frame.to_numpy()) == model.predict_proba(frame.to_numpy())).all()


def test_a_search_goes_through_settings_of_both_parts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = rng.random(600) < 1 / (1 + np.exp(-X[:, 0]))
    model = RecalibratedClassifier(LogisticRegression(), it.recalibrate.HistogramBinning())
    grid = {"classifier__C": [1e-3, 1.0], "recalibrator__bins": [5, 10]}
    search = GridSearchCV(model, grid, scoring="neg_brier_score", cv=2).fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert np.isfinite(cross_val_score(search.best_estimator_, X, y, cv=2)).all()
