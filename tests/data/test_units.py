"""Columns without a role are kept as numbers of units, and follow the rows."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust.data import file_set

N = 60
FRAME = {
    "y": np.arange(N) % 2,
    "p": np.linspace(0.1, 0.9, N),
    "x": np.where(np.arange(N) == 3, np.nan, np.linspace(0, 1, N) ** 2),
    "who": np.repeat([f"secret{k:02}" for k in range(20)], 3),
    "code": np.repeat(np.arange(30.0), 2),
    "when": np.datetime64("2020-01-01") + np.arange(N) // 5,
    "height": np.linspace(1.5, 1.9, N),
    "key": np.arange(N),
    "flag": np.arange(N) % 2 == 0,
    "lists": [[k] for k in range(N)],
}


@pytest.fixture
def sample():
    return it.Sample.from_frame(FRAME, label="y", prob="p", on="x", missing="drop")


def test_names_whole_numbers_and_dates_that_repeat_are_kept(sample):
    kept = {units.name: units.is_date for units in sample.units}
    assert kept == {"who": False, "code": False, "when": True}


def test_units_follow_the_rows(sample):
    rows = np.delete(np.arange(N), 3)
    taken = sample.take(slice(None, None, -2))
    for units in taken.units:
        whole = np.unique(FRAME[units.name], return_inverse=True)[1]
        np.testing.assert_array_equal(units.rows, np.arange(taken.n))
        np.testing.assert_array_equal(units.codes, whole[rows][::-2])
    assert sample.only().units is sample.units


def test_values_are_not_kept(sample):
    assert b"secret" not in pickle.dumps(sample)


def test_missing_units_are_left_out():
    who = ["a", None, "b"] * 20
    made = it.Sample.from_frame({"y": FRAME["y"], "p": FRAME["p"], "who": who}, label="y", prob="p")
    assert made.units[0].rows.size == 40
    assert set(made.units[0].rows % 3) == {0, 2}


def test_of_many_rows_whole_units_are_kept():
    rng = np.random.default_rng(0)
    unit = np.r_[rng.permutation(np.repeat(np.arange(5_000), 6)), np.full(1_000, 5_000)]
    columns = {"y": np.tile([0, 1], 15_500), "p": np.full(31_000, 0.5), "unit": unit}
    kept = it.Sample.from_frame(columns, label="y", prob="p").units[0]
    size = np.bincount(kept.codes)
    assert 19_000 < kept.rows.size <= 20_000
    assert set(size[:5_000]) <= {0, 6}
    np.testing.assert_array_equal(kept.codes, unit[kept.rows])


def test_of_many_rows_long_text_that_differs_is_dropped_and_later_repeats_are_found():
    n = 50_000
    wave = np.tile(np.arange(n // 2), 2)
    columns = {
        "y": np.arange(n) % 2,
        "p": np.full(n, 0.5),
        "wave": wave,
        "key": np.arange(n),
        "remark": [f"{k:050}" for k in range(n)],
        "advice": [f"{k % 9:050}" for k in range(n)],
    }
    kept = it.Sample.from_frame(columns, label="y", prob="p").units
    assert [units.name for units in kept] == ["wave", "advice"]


def test_spare_columns_are_left_out_where_they_are_large(tmp_path, monkeypatch):
    table = pa.table({"p": np.linspace(0, 1, 1_000), "who": np.arange(1_000)})
    files = [tmp_path / "a.parquet", tmp_path / "b.csv"]
    pq.write_table(table, files[0], row_group_size=100)
    pa.csv.write_csv(table, files[1])
    monkeypatch.setattr(file_set, "PART_ROWS", 100)
    for limit, names in ((9_000, ["p", "who"]), (7_000, ["p"])):
        monkeypatch.setattr(file_set, "MAX_SPARE_BYTES", limit)
        for file in files:
            found = file_set.FileSet.of(file).table(["p"], ["who"])
            assert found.column_names == names
            assert found["p"].to_pylist() == table["p"].to_pylist()
