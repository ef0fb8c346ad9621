"""Rating grades in an audit: those of `scores.validation`, in their order, and disclosed."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust.auditing import check_json
from itrust.render.page import page


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    return rng.random(n) < p, p, rng.choice(["a", "b"], n), rng.choice([1, 2, 10], n)


def sample_of(n=300, seed=0, **more):
    y, p, g, rating = rows(n, seed)
    return it.Sample(y, p, {"g": g, "rating": rating}, **more)


def audited(sample, **more):
    return it.audit(sample, draws=79, rng=0, charts=False, **more)


def names_of(found):
    return [own.name for own in found.validation.grades]


@pytest.fixture(scope="module")
def graded():
    return audited(sample_of(), on="g", grades="rating")


def test_grades_are_those_of_scores_validation(graded):
    own = it.scores.validation(sample_of(), grades="rating", draws=79, rng=0)
    assert graded.validation.to_dict() == own.to_dict()
    assert graded.validation.graded_by == "rating"
    assert names_of(graded) == ["1", "2", "10"]
    told = json.loads(json.dumps(graded.to_dict(), allow_nan=False))
    check_json(told)
    assert [own["name"] for own in told["validation"]["grades"]] == ["1", "2", "10"]


def test_a_column_beside_the_rows_is_a_covariate_that_is_not_judged_on(graded):
    y, p, g, rating = rows()
    beside = audited(it.Sample(y, p, {"g": g}), grades=rating)
    assert beside.validation.grades == graded.validation.grades
    assert beside.validation.graded_by == "grades"
    assert "Table: 3 grades</summary>" in page(beside)  # not "3 grades of grades"
    assert "<caption>Grades, in their order;" in page(beside)
    without = audited(it.Sample(y, p, {"g": g}))
    one, other = beside.to_dict(), without.to_dict()
    assert {name for name in one if one[name] != other[name]} == {"validation"}


def test_ordered_categories_keep_their_order_and_text_is_sorted():
    y, p, g, _ = rows()
    text = np.random.default_rng(1).choice(["BB", "AAA", "C"], y.size)
    ordered = pd.Series(pd.Categorical(text, ["C", "BB", "AAA"], ordered=True), name="rating")
    sample = it.Sample(y, p, {"g": g})
    assert names_of(audited(sample, grades=text)) == ["AAA", "BB", "C"]
    found = audited(sample, grades=ordered)
    assert names_of(found) == ["C", "BB", "AAA"]
    assert found.validation.graded_by == "rating"
    assert "3 grades of <bdi>rating</bdi>" in page(found)


def test_grades_with_value_labels_stand_in_the_order_of_their_codes():
    y, p, g, rating = rows()
    frame = pd.DataFrame({"y": y, "p": p, "g": g, "rating": rating})
    meanings = {"rating": {1: "good", 2: "fair", 10: "bad"}}
    columns = {"label": "y", "prob": "p", "on": ["g", "rating"]}
    sample = it.Sample.from_frame(frame, **columns, value_labels=meanings)
    assert names_of(audited(sample, on="g", grades="rating")) == ["good", "fair", "bad"]


def test_rows_without_a_grade_are_one_or_are_refused_as_missing_says():
    y, p, g, rating = rows()
    some = np.where(np.arange(y.size) < 40, np.nan, rating)
    found = audited(it.Sample(y, p, {"g": g}), grades=some)
    assert names_of(found) == ["1", "2", "10", "(missing)"]
    assert found.validation.grades[-1].rows == 40
    texts = np.where(np.isnan(some), None, some.astype(str))
    levelled = it.Sample(y, p, {"g": g, "r": texts}, missing="level")
    assert names_of(audited(levelled, on="g", grades="r"))[-1] == "(missing)"
    X = p[:, None]
    model = LogisticRegression().fit(X, y)
    with pytest.raises(it.InputError, match="grades: 40 of the rows have no grade"):
        it.audit(model, X, y, grades=some, draws=79, rng=0, charts=False)


def test_grades_of_a_model_may_be_a_column_of_its_rows():
    y, p, _, rating = rows()
    X = pd.DataFrame({"x": p, "rating": rating.astype(float)})
    model = LogisticRegression().fit(X, y)
    named = it.audit(model, X, y, on="x", grades="rating", draws=79, rng=0, charts=False)
    assert {own.names for own in named.diagnosis.groups or ()} <= {("x",)}
    beside = it.audit(model, X, y, on="x", grades=rating, draws=79, rng=0, charts=False)
    assert named.validation.grades == beside.validation.grades
    with pytest.raises(it.InputError, match="ratin"):
        it.audit(model, X, y, on="x", grades="ratin", draws=79, rng=0, charts=False)


def test_weights_and_clusters_say_why_p_values_are_missing():
    rng = np.random.default_rng(0)
    weighted = audited(sample_of(weights=rng.exponential(size=300) + 0.1), grades="rating")
    assert {own.reason.value for own in weighted.validation.grades} == {
        "binomial and Jeffreys laws count rows, not weights"
    }
    clustered = audited(sample_of(cluster=np.arange(300) // 6), grades="rating")
    assert names_of(clustered) == ["1", "2", "10"]
    assert all(own.binomial is None for own in clustered.validation.grades)


@pytest.mark.parametrize(
    ("grades", "words"),
    [
        ("ratng", "grades: there is no covariate 'ratng'; did you mean 'rating'"),
        (["a", "b"], "grades has 2 values for 300 rows"),
        (np.arange(300), "grades has more than 50 values; grades are few"),
    ],
)
def test_slips_are_answered_in_one_sentence(grades, words):
    with pytest.raises(it.InputError) as caught:
        audited(sample_of(), grades=grades)
    assert words in str(caught.value)


def test_files_of_many_rows_give_the_same(monkeypatch, tmp_path):
    y, p, g, rating = rows(1_500)
    table = {"y": y.astype(int), "p": p, "g": g, "rating": [f"R{k}" for k in rating]}
    table["rating"][-1] = "Q"  # a grade that few chunks have
    pq.write_table(pa.table(table), tmp_path / "rows.parquet", row_group_size=400)
    monkeypatch.setattr("itrust.data.survey.EXTRACT_ROWS", 500)
    scanned = it.scan(tmp_path / "rows.parquet", label="y", prob="p", on=["g", "rating"])
    sample = it.Sample(y, p, {"g": g, "rating": table["rating"]})
    one, other = (audited(rows, on="g", grades="rating") for rows in (scanned, sample))
    assert one.validation.gathered
    assert one.validation.to_dict() == other.validation.to_dict()
    assert names_of(one) == ["Q", "R1", "R10", "R2"]
    assert "Q" not in {own.name for own in one.disclosed(10).validation.grades}
    with pytest.raises(it.InputError, match="rows in files is the name of a covariate"):
        audited(scanned, grades=rating)


# Disclosure control


def rare(few=4, n=500):
    y, p, g, _ = rows(n)
    rating = np.array(["A", "B", "C"])[np.arange(n) % 3]
    rating[:few] = "D"
    return y, p, g, rating


@pytest.mark.parametrize("judged", [True, False])
def test_a_small_grade_is_not_shown_and_events_of_others_are_not_exact(judged):
    y, p, g, rating = rare()
    sample = it.Sample(y, p, {"g": g, "rating": rating})
    found = audited(sample, on=["g", "rating"] if judged else "g", grades="rating")
    shown = found.disclosed(10).validation.grades
    assert len(found.validation.grades) == 4
    assert {own.name for own in shown} == {"A", "B", "C"}
    for own, exact in zip(shown, found.validation.grades, strict=False):
        assert own.observed != exact.observed
        assert abs(own.observed - exact.observed) <= 0.01
        assert own.events == round(own.observed * own.rows)
