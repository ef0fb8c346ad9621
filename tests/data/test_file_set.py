"""Oddly written files give the answer of the same rows in one plain file."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust import InputError
from itrust.data import FileSet

KERNEL = it.kernels.LocalKernel(
    it.kernels.RBF(0.1), {"a": it.kernels.RBF(1.0), "town": it.kernels.Delta()}
)
NUMBER = it.kernels.LocalKernel(it.kernels.RBF(0.1), {"a": it.kernels.RBF(1.0)})
TOWNS = ("aix", "bern", "cork")


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n)
    return pa.table(
        {
            "y": (rng.random(n) < p).astype(int),
            "p": p,
            "a": rng.normal(size=n),
            "town": rng.choice(TOWNS, n),
        }
    )


def scan(path, **changes):
    return it.scan(path, **{"label": "y", "prob": "p", "on": ["a", "town"], **changes})


def named(column):
    """Values of a column, those of a category by their names."""
    values = column.values.tolist()
    return [column.levels[code] for code in values] if column.is_category else values


def same_as_plain(odd, table, kernel=KERNEL, engine="auto", **changes):
    """Whether a scan and its rows in memory are those of a table in one file."""
    plain = odd.parent / "plain.parquet"
    pq.write_table(table, plain)
    mine, theirs = scan(odd, **changes), scan(plain, **changes)
    own, other = mine.load(), theirs.load()
    assert (own.n, mine.n) == (other.n, theirs.n)
    for values in ("y", "p"):
        np.testing.assert_array_equal(getattr(own, values), getattr(other, values))
    for one, two in zip(own.columns, other.columns, strict=True):
        assert (one.name, one.kind, one.levels) == (two.name, two.kind, two.levels)
        np.testing.assert_array_equal(one.values, two.values)
    for at, column in enumerate(other.columns):
        chunks = [chunk.points.columns[at] for chunk in mine.chunks(700)]
        assert [value for chunk in chunks for value in named(chunk)] == named(column)
    found, known = (it.klce_test(s, kernel, draws=9, rng=0, engine=engine) for s in (mine, theirs))
    assert (found.n, found.pvalue) == (known.n, known.pvalue)
    np.testing.assert_allclose(found.null_distribution, known.null_distribution, rtol=0, atol=1e-5)
    return mine


def grouped(table, path, sizes):
    """A Parquet file with row groups of these sizes."""
    assert sum(sizes) == len(table)
    at = 0
    with pq.ParquetWriter(path, table.schema) as writer:
        for size in sizes:
            writer.write_table(table.slice(at, size), row_group_size=max(size, 1))
            at += size
    assert pq.read_metadata(path).num_row_groups == len(sizes)
    return path


def test_row_groups_of_very_different_sizes(tmp_path):
    table = rows(100_006)
    sizes = [0, 1, 100_000, 0, 3, 1, 0, 1, 0]
    same_as_plain(grouped(table, tmp_path / "odd.parquet", sizes), table, NUMBER, on="a")


def write_parquet(table, path):
    pq.write_table(table, path)


def write_without_groups(table, path):
    with pq.ParquetWriter(path, table.schema) as writer:
        if len(table):
            writer.write_table(table)


@pytest.mark.parametrize(
    ("write", "ending"),
    [
        (write_parquet, "parquet"),
        (write_without_groups, "parquet"),
        (lambda table, path: pa.feather.write_feather(table, path), "feather"),
        (pa.csv.write_csv, "csv"),
    ],
)
@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_file_without_rows_among_others(tmp_path, write, ending, empty):
    """At the beginning, in between and at the end; a text file without rows has no types."""
    table = rows(900)
    (tmp_path / "odd").mkdir()
    starts = np.insert([0, 400, 900], empty, [0, 400, 900][empty])
    for k in range(3):
        part = table.slice(starts[k], starts[k + 1] - starts[k])
        write(part, tmp_path / "odd" / f"{k}.{ending}")
    same_as_plain(tmp_path / "odd", table)
    read = FileSet.of(tmp_path / "odd").table(["town"])
    assert read["town"].to_pylist() == table["town"].to_pylist()


def test_a_column_changes_its_kind_behind_a_file_without_rows(tmp_path):
    for name, text in (("a", ""), ("b", "1,.5,3,x\n"), ("c", "0,.5,c,x\n")):
        (tmp_path / f"{name}.csv").write_text(f"y,p,a,town\n{text}")
    with pytest.raises(InputError, match=r"c\.csv: column 'a' is text, but number in b\.csv"):
        scan(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"missing": "drop"},
        {"where": "town != 'cork'"},
        {"missing": "drop", "where": "town != 'cork'"},
        {"na_values": ["cork"], "missing": "drop"},
    ],
)
def test_a_file_and_a_row_group_of_which_no_row_is_left(tmp_path, changes):
    table = rows(1_500)
    town = np.array(table["town"].to_pylist(), dtype=object)
    town[:300] = town[700:900] = "cork"
    a = table["a"].to_numpy().copy()
    a[:300], a[700:900] = np.nan, np.nan
    table = table.set_column(3, "town", [town.tolist()]).set_column(2, "a", [a])
    if changes.get("missing") != "drop":
        table = table.set_column(2, "a", [np.nan_to_num(a)])
    (tmp_path / "odd").mkdir()
    pq.write_table(table.slice(0, 300), tmp_path / "odd" / "0.parquet")
    pq.write_table(table.slice(300), tmp_path / "odd" / "1.parquet", row_group_size=200)
    same_as_plain(tmp_path / "odd", table, **changes)


def test_no_row_at_all_is_left(tmp_path):
    for name in ("a", "b"):
        pq.write_table(rows(50), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="the files hold no rows that count"):
        it.klce_test(scan(tmp_path, where="town == 'rome'"), draws=9)


@pytest.mark.parametrize("kept", ["plain", "dictionary in some files"])
def test_a_category_of_5000_levels_of_which_each_batch_has_a_few(tmp_path, kept):
    n = 10_000
    table = rows(n).drop_columns("town")
    towns = pa.array([f"t{k:04}" for k in np.arange(n) // 2])
    table = table.append_column("town", towns)
    (tmp_path / "odd").mkdir()
    for k in range(2):
        part = table.slice(k * n // 2, n // 2)
        if kept != "plain" and k:
            part = part.set_column(3, "town", part["town"].dictionary_encode())
        pq.write_table(part, tmp_path / "odd" / f"{k}.parquet", row_group_size=100)
    if kept == "plain":
        with pytest.raises(InputError, match="'town' is text with 5,000 different values"):
            scan(tmp_path / "odd").load()
    else:  # a dictionary is a category, as it is in memory
        own = scan(tmp_path / "odd").load().column("town")
        assert own.levels == tuple(towns.unique().to_pylist())
        assert own.levels == scan(tmp_path / "odd", categories="town").load().column("town").levels
    kernel = it.kernels.LocalKernel(it.kernels.RBF(0.1), {"town": it.kernels.Delta()})
    few = it.engines.Factor(pilot=200)  # landmarks, which take little time
    same_as_plain(tmp_path / "odd", table, kernel, few, on="town", categories="town")


def test_codes_that_a_file_keeps_as_a_dictionary_are_a_category(tmp_path):
    table = rows(600)
    codes = pa.array(np.arange(600) % 12).dictionary_encode()
    pa.feather.write_feather(table.set_column(3, "town", codes), tmp_path / "a.feather")
    s = scan(tmp_path / "a.feather")
    memory = it.Sample.from_frame(
        table.set_column(3, "town", codes), label="y", prob="p", on=["a", "town"]
    )
    assert memory.column("town").levels == s.load().column("town").levels == tuple(range(12))
    assert next(s.chunks(600)).points.columns[1].kind == "category"
    numbers = scan(tmp_path / "a.feather", numbers="town").load().column("town")
    assert numbers.kind == "number"


def test_probabilities_of_single_precision(tmp_path):
    table = rows(1_500)
    single = table.set_column(1, "p", table["p"].cast(pa.float32()))
    (tmp_path / "odd").mkdir()
    pq.write_table(single.slice(0, 700), tmp_path / "odd" / "a.parquet")
    as_double = single.set_column(1, "p", single["p"].cast(pa.float64()))
    pq.write_table(as_double.slice(700), tmp_path / "odd" / "b.parquet")
    same_as_plain(tmp_path / "odd", as_double)
    pq.write_table(single, tmp_path / "single.parquet")
    same_as_plain(tmp_path / "single.parquet", as_double)


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_columns_in_another_order_in_some_files(tmp_path, ending):
    table = rows(1_500)
    other = table.select(["town", "a", "p", "y"])
    write = {
        "parquet": pq.write_table,
        "feather": pa.feather.write_feather,
        "csv": pa.csv.write_csv,
    }[ending]
    (tmp_path / "odd").mkdir()
    for k, part in enumerate((table.slice(0, 500), other.slice(500, 500), table.slice(1000))):
        write(part, tmp_path / "odd" / f"{k}.{ending}")
    same_as_plain(tmp_path / "odd", table)
