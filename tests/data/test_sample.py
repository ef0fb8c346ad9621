import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

import itrust as it
from itrust import InputError, Sample
from itrust.data import parse_condition

Y, P, X = [0, 1, 1], [0.2, 0.7, 0.9], [[1.0, 5.0], [2.0, 6.0], [4.0, 7.0]]
FRAME = {
    "owner": ["no", "yes", "yes"],
    "p": P,
    "income": [1.0, 2.0, 4.0],
    "race": ["b", "a", "b"],
    "w": [1.0, 2.0, 0.0],
    "id": ["u", "u", "v"],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_every_frame_gives_the_same_sample(make):
    s = Sample.from_frame(
        make(FRAME),
        label="owner",
        prob="p",
        on=["income", "race"],
        weights="w",
        cluster="id",
        positive="yes",
    )
    assert s.y.tolist() == [0, 1, 1]
    assert s.p.tolist() == P
    assert s.names == ("income", "race")
    assert s.column("race").levels == ("a", "b")
    assert s.column("race").values.tolist() == [1, 0, 1]
    assert s.weights.tolist() == [1, 2, 0]
    assert s.cluster.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "x",
    [
        X,
        np.array(X),
        tuple(map(tuple, X)),
        pd.DataFrame(X, columns=["x1", "x2"]),
        pl.DataFrame({"x1": [1.0, 2.0, 4.0], "x2": [5.0, 6.0, 7.0]}),
        {"x1": [1, 2, 4], "x2": np.array([5, 6, 7])},
    ],
)
def test_covariates_of_every_form(x):
    s = Sample(Y, P, x)
    assert s.names == ("x1", "x2")
    assert np.column_stack([c.values for c in s.columns]).tolist() == X


def test_rows_of_mixed_lists_keep_numbers_and_text_apart():
    s = Sample(Y, P, [[30, "f"], [40, "m"], [50, "f"]], names=["age", "sex"])
    assert [c.kind for c in s.columns] == ["number", "category"]


def test_rows_may_be_tuples_that_start_with_text_or_arrays():
    s = Sample(Y, P, [("f", 3), ("m", 4), ("f", 5)])
    assert [c.kind for c in s.columns] == ["category", "number"]
    assert Sample(Y, P, [np.array(row) for row in X]).names == ("x1", "x2")


def test_no_covariates_in_every_form():
    for x in (None, [], {}, pd.DataFrame(index=range(3))):
        assert Sample(Y, P, x).names == ()
    assert Sample.from_frame(FRAME, label="owner", prob="p", positive="yes").names == ()


def test_declared_categories_of_numbers_and_intervals_stay_categories():
    codes = pd.Categorical([1, 5, 1])
    x = {"code": codes, "band": pd.cut(pd.Series([1.0, 5.0, 9.0]), 2), "n": pd.Series(codes)}
    assert [c.kind for c in Sample(Y, P, x).columns] == ["category"] * 3


def test_names_that_are_numbers_are_found():
    frame = pd.DataFrame({0: Y, 1: P, 2: [1, 2, 3]})
    assert Sample.from_frame(frame, label=0, prob=1, on=[2]).names == ("2",)


def test_remarks_on_odd_columns():
    n = 30
    x = {"id": [f"u{k}" for k in range(n)], "zip": [str(k % 4) for k in range(n)]}
    notes = " ".join(Sample([0, 1] * 15, [0.5] * n, x).notes)
    assert "'id' has 30 levels among 30 rows: few match" in notes
    assert "'zip' is text that holds numbers or dates, taken as a category" in notes
    assert "every p is 0 or 1" in " ".join(Sample(Y, [0.0, 1.0, 1.0]).notes)


def test_one_covariate_may_be_a_plain_column():
    assert Sample(Y, P, [1, 2, 3]).names == ("x1",)
    assert Sample(Y, P, pd.Series([1, 2, 3], name="age")).names == ("age",)
    assert Sample(Y, P, pl.Series([1, 2, 3])).names == ("x1",)


@pytest.mark.parametrize(
    "y", [[0, 1, 1], [False, True, True], [0.0, 1.0, 1.0], np.array([0, 1, 1])]
)
def test_labels_of_every_form(y):
    assert Sample(y, P).y.tolist() == [0, 1, 1]


def test_any_two_labels_with_the_positive_one_named():
    assert Sample(["n", "y", "y"], P, positive="y").y.tolist() == [0, 1, 1]
    assert Sample([1, 2, 2], P, positive=1).y.tolist() == [1, 0, 0]
    assert Sample(pd.Series(["n", "y", "y"], dtype="category"), P, positive="n").y.sum() == 1


def test_a_matrix_of_two_columns_gives_the_positive_one():
    matrix = np.column_stack([1 - np.array(P), P])
    assert Sample(["a", "b", "b"], matrix, positive="b").p.tolist() == P
    assert Sample(["b", "a", "a"], matrix[:, ::-1], positive="a").p.tolist() == P
    assert (
        Sample(["n", "y", "y"], pd.DataFrame(matrix, columns=["n", "y"]), positive="y").p[0] == 0.2
    )
    assert Sample(Y, np.array(P)[:, None]).p.tolist() == P
    assert Sample(np.array(Y)[:, None], pd.DataFrame({"p": P})).p.tolist() == P
    backwards = pd.DataFrame(matrix[:, ::-1], columns=[1, 0])
    assert Sample(Y, backwards, positive=1).p.tolist() == P
    assert Sample(Y, matrix.tolist(), positive=1).p.tolist() == P


WRONG = [
    (dict(y=[0, 1], p=P), r"prob has 3 rows, but there are 2 labels"),
    (dict(y=Y, p=P, x=[1, 2]), r"covariate 'x1' has 2 rows, but there are 3 labels"),
    (dict(y=Y, p=P, weights=[1, 2]), r"weights has 2 rows"),
    (dict(y=Y, p=P, cluster=[1, 2]), r"cluster has 2 rows"),
    (dict(y=[0, 1, 2], p=P), r"two values, not 0, 1, 2; the rarest is 2 \(1 row, first in row 2\)"),
    (
        dict(y=["a", "b", "b"], p=P),
        r"has the values 'a', 'b'; say which value counts as 1 with positive='a' or positive='b'",
    ),
    (
        dict(y=[1, 2, 2], p=P),
        r"label has the values 1, 2; say which value counts as 1 with positive=1 or positive=2",
    ),
    (dict(y=["a", "b", "b"], p=P, positive="B"), r"positive='B' is not among the labels 'a', 'b'"),
    (
        dict(y=[0, None, 1], p=P),
        r"1 row has no label \(first: row 1\); missing=\'drop\' leaves them out",
    ),
    (
        dict(y=[0, float("nan"), 1], p=P),
        r"1 row has no label \(first: row 1\); missing=\'drop\' leaves them out",
    ),
    (dict(y=np.linspace(0, 1, 30), p=[0, 1] * 15), r"are label and prob swapped"),
    (
        dict(y=["no", "yes", "no"], p=P, positive="Yes"),
        r"not among .*; did you mean positive='yes'",
    ),
    (dict(y=[[0, 1], [1, 0], [1, 1]], p=P), r"label must hold one value a row; row 0 has \[0, 1\]"),
    (dict(y=Y, p=[0.2, "n/a", 0.9]), r"prob mixes types: .* row 1 has 'n/a' \(str\)"),
    (dict(y=Y, p=[[0.2, 0.8], [0.7], [0.9, 0.1]]), r"prob: row 1 has 1 value, row 0 has 2"),
    (dict(y=Y, p=(v for v in P)), r"prob must be a column of values, not a generator \(list"),
    (dict(y=Y, p=P, weights="w"), r"weights must be a column of values, not a str"),
    (dict(y=Y, p=P, x=csr_matrix(X)), r"not a csr_matrix .*toarray\(\) of something sparse"),
    (dict(y=Y, p=P, x=[pd.Series(Y), pd.Series(Y)]), r"x is a list of columns; name them in a map"),
    (dict(y=Y, p=np.ma.masked_array(P, [0, 0, 1])), r"1 row has no prob \(first: row 2\)"),
    (
        dict(y=Y, p=P, x=np.ma.masked_array([1.0, 2, 9], [0, 0, 1])),
        r"missing values: 'x1' in 1 row",
    ),
    (
        dict(y=Y, p=P, cluster=pl.Series([1.0, float("nan"), 2.0])),
        r"1 row has no cluster \(first: row 1\)",
    ),
    (dict(y=Y, p=P, x=[np.nan] * 3, missing="level"), r"'x1' holds no value in any row"),
    (dict(y=pd.DataFrame({"a": Y, "b": Y}), p=P), r"label must be one column, not a frame with"),
    (
        dict(y=pd.Series(Y), p=pd.Series(P, index=[2, 0, 1])),
        r"label and prob have different indexes \(row 0: 0 and 2\), but rows go by position",
    ),
    (
        dict(y=["n", "y", "y"], p=pd.DataFrame({"p_y": P, "p_n": P}) * 0 + 0.5, positive="y"),
        r"columns 'p_y', 'p_n', and it is not clear which one is 'y'",
    ),
    (dict(y=Y, p=P, x=[2**70, 1, 2]), r"covariate 'x1' has values that are no numbers"),
    (dict(y=Y, p=P, x=[1, 2.5, "a"]), r"mixes types: row 0 has 1 \(int\), row 2 has 'a'"),
    (dict(y=Y, p=[None] * 3), r"3 rows have no prob \(first: row 0\)"),
    (dict(y=Y, p=["0.1", "0.2", "0.3"]), r"row 0 has '0.1' \(convert the column"),
    (dict(y=[0, "a", 1], p=P), r"label mixes types: row 0 has 0 \(int\), row 1 has 'a'"),
    (dict(y=Y, p=[0.2, 1.2, 0.9]), r"prob must lie in \[0, 1\]; row 1 has 1.2 \(pass logits"),
    (
        dict(y=Y, p=[-2.0, 0.3, 1.5]),
        r"row 0 has -2.0, and 1 other row is outside, too \(pass logits through scipy",
    ),
    (
        dict(y=Y, p=[20, 70, 90]),
        r"row 0 has 20.0, and 2 other rows are outside, too \(divide percentages by 100",
    ),
    (dict(y=Y, p=[0.2, 0.7, 1 + 1e-9]), r"row 2 has 1.000000001 \(clip rounding errors"),
    (dict(y=Y, p=[0.2, float("nan"), 0.9]), r"1 row has no prob \(first: row 1\)"),
    (dict(y=Y, p=[0.2, float("inf"), 0.9]), r"prob.* must be finite; row 1 has inf"),
    (dict(y=Y, p=["a", "b", "c"]), r"prob must be numbers; row 0 has 'a'"),
    (dict(y=[1], p=[0.5]), r"at least 2 rows; this one has 1"),
    (dict(y=[], p=[]), r"at least 2 rows; this one has 0"),
    (dict(y=Y, p=np.full((3, 2), 0.5)), r"prob has two columns; pass the positive"),
    (dict(y=Y, p=np.full((3, 2), 0.4), positive=1), r"must sum to 1; those of row 0 sum to 0.8"),
    (
        dict(y=Y, p=np.full((3, 3), 0.4), positive=1),
        r"prob must be one column, not an array of shape \(3, 3\)",
    ),
    (dict(y=Y, p=np.full((3, 3), 0.4)), r"must sum to 1; those of row 0 sum to 1.2 \(3 rows"),
    (dict(y=Y, p=P, weights=[1, -1, 1]), r"weights must not be negative; row 1 has -1"),
    (dict(y=Y, p=P, weights=[0, 0, 0]), r"weights are zero in all rows but at most one"),
    (dict(y=Y, p=P, weights=[1, None, 1]), r"1 row has no weights \(first: row 1\)"),
    (dict(y=Y, p=P, cluster=[1, None, 1]), r"1 row has no cluster \(first: row 1\)"),
    (dict(y=Y, p=P, x=[[1], [2, 3], [4]]), r"x: row 1 has 2 values, row 0 has 1"),
    (dict(y=Y, p=P, x=X, names=["a"]), r"names gives 1 name for 2 covariates"),
    (dict(y=Y, p=P, x=X, names=["a", "a"]), r"column names must differ; 'a' stands more than once"),
    (dict(y=Y, p=P, x=np.zeros((3, 2, 2))), r"x must be a frame or an array \(n, d\)"),
    (dict(y=Y, p=P, x=[1.0, None, None]), r"missing values: 'x1' in 2 rows \(first: row 1\)"),
    (dict(y=Y, p=P, x=[1.0, None, None], missing="drop"), r"would leave 1 row"),
    (
        dict(y=Y, p=P, x=[1, 2, 3], missing="keep"),
        r"missing must be one of 'error', 'level', 'drop'",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_input_gets_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        Sample(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            dict(label="ownr", prob="p", on="race"),
            r"label: .* no column 'ownr'; did you mean 'owner'",
        ),
        (
            dict(label="owner", prob="p", on=["zzz"]),
            r"on: .* no column 'zzz'; the names are 'owner'",
        ),
        (dict(label="owner", prob="p", on=["p"]), r"'p' is the prob column; take it out of `on`"),
        (dict(label="owner", prob="p", on=["race", "race"]), r"'race' stands more than once"),
    ],
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_wrong_columns_get_one_sentence(make, arguments, message):
    with pytest.raises(InputError, match=message):
        Sample.from_frame(make(FRAME), positive="yes", **arguments)


def test_duplicate_columns_of_a_frame_are_refused():
    frame = pd.DataFrame([[1, 2, 3]] * 3, columns=["a", "a", "b"])
    with pytest.raises(InputError, match="'a' stands more than once"):
        Sample(Y, P, frame)
    table = pa.Table.from_arrays([pa.array(Y)] * 2, names=["a", "a"])
    with pytest.raises(InputError, match="'a' stands more than once"):
        Sample(Y, P, table)


def test_one_class_is_allowed_with_a_note():
    assert Sample([0, 0], [0.1, 0.2]).notes == ("one class only: every label is 0, counted as 0",)
    s = Sample(["no", "no"], [0.1, 0.2], positive="yes")
    assert s.y.tolist() == [0, 0]
    assert s.notes == ("one class only: every label is 'no', counted as 0",)
    assert Sample(["a", "b", "b"], P, positive="b").take([1, 2]).notes == (
        "one class only: every label is 'b', counted as 1",
    )


def test_a_constant_covariate_is_allowed_with_a_note():
    s = Sample(Y, P, {"race": ["a"] * 3, "age": [7, 7, 7], "ok": [1, 2, 3]})
    assert s.notes == (
        "'race' has the one value 'a' in every row",
        "'age' has the one value 7.0 in every row",
    )


def test_missing_rows_are_dropped_and_counted():
    s = Sample(
        Y, P, {"a": [1.0, None, 3.0], "b": ["u", "v", "w"]}, weights=[1, 2, 3], missing="drop"
    )
    assert s.n == 2
    assert s.weights.tolist() == [1, 3]
    assert s.notes == ("left out 1 row of 3 with missing values: 1 lacks 'a'",)


def test_missing_values_become_a_level():
    s = Sample(Y, P, {"a": [1.0, None, 3.0], "b": ["u", None, "w"]}, missing="level")
    assert s.column("b").levels == ("u", "w", "(missing)")
    assert s.column("a").missing.tolist() == [False, True, False]


def test_a_sample_cannot_be_changed():
    mine = np.array(P)
    s = Sample(Y, mine, X)
    mine[0] = 0.99
    assert s.p[0] == 0.2
    with pytest.raises(AttributeError):
        s.p = mine
    for array in (s.y, s.p, s.columns[0].values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5


def test_take_keeps_names_levels_and_notes():
    s = Sample(Y, P, {"race": ["a", "b", "b"]}, weights=[1, 2, 3], cluster=["u", "v", "v"])
    part = s.take([2, 1])
    assert part.column("race").levels == ("a", "b")
    assert (part.y.tolist(), part.weights.tolist(), part.cluster.tolist()) == (
        [1, 1],
        [3, 2],
        [1, 1],
    )
    assert s.take(slice(1, None)).p.tolist() == [0.7, 0.9]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0], "at least 2 rows; this one has 1"),
        ([], "at least 2 rows"),
        ([7], "no row 7; rows are 0 to 2"),
        ([True], "row mask has 1 row"),
        ([0.5], "integer positions"),
    ],
)
def test_take_refuses_rows_that_are_not_there(rows, message):
    with pytest.raises(InputError, match=message):
        Sample(Y, P).take(rows)


def test_take_refuses_rows_without_weight():
    with pytest.raises(InputError, match="weights are zero in all rows but at most one"):
        Sample(Y, P, weights=[1, 1, 0]).take([1, 2])


def test_split_parts_are_disjoint_and_repeatable():
    p = np.linspace(0.01, 0.99, 100)
    s = Sample([0, 1] * 50, p)
    parts = s.split([0.3, 0.7], rng=1)
    assert sorted(np.concatenate([part.p for part in parts]).tolist()) == p.tolist()
    assert parts[0].p.tolist() == s.split([0.3, 0.7], rng=1)[0].p.tolist()
    assert parts[0].p.tolist() != s.split([0.3, 0.7], rng=2)[0].p.tolist()


def test_split_never_tears_a_cluster_apart():
    unit = np.repeat(np.arange(30), 4)
    s = Sample(np.tile([0, 1], 60), np.full(120, 0.5), cluster=unit)
    a, b = s.split([0.5, 0.5], rng=0)
    assert not set(a.cluster) & set(b.cluster)
    assert a.n == b.n == 60


@pytest.mark.parametrize("fractions", [[], [0.5, 0.6], [0.0, 1.0], [-0.1]])
def test_split_refuses_odd_fractions(fractions):
    with pytest.raises(InputError, match="fractions must be a list of positive numbers"):
        Sample([0, 1] * 5, [0.5] * 10).split(fractions)
    with pytest.raises(InputError, match="part 0 of the split would have 0 of 3 rows"):
        Sample(Y, P).split([0.1])


def test_impossible_labels_are_found():
    assert Sample([1, 0, 1, 0], [0.0, 1.0, 1.0, 0.0]).impossible.tolist() == [0, 1]


def test_a_sample_survives_pickling():
    s = pickle.loads(pickle.dumps(Sample(Y, P, X)))
    assert it.klce2(s) == it.klce2(Sample(Y, P, X))


def test_a_copy_is_as_frozen_as_the_original():
    s = pickle.loads(pickle.dumps(Sample(Y, P, X, weights=[1, 2, 3])))
    for array in (s.y, s.weights, s.columns[0].values):
        assert not array.flags.writeable


def test_tiny_probabilities_are_not_impossible():
    assert Sample([1, 0], [1e-18, 0.5]).impossible.size == 0


def test_ordered_categories_keep_their_order():
    x = pd.Series(pd.Categorical(list("lhm"), categories=list("lmh"), ordered=True), name="dose")
    column = Sample(Y, P, x).column("dose")
    assert (column.levels, column.values.tolist()) == (("l", "m", "h"), [0, 2, 1])


def test_dates_are_shown_as_dates():
    s = Sample(Y, P, {"day": np.array(["2021-01-05", "2021-02-03", "2022-12-31"], "datetime64[D]")})
    assert "2021-01-05 to 2022-12-31" in str(s)


def test_str_names_every_covariate():
    text = str(Sample(Y, P, {"age": [1, None, 3], "sex": ["f", "m", "f"]}, missing="level"))
    assert "age  number    1 to 3, 1 missing" in text
    assert "sex  category  'f', 'm'" in text


def town():
    x = {"age": [20, 30, 40, 50, 60, 70], "region": ["s", "n", "s", "w", "s", "n"]}
    return Sample([0, 1, 0, 1, 1, 0], np.linspace(0.1, 0.9, 6), x, weights=[1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ('region == "s"', [0, 2, 4]),
        ('region in ("s", "w") and age >= 40', [2, 3, 4]),
        ("not (age < 60) or age == 20", [0, 4, 5]),
        ("prediction > 0.5", [3, 4, 5]),
        ({"region": "n"}, [1, 5]),
        (parse_condition('region == "s" and age > 20'), [2, 4]),
    ],
)
def test_a_condition_keeps_the_rows_that_meet_it(condition, rows):
    kept, by_hand = town().where(condition), town().take(rows)
    np.testing.assert_array_equal(kept.p, by_hand.p)
    np.testing.assert_array_equal(kept.y, by_hand.y)
    np.testing.assert_array_equal(kept.weights, by_hand.weights)
    assert kept.column("region").levels == ("n", "s", "w")


def test_the_rows_of_a_slice_are_a_sample():
    survey = it.simulate.survey(1_500, rng=0).sample
    found = it.bias_slices(survey, draws=39, rng=0)[0]
    assert survey.where(found.where).n == found.rows


def test_a_covariate_that_is_called_prediction_goes_before():
    s = Sample(Y, P, {"prediction": [5.0, 6.0, 7.0]})
    assert s.where("prediction >= 6").n == 2


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ('regoin == "s"', "there is no covariate 'regoin' .did you mean 'region'"),
        ('region == "south"', "'region' has no level 'south'"),
        ('age < "x"', "'age' is a number; compare it with one"),
        ("age > 60", "condition: 1 row of 6 satisfies 'age > 60'; a sample needs at least 2"),
        ("age >", "expected a value, not the end at character 6"),
        ("age > 3 & age < 5", "there is no use for '&' in a condition: write and"),
        ("", "a condition is text such as"),
        (7, "a condition is text such as"),
    ],
)
def test_a_wrong_condition_is_one_sentence(condition, said):
    with pytest.raises(InputError, match=said):
        town().where(condition)
