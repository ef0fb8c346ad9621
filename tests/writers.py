"""Files of every format, written as the programs write them that people have them from."""

import gzip
import sqlite3

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest


def as_csv(table, path):
    pa.csv.write_csv(table, path)


def as_gzipped_json(table, path):
    as_json_lines(table, path.with_suffix(""))
    path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
    path.with_suffix("").unlink()


def as_json_lines(table, path):
    table.to_pandas().to_json(path, orient="records", lines=True, date_format="iso")


def as_stata(table, path, **settings):
    pytest.importorskip("pyreadstat").write_dta(table.to_pandas(), path, **settings)


def as_spss(table, path, **settings):
    compress = path.suffix == ".zsav"
    write = pytest.importorskip("pyreadstat").write_sav
    write(table.to_pandas(), path, compress=compress, **settings)


def as_excel(table, path):
    pytest.importorskip("fastexcel")
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.append(table.column_names)
    for row in table.to_pylist():
        book.active.append(list(row.values()))
    book.save(path)


def as_sqlite(table, path):
    kinds = [str(kind).upper().split("[")[0] for kind in table.schema.types]
    columns = ", ".join(f"{n} {kind}" for n, kind in zip(table.column_names, kinds, strict=True))
    dates = [name for name in table.column_names if pa.types.is_date(table[name].type)]
    for name in dates:
        at = table.column_names.index(name)
        table = table.set_column(at, name, table[name].cast(pa.string()))
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE homes ({columns})")
    cells = ", ".join("?" * table.num_columns)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    connection.executemany(f"INSERT INTO homes VALUES ({cells})", rows)
    connection.commit()
    connection.close()


WRITERS = {
    "a.parquet": lambda table, path: pa.parquet.write_table(table, path),
    "a.feather": lambda table, path: pa.feather.write_feather(table, str(path)),
    "a.dta": as_stata,
    "a.sav": as_spss,
    "a.zsav": as_spss,
    "a.xlsx": as_excel,
    "a.jsonl": as_json_lines,
    "a.ndjson.gz": as_gzipped_json,
    "a.sqlite": as_sqlite,
}
