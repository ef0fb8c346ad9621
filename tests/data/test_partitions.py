"""Names of folders such as year=2020 are columns."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust import InputError
from itrust.data import FilePart, FileSet

KERNEL = it.kernels.LocalKernel(
    it.kernels.RBF(0.1), {"year": it.kernels.RBF(1.0), "region": it.kernels.Delta()}
)
PLACES = [(2020, "south"), (2021, "north"), (2020, "north"), (2022, "a/b c=d%")]


def rows(seed, n=300):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n)
    return pa.table({"y": (rng.random(n) < p).astype(int), "p": p, "a": rng.normal(size=n)})


def write(table, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    {".parquet": pq.write_table, ".feather": pa.feather.write_feather, ".csv": pa.csv.write_csv}[
        path.suffix
    ](table, path)
    return path


def folder_of(year, region):
    return f"year={year}/region={region.replace('%', '%25').replace('/', '%2F')}"


def partitioned(base, ending="parquet"):
    """A folder with keys, and the same rows in one table with columns, in the same order."""
    whole = []
    for seed, (year, region) in enumerate(PLACES):
        table = rows(seed)
        file = write(table, base / folder_of(year, region) / f"part-0.{ending}")
        keys = {"year": [year] * len(table), "region": [region] * len(table)}
        for name, values in keys.items():
            table = table.append_column(name, [values])
        whole.append((file, table))
    return pa.concat_tables([table for _, table in sorted(whole, key=lambda pair: pair[0])])


def scan(path, **changes):
    return it.scan(path, **{"label": "y", "prob": "p", "on": ["year", "region"], **changes})


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_keys_are_columns_as_if_they_stood_in_one_file(tmp_path, ending):
    plain = write(partitioned(tmp_path / "runs", ending), tmp_path / f"plain.{ending}")
    mine, theirs = scan(tmp_path / "runs"), scan(plain)
    for name in ("year", "region"):
        own, other = (sample.load().column(name) for sample in (mine, theirs))
        assert (own.kind, own.levels) == (other.kind, other.levels)
        np.testing.assert_array_equal(own.values, other.values)
    assert mine.load().column("year").kind == "number"
    assert mine.load().column("region").levels == ("a/b c=d%", "north", "south")
    for settings in ({}, {"where": "year > 2020 and region == 'north'"}):
        found, known = (
            it.klce_test(scan(path, **settings), KERNEL, draws=49, rng=0)
            for path in (tmp_path / "runs", plain)
        )
        assert (found.n, found.pvalue) == (known.n, known.pvalue)
        assert found.statistic == pytest.approx(known.statistic, rel=1e-4)


def test_a_file_has_the_keys_of_its_own_folders(tmp_path):
    partitioned(tmp_path)
    found = []
    for batch, _ in scan(tmp_path)._batches():
        (year,), (region,) = (set(batch.rows[name].to_pylist()) for name in ("year", "region"))
        assert str(batch.path) == str(tmp_path / folder_of(year, region) / "part-0.parquet")
        found.append((year, region))
    assert sorted(found) == sorted(PLACES)


def test_a_piece_on_another_machine_has_them_too(tmp_path):
    partitioned(tmp_path)
    path = tmp_path / folder_of(2021, "north") / "part-0.parquet"
    piece = pickle.loads(pickle.dumps(scan(tmp_path).only(FilePart(path, (0,)))))
    (chunk,) = piece.chunks(1000)
    assert set(chunk.points.columns[0].values) == {2021}
    assert chunk.points.columns[1].levels == ("north",)


@pytest.mark.parametrize(
    ("named", "keys"),
    [
        ("runs", ["year", "region"]),
        ("runs/*/*/*.parquet", ["year", "region"]),
        ("runs/year=202*", ["year", "region"]),
        ("runs/**/*.parquet", ["year", "region"]),
        ("runs/year=2020", ["region"]),
        ("runs/year=2020/*", ["region"]),
        ("runs/year=2020/region=south", []),
        ("runs/year=2020/region=south/part-0.parquet", []),
    ],
)
def test_keys_stand_below_what_was_named(tmp_path, named, keys):
    partitioned(tmp_path / "odd=1" / "runs")
    assert list(FileSet.of(str(tmp_path / "odd=1" / named)).partitions.common) == keys


def test_files_that_were_named_have_the_keys_below_the_folder_they_share(tmp_path):
    partitioned(tmp_path / "odd=1")
    paths = [tmp_path / "odd=1" / folder_of(*place) / "part-0.parquet" for place in PLACES]
    assert list(FileSet.of(paths).partitions.common) == ["year", "region"]
    assert list(FileSet.of([paths[0], paths[2]]).partitions.common) == ["region"]


def test_whole_numbers_are_numbers_and_all_else_is_text(tmp_path):
    for k, value in enumerate(["007", "-3", "12"]):
        write(rows(k), tmp_path / "whole" / f"k={value}" / "a.csv")
    for k, value in enumerate(["1", "2.5", "9" * 30]):
        write(rows(k), tmp_path / "mixed" / f"k={value}" / "a.csv")
    whole = scan(tmp_path / "whole", on="k").load().column("k")
    assert whole.kind == "number"
    assert list(dict.fromkeys(whole.values)) == [-3, 7, 12]
    assert scan(tmp_path / "mixed", on="k").load().column("k").levels == ("1", "2.5", "9" * 30)


def test_the_default_partition_is_missing(tmp_path):
    for k, value in enumerate(["__HIVE_DEFAULT_PARTITION__", "", "1", "2"]):
        write(rows(k), tmp_path / f"k={value}" / "a.parquet")
    with pytest.raises(InputError, match=r"covariates have missing values: 'k' in 300 rows"):
        it.klce_test(scan(tmp_path, on="k"), draws=9)
    dropped = scan(tmp_path, on="k", missing="drop")
    assert dropped.n == dropped.load().n == 600
    assert np.isnan(scan(tmp_path, on="k", missing="level").load().column("k").values).sum() == 600


def test_a_key_in_all_folders_that_has_no_value_at_all_is_refused_as_any_column(tmp_path):
    write(rows(0), tmp_path / "k=__HIVE_DEFAULT_PARTITION__" / "a.parquet")
    with pytest.raises(InputError, match="covariate 'k' holds no value in any row"):
        scan(tmp_path, on="k", missing="level").load()


def test_a_column_of_a_file_goes_before_the_name_of_its_folder(tmp_path):
    write(rows(0).append_column("year", [[2020] * 300]), tmp_path / "year=2021" / "a.parquet")
    years = scan(tmp_path, on="year").load().column("year").values
    assert (years == 2020).all()


def test_keys_of_some_files_only_and_two_values_of_one_are_refused(tmp_path):
    write(rows(0), tmp_path / "runs" / "year=2020" / "a.parquet")
    write(rows(0), tmp_path / "runs" / "a.parquet")
    with pytest.raises(InputError, match=r"runs/a\.parquet has no column 'year', and no folder"):
        scan(tmp_path / "runs", on="year")
    assert scan(tmp_path / "runs", on="a").n == 600
    write(rows(0), tmp_path / "twice" / "k=1" / "k=2" / "a.parquet")
    with pytest.raises(InputError, match=r"folders that give 'k' two values, '1' and '2'"):
        scan(tmp_path / "twice", on="a")


def test_a_name_that_is_no_column_is_compared_with_keys_too(tmp_path):
    partitioned(tmp_path)
    with pytest.raises(InputError, match="no column 'regoin'; did you mean 'region'"):
        scan(tmp_path, on=["year", "regoin"])


def test_keys_serve_as_weights_clusters_and_labels(tmp_path):
    for k in range(4):
        write(rows(k), tmp_path / f"shop={k}" / f"out={k % 2}" / "a.parquet")
    s = scan(tmp_path, label="out", on="a", cluster="shop").load()
    assert (s.n, s.clusters, s.y.mean()) == (1200, 4, 0.5)
    table = FileSet.of(tmp_path).table(["out"])  # no column of the files themselves
    assert table.num_rows == 1200


def test_rows_as_they_are_have_the_keys(tmp_path):
    for ending, year in (("parquet", 2020), ("csv", "2020")):
        write(rows(0), tmp_path / ending / "year=2020" / f"a.{ending}")
        source = FileSet.of(tmp_path / ending)
        whole = pa.concat_tables(source.untouched(source.names))
        assert whole.column_names == ["y", "p", "a", "year"]
        assert set(whole["year"].to_pylist()) == {year}
