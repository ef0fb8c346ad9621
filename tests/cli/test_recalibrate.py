"""`itrust recalibrate`: fit, save, load, apply."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
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
    assert "recalibrated 30 rows of new.parquet" in result.stdout
    loaded = ["--load", "r.json", "--prob", "p", "--apply", "new.parquet", "--out", "b.parquet"]
    result = run(*loaded, "--column", "q")
    assert result.exit_code == 0, result.output
    a, b = pa.csv.read_csv(tmp_path / "a.csv"), pa.parquet.read_table(tmp_path / "b.parquet")
    assert a.column_names == ["p", "age", "p_recalibrated"]
    assert b.column_names == ["p", "age", "q"]
    assert a["p_recalibrated"].to_numpy() == pytest.approx(b["q"].to_numpy())
    assert a["p_recalibrated"].to_numpy().mean() > a["p"].to_numpy().mean() + 0.1


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


FIT = ("fit.csv", *COLUMNS, "--method", "platt")
TEXT = (
    "id,p,age,day,code,note\n"
    "12345678901234567,0.50,30,2020-01-01,001,NA\n"
    '12345678901234568,.2,41,2020-02-30,1e5,"a, ""b"""\n'
)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_other_columns_of_a_text_file_stay_as_they_are(ending, tmp_path):
    text = TEXT if ending == "csv" else TEXT.replace(",", "\t").replace('"a\t', '"a,')
    (tmp_path / f"new.{ending}").write_text(text)
    out = f"out.{ending}"
    result = run(*FIT, "--apply", f"new.{ending}", "--out", out)
    assert result.exit_code == 0, result.output
    separator = "," if ending == "csv" else "\t"
    lines = (tmp_path / out).read_text().splitlines()
    assert [line.rsplit(separator, 1)[0] for line in lines] == text.splitlines()


def test_text_becomes_parquet_without_loss(tmp_path):
    (tmp_path / "new.csv").write_text(TEXT)
    assert run(*FIT, "--apply", "new.csv", "--out", "out.parquet").exit_code == 0
    found = pa.parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert found["id"] == [12345678901234567, 12345678901234568]
    assert found["p"] == [0.5, 0.2]
    assert found["day"] == ["2020-01-01", "2020-02-30"]
    assert found["code"] == ["001", "1e5"]
    assert found["note"] == ["NA", 'a, "b"']


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_other_columns_of_a_typed_file_keep_their_types(ending, tmp_path):
    kept = pa.table(
        {
            "p": pa.array([0.5, 0.2], pa.float32()),
            "age": pa.array([30, 41], pa.int16()),
            "at": pa.array([1, 2], pa.timestamp("ms", "Europe/Vienna")),
            "day": pa.array([1, None], pa.date32()),
            "group": pa.array(["b", "a"]).dictionary_encode(),
            "id": [2**60 + 1, 2],
            "parts": [[1, 2], []],
        }
    )
    write = {"parquet": pa.parquet.write_table, "feather": pa.feather.write_feather}[ending]
    read = {"parquet": pa.parquet.read_table, "feather": pa.feather.read_table}[ending]
    write(kept, f"kept.{ending}")
    result = run(*FIT, "--apply", f"kept.{ending}", "--out", f"out.{ending}")
    assert result.exit_code == 0, result.output
    found = read(f"out.{ending}").drop_columns(["p_recalibrated"])
    assert found.schema.types == kept.schema.types
    assert found.to_pydict() == kept.to_pydict()
    result = run(*FIT, "--apply", f"kept.{ending}", "--out", "out.csv")
    assert result.exit_code == 2
    assert "take .parquet" in " ".join(result.stderr.split())
    assert not (tmp_path / "out.csv").exists()


def test_categories_of_several_files_stay_categories(tmp_path):
    (tmp_path / "many").mkdir()
    for level in "ab":
        part = pa.table({"p": [0.5], "age": [3], "g": pa.array([level]).dictionary_encode()})
        pa.parquet.write_table(part, tmp_path / "many" / f"{level}.parquet")
    result = run(*FIT, "--apply", "many", "--out", "out.feather")
    assert result.exit_code == 0, result.output
    assert "reading 2 files of many" in result.stderr
    found = pa.feather.read_table(tmp_path / "out.feather")
    assert pa.types.is_dictionary(found.schema.field("g").type)
    assert found["g"].to_pylist() == ["a", "b"]


@pytest.fixture
def saved(tmp_path):
    assert run("fit.csv", *COLUMNS, "--method", "proportional", "--save", "r.json").exit_code == 0
    return tmp_path / "r.json"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--on", "age,p"], "--on: with --load nothing is fitted"),
        (["--method", "platt"], "--method: with --load nothing is fitted"),
        (["--label", "y"], "--label: with --load nothing is fitted"),
        (["--weights", "w"], "--weights: with --load nothing is fitted"),
    ],
)
def test_options_of_a_fit_are_refused_where_a_saved_one_is_loaded(args, told, saved):
    result = run("--load", saved.name, *args, *APPLY, "o.csv")
    assert result.exit_code == 2, result.output
    assert told in result.stderr


def test_settings_are_no_contradiction_of_a_saved_fit(saved):
    (saved.parent / "itrust.toml").write_text('on = ["y"]\nlabel = "z"\nprob = "q"\n')
    result = run("--load", saved.name, *APPLY, "o.csv")
    assert result.exit_code == 0, result.output
    assert "recalibrating 'p', the column of the fit" in result.stderr


def test_a_saved_fit_knows_its_column(saved):
    assert it.recalibrate.load(saved).prob_ == "p"
    pa.csv.write_csv(pa.table({"q": [0.5], "age": [3]}), "other.csv")
    result = run("--load", saved.name, "--prob", "q", "--apply", "other.csv", "--out", "o.csv")
    assert result.exit_code == 0, result.output
    assert "the fit was on 'p'; it is applied to 'q'" in result.stderr
    facts = it.recalibrate.load(saved).to_dict()
    facts["prob"] = None  # as from a fit in Python, where the column has no name
    saved.write_text(json.dumps(facts))
    result = run("--load", saved.name, *APPLY, "o.csv")
    assert result.exit_code == 2
    assert "name the column of probabilities with --prob" in result.stderr


@pytest.mark.parametrize("method", ["local", "multicalibration"])
def test_unseen_levels_are_counted_aloud(method, tmp_path):
    fit = {"y": [0, 1] * 20, "p": [0.4, 0.6] * 20, "g": ["a", "b"] * 20}
    pa.csv.write_csv(pa.table(fit), "groups.csv")
    columns = ("--label", "y", "--prob", "p", "--on", "g", "--method", method)
    assert run("groups.csv", *columns, "--save", "g.json").exit_code == 0
    pa.csv.write_csv(pa.table({"p": [0.5] * 4, "g": ["a", "c", "d", None]}), "new.csv")
    again = ("--load", "g.json", "--apply", "new.csv", "--out", "o.csv", "--missing")
    result = run(*again, "level")
    assert result.exit_code == 0, result.output
    told = "2 rows of new.csv with a level of 'g' that the fit has not seen"
    assert told in result.stderr
    for missing in ("error", "drop"):
        result = run(*again, missing)
        assert result.exit_code == 2
        assert "pass --missing level" in result.stderr
        assert "drop" not in result.stderr
    learned = it.recalibrate.load(tmp_path / "g.json")
    assert learned.unseen({"g": ["a", "b"]}) == {}


def test_rows_outside_and_a_fit_that_changed_nothing_are_told():
    rng = np.random.default_rng(0)
    x, p = rng.uniform(-1, 1, 500), rng.uniform(0.2, 0.8, 500)
    columns = ("--label", "y", "--prob", "p", "--on", "x", "--apply", "new.csv", "--out", "o.csv")
    pa.csv.write_csv(pa.table({"p": [0.4, 0.6, 0.5], "x": [0.0, 3.0, -4.0]}), "new.csv")
    wrong = rng.random(500) < np.where(x > 0, p**3, p**0.3)
    for y, told in (
        (wrong, "2 of 3 rows lie far from"),
        (rng.random(500) < p, "nothing was changed"),
    ):
        pa.csv.write_csv(pa.table({"y": y.astype(int), "p": p, "x": x}), "rows.csv")
        result = run("rows.csv", *columns)
        assert result.exit_code == 0, result.output
        assert told in result.stdout


def test_methods_that_read_the_prediction_alone_need_no_covariates():
    pa.csv.write_csv(pa.table({"p": [0.5, 0.6]}), "bare.csv")
    args = ("--label", "y", "--prob", "p", "--apply", "bare.csv", "--out", "o.csv")
    assert run("fit.csv", *args, "--method", "beta").exit_code == 0
    result = run("fit.csv", *args)
    assert result.exit_code == 2
    assert "name the covariates to recalibrate by" in result.stderr
    result = run("fit.csv", "--label", "y", "--prob", "p,age", "--on", "age", "--save", "r.json")
    assert result.exit_code == 2


def test_a_long_fit_is_announced_unless_quiet():
    args = ("fit.csv", *COLUMNS, "--save", "r.json")
    assert "fitting local on 80 rows" in run(*args).stderr
    assert run(*args, "--quiet").stderr == ""


def test_help_is_about_recalibration():
    text = run("--help").stdout
    assert "Again for more models" not in text
    assert "Covariates to judge on" not in text
    for name in it.recalibrate.METHODS:
        assert f"\n  {name} " in text
    assert "pip install MCGrad" in text
    assert "--load learned.json --prob p --on" not in text


def test_predict_of_a_sample_names_apply():
    sample = it.simulate.survey(80, rng=0).sample
    learned = it.recalibrate.Platt().fit(sample)
    with pytest.raises(it.InputError, match=r"for a Sample use \.apply\(sample\)"):
        learned.predict(sample)
    with pytest.raises(it.InputError, match=r"for a Population use \.predict\(rows\.p, rows\)"):
        learned.predict(it.Population(sample.p))
    assert learned.prob_ is None
