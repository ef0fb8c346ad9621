"""`itrust recalibrate`: fit, save, load, apply."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import itrust as it
from shell import invoke


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample = it.simulate.survey(80, rng=0).sample
    table = pa.table({"y": sample.y, "p": sample.p / 2, "age": sample.column("age").values})
    pa.csv.write_csv(table, "fit.csv")
    pa.parquet.write_table(table.drop_columns(["y"]).slice(0, 30), "new.parquet")


def run(*args):
    return invoke("recalibrate", *args, env={"COLUMNS": "200"})


COLUMNS = ("--label", "y", "--prob", "p", "--on", "age")
APPLY = ("--apply", "new.parquet", "--out")


def test_fit_save_load_and_apply_agree(tmp_path):
    fitted = ["fit.csv", *COLUMNS, "--save", "r.json", "--apply", "new.parquet", "--out", "a.csv"]
    result = run(*fitted)
    assert result.exit_code == 0, result.output
    assert "fitted local on 80 rows of fit.csv" in result.stdout
    assert "repaired 30 rows of new.parquet" in result.stdout
    loaded = ["--load", "r.json", "--prob", "p", "--apply", "new.parquet", "--out", "b.parquet"]
    result = run(*loaded, "--column", "q")
    assert result.exit_code == 0, result.output
    a, b = pa.csv.read_csv(tmp_path / "a.csv"), pa.parquet.read_table(tmp_path / "b.parquet")
    assert a.column_names == ["p", "age", "p_repaired"]
    assert b.column_names == ["p", "age", "q"]
    assert a["p_repaired"].to_numpy() == pytest.approx(b["q"].to_numpy())
    assert a["p_repaired"].to_numpy().mean() > a["p"].to_numpy().mean() + 0.1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["fit.csv", *COLUMNS], "nothing to do"),
        (["--save", "r.json"], "name either a file to fit on or --load"),
        (["fit.csv", "--load", "r.json"], "name either a file to fit on or --load"),
        (["fit.csv", "--apply", "new.parquet"], "--apply FILE and --out FILE go together"),
        (["--load", "no.json", "--apply", "a", "--out", "b.csv"], "there is no file 'no.json'"),
        (["fit.csv", *COLUMNS, *APPLY, "b.xls"], "--out must end with"),
        (["fit.csv", *COLUMNS, "--save", "fit.csv"], "would overwrite"),
        (
            ["fit.csv", *COLUMNS, "--apply", "new.parquet", "--out", "new.parquet"],
            "would overwrite",
        ),
        (["fit.csv", *COLUMNS, "--save", "r.json", "--method", "plat"], "did you mean 'platt'?"),
        (["fit.csv", *COLUMNS, "--prob", "age", "--save", "r.json"], "name one column"),
        (
            ["fit.csv", *COLUMNS, "--apply", "fit.csv", "--out", "b.csv", "--column", "y"],
            "has a column 'y' already",
        ),
    ],
)
def test_what_is_unclear_gets_one_sentence_and_makes_nothing(args, told, tmp_path):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
