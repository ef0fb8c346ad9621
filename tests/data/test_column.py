import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from itrust._core import InputError
from itrust.data import MAX_TEXT_LEVELS, Column, encode, share_codes


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2],
        np.array([3, 1, 2], dtype=np.uint8),
        np.array([3.0, 1.0, 2.0], dtype=np.float32),
        [decimal.Decimal(3), decimal.Decimal(1), decimal.Decimal(2)],
        pd.Series([3, 1, 2], dtype="Int64"),
        pl.Series([3, 1, 2]),
        pa.chunked_array([[3], [1, 2]]),
    ],
)
def test_numbers_of_every_origin_become_the_same_floats(values):
    column = encode("x", values)
    assert column.kind == "number"
    assert column.values.dtype == np.float64
    assert column.values.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "b"],
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pl.Series(["b", "a", "b"]),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pa.array(["b", "a", "b"]).dictionary_encode(),
    ],
)
def test_text_of_every_origin_stays_a_category(values):
    column = encode("x", values)
    assert column.kind == "category"
    assert column.levels == ("a", "b")
    assert column.values.tolist() == [1, 0, 1]


def test_text_that_looks_like_numbers_is_never_turned_into_numbers():
    assert encode("zip", ["10", "9", "10"]).levels == ("10", "9")


@pytest.mark.parametrize(
    "values",
    [
        [dt.date(1970, 1, 2), dt.date(1970, 1, 11)],
        np.array(["1970-01-02", "1970-01-11"], dtype="datetime64[ns]"),
        pd.to_datetime(pd.Series(["1970-01-02", "1970-01-11"])),
        pd.to_datetime(pd.Series(["1970-01-02", "1970-01-11"])).dt.tz_localize("UTC"),
        pl.Series([dt.date(1970, 1, 2), dt.date(1970, 1, 11)]),
    ],
)
def test_dates_become_days(values):
    column = encode("when", values)
    assert column.kind == "date"
    assert column.values.tolist() == [1.0, 10.0]


def test_durations_become_days():
    assert encode("wait", [dt.timedelta(days=1), dt.timedelta(hours=12)]).values.tolist() == [
        1,
        0.5,
    ]


def test_booleans_are_numbers_that_remember_their_kind():
    column = encode("b", [True, False])
    assert (column.kind, column.values.tolist()) == ("boolean", [1.0, 0.0])


@pytest.mark.parametrize(
    "values",
    [
        [1.0, None],
        [1.0, float("nan")],
        pd.Series([1, None], dtype="Int64"),
        pl.Series([1.0, float("nan")]),
        pl.Series([1, None]),
    ],
)
def test_missing_numbers_are_nan_whatever_their_origin(values):
    assert encode("x", values).missing.tolist() == [False, True]


@pytest.mark.parametrize("values", [["a", None], pd.Series(["a", np.nan]), pl.Series(["a", None])])
def test_missing_text_is_no_level_until_asked(values):
    column = encode("x", values)
    assert column.values.tolist() == [0, -1]
    assert column.with_missing_level().levels == ("a", "(missing)")


def test_a_level_that_is_called_missing_keeps_its_name():
    column = encode("x", ["(missing)", None]).with_missing_level()
    assert column.levels == ("(missing)", "((missing))")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a"], r"covariate 'x' mixes types: row 0 has 1 \(int\), row 1 has 'a' \(str\)"),
        (pd.Series(["a", None, 2], dtype=object), r"mixes types: row 0 has 'a' .* row 2 has 2"),
        ([True, 2], r"mixes types: row 0 has True \(bool\), row 1 has 2 \(int\)"),
        ([1.0, float("inf")], r"covariate 'x' must be finite; row 1 has inf"),
        ([None, None], r"covariate 'x' holds no value in any row"),
        ([dt.time(1), dt.time(2)], r"covariate 'x' is of type time64\[us\]; give numbers"),
        ([{"a": 1}, {"a": 2}], r"must hold one value a row; row 0 has"),
        (np.zeros((2, 2)), r"must be one column of values, not an array of shape \(2, 2\)"),
        (np.array([1j, 2j]), r"no numbers, text, booleans or dates"),
    ],
)
def test_what_is_no_column_is_refused_in_one_sentence(values, message):
    with pytest.raises(InputError, match=message):
        encode("x", values)


def test_free_text_is_refused_but_a_declared_category_is_not():
    text = [f"name {k}" for k in range(MAX_TEXT_LEVELS + 1)]
    with pytest.raises(
        InputError, match=r"text with 1,001 different values \(row 0 has 'name 0'\)"
    ):
        encode("x", text)
    assert len(encode("x", pd.Series(text, dtype="category")).levels) == MAX_TEXT_LEVELS + 1


def test_values_are_copied_and_frozen():
    mine = np.array([1.0, 2.0])
    column = encode("x", mine)
    mine[0] = 9.0
    assert column.values[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        column.values[0] = 5.0


def test_shared_codes_match_levels_not_positions():
    left = Column("x", "category", np.array([0, 1, -1]), ("a", "b"))
    right = Column("x", "category", np.array([0, 1, 2, -1]), ("b", "c", "a"))
    a, b = share_codes([left], [right])
    same = a[:, None] == b[None, :]
    expected = [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    assert same.astype(int).tolist() == expected


def test_shared_codes_of_numbers_take_missing_as_equal():
    column = encode("x", [1.0, None, None, 2.0])
    a, b = share_codes([column], [column])
    assert (a == b).all()
    assert len(set(a.tolist())) == 3
