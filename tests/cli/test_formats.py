"""The command takes every format, also from standard input, and says what it took."""

import json

import pyarrow as pa
import pyarrow.csv
import pytest

import itrust as it
from itrust.cli import audit as audit_module
from shell import invoke
from writers import WRITERS, as_csv, as_sqlite, as_stata

COLUMNS = ("--label", "y", "--prob", "p", "--on", "age,region")
NEW = [name for name in WRITERS if name not in ("a.parquet", "a.feather")]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(n=60):
    sample = it.simulate.survey(n, rng=0).sample
    region = sample.column("region")
    return pa.table(
        {
            "y": sample.y.astype(int),
            "p": sample.p.round(6),
            "age": sample.column("age").values,
            "region": [region.levels[code] for code in region.values],
        }
    )


def run(*args, **settings):
    return invoke(*args, env={"COLUMNS": "300"}, **settings)


@pytest.fixture
def quick(monkeypatch):
    """The audit replaced by its sample: what reading comes to, without the work."""
    seen = []

    def note(sample, *_args, **_settings):
        seen.append(sample)
        raise it.InputError("enough")

    monkeypatch.setattr(audit_module.it, "audit", note)
    return seen


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("from_input", [False, True])
def test_files_and_streams_of_every_format_are_audited(name, from_input, folder, quick):
    WRITERS[name](rows(), folder / name)
    content = (folder / name).read_bytes() if from_input else b""
    result = run("audit", "-" if from_input else name, *COLUMNS, input=content)
    assert result.stderr.strip().endswith("itrust: enough"), result.stderr
    assert quick[0].p.tolist() == rows()["p"].to_pylist()
    assert quick[0].y.tolist() == rows()["y"].to_pylist()
    region = quick[0].column("region")
    assert [region.levels[code] for code in region.values] == rows()["region"].to_pylist()


def test_the_audit_of_a_stata_file_is_that_of_the_csv_file(folder):
    as_csv(rows(), folder / "a.csv")
    as_stata(rows(), folder / "a.dta")
    found = []
    for name in ("a.csv", "a.dta"):
        result = run("audit", name, *COLUMNS, "--draws", "79", "--json", "a.json", "--quiet")
        assert result.exit_code == 0, result.output
        found.append(json.loads((folder / "a.json").read_text())["test"]["pvalue"])
    assert found[0] == found[1]


def test_the_sheet_that_was_taken_is_told(quick):
    pytest.importorskip("fastexcel")
    book = pytest.importorskip("openpyxl").Workbook()
    for page in (book.active, book.create_sheet("2024")):
        page.append(rows().column_names)
        for row in rows().to_pylist():
            page.append(list(row.values()))
    book.save("homes.xlsx")
    told = run("audit", "homes.xlsx", *COLUMNS).stderr
    assert "homes.xlsx: reading the sheet 'Sheet'; the others are '2024'" in told
    assert "reading the sheet" not in run("audit", "homes.xlsx::2024", *COLUMNS).stderr
    assert len(quick) == 2


def test_a_table_is_named_behind_its_database(folder, quick):
    name = "a.sqlite"
    as_sqlite(rows(), folder / name)
    told = run("audit", f"{name}::houses", *COLUMNS).stderr
    assert f"{name}: there is no table 'houses'; did you mean 'homes'?" in told
    run("audit", f"{name}::homes", *COLUMNS)
    assert quick[0].n == 60
    told = run("audit", f"{name}::homes", *COLUMNS, "--json", name).stderr
    assert f"would overwrite {name}, which is read" in told


def test_stata_rows_are_recalibrated_into_a_file_of_another_format(folder):
    as_csv(rows(), folder / "fit.csv")
    as_stata(rows().drop_columns(["y"]), folder / "new.dta")
    fit = ("recalibrate", "fit.csv", "--label", "y", "--prob", "p", "--method", "platt")
    for name in ("better.csv", "better.jsonl", "better.parquet"):
        result = run(*fit, "--apply", "new.dta", "--out", name)
        assert result.exit_code == 0, result.output
    found = pa.csv.read_csv(folder / "better.csv")
    assert found.column_names[:3] == ["p", "age", "region"]
    assert found["region"].to_pylist() == rows()["region"].to_pylist()
    line = json.loads((folder / "better.jsonl").read_text().splitlines()[0])
    assert list(line.values()) == [column[0].as_py() for column in found.columns]


@pytest.mark.parametrize("name", ["b.dta", "b.sav", "b.xlsx", "b.sqlite"])
def test_formats_that_are_only_read_are_no_place_for_results(name, folder):
    as_csv(rows(), folder / "fit.csv")
    told = run("recalibrate", "fit.csv", *COLUMNS, "--apply", "fit.csv", "--out", name).stderr
    assert "--out must end with one of '.csv', '.tsv', '.jsonl', '.parquet', '.feather'" in told
    assert not (folder / name).exists()
