"""Several classes at the door: columns by name, sums of 1, cheap one against the rest, refusals."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust import InputError, MulticlassSample, Sample
from itrust.data import class_columns

RESULTS = ["win", "tie", "loss", "win", "tie", "loss"]
P = np.array(
    [
        [0.7, 0.2, 0.1],
        [0.1, 0.8, 0.1],
        [0.2, 0.2, 0.6],
        [0.5, 0.25, 0.25],
        [0.3, 0.4, 0.3],
        [0.0, 0.1, 0.9],
    ]
)
AGE = [20.0, 30.0, 40.0, 50.0, 60.0, 70.0]
CLASSES = ("win", "tie", "loss")
GAMES = {"result": RESULTS, "p1": P[:, 0], "pt": P[:, 1], "p2": P[:, 2], "age": AGE}


def rows(n=300, k=3, seed=0):
    """Labels, probabilities and covariates of random rows."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    y = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, k - 1)
    x = {"age": rng.normal(size=n), "region": rng.choice(["n", "s", "w"], n)}
    return y, p, x


def test_one_door_gives_samples_of_two_classes_and_of_several():
    several = Sample(RESULTS, P, {"age": AGE}, classes=CLASSES)
    assert type(several) is MulticlassSample
    assert type(Sample([0, 2, 1, 0, 2, 1], P)) is MulticlassSample
    assert type(Sample(RESULTS, dict(zip(CLASSES, P.T, strict=True)))) is MulticlassSample
    assert type(Sample(RESULTS, pd.DataFrame(P, columns=CLASSES))) is MulticlassSample
    assert type(Sample(RESULTS, pl.DataFrame(P, schema=list(CLASSES)))) is MulticlassSample
    assert type(Sample(RESULTS, P.tolist(), classes=CLASSES)) is MulticlassSample
    assert type(Sample([0, 1], [[0.5, 0.5], [0.5, 0.5]], positive=1)) is Sample
    assert type(Sample([0, 1], [[0.5, 0.5], [0.5, 0.5]], classes=[0, 1])) is MulticlassSample
    assert type(Sample([0, 1], [0.2, 0.7])) is Sample


def test_the_signature_that_people_read_is_that_of_the_parameters():
    import inspect

    assert list(inspect.signature(Sample).parameters)[:4] == ["y", "p", "x", "classes"]


def test_columns_are_never_taken_in_the_sorted_order_of_labels():
    with pytest.raises(InputError) as caught:
        Sample(RESULTS, P)
    assert str(caught.value) == (
        "label has 3 values ('loss', 'tie', 'win') and prob has 3 columns without names; say "
        "which column belongs to which label with classes=[...], in the order of the columns"
    )
    one = Sample(RESULTS, P, classes=CLASSES)
    other = Sample(RESULTS, P[:, ::-1], classes=CLASSES[::-1])
    for name in CLASSES:
        np.testing.assert_array_equal(one.one_class(name).p, other.one_class(name).p)
        np.testing.assert_array_equal(one.one_class(name).y, other.one_class(name).y)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_named_columns_go_to_their_classes_whatever_their_order(make):
    columns = {"loss": P[:, 2], "win": P[:, 0], "tie": P[:, 1]}
    s = Sample(RESULTS, make(columns))
    assert s.classes == ("loss", "win", "tie")
    np.testing.assert_array_equal(s.one_class("win").p, P[:, 0])
    ordered = Sample(RESULTS, make(columns), classes=CLASSES)
    np.testing.assert_array_equal(ordered.p, P)


def test_classes_of_numbers_may_be_named_by_text():
    y = [0, 2, 1, 0, 2, 1]
    frame = pd.DataFrame(P)  # columns 0, 1, 2
    assert Sample(y, frame).classes == (0, 1, 2)
    texts = Sample(y, frame.rename(columns=str))
    assert texts.classes == ("0", "1", "2")
    np.testing.assert_array_equal(texts.codes, y)
    np.testing.assert_array_equal(texts.one_class(2).p, P[:, 2])
    taken = Sample.from_frame(frame.add_prefix("p_").assign(y=y), label="y", prob="p_*")
    assert taken.classes == (0, 1, 2)
    assert Sample([float(v) for v in y], P).classes == (0, 1, 2)


def test_one_class_is_the_binary_sample_and_is_made_once():
    y, p, x = rows()
    design = {"weights": np.arange(1.0, 301), "cluster": np.arange(300) // 3}
    s = Sample(y, p, x, **design)
    for k in s.classes:
        own, binary = s.one_class(k), Sample(y == k, p[:, k], x, **design)
        assert s.one_class(k) is own
        assert own.columns is s.columns
        assert own.design is s.design
        np.testing.assert_array_equal(own.y, binary.y)
        np.testing.assert_array_equal(own.p, binary.p)
        np.testing.assert_array_equal(own.weights, binary.weights)
        np.testing.assert_array_equal(own.cluster, binary.cluster)
        for one, other in zip(own.columns, binary.columns, strict=True):
            np.testing.assert_array_equal(one.values, other.values)
    assert s.one_class(1).p.flags.c_contiguous
    assert it.klce_test(s.one_class(1), draws=19, rng=0).pvalue > 0


def test_two_classes_are_the_binary_sample():
    town = it.simulate.survey(200, rng=0).sample
    both = Sample(
        np.where(town.y == 1, "yes", "no"),
        np.column_stack([1 - town.p, town.p]),
        {"age": town.column("age").values},
        classes=["no", "yes"],
    )
    binary = Sample(
        np.where(town.y == 1, "yes", "no"),
        town.p,
        {"age": town.column("age").values},
        positive="yes",
    )
    own = both.one_class("yes")
    assert own.values == binary.values == ("no", "yes")
    np.testing.assert_array_equal(own.p, binary.p)
    np.testing.assert_array_equal(own.y, binary.y)
    assert it.klce_test(own, rng=0).to_dict() == it.klce_test(binary, rng=0).to_dict()


def test_rounding_is_rescaled_with_a_note_and_nothing_else_is():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(400, 5)).astype(np.float32)
    soft = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = rng.integers(0, 5, 400)
    s = Sample(y, soft)
    off = np.abs(soft.astype(float).sum(axis=1) - 1)
    assert 1e-8 < off.max() < 1e-6
    (note,) = s.notes
    assert note == (
        f"the probabilities of {(off > 1e-12).sum()} rows summed to 1 only up to "
        f"{off.max():.2g}: they were rescaled"
    )
    np.testing.assert_allclose(s.p.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(s.p, soft, atol=1e-6)
    exact = rng.dirichlet(np.ones(5), 400)
    assert Sample(y, exact).notes == ()
    np.testing.assert_array_equal(Sample(y, exact).p, exact)


def test_six_digits_of_thirds_are_read():
    s = Sample([0, 1, 2], np.full((3, 3), 0.333333))
    assert "3 rows summed to 1 only up to 1e-06" in s.notes[0]
    with pytest.raises(InputError, match=r"sum to 0\.999998"):
        Sample([0, 1, 2], [[0.333333, 0.333333, 0.333332]] * 3)


def test_of_two_classes_the_second_one_keeps_its_bits():
    p = np.array([[0.3, 0.7000003], [0.5, 0.5]])
    s = Sample([0, 1], p, classes=[0, 1])
    assert s.p[:, 1].tolist() == [0.7000003, 0.5]
    assert s.p[0].sum() == 1
    assert "1 row summed" in s.notes[0]


@given(
    st.integers(2, 5),
    st.integers(2, 12),
    st.integers(0, 10**6),
    st.sampled_from([np.float32, np.float64]),
)
def test_any_softmax_is_read_and_its_rows_sum_to_1(k, n, seed, kind):
    rng = np.random.default_rng(seed)
    z = (rng.normal(size=(n, k)) * 5).astype(kind)
    soft = np.exp(z - z.max(axis=1, keepdims=True))
    soft /= soft.sum(axis=1, keepdims=True)
    order = rng.permutation(k)
    names = [f"c{j}" for j in range(k)]
    y = [names[j] for j in rng.integers(0, k, n)]
    s = MulticlassSample(y, soft, classes=names)
    shuffled = MulticlassSample(y, {names[j]: soft[:, j] for j in order}, classes=names)
    np.testing.assert_allclose(s.p.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_array_equal(s.p, shuffled.p)
    assert [names[c] for c in s.codes] == y
    hot = np.stack([s.one_class(name).y for name in names], axis=1)
    np.testing.assert_array_equal(hot.sum(axis=1), 1)
    np.testing.assert_array_equal(s.residuals, hot - s.p)


def test_a_sample_is_frozen_pickled_and_copied():
    y, p, x = rows(50)
    s = Sample(y, p, x, weights=np.ones(50), cluster=np.arange(50) // 2)
    s.one_class(0), s.notes
    for again in (pickle.loads(pickle.dumps(s)), copy.copy(s), copy.deepcopy(s)):
        assert type(again) is MulticlassSample
        assert again.classes == s.classes
        np.testing.assert_array_equal(again.p, s.p)
        np.testing.assert_array_equal(again.cluster, s.cluster)
        with pytest.raises(ValueError, match="read-only"):
            again.p[0, 0] = 0.5
    binary = pickle.loads(pickle.dumps(copy.deepcopy(s.one_class(1))))
    assert type(binary) is Sample
    with pytest.raises(AttributeError):
        s.label = "y"
    p[0] = 0  # the sample has its own
    assert s.p[0].sum() == pytest.approx(1)


def test_rows_and_columns_are_taken_together():
    y, p, x = rows()
    w = np.arange(1.0, 301)
    s = Sample(y, p, x, weights=w, cluster=np.arange(300) // 2)
    south = s.where('region == "s" and age > 0')
    mask = (x["region"] == "s") & (x["age"] > 0)
    np.testing.assert_array_equal(south.p, p[mask])
    np.testing.assert_array_equal(south.codes, y[mask])
    np.testing.assert_array_equal(south.weights, w[mask])
    np.testing.assert_array_equal(s.take([5, 3]).one_class(2).p, p[[5, 3], 2])
    assert s.take(slice(0, 10)).p.flags.f_contiguous
    assert s.only("region").names == ("region",)
    assert s.only("region").one_class(0).names == ("region",)
    parts = s.split([0.5, 0.5], rng=0)
    binary = s.one_class(0).split([0.5, 0.5], rng=0)
    for one, other in zip(parts, binary, strict=True):
        np.testing.assert_array_equal(one.one_class(0).p, other.p)
        assert set(one.cluster).isdisjoint(set(parts[1 - parts.index(one)].cluster))
    assert s.weights_or_ones.mean() == pytest.approx(1)
    with pytest.raises(InputError, match="there is no covariate 'prediction'"):
        s.where("prediction > 0.5")
    with pytest.raises(InputError, match="0 rows of 300 satisfy"):
        s.where("age > 1000")


def test_other_predictions_go_to_classes_by_name():
    s = Sample(RESULTS, P, classes=CLASSES)
    flat = np.full((6, 3), 1 / 3)
    assert s.with_predictions(flat).one_class("tie").p[0] == pytest.approx(1 / 3)
    named = {"loss": P[:, 2], "tie": P[:, 1], "win": P[:, 0]}
    np.testing.assert_array_equal(s.with_predictions(named).p, P)
    noted = s.with_predictions(flat * (1 + 4e-7))
    assert "6 rows summed to 1 only up to 4e-07" in noted.notes[0]
    assert not noted.with_predictions(P).rescaled
    with pytest.raises(InputError, match="prob has 2 rows, but there are 6 labels"):
        s.with_predictions(flat[:2])
    with pytest.raises(InputError, match=r"names of the columns of prob in some order"):
        s.with_predictions({"a": P[:, 0], "b": P[:, 1], "c": P[:, 2]})


def test_rows_that_lack_something_are_dropped_everywhere():
    y: list = list(RESULTS)
    y[0] = None
    p = P.copy()
    p[1, 2] = np.nan
    age: list = list(AGE)
    age[5] = None
    s = Sample(y, p, {"age": age}, classes=CLASSES, missing="drop", weights=[1, 1, 1, 2, 1, 1])
    assert s.n == 3
    np.testing.assert_array_equal(s.p, P[2:5])
    np.testing.assert_array_equal(s.weights, [1, 2, 1])
    assert s.dropped == (
        "left out 3 rows of 6 with missing values: 1 lacks 'label', 1 lacks 'prob', 1 lacks 'age'",
    )
    bad = P.copy()
    bad[0, 0], bad[4, 0] = np.nan, 0.9
    with pytest.raises(InputError, match=r"row 4 sum to 1.6"):
        Sample(RESULTS, bad, classes=CLASSES, missing="drop")
    frame = {**GAMES, "age": age, "result": y}
    taken = Sample.from_frame(
        frame,
        label="result",
        prob={"win": "p1", "tie": "pt", "loss": "p2"},
        on="age",
        missing="drop",
        where="age < 60 or age is missing",
    )
    assert taken.n == 3
    assert len(taken.dropped) == 2
    level = Sample(RESULTS, P, {"age": age}, classes=CLASSES, missing="level")
    assert np.isnan(level.column("age").values[5])
    masked = np.ma.masked_array(P, mask=np.arange(18).reshape(6, 3) == 4)
    with pytest.raises(InputError, match=r"1 row has no prob \(first: row 1\); missing='drop'"):
        Sample(RESULTS, masked, classes=CLASSES)


def test_frames_are_read_by_mapping_pattern_and_list():
    frame = pd.DataFrame(GAMES)
    mapping = {"tie": "pt", "win": "p1", "loss": "p2"}
    s = Sample.from_frame(frame, label="result", prob=mapping, on="age")
    assert type(s) is MulticlassSample
    assert s.classes == ("tie", "win", "loss")
    assert s.label == "result"
    np.testing.assert_array_equal(s.one_class("win").p, P[:, 0])
    assert s.one_class("win").positives == "result = win"
    renamed = frame.rename(columns={"p1": "p_win", "pt": "p_tie", "p2": "p_loss"})
    pattern = Sample.from_frame(renamed, label="result", prob="p_*", on="age")
    assert pattern.classes == CLASSES
    np.testing.assert_array_equal(pattern.p, P)
    plain = frame.rename(columns={"p1": "win", "pt": "tie", "p2": "loss"})
    listed = MulticlassSample.from_frame(plain, label="result", prob=list(CLASSES))
    np.testing.assert_array_equal(listed.p, P)
    starred = pd.DataFrame({"y": [0, 1], "p*": [0.2, 0.7]})
    assert type(Sample.from_frame(starred, label="y", prob="p*")) is Sample


def test_frames_have_roles_and_value_labels():
    y, p, x = rows(60)
    frame = pd.DataFrame(p, columns=["p_a", "p_b", "p_c"]).assign(
        **x, y=y + 1, w=1.0, person=np.arange(60) // 2, day=pd.date_range("2024-01-01", periods=60)
    )
    labels = {"y": {1: "a", 2: "b", 3: "c"}}
    roles = {"label": "y", "prob": "p_*", "on": ["age"], "value_labels": labels}
    s = Sample.from_frame(frame, **roles, weights="w", cluster="person")
    assert s.classes == ("a", "b", "c")
    np.testing.assert_array_equal(s.codes, y)
    assert s.clusters == 30
    assert [units.name for units in s.units] == ["region"]
    weeks = Sample.from_frame(frame, **roles, cluster="week(day)")
    assert weeks.clusters == 9
    blocks = Sample.from_frame(frame, **roles, cluster="blocks(day)")
    assert blocks.clusters > 2


def test_a_classifier_gives_its_classes_in_its_own_order():
    y, _, x = rows(200)
    X = np.column_stack([x["age"], np.arange(200) % 7])
    model = LogisticRegression().fit(X, np.array(["c", "a", "b"])[y])
    names = np.array(["c", "a", "b"])[y]
    s = MulticlassSample.from_estimator(model, X, names)
    assert s.classes == tuple(model.classes_) == ("a", "b", "c")
    np.testing.assert_allclose(s.p, model.predict_proba(X), atol=1e-15)
    assert [s.classes[c] for c in s.codes] == names.tolist()

    class Reversed:
        classes_ = model.classes_[::-1]

        def predict_proba(self, X):
            return model.predict_proba(X)[:, ::-1]

    other = Sample.from_estimator(Reversed(), X, names)
    assert other.classes == ("c", "b", "a")
    np.testing.assert_array_equal(other.one_class("b").p, s.one_class("b").p)
    few = Sample.from_estimator(model, X[names != "b"], names[names != "b"])
    assert "no label is 'b'" in few.notes
    folds = MulticlassSample.from_estimator(LogisticRegression(), X, names, cv=4, rng=0)
    assert folds.folds == 4
    assert "out-of-fold predictions of 4 models" in folds.origin[0]
    two = MulticlassSample.from_estimator(model, X[:, :2], names, on={"k": X[:, 1]})
    assert two.names == ("k",)
    binary = LogisticRegression().fit(X, y == 1)
    both = MulticlassSample.from_estimator(binary, X, y == 1)
    np.testing.assert_array_equal(
        both.one_class(True).p, Sample.from_estimator(binary, X, y == 1).p
    )


def test_copies_of_the_label_are_refused():
    y, p, _ = rows(200)
    with pytest.raises(InputError, match="covariate 'z' is a copy of the label; take it out"):
        Sample(y, p, {"z": np.array(["u", "v", "w"])[y]})
    with pytest.raises(InputError, match="covariate 'z' is a copy of the label 1; take it out"):
        Sample(y, p, {"z": y == 1})
    with pytest.raises(InputError, match="covariate 'z' is the opposite of the label 1"):
        Sample(y, p, {"z": y != 1})
    assert Sample(y, p, {"z": y + np.arange(200) % 2}).n == 200
    assert Sample(y[:20], p[:20], {"z": y[:20]}).n == 20


def test_notes_say_what_is_odd():
    never = Sample(["win", "tie"] * 3, P, classes=CLASSES)
    assert never.notes == ("no label is 'loss'",)
    assert never.one_class("loss").y.sum() == 0
    one = Sample(["win"] * 6, P, classes=CLASSES)
    assert one.notes == ("one class only: every label is 'win'",)
    hard = Sample([0, 1, 2], np.eye(3), {"k": [1, 1, 1]})
    assert hard.notes[0].startswith("every p is 0 or 1")
    assert hard.notes[1] == "'k' has the one value 1.0 in every row"
    assert hard.impossible.size == 0


def test_a_sample_describes_itself():
    s = Sample(RESULTS, P, {"age": AGE}, classes=CLASSES, cluster=[1, 1, 2, 2, 3, 3])
    assert repr(s) == ("<MulticlassSample: 6 rows, classes 'win', 'tie', 'loss', covariates 'age'>")
    assert str(s) == (
        "Sample of 6 rows, 3 classes, 3 clusters\n"
        "  'win'   2 labels (33.3 %), mean prediction 30.0 %\n"
        "  'tie'   2 labels (33.3 %), mean prediction 32.5 %\n"
        "  'loss'  2 labels (33.3 %), mean prediction 37.5 %\n"
        "  age  number    20 to 70"
    )


GOOD = {"y": RESULTS, "p": P, "classes": CLASSES}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"p": P[:, :1]}, r"one column for each class, at least two, not the shape \(6, 1\)"),
        ({"p": P[:, :1], "classes": ["win"]}, "one class only, 'win'; give a column"),
        ({"classes": ["win", "tie", "tie"]}, "classes must differ; 'tie' stands more than once"),
        ({"classes": ["win", "tie"]}, "must name the 3 columns of prob in order, not 'win', 'tie'"),
        ({"classes": "win"}, "must be a list of the names of the classes, not 'win'"),
        ({"classes": 3}, "must be a list of the names of the classes, not 3"),
        ({"classes": ["won", "tie", "loss"]}, r"row 0 has the label 'win', which is none of .*2"),
        ({"p": np.where(P == 0.9, np.nan, P)}, r"1 row has no prob \(first: row 5\)"),
        ({"p": P - 0.05}, "prob must lie in .*row 5 has -0.05 for the class 'win' .*softmax"),
        (
            {"p": np.log(P + 0.1)},
            "row 0 has -0.22.* for the class 'win', and 5 other rows are outside, too",
        ),
        ({"p": P * 100}, r"row 0 has 70.0 for the class 'win', .*divide percentages by 100\?"),
        ({"p": P * 0.9}, r"those of row 0 sum to 0.9 \(6 rows in all\)"),
        ({"p": [*P.tolist()[:5], [0.5, 0.5]]}, r"prob: row 5 has 2 values, row 0 has 3"),
        ({"p": P[:4]}, "prob has 4 rows, but there are 6 labels; align them"),
        ({"x": [1, 2]}, "covariate 'x1' has 2 rows, but there are 6 labels"),
        ({"positive": "win"}, r"positive is for one column .*sample.one_class\('win'\)"),
        ({"missing": "ignore"}, "missing must be"),
        ({"weights": [0] * 6}, "weights are zero in all rows but at most one"),
        ({"categories": ["nope"]}, "there is no column 'nope'"),
    ],
)
def test_wrong_input_gets_one_sentence(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        Sample(**{**GOOD, **changes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("prob", "message"),
    [
        ("q_*", "prob: no column matches 'q_\\*'; columns are 'result', 'p1'"),
        ("a*", "prob: only 'age' matches 'a\\*'"),
        ("*_*", "has more than one star"),
        ({"win": "p1", "tie": "pw"}, "prob: there is no column 'pw'; the names are 'result'"),
        ({"win": "p1", "tie": "p1"}, "'p1' cannot be the column of two classes"),
        ({"win": "p1"}, "one class only, 'win'"),
        ({}, "prob must name a column for each class"),
        ({"win": "p1", "tie": "pt", "loss": "age"}, "'age' is the prob column; take it out"),
        ({"win": "p1", "tie": "result"}, "'result' cannot be label and prob at once"),
        ("win=p1,tie", "'tie' is no class with its column"),
    ],
)
def test_wrong_names_of_columns_get_one_sentence(prob, message):
    with pytest.raises(InputError, match=message):
        Sample.from_frame(GAMES, label="result", prob=prob, on="age")


def test_a_pattern_of_too_many_columns_is_refused_by_its_sums():
    with pytest.raises(InputError, match="'result' cannot be label and prob at once"):
        Sample.from_frame(GAMES, label="result", prob="*")
    with pytest.raises(InputError, match="positive is for one column"):
        Sample.from_frame(GAMES, label="result", prob="p*", positive="win")


def test_columns_of_classes_as_they_are_typed():
    known = ["y", "p1", "pt", "p=2", "p_a", "p_b"]
    assert class_columns(known, "win=p1, tie=pt") == {"win": "p1", "tie": "pt"}
    assert class_columns(known, "win=p1,loss=p=2") == {"win": "p1", "loss": "p=2"}
    assert class_columns(known, "p_*") == {"a": "p_a", "b": "p_b"}
    assert class_columns(known, ["p1", "pt"]) == {"p1": "p1", "pt": "pt"}
    with pytest.raises(InputError, match="must name a column for each class"):
        class_columns(known, "p1")
