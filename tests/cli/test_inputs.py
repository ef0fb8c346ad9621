"""What the command says of files that are not as they should be."""

import gzip

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import itrust as it
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


def rows(n=60):
    sample = it.simulate.survey(n, rng=0).sample
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
    found = it.scan("twice.parquet", label="y", prob="p")  # which does not read them
    assert found.load().n == 2
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


def test_the_number_of_files_and_partition_keys_are_told(folder):
    for year in (2020, 2021):
        (folder / "runs" / f"year={year}").mkdir(parents=True)
        pa.parquet.write_table(rows(), f"runs/year={year}/a.parquet")
    result = audit("runs", *COLUMNS)
    assert result.exit_code == 0, result.output
    assert "reading 2 files of runs" in result.stderr
    assert "partition keys in names of folders are not read as columns: 'year'" in result.stderr
    assert audit("runs", *COLUMNS, "--quiet").stderr == ""
    told = refused("runs", *COLUMNS, "--on", "year")
    assert "runs has no column 'year'; it stands in names of folders only" in told
    result = audit("runs/year=2020", *COLUMNS)
    assert "partition" not in result.stderr
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
    assert r"\ufffd\x01z" in said
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
