"""What the command says of files that are not as they should be."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import itrust as it
from itrust.cli import audit as audit_command
from itrust.recalibrate import Application
from shell import invoke

COLUMNS = ("--label", "y", "--prob", "p", "--on", "age", "--draws", "79")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(*args):
    return invoke("audit", *args, env={"COLUMNS": "300"})


def refused(*args):
    result = audit(*args)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


def rows(n=60, seed=0):
    sample = it.simulate.survey(n, rng=seed).sample
    return pa.table({"y": sample.y, "p": sample.p, "age": sample.column("age").values})


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("twice.csv", b"y,p,age,age\n1,.5,3,4\n0,.2,3,5\n", "'age' stands more than once"),
        ("header.csv", b"y,p,age\n", "header.csv holds no rows"),
        ("empty.csv", b"", "empty.csv is empty"),
        ("names.csv", b"y,p,age,\xff\n1,.5,3,4\n", "names.csv: the names of the columns are not"),
    ],
)
def test_the_sentence_names_the_file(name, content, told, folder):
    (folder / name).write_bytes(content)
    said = refused(name, *COLUMNS)
    assert told in said
    assert name in said


def test_columns_of_one_name_are_refused_in_parquet_too():
    table = pa.table([[1, 0], [0.5, 0.2], [3, 4], [3, 5]], names=["y", "p", "age", "age"])
    pa.parquet.write_table(table, "twice.parquet")
    said = refused("twice.parquet", *COLUMNS)
    assert "twice.parquet: names of columns must differ; 'age' stands more than once" in said
    with pytest.raises(it.InputError, match="names of columns must differ"):
        it.scan("twice.parquet", label="y", prob="p")
    pa.feather.write_feather(table, "twice.feather")
    assert "twice.feather: names of columns must differ" in refused("twice.feather", *COLUMNS)


@pytest.mark.parametrize("option", ["--report", "--junit", "--summary"])
def test_only_json_goes_to_standard_output(option, folder):
    pa.csv.write_csv(rows(), "homes.csv")
    told = refused("homes.csv", *COLUMNS, option, "-")
    assert f"{option} cannot go to standard output; name a file" in told
    assert not (folder / "-").exists()


def test_a_page_of_the_demo_and_what_was_learned_are_no_stream(folder):
    assert invoke("demo", "--report", "-").exit_code == 2
    pa.csv.write_csv(rows(), "homes.csv")
    assert invoke("recalibrate", "homes.csv", "--save", "-").exit_code == 2
    assert not (folder / "-").exists()


def test_folders_of_several_formats_are_refused(folder):
    (folder / "runs").mkdir()
    pa.csv.write_csv(rows(), "runs/a.csv")
    pa.parquet.write_table(rows(), "runs/a.parquet")
    for name in ("runs", "runs/*"):
        told = refused(name, *COLUMNS)
        assert f"{name} holds files of several formats, CSV and Parquet; name those of one" in told
    assert audit("runs/*.csv", *COLUMNS).exit_code == 0


def test_the_number_of_files_and_columns_in_names_of_folders_are_told(folder):
    for year in (2020, 2021):
        (folder / "runs" / f"year={year}").mkdir(parents=True)
        pa.parquet.write_table(rows(), f"runs/year={year}/a.parquet")
    result = audit("runs", *COLUMNS)
    assert result.exit_code == 0, result.output
    assert "reading 2 files of runs" in result.stderr
    assert "names of folders are columns, too: 'year'" in result.stderr
    assert audit("runs", *COLUMNS, "--quiet").stderr == ""
    result = audit("runs/year=2020", *COLUMNS)
    assert "names of folders" not in result.stderr
    assert "reading" not in result.stderr


def test_whole_labels_are_shown_as_such(folder):
    pa.csv.write_csv(rows(), "homes.csv")
    said = refused("homes.csv", *COLUMNS, "--positive", "7")
    assert "--positive 7 is not among the labels 0, 1;" in said
    (folder / "two.csv").write_text("y,p,age\n1,.2,3\n2,.3,4\n")
    assert "say which value counts as 1 with --positive 1 or --positive 2" in refused(
        "two.csv", *COLUMNS
    )


def test_advice_can_be_pasted_into_a_shell(folder):
    """Unquoted, `--positive >50K` would empty a file of that name."""
    (folder / "income.csv").write_text("y,p,hours-per-week\n>50K,.2,3\n<=50K,.3,4\n")
    columns = ("--label", "y", "--prob", "p", "--on", "hours-per-week")
    said = refused("income.csv", *columns)
    assert "--positive '<=50K' or --positive '>50K'" in said
    said = refused("income.csv", *columns, "--positive", ">50K", "--task", "mean(hours-per-week)")
    assert "In formulas it stands in backticks: `hours-per-week`" in said
    assert "--draws takes a whole number" in refused("income.csv", *columns, "--draws", "ten")


def test_the_column_of_a_wrong_probability_is_named(folder):
    (folder / "two.csv").write_text("y,p,q,age\n1,.2,.3,3\n0,.3,1.3,4\n")
    said = refused("two.csv", *COLUMNS, "--prob", "q")
    assert "two.csv: --prob q must lie in [0, 1]; line 3 has 1.3" in said


def test_junk_in_a_value_is_spelt_out(folder):
    filler = "1,.5,3\n0,.2,4\n" * 700_000  # what a column holds is told from the first 8 MB
    (folder / "junk.csv").write_bytes(f"y,p,age\n{filler}0,".encode() + b"\xff\x01z,3\n")
    said = refused("junk.csv", *COLUMNS)
    assert r"\x01z" in said
    assert "\x01" not in said


def test_the_line_of_a_wrong_value_is_named(folder):
    """Also where values hold line ends, lines are empty, or the file is compressed."""
    text = 'y,p,note\n1,.2,"a\nb"\n\n0,.3,c\n1,1.3,"d\ne"\n'
    (folder / "a.csv").write_text(text)
    (folder / "b.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.csv", "b.csv.gz"):
        said = refused(name, "--label", "y", "--prob", "p", "--on", "note")
        assert f"{name}: --prob p must lie in [0, 1]; line 6 has 1.3" in said


def test_the_row_of_a_typed_file_is_counted_in_words(folder):
    (folder / "many").mkdir()
    pa.parquet.write_table(rows(), "many/a.parquet")
    wrong = rows().set_column(1, "p", [[*[0.5] * 20, 1.3, *[0.5] * 39]])
    pa.parquet.write_table(wrong, "many/b.parquet")
    said = refused("many", *COLUMNS)
    assert "b.parquet: --prob p must lie in [0, 1]; the 21st row has 1.3" in said


def partitioned(folder, ending="parquet"):
    for seed, (year, region) in enumerate(((2020, "south"), (2020, "north"), (2021, "a%2Fb"))):
        place = folder / "runs" / f"year={year}" / f"region={region}"
        place.mkdir(parents=True)
        write = {"parquet": pa.parquet.write_table, "csv": pa.csv.write_csv}[ending]
        write(rows(60, seed), place / f"part-0.{ending}")


def test_columns_in_names_of_folders_are_judged_on_as_any_other(folder):
    partitioned(folder)
    chosen = ("--on", "year,region", "--where", "year < 2022", "--json", "-")
    columns = ("--label", "y", "--prob", "p", "--draws", "39", "--quiet")
    result = audit("runs", *columns, *chosen)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["on"] == ["year", "region"]
    assert found["n"] == 180
    tables = []
    for seed, year, region in ((1, 2020, "north"), (0, 2020, "south"), (2, 2021, "a/b")):
        table = rows(60, seed).append_column("year", [[year] * 60])
        tables.append(table.append_column("region", [[region] * 60]))
    pa.parquet.write_table(pa.concat_tables(tables), "plain.parquet")
    plain = json.loads(audit("plain.parquet", *columns, *chosen).stdout)
    assert plain["pvalue"] == found["pvalue"]
    assert plain["parts"][0]["diagnosis"]["groups"] == found["parts"][0]["diagnosis"]["groups"]
    everything = audit("runs", *columns, "--on", "all", "--json", "-")
    assert json.loads(everything.stdout)["on"] == ["age", "year", "region"]
    assert "did you mean 'region'" in refused("runs", *columns, "--on", "regoin")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_recalibrated_rows_have_the_columns_in_names_of_folders(folder, ending):
    partitioned(folder, ending)
    roles = ("--label", "y", "--prob", "p", "--on", "year")
    names = ("--apply", "runs", "--out", f"out.{ending}")
    result = invoke("recalibrate", "runs", *roles, "--method", "local", *names)
    assert result.exit_code == 0, result.output
    out = {"parquet": pa.parquet.read_table, "csv": pa.csv.read_csv}[ending](f"out.{ending}")
    assert out["year"].to_pylist() == [2020] * 120 + [2021] * 60
    assert out["region"].unique().to_pylist() == ["north", "south", "a/b"]


def test_the_checksum_is_that_of_the_file(folder):
    pa.csv.write_csv(rows(), "homes.csv")
    made = json.loads(audit("homes.csv", *COLUMNS, "--json", "-").stdout)["provenance"]
    assert made["sha256"] == hashlib.sha256((folder / "homes.csv").read_bytes()).hexdigest()


def test_the_checksum_of_several_files_is_that_of_what_sha256sum_prints(folder):
    partitioned(folder)
    made = json.loads(audit("runs", *COLUMNS, "--json", "-").stdout)["provenance"]
    names = [f"year=2020/region={name}/part-0.parquet" for name in ("north", "south")]
    names.append("year=2021/region=a%2Fb/part-0.parquet")
    sums = [hashlib.sha256((folder / "runs" / name).read_bytes()).hexdigest() for name in names]
    printed = "".join(f"{found}  {name}\n" for found, name in zip(sums, names, strict=True))
    assert made["sha256"] == hashlib.sha256(printed.encode()).hexdigest()
    os.rename("runs/year=2021", "runs/year=2022")  # other values in the same bytes
    other = json.loads(audit("runs", *COLUMNS, "--json", "-").stdout)["provenance"]
    assert other["sha256"] != made["sha256"]


def appending(function, name="homes.csv"):
    def wrapped(*args, **kwargs):
        with open(name, "a") as file:
            file.write("1,.5,40\n")
        return function(*args, **kwargs)

    return wrapped


def test_a_file_that_changes_between_checksum_and_reading_is_refused(folder, monkeypatch):
    pa.csv.write_csv(rows(), "homes.csv")
    late = appending(audit_command.read_rows)
    monkeypatch.setattr(audit_command, "read_rows", late)
    told = refused("homes.csv", *COLUMNS, "--json", "out.json")
    assert "homes.csv grew from " in told
    assert "; run the command again when nobody writes to it, or copy it first" in told
    assert not (folder / "out.json").exists()


def test_a_file_that_changes_while_its_checksum_is_computed_is_refused(monkeypatch):
    pa.csv.write_csv(rows(), "homes.csv")
    late = appending(hashlib.file_digest)
    monkeypatch.setattr(hashlib, "file_digest", late)
    assert "homes.csv grew from " in refused("homes.csv", *COLUMNS)


def test_a_file_that_changes_after_it_was_read_does_not_change_its_checksum(folder, monkeypatch):
    """Rows in memory stay what they were, and so does the checksum of where they came from."""
    pa.csv.write_csv(rows(), "homes.csv")
    before = hashlib.sha256((folder / "homes.csv").read_bytes()).hexdigest()
    monkeypatch.setattr(audit_command, "_judge", appending(audit_command._judge))
    made = json.loads(audit("homes.csv", *COLUMNS, "--json", "-").stdout)
    assert made["n"] == 60
    assert made["provenance"]["sha256"] == before


@pytest.mark.parametrize("step", [(it.recalibrate.Platt, "fit"), (Application, "__call__")])
def test_recalibration_applies_to_the_rows_that_it_began_with(folder, monkeypatch, step):
    """A file is read for the fit, for the predictions, and to be written with them."""
    pa.csv.write_csv(rows(), "homes.csv")
    monkeypatch.setattr(*step, appending(getattr(*step)))
    options = ("--label", "y", "--prob", "p", "--on", "none", "--method", "platt")
    places = ("--apply", "homes.csv", "--out", "out.csv", "--save", "fit.json")
    result = invoke("recalibrate", "homes.csv", *options, *places)
    assert result.exit_code == 2, result.output
    assert "homes.csv grew from " in " ".join(result.stderr.split())
    assert os.listdir(folder) == ["homes.csv"]


def test_a_file_that_may_not_be_read_is_one_sentence(monkeypatch):
    pa.csv.write_csv(rows(), "homes.csv")
    really = Path.open

    def denied(self, *args, **settings):
        if self.name == "homes.csv":
            raise PermissionError(13, "Permission denied")
        return really(self, *args, **settings)

    monkeypatch.setattr(Path, "open", denied)
    assert "homes.csv may not be read by this user" in refused("homes.csv")


def test_a_file_that_vanishes_before_its_checksum_is_one_sentence(monkeypatch):
    pa.csv.write_csv(rows(), "homes.csv")

    def gone(path):
        path.unlink(missing_ok=True)
        return path.read_bytes()

    monkeypatch.setattr("itrust.cli.inputs._checksum", gone)
    told = refused("homes.csv", *COLUMNS)
    assert "homes.csv has vanished since it was first looked at" in told
