"""Cells that a spreadsheet would compute: found, counted, and quoted where that was asked for."""

import csv
import gzip
import io
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust import InputError
from itrust.data import FormulaCells, formula_cells
from itrust.recalibrate import Platt
from shell import invoke

FORMULAS = (
    *("=1+1", "+A1", "-A1", "@SUM(A1)", "-1+cmd|' /C calc'!A0", "=HYPERLINK(0)", " =1", "\t=1"),
    *(
        "\tx",
        "\rx",
        "\uff1d1",
        "\uff0bA1",
        "\uff0dA1",
        "\uff20x",
        "\u22121+x",
        "\ufeff=1",
        "\xa0=1",
    ),
    *("-2020-01-01", "+49 170 1234567", "-e5", "--1", "-3.5.1", "-1,2,3", "+1 2", "-=1"),
)
PLAIN = (
    *("-3.5", "+1e5", "-3,5", " -3.5 ", "-1,234.5", "-1.234,5", "+.5", "-5%", "-inf", "+Infinity"),
    *("", " ", "-", "--", "+", "a=1", "1-2", "2020-01-01", "'=1", "x@y.z", "-0", "+12'345", "1+1"),
)


def is_formula(text):
    return formula_cells(pa.chunked_array([[text]]))[0].as_py()


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_a_spreadsheet_would_compute_is_found(text):
    assert is_formula(text)


@pytest.mark.parametrize("text", PLAIN)
def test_numbers_and_plain_text_are_left_alone(text):
    assert not is_formula(text)


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False), st.sampled_from([repr, "{:+.3g}".format, "{:+,.2f}".format]))
def test_every_number_stays_a_number(number, told):
    assert not is_formula(told(number))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=12))
def test_what_is_quoted_is_no_formula_any_more(text):
    cells = FormulaCells(quotes=True)
    (found,) = cells.rows(pa.table({"a": [text]}))["a"].to_pylist()
    assert found == ("'" + text if cells.count else text)
    assert not is_formula(found)


def test_categories_and_missing_cells_are_looked_at_as_well():
    column = pa.chunked_array([pa.array(["=1", None, "b", "=1"]).dictionary_encode()])
    cells = FormulaCells(quotes=True)
    found = cells.rows(pa.table({"a": column, "n": [-1, -2, -3, -4]}))
    assert found["a"].to_pylist() == ["'=1", None, "b", "'=1"]
    assert found["n"].to_pylist() == [-1, -2, -3, -4]
    assert cells.count == 2
    assert formula_cells(pa.chunked_array([[]], pa.string())).to_pylist() == []


HOSTILE = "=cmd|' /C calc'!A0"
ROWS = [
    {"p": "0.2", "=id": HOSTILE, "n": "-3.5", "t": "a;=1+1"},
    {"p": "0.7", "=id": "x", "n": "-4", "t": '"@"'},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(60)
    Platt().fit(it.Sample(rng.random(60) < p, p)).save("r.json")
    return tmp_path


def write(path, separator, packed=False):
    out = io.StringIO()
    writer = csv.DictWriter(out, list(ROWS[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(ROWS)
    raw = re.sub(r"(\d)\.(\d)", r"\1,\2", out.getvalue()) if separator == ";" else out.getvalue()
    path.write_bytes(gzip.compress(raw.encode()) if packed else raw.encode())
    return raw


def applied(source, out, *more):
    return invoke(
        *("recalibrate", "--load", "r.json", "--prob", "p", "--apply", source, "--out", out, *more),
        env={"COLUMNS": "200"},
    )


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ","), ("b.csv", ";"), ("c.tsv", "\t"), ("d.csv.gz", ",")]
)
def test_cells_and_names_are_quoted_where_it_was_asked_for(folder, name, separator):
    write(folder / name, separator, name.endswith(".gz"))
    result = applied(name, f"out-{name}", "--safe-cells")
    assert result.exit_code == 0, result.output
    assert f"2 cells of out-{name} quoted" in result.stderr
    raw = (folder / f"out-{name}").read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
    header, first, second = csv.reader(text.splitlines(), delimiter=separator)
    assert header == ["p", "'=id", "n", "t", "p_recalibrated"]
    assert first[1:4] == ["'" + HOSTILE, "-3,5" if separator == ";" else "-3.5", "a;=1+1"]
    assert second[1:4] == ["x", "-4", '"@"']


def test_without_it_nothing_changes_but_a_note(folder):
    raw = write(folder / "a.csv", ",")
    result = applied("a.csv", "out.csv")
    assert result.exit_code == 0, result.output
    told = "a spreadsheet would take the text of 2 cells of out.csv for a formula"
    assert told in result.stderr
    assert "--safe-cells quotes it" in result.stderr
    found = (folder / "out.csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0] for line in found] == raw.splitlines()
    quiet = applied("a.csv", "again.csv", "--quiet")
    assert "spreadsheet" not in quiet.stderr


def test_text_of_files_with_types_is_quoted_as_well(folder):
    pa.parquet.write_table(pa.table({"p": [0.2, 0.7], "who": [HOSTILE, "b"]}), "a.parquet")
    result = applied("a.parquet", "out.csv", "--safe-cells")
    assert "1 cell of out.csv quoted" in result.stderr
    assert "'" + HOSTILE in (folder / "out.csv").read_text()


@pytest.mark.parametrize("out", ["out.parquet", "out.feather", "out.jsonl"])
def test_other_files_have_no_cells_to_quote(folder, out):
    write(folder / "a.csv", ",")
    result = applied("a.csv", out, "--safe-cells")
    assert result.exit_code == 2
    assert "--safe-cells is for .csv and .tsv files" in result.stderr
    assert not (folder / out).exists()


@pytest.mark.usefixtures("folder")
def test_the_option_needs_a_file_to_write():
    result = invoke("recalibrate", "--load", "r.json", "--save", "s.json", "--safe-cells")
    assert result.exit_code == 2
    assert "--safe-cells is about the file of --apply" in result.stderr


def test_names_that_would_be_alike_are_refused(folder):
    (folder / "a.csv").write_text("p,=a,'=a\n0.2,x,y\n0.3,x,y\n")
    result = applied("a.csv", "out.csv", "--safe-cells")
    assert result.exit_code == 2
    assert "two columns would be called" in result.stderr
    assert not (folder / "out.csv").exists()


def test_in_python_a_scan_is_written_with_safe_cells_and_found_again(folder):
    rows = [f"{y},{p},-x{y}" for y, p in ((0, 0.2), (1, 0.7), (1, 0.6), (0, 0.4))]
    (folder / "a.csv").write_text("\n".join(["y,p,t", *rows, ""]))
    learned = it.recalibrate.load("r.json")
    scan = it.scan("a.csv", label="y", prob="p", on=[])
    told = learned.apply(scan, "out.csv", safe_cells=True)
    assert told.load().n == 4
    assert "'-x0" in (folder / "out.csv").read_text()
    (folder / "b.csv").write_text("\n".join(["=y,p,t", *rows, ""]))
    with pytest.raises(InputError, match="safe_cells the column '=y' would be called"):
        learned.apply(it.scan("b.csv", label="=y", prob="p", on=[]), "o.csv", safe_cells=True)
