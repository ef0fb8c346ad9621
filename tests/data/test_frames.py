"""Rows of pandas, polars, Arrow, DuckDB and Dask make the same samples; nothing else does."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import itrust as it
from itrust.data import names_of_frame

N = 240
RNG = np.random.default_rng(0)
ROWS = pa.table(
    {
        "owner": RNG.choice(["yes", "no"], N),
        "p": RNG.random(N),
        "age": RNG.integers(20, 80, N),
        "sex": pa.array(RNG.choice(np.array(["f", "m", None], dtype=object), N)),
        "day": pa.array(np.datetime64("2024-01-01") + RNG.integers(0, 60, N)),
        "member": RNG.random(N) < 0.4,
        "w": RNG.uniform(0.5, 2, N),
        "house": np.repeat(np.arange(N // 2), 2),
    }
)
CONNECTIONS: list[object] = []


def as_relation(rows):
    duckdb = pytest.importorskip("duckdb", reason="comes with the test extra")
    connection = duckdb.connect()
    CONNECTIONS.append(connection)  # old relations do not keep theirs open
    connection.register("rows", rows)
    return connection.sql("select * from rows")


def as_dask(rows):
    frames = pytest.importorskip("dask.dataframe", reason="comes with the test extra")
    return frames.from_pandas(rows.to_pandas(date_as_object=False), npartitions=3)


FORMS = {
    "pandas": lambda rows: rows.to_pandas(),
    "pandas of Arrow": lambda rows: rows.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "lazy polars": lambda rows: pl.from_arrow(rows).lazy(),
    "Arrow batch": lambda rows: rows.combine_chunks().to_batches()[0],
    "Arrow reader": lambda rows: rows.to_reader(max_chunksize=100),
    "Arrow data set": pa.dataset.dataset,
    "Arrow scanner": lambda rows: pa.dataset.dataset(rows).scanner(),
    "DuckDB relation": as_relation,
    "Dask": as_dask,
}
every_form = pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
ROLES = dict(label="owner", prob="p", positive="yes", weights="w", cluster="house")
ON = ["age", "sex", "day", "member"]


def facts_of(sample):
    columns = [(own.name, own.kind, own.levels, own.values.tolist()) for own in sample.columns]
    return [sample.y.tolist(), sample.p.tolist(), sample.weights.tolist(), columns, sample.notes]


@every_form
def test_a_sample_does_not_depend_on_the_form_of_its_frame(make):
    made = it.Sample.from_frame(make(ROWS), on=ON, missing="level", **ROLES)
    plain = it.Sample.from_frame(ROWS, on=ON, missing="level", **ROLES)
    assert facts_of(made) == facts_of(plain)
    assert it.klce_test(made, draws=39, rng=0).pvalue == it.klce_test(plain, draws=39, rng=0).pvalue


@every_form
def test_rows_are_chosen_alike_in_every_form(make):
    made = it.Sample.from_frame(make(ROWS), on="age", where='sex == "f"', **ROLES)
    assert made.n == sum(value == "f" for value in ROWS["sex"].to_pylist())


@every_form
def test_a_population_does_not_depend_on_the_form_of_its_frame(make):
    made = it.Population.from_frame(make(ROWS), prob="p", on=["age", "member"], weights="w")
    plain = it.Population.from_frame(ROWS, prob="p", on=["age", "member"], weights="w")
    assert made.p.tolist() == plain.p.tolist()
    assert made.weights.tolist() == plain.weights.tolist()
    assert [c.values.tolist() for c in made.columns] == [c.values.tolist() for c in plain.columns]


@every_form
def test_covariates_and_clusters_may_come_in_every_form(make):
    x = make(ROWS.select(["age", "member"]))
    cluster = make(ROWS.select(["house"]))
    made = it.Sample(ROWS["owner"], ROWS["p"], x, cluster=cluster, positive="yes")
    assert made.names == ("age", "member")
    assert made.clusters == N // 2


@every_form
def test_an_audit_of_a_frame_is_answered_with_the_call_that_names_its_columns(make):
    with pytest.raises(it.InputError, match=r"Sample.from_frame\(frame.*'owner', 'p', 'age'"):
        it.audit(make(ROWS))


def test_names_are_told_before_any_row_is_read():
    assert names_of_frame(pl.LazyFrame({"a": [1], "b": [2]})) == ["a", "b"]
    reader = ROWS.to_reader()
    assert names_of_frame(reader) == ROWS.column_names
    assert reader.read_all() == ROWS


def test_decimals_of_a_database_are_numbers():
    duckdb = pytest.importorskip("duckdb", reason="comes with the test extra")
    query = "select i % 2 as y, 0.25 + 0.5 * (i % 2) as p, sum(i) over () as total, i::hugeint as h"
    relation = duckdb.sql(f"{query} from range(8) as t(i)")
    sample = it.Sample.from_frame(relation, label="y", prob="p", on="h")
    assert sample.p.tolist() == [0.25, 0.75] * 4
    assert sample.column("h").values.tolist() == list(range(8))


def test_columns_of_a_relation_must_differ():
    duckdb = pytest.importorskip("duckdb", reason="comes with the test extra")
    relation = duckdb.sql("select 1 as y, 0.5 as p, 2 as p")
    with pytest.raises(it.InputError, match="'p' stands more than once"):
        it.Sample.from_frame(relation, label="y", prob="p")


def test_a_reader_that_was_read_before_has_no_rows():
    reader = ROWS.to_reader()
    reader.read_all()
    with pytest.raises(it.InputError, match="at least 2 rows"):
        it.Sample.from_frame(reader, label="owner", prob="p", positive="yes")


def test_a_lazy_thing_that_nobody_knows_is_refused():
    class Lazy:
        columns = ("y", "p")

        def compute(self):
            return {"y": [0, 1], "p": [0.5, 0.5]}

    with pytest.raises(it.InputError, match=r"the frame is lazy; call .compute\(\)"):
        it.Sample.from_frame(Lazy(), label="y", prob="p")


def test_a_query_that_fails_is_told_in_one_sentence():
    duckdb = pytest.importorskip("duckdb", reason="comes with the test extra")
    connection = duckdb.connect()
    rows = "select i % 2 as y, 0.5 as p, 'a' || i as a from range(8) as t(i)"
    bad = connection.sql(f"select y, p, a::double as a from ({rows})")
    roles = dict(label="y", prob="p", on="a")
    with pytest.raises(it.InputError, match=r"cannot be read: .*'a0'.*$"):
        it.Sample.from_frame(bad, **roles)
    with pytest.raises(it.InputError, match=r"cannot be read: .*'a0'.*$"):
        it.Population.from_frame(bad, prob="p", on="a")
    good = connection.sql(rows)
    connection.close()
    with pytest.raises(it.InputError, match=r"cannot be read: Connection.*closed"):
        it.Sample.from_frame(good, **roles)


def test_a_lazy_frame_that_fails_is_told_in_one_sentence():
    lazy = pl.LazyFrame({"y": [0, 1], "p": [0.1, 0.2], "a": ["x", "y"]})
    for bad, said in (
        (lazy.with_columns(pl.col("a").cast(pl.Float64)), "conversion from `str` to `f64` failed"),
        (lazy.with_columns(b=pl.col("q")), "q"),
    ):
        with pytest.raises(it.InputError, match=f"^the rows of the frame cannot be read: .*{said}"):
            it.Sample.from_frame(bad, label="y", prob="p", on="a")
    batch = pa.record_batch({"y": [0, 1]})

    def failing():
        yield batch
        raise pa.ArrowInvalid("the rest is lost")

    reader = pa.RecordBatchReader.from_batches(batch.schema, failing())
    with pytest.raises(it.InputError, match=r"cannot be read: .*the rest is lost"):
        it.Sample.from_frame(reader, label="y", prob="y")


def test_too_little_memory_is_no_fault_of_the_frame():
    schema = pa.schema({"y": pa.int64()})

    def failing():
        raise pa.lib.ArrowMemoryError("no room")
        yield

    with pytest.raises(MemoryError, match="no room"):
        it.Sample.from_frame(
            pa.RecordBatchReader.from_batches(schema, failing()), label="y", prob="y"
        )
