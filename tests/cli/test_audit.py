"""`itrust audit` and the other commands as users and scripts meet them."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import itrust as it
from itrust._core import write_all
from itrust.cli import audit as audit_module
from itrust.cli import command as guard
from itrust.cli.app import app
from itrust.cli.inputs import opened
from itrust.cli.options import AUDIT, Options
from itrust.cli.roles import with_other_columns
from shell import invoke

DRAWS = ["--draws", "79"]
COLUMNS = ["--label", "y", "--prob", "p", "--on", "age,region"]


def rows(n=300, trustworthy=False, seed=4):
    sample = it.simulate.survey(n, rng=seed, trustworthy=trustworthy).sample
    region = sample.column("region")
    return pa.table(
        {
            "y": sample.y.astype(int),
            "p": sample.p,
            "age": sample.column("age").values,
            "region": [region.levels[int(code)] for code in region.values],
            "half": np.full(n, 0.5),
            "w": np.ones(n) + (np.arange(n) % 3),
            "unit": np.arange(n) // 2,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cli")
    pa.csv.write_csv(rows(), place / "homes.csv")
    return place


@pytest.fixture
def homes(folder):
    return str(folder / "homes.csv")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder of its own: no settings above, no file of ours in the way."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


run = invoke


def refused(*args, **settings):
    """One sentence on standard error, exit code 2, and nothing else."""
    result = run(*args, **settings)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    told = " ".join(line.strip() for line in result.stderr.splitlines())
    assert told.count("itrust: ") == 1
    assert not re.search(r"scipy|numpy|pandas|\w='|\w=\W|[A-Z]\w+\(\)", told)  # Python's words
    return told[told.index("itrust: ") :]


@pytest.fixture(scope="module")
def first(folder):
    """One audit with every output but the page, looked at by several tests."""
    names = {name: str(folder / f"out.{name}") for name in ("json", "xml", "md")}
    outputs = ["--json", names["json"], "--junit", names["xml"], "--summary", names["md"]]
    task = ["--task", 'mean(age | region == "west")']
    words = ["--title", "Homes, 2nd wave", "--model", "gbm 2.1"]
    result = run("audit", folder / "homes.csv", *COLUMNS, *DRAWS, *task, *words, *outputs)
    return result, names


def test_the_json_holds_the_numbers_that_python_gives(first, folder):
    result, names = first
    assert result.exit_code == 0, result.output
    found = json.loads(Path(names["json"]).read_text())
    sample = it.scan(folder / "homes.csv", label="y", prob="p", on=["age", "region"]).load()
    audit = it.audit(sample, ['mean(age | region == "west")'], draws=79, rng=0)
    expected = json.loads(json.dumps(audit.to_dict()))
    for name in ("n", "statistic", "pvalue", "verdict", "seed", "version", "schema", "sentence"):
        assert found[name] == expected[name]
    assert found["tasks"] == expected["tasks"]
    assert found["overall"] == expected["overall"]
    assert found["parts"][0]["charts"] == expected["parts"][0]["charts"]
    assert found["comparison"] is None
    assert found["withheld"] is None


def test_the_json_says_how_to_make_it_again(first):
    found = json.loads(Path(first[1]["json"]).read_text())["provenance"]
    assert found["command"].startswith("itrust audit ")
    assert "--seed 0" in found["command"]
    assert "--title 'Homes, 2nd wave' --model 'gbm 2.1'" in found["command"]
    assert (found["title"], found["model"]) == ("Homes, 2nd wave", "gbm 2.1")
    assert len(found["sha256"]) == 64


def test_without_a_gate_the_files_of_a_build_say_what_any_would_do(first):
    result, names = first
    assert result.exit_code == 0
    assert "(gate closed)" in Path(names["md"]).read_text()
    assert "<failure" in Path(names["xml"]).read_text()


def test_too_few_draws_are_refused_before_anything_is_read():
    told = refused("audit", "missing.csv", *COLUMNS, "--draws", "18")
    assert "--alpha 0.05 cannot be reached with 18 draws" in told
    assert "is 0.0526; take at least 19" in told


def test_the_result_is_on_stdout_and_remarks_on_stderr(first):
    result, _ = first
    first_line, *_, verdict = result.stdout.split("\n\nVERDICT  ")[0].partition("; mean prediction")
    assert first_line.endswith(" rows")
    assert "overall bias" in verdict
    assert "json in " in result.stderr
    assert "\x1b" not in result.stdout
    assert result.stdout.isascii()
    assert max(map(len, result.stdout.splitlines())) <= 80


def as_tsv(table, path):
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t"))


def as_gzip(table, path):
    pa.csv.write_csv(table, path.with_suffix(""))
    path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))


def as_folder(table, path):
    path.mkdir()
    pa.parquet.write_table(table.slice(0, 200), path / "a.parquet")
    pa.parquet.write_table(table.slice(200), path / "b.parquet")


FORMS = {
    "rows.tsv": as_tsv,
    "rows.csv.gz": as_gzip,
    "rows.parquet": lambda table, path: pa.parquet.write_table(table, path),
    "rows.feather": lambda table, path: pa.feather.write_feather(table, str(path)),
    "rows": as_folder,
}


@pytest.fixture
def quick(monkeypatch):
    """The audit replaced by its sample: what reading comes to, without the work."""
    seen = []

    def note(sample, *_args, **_settings):
        seen.append(sample)
        raise it.InputError("enough")

    monkeypatch.setattr(audit_module.it, "audit", note)
    return seen


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_file_gives_the_same_rows(name, tmp_path, quick):
    FORMS[name](rows(), tmp_path / name)
    assert refused("audit", name, *COLUMNS) == "itrust: enough"
    assert quick[0].n == 300
    assert quick[0].p == pytest.approx(rows()["p"].to_numpy())


@pytest.mark.parametrize("name", ["rows.tsv", "rows.csv.gz", "rows.parquet", "rows.feather"])
def test_standard_input_is_read_whatever_it_holds(name, tmp_path, quick):
    FORMS[name](rows(), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    refused("audit", "-", *COLUMNS, input=content)
    assert quick[0].p == pytest.approx(rows()["p"].to_numpy())


def test_weights_clusters_and_the_positive_label_arrive(homes, quick):
    refused("audit", homes, *COLUMNS, "--weights", "w", "--cluster", "unit", "--positive", "0")
    assert quick[0].weights[:3].tolist() == [1, 2, 3]
    assert quick[0].clusters == 150
    assert quick[0].y[0] == 1 - rows()["y"][0].as_py()


def test_obvious_columns_are_guessed_aloud(homes, quick):
    result = run("audit", homes, "--on", "age")
    assert len(quick) == 1
    assert "taking 'y' for --label" in result.stderr
    assert "taking 'p' for --prob" in result.stderr
    assert "taking" not in run("audit", homes, "--on", "age", "--quiet").stderr


def test_a_guess_that_is_not_obvious_is_refused(tmp_path):
    table = rows().append_column("score", rows()["p"])
    pa.csv.write_csv(table, tmp_path / "two.csv")
    assert "'p', 'score' could all be --prob" in refused("audit", "two.csv", "--on", "age")
    pa.csv.write_csv(table.drop_columns(["p", "score"]), tmp_path / "none.csv")
    told = refused("audit", "none.csv", "--label", "y", "--on", "age")
    assert "name the column with --prob; the columns are 'age'" in told


def test_covariates_are_never_guessed_but_listed(homes):
    told = refused("audit", homes, "--label", "y", "--prob", "p")
    assert "such as --on age,region, or --on all; --on none takes the prediction alone" in told
    assert "the columns left are 'age', 'region'" in told


@pytest.mark.parametrize("typed", ["none", ""])
def test_no_covariates_have_a_word_and_the_echoed_command_has_it(homes, typed):
    names = ["--label", "y", "--prob", "p"]
    result = run("audit", homes, *names, "--on", typed, *DRAWS, "--json", "a.json")
    assert result.exit_code == 0
    told = json.loads(Path("a.json").read_text())
    assert told["on"] == []
    assert " --on none " in told["provenance"]["command"]
    assert "judged on the prediction alone" in result.stdout
    assert not re.search(r"given\s*([.,;:(]|$)", " ".join(result.stdout.split()))
    pa.csv.write_csv(rows().select(["y", "p"]), "bare.csv")
    said = "there is no column left to judge on; --on none takes the prediction alone"
    assert said in refused("audit", "bare.csv")


def test_what_validators_print_is_in_the_files_unless_it_is_left_out(homes):
    for more in ([], ["--no-validation"]):
        result = run("audit", homes, *COLUMNS, *DRAWS, "--json", "a.json", *more)
        assert result.exit_code == 0
        told = json.loads(Path("a.json").read_text())
        assert (told["validation"] is None) == bool(more)
        assert told["provenance"]["command"].endswith("--no-validation") == bool(more)
        assert "validators" not in result.stdout
    assert "slope" not in run("audit", homes, *COLUMNS, *DRAWS).stdout


def test_grades_are_a_column_that_is_not_judged_on(homes):
    told = {}
    for more in ([], ["--grades", "region"], ["--grades", "region", "--stream"]):
        given = [*DRAWS, "--json", "a.json", *more]
        assert (
            run("audit", homes, "--label", "y", "--prob", "p", "--on", "age", *given).exit_code == 0
        )
        told[len(more)] = json.loads(Path("a.json").read_text())
    alone, graded, streamed = told.values()
    names = [own["name"] for own in graded["validation"]["grades"]]
    assert names == sorted(set(rows()["region"].to_pylist()))
    assert graded["validation"]["graded_by"] == "region"
    assert graded["validation"] == streamed["validation"]
    assert " --on age --grades region " in graded["provenance"]["command"]
    assert {name for name in alone if alone[name] != graded[name]} == {"validation", "provenance"}


def test_grades_that_are_no_column_are_refused(homes):
    named = ["audit", homes, *COLUMNS, "--grades"]
    told = refused(*named, "regoin")
    assert told.startswith("itrust: --grades: ")
    assert told.endswith("homes.csv has no column 'regoin'; did you mean 'region'?")
    assert "--grades: 'p' is the label or a probability" in refused(*named, "p")
    told = run(*named, "region", *DRAWS)
    assert "--report and --json write them" in " ".join(told.stderr.split())


def test_a_column_called_none_wins(quick):
    names = ["y", "p", "none", "region", "half", "w", "unit"]
    pa.csv.write_csv(rows().rename_columns(names), "n.csv")
    refused("audit", "n.csv", "--on", "none")
    refused("audit", "n.csv", "--on", "")
    assert [sample.names for sample in quick] == [("none",), ()]


def test_all_other_columns_on_demand(homes, quick):
    result = run("audit", homes, "--on", "all")
    assert quick[0].names == ("age", "region", "half", "w", "unit")
    assert "judged on all other columns: age, region, half" in result.stderr


def test_a_column_with_a_comma_in_its_name_is_found(quick):
    pa.csv.write_csv(
        rows().rename_columns(["y", "p", "a,b", "region", "half", "w", "unit"]), "c.csv"
    )
    refused("audit", "c.csv", "--on", "a,b", "--on", "region")
    assert quick[0].names == ("a,b", "region")


def test_tasks_may_need_columns_that_are_not_judged(homes, quick):
    refused("audit", homes, "--on", "age", "--task", 'mean(age | region == "west")')
    assert quick[0].names == ("age", "region")


def test_several_models_are_compared_and_the_first_is_judged(homes, tmp_path):
    args = ["--prob", "half", "--prob", "p", "--on", "age", "--gate", "--json", "a.json"]
    result = run("audit", homes, "--label", "y", *args, *DRAWS)
    assert result.exit_code == 1, result.output
    assert "'half' is judged, the first --prob" in " ".join(result.stderr.split())
    found = json.loads((tmp_path / "a.json").read_text())
    assert [model["name"] for model in found["comparison"]["models"]] == ["half", "p"]
    assert found["verdict"] == "miscalibrated"
    assert "differences, first minus second" in result.stdout


BAD_FILES = {
    "empty.csv": b"",
    "header.csv": b"y,p,age\n",
    "three.csv": b"y,p,age\n0,0.1,1\n1,0.2,2\n2,0.3,3\n",
    "high.csv": b"y,p,age\n0,0.1,1\n1,1.2,2\n1,0.3,3\n",
    "words.csv": b"y,p,age\nno,0.1,1\nyes,0.2,2\nyes,0.3,3\n",
    "gaps.csv": b"y,p,age\n0,0.1,\n1,0.2,2\n1,0.3,3\n",
    "broken.parquet": b"PAR1 and then nothing",
    "latin.csv": b"y,p,age\n0,0.1,\xe9\n1,0.2,b\n",
    "torn.csv.gz": gzip.compress(b"y,p,age\n0,0.1,1\n1,0.2,2\n" * 99)[:40],
}
COMPLAINTS = {
    "empty.csv": "empty.csv is empty",
    "header.csv": "header.csv holds no rows",
    "three.csv": "three.csv: --label y must have two values, not 0, 1, 2; the rarest is 2 (1 row, "
    "first in line 4)",
    "high.csv": "high.csv: --prob p must lie in [0, 1]; line 3 has 1.2 (turn logits z into "
    "1 / (1 + exp(-z)) first?)",
    "words.csv": "say which value counts as 1 with --positive no or --positive yes",
    "gaps.csv": "pass --missing level or --missing drop",
    "broken.parquet": "cannot be read",
    "latin.csv": "not UTF-8",
    "torn.csv.gz": "is it whole?",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_get_one_sentence_and_make_nothing(name, tmp_path):
    (tmp_path / name).write_bytes(BAD_FILES[name])
    told = refused("audit", name, "--label", "y", "--prob", "p", "--on", "age", "--json", "a.json")
    assert COMPLAINTS[name] in told
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--on", "aeg"], "--on: {} has no column 'aeg'; did you mean 'age'?"),
        (["--on", "age", "--label", "Y"], "has no column 'Y'; did you mean 'y'?"),
        (["--on", "age,age"], "--on names 'age' more than once"),
        (["--on", "age", "--weights", "wt"], "--weights: {} has no column 'wt'"),
        (["--on", "age", "--task", "mean(age"], "expected ')'"),
        (["--on", "age", "--task", "mean(aeg)"], "--task: {} has no column 'aeg'"),
        (["--on", "age", "--task", "mean(p)"], "is the label or a probability"),
        (["--on", "age", "--alpha", "2"], "alpha must lie between 0 and 1, not 2.0"),
        (["--on", "age", "--alpha", "x"], "--alpha takes a number"),
        (["--on", "age", "--draws", "3"], "draws"),
        (["--on", "age", "--seed", "-1"], "--seed must be a whole number of at least 0, not -1"),
        (["--on", "age", "--missing", "no"], "Invalid value for '--missing'"),
        (["--on", "age", "--json", "no/a.json"], "--json: there is no folder 'no'"),
        (["--on", "age", "--json", "."], "is a folder"),
        (["--on", "age", "--json", "a", "--junit", "./a"], "--json and --junit are the same file"),
        (["--on", "age", "--json", "{}"], "would overwrite"),
        (["--on", "age", "--json", "/dev/null"], "is not an ordinary file"),
        (["--onn", "age"], "No such option"),
    ],
)
def test_bad_options_get_one_sentence_and_make_nothing(args, told, homes, tmp_path):
    before = Path(homes).read_text()
    said = refused("audit", homes, *(arg.format(homes) for arg in args))
    assert told.format(homes) in said
    assert os.listdir(tmp_path) == []
    assert Path(homes).read_text() == before


def test_a_task_that_names_the_label_is_told_how_tasks_call_it(tmp_path):
    (tmp_path / "loans.csv").write_text("paid,p,age\n1,0.5,30\n0,0.4,40\n")
    roles = ("--label", "paid", "--prob", "p", "--on", "age")
    told = refused("audit", "loans.csv", *roles, "--task", "mean(age | paid == 1)")
    assert "'paid' is the label or a probability, no covariate" in told
    assert "in tasks the label is called y" in told


def test_a_missing_file_a_missing_argument_and_a_wrong_command():
    assert "there is no file 'nix.csv'" in refused("audit", "nix.csv", "--on", "a")
    assert "Missing argument 'FILE'" in refused("audit")
    assert "No such command 'adit'" in refused("adit")


def test_the_pointer_into_a_task_stays_in_place(homes):
    result = run("audit", homes, "--on", "age", "--task", "mean(age | region = 1)")
    *_, text, pointer = result.stderr.splitlines()
    assert text[pointer.index("^")] == "="


def test_an_unwritable_folder_is_refused(homes, tmp_path, monkeypatch):
    (tmp_path / "locked").mkdir(mode=0o500)
    if os.geteuid() == 0:  # who may write anywhere
        monkeypatch.setattr("itrust.cli.outputs.os.access", lambda *_: False)
    assert "cannot be written to" in refused("audit", homes, *COLUMNS, "--json", "locked/a.json")


def test_outputs_are_whole_or_absent(tmp_path):
    def new(path):
        path.write_text("new")

    def fail(path):
        path.write_text("half")
        raise OSError(28, "No space left on device", str(path))

    (tmp_path / "a").write_text("old")
    with pytest.raises(it.InputError, match="No space left"):
        write_all({tmp_path / "a": new, tmp_path / "b": fail})
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"
    write_all({tmp_path / "a": new})
    assert (tmp_path / "a").read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


def test_an_internal_error_says_how_to_report_it(homes, monkeypatch):
    def fail(*_args, **_settings):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(audit_module.it, "audit", fail)
    result = run("audit", homes, *COLUMNS, "--json", "a.json")
    assert result.exit_code == 70
    assert "internal error (ZeroDivisionError: oops)" in result.stderr
    assert "itrust doctor" in result.stderr
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("ITRUST_DEBUG", "1")
    assert "Traceback" in run("audit", homes, *COLUMNS).stderr


def test_an_interrupt_is_one_line_and_130(homes, monkeypatch, tmp_path):
    def stop(*_args, **_settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(audit_module.it, "audit", stop)
    result = run("audit", homes, *COLUMNS, "--json", "a.json")
    assert result.exit_code == 130
    assert result.stderr.strip() == "itrust: stopped"
    assert os.listdir(tmp_path) == []


def test_the_page_says_how_to_make_it_again(homes, tmp_path):
    result = run("audit", homes, *COLUMNS, *DRAWS, "--report", "page.html", "--min-cell", "5")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page.html").read_text()
    assert "itrust audit " in page
    assert hashlib.sha256(Path(homes).read_bytes()).hexdigest() in page
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_small_groups_stay_out_of_all_files(tmp_path):
    rng = np.random.default_rng(0)
    town = ["large"] * 290 + ["tiny"] * 6 + ["small"] * 104
    table = {"y": rng.integers(0, 2, 400), "p": rng.random(400), "town": town}
    pa.csv.write_csv(pa.table(table), tmp_path / "t.csv")
    names = {"--json": "a.json", "--summary": "a.md", "--junit": "a.xml", "--report": "a.html"}
    outputs = [str(part) for option in names.items() for part in option]
    result = run("audit", "t.csv", "--label", "y", "--prob", "p", "--on", "town", *DRAWS,
                 "--min-cell", "10", *outputs)  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["withheld"]["min_cell"] == 10
    groups = found["parts"][0]["diagnosis"]["groups"]["groups"]
    assert {own["name"] for own in groups} == {"town = large", "town = small"}
    for name in names.values():
        assert "tiny" not in (tmp_path / name).read_text(), name


def test_recalibrations_are_learned_from_another_file_and_judged_on_this_one(homes, tmp_path):
    pa.csv.write_csv(rows(200, seed=5), tmp_path / "more.csv")
    args = ["audit", homes, *COLUMNS, *DRAWS, "--recalibrate", "more.csv", "--json", "a.json"]
    result = run(*args, "--report", "a.html")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "a.json").read_text())
    names = [row["name"] for row in found["recalibration"]["recalibrations"]]
    assert names == ["none", "platt", "isotonic", "beta", "local"]
    assert "p-value  seconds" in result.stdout
    assert 'id="recalibration"' in (tmp_path / "a.html").read_text()
    same = run("audit", homes, *COLUMNS, *DRAWS, "--recalibrate", homes)
    assert same.exit_code == 2
    assert "test rows are among the calibration rows" in same.stderr


# The process as a shell sees it.


def process(*args, env=None, **settings):
    clean = {name: value for name, value in os.environ.items() if "COLOR" not in name}
    return subprocess.Popen(
        [sys.executable, "-m", "itrust", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**clean, "OMP_NUM_THREADS": "1", **(env or {})},
        **settings,
    )


@pytest.mark.slow
def test_a_narrow_pipe_gets_plain_lines_that_fit(homes):
    args = ["audit", homes, *COLUMNS, *DRAWS, "--gate", "--task", "mean(age)"]
    with process(*args, env={"COLUMNS": "40"}) as shell:
        out, error = shell.communicate(timeout=600)
    assert shell.returncode in (0, 1), error
    assert "\x1b" not in out + error
    assert max(map(len, (out + error).splitlines())) <= 40
    assert "Traceback" not in error


def test_ctrl_c_while_the_package_loads_is_quiet():
    """In the middle of NumPy, which would print a traceback."""
    code = (
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'numpy._core':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from itrust.__main__ import main\n"
        "sys.argv = ['itrust', 'audit', 'homes.csv']\n"
        "main()\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 130
    assert found.stderr == "itrust: stopped\n"


@pytest.mark.slow
def test_ctrl_c_ends_a_long_audit_before_it_is_done(tmp_path):
    """Whatever the machine does besides: the request comes when the work has begun."""
    code = (
        "import os, signal, sys, threading\n"
        "import itrust.cli.audit as command\n"
        "judge = command._judge\n"
        "def stopped(*args):\n"
        "    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    return judge(*args)\n"
        "command._judge = stopped\n"
        "from itrust.__main__ import main\n"
        "main()\n"
    )
    pa.parquet.write_table(rows(60_000), tmp_path / "many.parquet")
    args = ["audit", "many.parquet", "--on", "age,region", "--json", "a.json", "--draws", "9999"]
    run = subprocess.run([sys.executable, "-c", code, *args, "-q"], capture_output=True, text=True)
    assert (run.returncode, run.stderr.strip()) == (130, "itrust: stopped")
    assert os.listdir(tmp_path) == ["many.parquet"]


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(homes):
    with process("audit", homes, *COLUMNS, *DRAWS, "--json", "-", "--quiet") as shell:
        shell.stdout.close()
        error = shell.stderr.read()
    assert error == ""
    assert shell.returncode == guard.PIPE_CLOSED


# Help and the smaller commands.


@pytest.mark.parametrize("columns", ["40", "80"])
@pytest.mark.parametrize("args", [["--help"], ["audit", "--help"], ["recalibrate", "-h"]])
def test_help_fits_and_has_examples(args, columns):
    result = run(*args, env={"COLUMNS": columns})
    assert result.exit_code == 0
    words, _, examples = result.stdout.partition("\nExamples:\n" if len(args) > 1 else "\nStart")
    assert max(map(len, words.splitlines())) <= int(columns)
    assert "itrust audit " in examples or "itrust recalibrate " in examples
    assert "─" not in result.stdout
    assert "..." not in words.replace("[ARGS]...", "")


def test_options_come_in_groups():
    text = run("audit", "--help").stdout
    headings = re.findall(r"^(\w.*):$", text, re.MULTILINE)
    assert headings[:3] == ["Arguments", "Columns", "The test"]


def test_no_command_shows_help_and_version_shows_the_version():
    assert "Commands:" in run().stdout
    assert run("--version").stdout == f"itrust {it.__version__}\n"


def test_tasks_are_explained():
    assert "mean(age)" in run("tasks").stdout
    told = run("tasks", 'mean(age|race=="b") - 2 * prevalence()').stdout
    assert 'read as  mean(age | race == "b") - 2 * prevalence()' in told
    assert "columns  age, race" in told
    assert "there is no task 'meen'; did you mean 'mean'?" in refused("tasks", "meen(age)")


def test_doctor_names_versions_threads_and_folders():
    told = run("doctor", env={"ITRUST_DATA": "nowhere"}).stdout
    for word in ("numpy", "threads", "blas", "torch", "which is not there"):
        assert word in told


def test_doctor_leaves_with_1_where_something_of_the_core_is_missing(monkeypatch):
    from itrust.cli import about

    assert run("doctor").exit_code == 0
    monkeypatch.setattr(about, "CORE", ("numpy", "no-such-package"))
    found = run("doctor")
    assert found.exit_code == 1
    assert "no-such-package MISSING" in found.stdout


def test_demo_is_a_command(monkeypatch):
    from itrust.cli import demo

    seen = []
    monkeypatch.setattr(demo, "tell", lambda *given: seen.append(given))
    assert run("demo").exit_code == 0
    assert run("demo", "--report", "page.html", "--rows", "homes.csv").exit_code == 0
    assert seen == [(None, None), (Path("page.html"), Path("homes.csv"))]


def test_the_shell_can_complete():
    words = {"_ITRUST_COMPLETE": "bash_complete", "COMP_WORDS": "itrust au", "COMP_CWORD": "1"}
    result = run(env=words, prog_name="itrust")
    assert result.stdout.split() == ["plain,audit"]
    script = run(env={"_ITRUST_COMPLETE": "bash_source"}, prog_name="itrust").stdout
    assert "_ITRUST_COMPLETE=bash_complete" in script


@pytest.mark.usefixtures("quick")
def test_hostile_values_have_no_power_over_the_terminal():
    pa.csv.write_csv(rows().rename_columns(["y", "p", "a\x1b[31m", *"bcde"]), "h.csv")
    result = run("audit", "h.csv", "--on", "all")
    assert "\x1b" not in result.stderr
    assert "a\\x1b[31m" in result.stderr


def test_documented_commands_know_their_options():
    root = Path(__file__).parents[2]
    known = set(re.findall(r"--[a-z][a-z-]+", run("audit", "--help").stdout))
    texts = [
        (root / name).read_text()
        for name in ("README.md", "docs/howto/gate.md", "docs/howto/audit-a-file.md")
    ]
    commands = re.findall(r"itrust audit ((?:\\\n|[^\n`])*)", "\n".join(texts))
    used = {option for command in commands for option in re.findall(r"--[a-z][a-z-]+", command)}
    assert len(used) > 8
    assert used <= known


def test_a_label_of_two_words_is_guessed_when_the_positive_one_is_named(tmp_path, quick):
    (tmp_path / "w.csv").write_text("y,p,age\nno,0.1,1\nyes,0.2,2\nyes,0.3,3\n")
    result = run("audit", "w.csv", "--on", "age", "--positive", "yes")
    assert "taking 'y' for --label (two values)" in result.stderr
    assert quick[0].y.tolist() == [0, 1, 1]


def test_the_column_to_name_as_the_cluster_is_told_in_words_of_the_shell(tmp_path):
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(60), 5)
    p = rng.uniform(0.3, 0.7, 300)
    y = (rng.random(60) < 0.5).astype(int)[unit]
    columns = {"y": y, "p": p, "x": rng.normal(size=300), "who is it": unit.astype(str)}
    pa.csv.write_csv(pa.table(columns), tmp_path / "a.csv")
    found = invoke("audit", tmp_path / "a.csv", "--on", "x", "--draws", "39")
    assert "--cluster 'who is it'" in " ".join(found.stdout.split())
    assert "cluster=" not in found.stdout


def test_a_copy_of_the_label_is_refused_in_one_sentence(tmp_path):
    table = rows()
    table = table.append_column("prob2_outcome", pa.array(1 - table["y"].to_numpy()))
    pa.csv.write_csv(table, tmp_path / "a.csv")
    found = invoke("audit", tmp_path / "a.csv", "--on", "all")
    assert found.exit_code == 2
    told = " ".join(found.stderr.split())
    assert "covariate 'prob2_outcome' is the opposite of the label; name the other" in told
    assert "covariates with --on" in told


def test_a_broken_column_that_nobody_asked_for_is_no_error(tmp_path):
    table = rows().select(["y", "p", "age"])
    for name, extra in (("a", ["x"] * 300), ("b", np.arange(300))):
        pa.parquet.write_table(
            table.append_column("extra", pa.array(extra)), tmp_path / f"{name}.parquet"
        )
    assert invoke("audit", tmp_path, "--on", "age", "--draws", "39").exit_code == 0


def test_of_the_other_columns_only_possible_units_are_read(tmp_path):
    table = rows().append_column("who", pa.array(np.arange(300) // 3))
    table = table.append_column("remark", pa.array([f"{k:050}" for k in range(300)]))
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    with opened(Options(AUDIT, str(tmp_path / "a.parquet"), {})) as source:
        names = with_other_columns(source, ["y", "p"]).column_names
    assert "who" in names
    assert "remark" not in names


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--gate", "file.csv"], ["--gate=any", "file.csv"]),
        (["--gate", "model", "file.csv"], ["--gate", "model", "file.csv"]),
        (
            ["file.csv", "--gate", "--task", "mean(x)"],
            ["file.csv", "--gate=any", "--task", "mean(x)"],
        ),
        (["--gate=tasks", "file.csv"], ["--gate=tasks", "file.csv"]),
    ],
)
def test_a_gate_without_a_choice_takes_no_file_and_no_option_for_one(words, meant, monkeypatch):
    seen = []
    monkeypatch.setattr("click.Command.parse_args", lambda _self, _ctx, args: seen.extend(args))
    command = app.commands["audit"]
    command.parse_args(click.Context(command), words)
    assert seen == meant


def test_a_slip_behind_the_gate_is_one_sentence():
    assert "unexpected extra argument (modle)" in refused("audit", "f.csv", "--gate", "modle")
