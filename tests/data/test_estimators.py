"""`Sample.from_estimator`: a model's probabilities for its rows, whatever form they have."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC, LinearSVC

import itrust as it
from itrust import InputError, Sample

N = 120
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(size=N),
        "income": RNG.normal(size=N),
        "region": RNG.choice(["north", "south"], N),
        "person": np.arange(N) // 3,
    }
)
Y = (RNG.random(N) < 1 / (1 + np.exp(-FRAME["age"].to_numpy()))).astype(int)
WORDS = pd.Series(np.where(Y == 1, "yes", "no"), name="owner")
NUMBERS = FRAME[["age", "income"]]


def pipeline(y=WORDS, X=FRAME):
    columns = make_column_transformer((OneHotEncoder(), ["region"]), ("passthrough", ["age"]))
    return make_pipeline(columns, LogisticRegression()).fit(X, y)


def plain(y=Y):
    return LogisticRegression().fit(NUMBERS.to_numpy(), y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas])
def test_a_pipeline_on_a_frame_gives_the_sample_of_its_probabilities(make):
    model, X = pipeline(), make(FRAME)
    s = Sample.from_estimator(model, X, WORDS, on=["age", "region"])
    by_hand = Sample(WORDS, model.predict_proba(X)[:, 1], FRAME[["age", "region"]], positive="yes")
    assert s.names == ("age", "region")
    np.testing.assert_array_equal(s.y, by_hand.y)
    np.testing.assert_array_equal(s.p, by_hand.p)
    assert s.positives == "owner = yes"
    assert [note for note in s.notes if "'yes' counts as positive" in note]


def test_pos_label_takes_the_other_column_and_leaves_no_note():
    s = Sample.from_estimator(pipeline(), FRAME, WORDS, on="age", pos_label="no")
    np.testing.assert_array_equal(s.y, 1 - Y)
    np.testing.assert_array_equal(s.p, pipeline().predict_proba(FRAME)[:, 0])
    assert s.notes == ()


@pytest.mark.parametrize("labels", [Y, Y == 1, 2 * Y - 1, Y.astype(float), list(map(int, Y))])
def test_plain_labels_need_no_pos_label(labels):
    s = Sample.from_estimator(plain(labels), NUMBERS.to_numpy(), labels)
    np.testing.assert_array_equal(s.y, Y)
    assert s.notes == ()


def test_columns_of_arrays_have_the_names_of_the_fit_or_numbers():
    named = LogisticRegression().fit(NUMBERS, Y)
    assert Sample.from_estimator(plain(), NUMBERS.to_numpy(), Y).names == ("x1", "x2")
    with pytest.warns(UserWarning, match="feature names"):
        assert Sample.from_estimator(named, NUMBERS.to_numpy(), Y).names == ("age", "income")
    assert Sample.from_estimator(plain(), NUMBERS.to_numpy(), Y, on=[1]).names == ("x2",)
    assert Sample.from_estimator(plain(), NUMBERS.to_numpy().tolist(), Y).names == ("x1", "x2")


def test_covariates_need_not_be_features_of_the_model():
    s = Sample.from_estimator(plain(), NUMBERS.to_numpy(), Y, on={"region": FRAME["region"]})
    assert s.names == ("region",)
    s = Sample.from_estimator(plain(), csr_matrix(NUMBERS.to_numpy()), Y, on=FRAME[["region"]])
    assert s.names == ("region",)
    with pytest.raises(InputError, match="X has no columns that could be named"):
        Sample.from_estimator(plain(), csr_matrix(NUMBERS.to_numpy()), Y)


def test_columns_with_a_role_are_named_or_given_and_are_no_covariates_by_default():
    s = Sample.from_estimator(pipeline(), FRAME, WORDS, cluster="person")
    assert s.clusters == N // 3
    assert s.names == ("age", "income", "region")
    again = Sample.from_estimator(pipeline(), FRAME, WORDS, cluster=FRAME["person"], on=["age"])
    np.testing.assert_array_equal(s.cluster, again.cluster)


def test_one_class_of_three_is_judged_against_the_rest():
    classes = np.array(["a", "b", "c"])[np.arange(N) % 3]
    model = plain(classes)
    s = Sample.from_estimator(model, NUMBERS.to_numpy(), classes, pos_label="b")
    np.testing.assert_array_equal(s.y, classes == "b")
    np.testing.assert_array_equal(s.p, model.predict_proba(NUMBERS.to_numpy())[:, 1])
    assert s.values == ("another class", "b")
    every = Sample.from_estimator(model, NUMBERS.to_numpy(), classes)
    assert every.classes == ("a", "b", "c")
    assert every.one_class("b").values == s.values
    np.testing.assert_array_equal(every.one_class("b").p, s.p)
    np.testing.assert_array_equal(every.one_class("b").y, s.y)


def test_a_search_is_a_model():
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(NUMBERS, Y)
    s = Sample.from_estimator(search, NUMBERS, Y)
    np.testing.assert_array_equal(s.p, search.predict_proba(NUMBERS)[:, 1])


def test_out_of_fold_predictions_are_those_of_scikit_learn_and_a_note_says_so():
    X = NUMBERS.to_numpy()
    folds = KFold(4, shuffle=True, random_state=1)
    s = Sample.from_estimator(LogisticRegression(), X, Y, cv=folds)
    p = cross_val_predict(LogisticRegression(), X, Y, cv=folds, method="predict_proba")[:, 1]
    np.testing.assert_array_equal(s.p, p)
    assert any("out-of-fold predictions of 4 models" in note for note in s.take([0, 1]).notes)


def test_folds_are_random_with_a_seed_and_the_fitted_model_plays_no_part():
    X = NUMBERS.to_numpy()
    one, same, other = (
        Sample.from_estimator(model, X, Y, cv=3, rng=rng).p
        for model, rng in ((plain(), 7), (LogisticRegression(), 7), (LogisticRegression(), 8))
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert not np.array_equal(one, plain().predict_proba(X)[:, 1])


class Remembers(DummyClassifier):
    """Says 1 for the persons that it was trained with, else 0."""

    def fit(self, X, y):
        self.seen_ = set(np.asarray(X)[:, -1])
        return super().fit(X, y)

    def predict_proba(self, X):
        p = np.isin(np.asarray(X)[:, -1], list(self.seen_)).astype(float)
        return np.column_stack([1 - p, p])


def test_no_cluster_is_in_two_folds():
    X = FRAME[["age", "person"]]
    s = Sample.from_estimator(Remembers(), X, Y, cv=4, rng=0, cluster="person")
    assert s.p.max() == 0
    assert Sample.from_estimator(Remembers(), X, Y, cv=4, rng=0, on="age").p.max() == 1


def unfitted(**settings):
    return LogisticRegression(), NUMBERS, Y, settings


REFUSED = {
    "is not fitted yet; call model.fit.* pass cv=5": unfitted(),
    "this LinearSVC has no predict_proba.*CalibratedClassifierCV": (LinearSVC(), NUMBERS, Y, {}),
    "this SVC has no predict_proba": (SVC(), NUMBERS, Y, {}),
    "LinearRegression is no classifier": (LinearRegression(), NUMBERS, Y, {}),
    "LogisticRegression is a class, not a fitted model": (LogisticRegression, NUMBERS, Y, {}),
    "y has the label 'no', but the model knows 0, 1": (plain(), NUMBERS.to_numpy(), WORDS, {}),
    "pos_label=5 is none of the classes 0, 1": (plain(), NUMBERS.to_numpy(), Y, {"pos_label": 5}),
    "on: there is no column 'aeg'; did you mean 'age'": (pipeline(), FRAME, WORDS, {"on": "aeg"}),
    "cluster: there is no column 'hh'": (pipeline(), FRAME, WORDS, {"cluster": "hh"}),
    "X has 120 rows, but there are 20 labels": (pipeline(), FRAME, WORDS[:20], {}),
    "X and y have different indexes": (pipeline(), FRAME, WORDS[::-1], {}),
    "this Pipeline gives no probabilities for X: .*'region'.* which X lacks": (
        pipeline(),
        FRAME[["age"]],
        WORDS,
        {},
    ),
    "should match those .* during fit \\(it was trained with 'income', which X lacks\\)": (
        LogisticRegression().fit(NUMBERS, Y),
        NUMBERS.rename(columns={"income": "wage"}),
        Y,
        {},
    ),
    "gives no probabilities for X: X has 1 features.* trained with, prepared": (
        plain(),
        NUMBERS.to_numpy()[:, :1],
        Y,
        {},
    ),
    "gives no probabilities for X: Input X contains NaN \\(it needs": (
        plain(),
        np.where(NUMBERS > 1, np.nan, NUMBERS),
        Y,
        {},
    ),
    "no out-of-fold predictions of this LogisticRegression: Input X contains NaN": (
        LogisticRegression(),
        np.where(NUMBERS > 1, np.nan, NUMBERS),
        Y,
        {"cv": 3},
    ),
    "cv must be a whole number of at least 2": unfitted(cv=1),
    "cv must be a number of folds such as 5": unfitted(cv="five"),
    "cv=50 is too many: there are 40 clusters": unfitted(cv=50, cluster=FRAME["person"]),
    "rows with the rarer label": unfitted(cv=100),
}


@pytest.mark.parametrize(("said", "call"), REFUSED.items(), ids=list(REFUSED))
def test_what_cannot_be_judged_is_refused_with_the_cure(said, call):
    model, X, y, settings = call
    with pytest.raises(InputError, match=said):
        Sample.from_estimator(model, X, y, **settings)


def test_missing_features_are_settled_as_for_any_sample():
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((encoder, ["region"]))
    model = make_pipeline(columns, LogisticRegression()).fit(FRAME, Y)
    X = FRAME[["age", "region"]].copy()
    X.loc[3, "region"] = None
    with pytest.raises(InputError, match="missing='level'"):
        Sample.from_estimator(model, X, Y)
    assert Sample.from_estimator(model, X, Y, missing="drop").n == N - 1


def test_the_audit_of_a_model_is_that_of_its_sample():
    settings = {"draws": 39, "rng": 0, "charts": False, "progress": False}
    model = pipeline()
    by_hand = Sample.from_estimator(model, FRAME, WORDS, on=["region", "age"])
    ours = it.audit(model, FRAME, WORDS, on=["region"], tasks="mean(age)", **settings)
    theirs = it.audit(by_hand, ["mean(age)"], on=["region"], **settings)
    assert ours.test.names == ("region",)
    assert ours.test.pvalue == theirs.test.pvalue
    assert ours.tasks[0].to_dict() == theirs.tasks[0].to_dict()
    assert ours.verdict is theirs.verdict


def test_a_pvalue_of_out_of_fold_predictions_is_not_called_exact(tmp_path):
    settings = {"draws": 39, "rng": 0, "charts": False, "progress": False}
    audit = it.audit(LogisticRegression(), NUMBERS, Y, cv=3, **settings)
    fitted = Sample.from_estimator(plain(), NUMBERS.to_numpy(), Y)
    assert it.klce_test(fitted, draws=39, rng=0).is_exact
    assert not audit.test.is_exact
    assert "approximate" in str(audit.test)
    assert "exact" not in str(audit.test)
    page = audit.to_html(tmp_path / "audit.html").read_text()
    assert "out-of-fold predictions" in page
    assert "by clusters" not in page


def test_sentences_of_our_own_models_stay_as_they_are():
    class Wary:
        classes_ = (0, 1)

        def predict_proba(self, X):
            raise InputError("{argument} has {count} rows too many", argument="X", count=len(X))

    with pytest.raises(InputError, match=r"^X has 120 rows too many$"):
        Sample.from_estimator(Wary(), NUMBERS, Y)
