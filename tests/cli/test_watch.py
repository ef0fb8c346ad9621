"""`itrust watch`: one file of state, one batch after the other, nothing counted twice."""

import datetime as dt
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import itrust as it
from fuzz.kills import killed_at_a_move
from itrust.cli.options import Options
from itrust.cli.watch_state import free_name, held, levels_of
from shell import invoke

ROWS, WEEKS, DRIFT = 150, 10, 4
COLUMNS = ["--label", "y", "--prob", "p", "--on", "age,region"]
STATE = ["--state", "watch.json"]
WAITS_SINCE_TODAY = '{"name":"a","rows":1,"closed_before":"today","segment":0}'


def weeks() -> pa.Table:
    """A calibrated model for some weeks; then the south has more positives than it says."""
    rng = np.random.default_rng(0)
    week = np.repeat(np.arange(-4, WEEKS), ROWS)
    p, south = rng.uniform(0.2, 0.7, week.size), rng.random(week.size) < 0.4
    q = np.clip(p + 0.28 * (south & (week >= DRIFT)), 0, 1)
    closes = [dt.date(2024, 1, 1) + dt.timedelta(int(7 * w + d % 7)) for d, w in enumerate(week)]
    return pa.table(
        {
            "y": (rng.random(week.size) < q).astype(int),
            "p": p,
            "age": rng.integers(18, 90, week.size).astype(float),
            "region": np.where(south, "south", "north"),
            "closes": closes,
            "week": week,
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place, rows = tmp_path_factory.mktemp("weeks"), weeks()
    week = rows["week"].to_numpy()
    pa.parquet.write_table(rows.filter(pa.array(week < 0)), place / "reference.parquet")
    for k in range(WEEKS):
        pa.parquet.write_table(rows.filter(pa.array(week == k)), place / f"week{k}.parquet")
    pa.csv.write_csv(rows.filter(pa.array(week == 0)), place / "week0.csv")
    return place


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    for path in files.iterdir():
        os.link(path, tmp_path / path.name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def start(*more, columns=COLUMNS):
    return done("start", "reference.parquet", *columns, *STATE, *more)


def update(name, *more):
    return invoke("watch", "update", name, *STATE, *more)


def done(*args):
    result = invoke("watch", *args)
    assert result.exit_code == 0, result.stderr
    return result


def refused(*args):
    """One sentence on standard error, exit code 2, and nothing else."""
    result = invoke("watch", *args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    told = " ".join(line.strip() for line in result.stderr.splitlines())
    assert told.count("itrust: ") == 1
    assert "Traceback" not in told
    return told.partition("itrust: ")[2]


def history(folder):
    return it.Watch.load(folder / "watch.json").history


def test_weeks_go_by_until_the_drift_is_found(folder):
    start("--task", "mean(age)")
    outputs = ["--report", "page.html", "--json", "all.json", "--junit", "u.xml"]
    outputs += ["--summary", "s.md"]
    codes = [update(f"week{k}.parquet", *outputs, "--gate").exit_code for k in range(WEEKS)]
    assert codes[:DRIFT] == [0] * DRIFT
    assert codes[-1] == 1
    found = json.loads((folder / "all.json").read_text())
    assert found["schema"] == "itrust-watch-report/1"
    assert found["alarm"] is True
    assert found["batches"] == WEEKS
    assert DRIFT - 1 <= found["since"]["batch"] <= DRIFT + 3
    assert "region = south" in found["words"]["findings"][0]
    assert [own["name"] for own in found["history"]] == [f"week{k}" for k in range(WEEKS)]
    assert "digest" not in (folder / "all.json").read_text()
    (suite,) = Xml.parse(folder / "u.xml").getroot()
    assert suite.get("failures") == "1"
    assert "alarm" in (folder / "s.md").read_text()
    page = (folder / "page.html").read_text()
    assert "Alarm" in page or "alarm: the model is miscalibrated" in page
    assert "itrust watch update week9.parquet --state watch.json" in page
    told = done("status", *STATE)
    assert told.stdout.startswith("WATCH: alarm")
    first = found["since"]["batch"]
    since = f"audit the rows of batch {first} 'week{first - 1}' to batch {WEEKS} 'week{WEEKS - 1}'"
    assert since in " ".join(told.stdout.split())
    assert "The leading check is: <bdi>" in page
    assert invoke("watch", "status", *STATE, "--gate").exit_code == 1


def test_the_command_gives_what_python_gives(folder):
    start("--task", "prevalence()")
    update("week0.csv")
    update("week1.parquet")

    def sample(name):
        rows = pa.parquet.read_table(folder / name)
        return it.Sample.from_frame(rows, label="y", prob="p", on=["age", "region"])

    watch = it.Watch.start(sample("reference.parquet"), ["prevalence()"])
    watch = watch.update(sample("week0.parquet"), name="week0")
    watch = watch.update(sample("week1.parquet"), name="week1")
    assert it.Watch.load(folder / "watch.json").history == watch.history


def test_a_batch_that_was_counted_is_refused_and_the_state_stays(folder):
    start()
    assert update("week0.parquet").exit_code == 0
    before = (folder / "watch.json").read_bytes()
    assert "taken in before, as 'batch 1 (week0)'" in refused("update", "week0.csv", *STATE)
    assert "those of the reference" in refused("update", "reference.parquet", *STATE)
    assert (folder / "watch.json").read_bytes() == before
    assert not (folder / "page.html").exists()


def test_standard_input_and_standard_output(folder):
    start()
    result = invoke(
        "watch", "update", "-", *STATE, "--json", "-", input=(folder / "week0.csv").read_bytes()
    )
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["history"][0]["name"] is None


def test_rows_whose_window_is_open_wait_and_enter_late(folder):
    start("--date-column", "closes")
    assert "date-column" in (folder / "watch.json").read_text().replace("_", "-")
    first = update("week0.parquet", "--closed-before", "2024-01-05")
    assert first.exit_code == 0, first.stderr
    rows = pa.parquet.read_table("week0.parquet")["closes"].to_pylist()
    waits = sum(day >= dt.date(2024, 1, 5) for day in rows)
    assert f"{waits} rows of week0.parquet not closed before 2024-01-05" in " ".join(
        first.stderr.split()
    )
    assert f"{waits} rows of week0" in first.stdout
    assert history(folder)[0].rows == ROWS - waits
    assert history(folder)[0].end.startswith("2024-01-04")
    assert update("week1.parquet").exit_code == 0
    late = update("week0.parquet", "--late", "--closed-before", "2024-02-01")
    assert late.exit_code == 0, late.stderr
    assert f"{ROWS - waits} rows closed before 2024-01-05" in " ".join(late.stderr.split())
    (_, _, last) = history(folder)
    assert (last.rows, last.late, last.name) == (waits, True, "week0 (late)")
    assert "WAIT" not in late.stdout


def test_rows_that_wait_need_a_name_to_be_known_by(folder):
    start("--date-column", "closes")
    rows = (folder / "week0.csv").read_bytes()
    asked = ["watch", "update", "-", *STATE, "--closed-before", "2024-01-05"]
    result = invoke(*asked, input=rows)
    assert result.exit_code == 2
    assert "name the batch (--name NAME)" in " ".join(result.stderr.split())
    assert invoke(*asked, "--name", "first", input=rows).exit_code == 0


def test_late_rows_are_known_by_the_name_of_a_batch_that_waits(folder):
    start("--date-column", "closes")
    assert update("week0.parquet", "--closed-before", "2024-01-05").exit_code == 0
    os.link("week0.parquet", "other.parquet")
    before = (folder / "watch.json").read_bytes()
    told = refused("update", "other.parquet", "--late", *STATE)
    assert "rows of 'week0' wait" in told
    assert "--name NAME" in told
    assert (folder / "watch.json").read_bytes() == before
    assert update("other.parquet", "--late", "--name", "week0").exit_code == 0
    assert sum(record.rows for record in history(folder)) == ROWS


def test_rows_that_wait_are_not_forgotten_for_another_batch_of_their_name(folder):
    start("--date-column", "closes")
    assert update("week0.parquet", "--closed-before", "2024-01-05").exit_code == 0
    os.replace("week1.parquet", "week0.parquet")
    before = (folder / "watch.json").read_bytes()
    told = refused("update", "week0.parquet", *STATE)
    assert "called 'week0' still wait" in told
    assert "--name NAME" in told
    assert (folder / "watch.json").read_bytes() == before
    assert update("week0.parquet", "--name", "week1").exit_code == 0
    assert "ROWS THAT WAIT" in done("status", *STATE).stdout


def test_a_second_batch_of_a_file_name_is_called_otherwise_and_told(folder):
    start()
    update("week0.parquet")
    os.replace("week1.parquet", "week0.parquet")
    again = update("week0.parquet")
    assert "this one is called 'week0 (2)'" in " ".join(again.stderr.split())
    assert [record.name for record in history(folder)] == ["week0", "week0 (2)"]


def test_values_that_the_reference_lacks_are_told_and_cannot_forge_lines(folder):
    start()
    rows = pa.parquet.read_table("week0.parquet")
    region = ["isl\nands\x1b[1m"] * 10 + rows["region"].to_pylist()[10:]
    place = rows.column_names.index("region")
    pa.parquet.write_table(rows.set_column(place, "region", [region]), "new.parquet")
    said = update("new.parquet").stderr
    assert "\x1b[1m" not in said
    told = " ".join(said.split())
    assert "region has values that the reference lacks: isl\\nands" in told
    assert "(10 rows); only checks that do not name its levels see them" in told
    assert "lacks" not in update("week1.parquet").stderr
    text = (folder / "watch.json").read_text()
    for damaged in ('"levels":{"region":[1,"', '"levels":{"region":7,"x":["', '"levels":{"x":["0'):
        (folder / "watch.json").write_text(text.replace('"levels":{"region":["', damaged))
        assert "levels" in refused("update", "week2.parquet", *STATE)


@pytest.mark.usefixtures("folder")
def test_numbers_of_few_values_are_told_at_the_start():
    rows = pa.parquet.read_table("reference.parquet")
    rows = rows.append_column("grade", [[k % 4 for k in range(rows.num_rows)]])
    pa.parquet.write_table(rows, "graded.parquet")
    asked = ["--label", "y", "--prob", "p", "--on", "grade,region", *STATE]
    said = " ".join(done("start", "graded.parquet", *asked).stderr.split())
    assert "'grade' is a number with few values" in said
    assert "--category grade" in said


@pytest.mark.usefixtures("folder")
def test_rows_from_before_are_refused_unless_late():
    start("--date-column", "closes")
    update("week1.parquet")
    told = refused("update", "week0.parquet", *STATE)
    assert "outcomes that came late are taken in with --late" in told
    assert update("week0.parquet", "--late").exit_code == 0


def test_open_windows_may_lack_labels_and_closed_ones_may_not(folder):
    rows = pa.parquet.read_table("week0.parquet")
    closed = np.array([day < dt.date(2024, 1, 5) for day in rows["closes"].to_pylist()])
    labels = pa.array(rows["y"].to_numpy(), mask=~closed)
    pa.parquet.write_table(rows.set_column(0, "y", labels), "some.parquet")
    start("--date-column", "closes")
    told = refused("update", "some.parquet", *STATE)
    assert "let it wait with --closed-before DATE" in told
    assert f"rows without y: {(~closed).sum()}" in told
    assert update("some.parquet", "--closed-before", "2024-01-05").exit_code == 0
    assert history(folder)[0].rows == closed.sum()


def test_another_model_begins_a_segment_and_keeps_the_history(folder):
    start()
    update("week0.parquet")
    told = done("start", "week1.parquet", "--new-model", "--name", "v2", *STATE)
    assert "model 'v2'" in told.stdout
    again = refused("start", "week1.parquet", "--new-model", "--name", "v2", *STATE)
    assert "these rows are the reference of the present model already" in again
    update("week2.parquet")
    assert [record.segment for record in history(folder)] == [0, 1]


def test_rows_that_wait_for_one_model_are_not_counted_for_the_next(folder):
    start("--date-column", "closes")
    update("week0.parquet", "--closed-before", "2024-01-05")
    next_one = done("start", "week1.parquet", "--new-model", *STATE)
    assert "they will not be counted" in " ".join(next_one.stderr.split())
    assert "an earlier model predicted them" in " ".join(next_one.stdout.split())
    late = ["update", "week0.parquet", *STATE, "--late", "--closed-before", "2024-02-01"]
    assert "rows of 'week0' wait since the time of an earlier model" in refused(*late)
    assert len(history(folder)) == 1
    assert update("week2.parquet", "--closed-before", "2024-01-18").exit_code == 0
    entered = update("week2.parquet", "--late")
    assert entered.exit_code == 0, entered.stderr
    assert [record.segment for record in history(folder)] == [0, 1, 1]


def test_another_model_may_have_other_columns(folder):
    start()
    rows = pa.parquet.read_table("week1.parquet")
    said = pa.array(np.where(rows["y"].to_numpy() == 1, "yes", "no"))
    rows = rows.append_column("said", said).append_column("home", pa.array(np.arange(ROWS) // 3))
    pa.parquet.write_table(rows, "other.parquet")
    more = ["--label", "said", "--positive", "no", "--where", "age > 30", "--cluster", "home"]
    done("start", "other.parquet", "--new-model", *STATE, *more)
    watch = it.Watch.load(folder / "watch.json")
    assert watch.schema.clustered
    assert watch.schema.positive == "no"
    ages = rows["age"].to_numpy()
    assert watch.segments[-1].reference_rows == (ages > 30).sum() < ROWS
    assert watch.source["options"]["where"] == "age > 30"


@pytest.mark.parametrize(
    ("option", "kept"),
    [
        (["--alpha", "0.01"], "(0.05)"),
        (["--tolerance", "0.05"], "(none)"),
        (["--promise", "run-length"], "(ever)"),
        (["--task", "prevalence()"], "(mean(age))"),
    ],
)
def test_another_model_keeps_the_promise_and_the_numbers(folder, option, kept):
    start("--task", "mean(age)")
    told = refused("start", "week1.parquet", "--new-model", *STATE, *option)
    assert told.startswith(f"{option[0]}: another model keeps what the watch was begun with {kept}")
    assert len(it.Watch.load(folder / "watch.json").segments) == 1
    same = ["--alpha", "0.05", "--task", "mean(age)", "--promise", "ever"]
    done("start", "week1.parquet", "--new-model", *STATE, *same)


def test_settings_and_a_run_length(folder):
    (folder / "itrust.toml").write_text('state = "kept.json"\nlabel = "y"\nprob = "p"\n')
    result = done("start", "reference.parquet", "--on", "age", "--promise", "run-length")
    assert "20 batches or more on average" in " ".join(result.stdout.split())
    assert "settings from" in result.stderr
    assert invoke("watch", "update", "week0.parquet").exit_code == 0
    assert len(it.Watch.load(folder / "kept.json").history) == 1


def test_several_classes_are_watched(folder):
    rng = np.random.default_rng(3)
    chances = rng.dirichlet([3, 2, 2], 900)
    drawn = np.array([rng.choice(["win", "tie", "loss"], p=own) for own in chances])
    columns = {f"p_{name}": chances[:, k] for k, name in enumerate(("win", "tie", "loss"))}
    rows = pa.table({"y": drawn, **columns, "age": rng.uniform(20, 80, 900)})
    for k, name in enumerate(("before", "first", "second")):
        pa.parquet.write_table(rows.slice(300 * k, 300), f"{name}.parquet")
    done("start", "before.parquet", "--label", "y", "--prob", "p_*", "--on", "age", *STATE)
    for name in ("first", "second"):
        result = update(f"{name}.parquet", "--report", "page.html", "--json", "all.json")
        assert result.exit_code == 0, result.stderr
    assert [record.rows for record in history(folder)] == [300, 300]
    levels = json.loads((folder / "all.json").read_text())["levels"]
    assert {own["label"] for own in levels} == {"win", "tie", "loss"}
    told = " ".join(result.stdout.split())
    assert "300 rows, top label right 0." in told
    assert "mean top probability 0." in told
    assert "observed" not in told
    assert "top label right" in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["start", "reference.parquet", *COLUMNS], "name the file that keeps the watch"),
        (["start", "reference.parquet", "--state", "no/w.json", *COLUMNS], "no folder"),
        (["start", "reference.parquet", *STATE, "--label", "z"], "no column 'z'"),
        (["start", "reference.parquet", *STATE, *COLUMNS, "--prob", "age"], "one model is watched"),
        (["start", "reference.parquet", *STATE, *COLUMNS, "--date-column", "no"], "no column 'no'"),
        (["update", "week0.parquet", *STATE], "begin one with 'itrust watch start'"),
        (["update", "week0.parquet"], "name the file that keeps the watch with --state"),
        (["status", *STATE], "cannot be read"),
        (
            ["update", "week0.parquet", *STATE, "--missing", "drop"],
            "--missing is an option of 'itrust watch start' alone; see",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(folder, args, told):
    assert told in refused(*args)
    assert not (folder / "watch.json").exists()


def test_a_date_column_is_needed_for_windows_and_must_hold_dates(folder):
    start()
    told = refused("update", "week0.parquet", "--closed-before", "2024-01-05", *STATE)
    assert "started without --date-column COL" in told
    os.remove("watch.json")
    told = refused("start", "reference.parquet", *COLUMNS, *STATE, "--date-column", "week")
    assert told.startswith("--date-column: 'week' cannot be read as dates: ")
    assert not (folder / "watch.json").exists()
    start("--date-column", "closes")
    assert "a date, such as" in refused("update", "week0.parquet", "--closed-before", "x", *STATE)
    early = refused("update", "week0.parquet", "--closed-before", "2023-01-05", *STATE)
    assert "nothing to count" in early
    assert history(folder) == ()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda _: "[]",
        lambda text: text.replace('"options"', '"opinions"'),
        lambda text: text.replace('"on":["age"', '"on":[["age"]'),
        lambda text: text.replace('"label":"y"', '"label":7'),
        lambda text: text.replace('"waiting":[]', '"waiting":[{"name":1}]'),
        lambda text: text.replace('"waiting":[]', f'"waiting":[{WAITS_SINCE_TODAY}]'),
        lambda text: text.replace('"age":"number"', '"age":"size"'),
    ],
)
def test_a_damaged_state_is_one_sentence(folder, damage):
    start()
    text = (folder / "watch.json").read_text()
    assert damage(text) != text
    (folder / "watch.json").write_text(damage(text))
    refused("update", "week0.parquet", *STATE)
    refused("status", *STATE)
    assert (folder / "watch.json").read_text() == damage(text)


def small(name, n=60, seed=0, **columns):
    """A small CSV file with ten dates; `columns` are repeated, and one that is "" lacks values."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.2, 0.8, n).round(4)
    held = {"y": (rng.random(n) < p).astype(int), "p": p, "age": rng.integers(20, 80, n)}
    held |= {"closes": [f"2026-11-{1 + k % 10:02d}" for k in range(n)]}
    held |= {key: [own[k % len(own)] for k in range(n)] for key, own in columns.items()}
    lines = [",".join(held), *(",".join(map(str, row)) for row in zip(*held.values(), strict=True))]
    Path(name).write_text("\n".join(lines) + "\n")


def lacking(name, column, source="nov.csv"):
    """The same file with an empty cell in its third row."""
    header, *rows = (line.split(",") for line in Path(source).read_text().splitlines())
    rows[2][header.index(column)] = ""
    Path(name).write_text("\n".join(",".join(row) for row in (header, *rows)) + "\n")


@pytest.fixture
def dated(tmp_path, monkeypatch):
    """Files of a watch with dates, which is to be started."""
    monkeypatch.chdir(tmp_path)
    small("reference.csv", 120, 1)
    small("nov.csv", 100, 2)
    return ["start", "reference.csv", "--label", "y", "--prob", "p", "--on", "age", *STATE]


def test_a_late_job_that_runs_twice_counts_no_row_twice(dated):
    done(*dated, "--date-column", "closes")
    assert update("nov.csv", "--closed-before", "2026-11-05").exit_code == 0
    late = ["nov.csv", "--late", "--closed-before", "2026-12-01"]
    assert update(*late).exit_code == 0
    told = refused("update", *late, *STATE)
    assert "no rows of 'nov' wait" in told
    assert "another name: --name NAME" in told
    assert sum(record.rows for record in it.Watch.load("watch.json").history) == 100
    small("dec.csv", 40, 3)
    assert update("dec.csv", "--late", "--closed-before", "2026-11-05").exit_code == 0
    assert "no rows of 'nov' wait" in refused("update", *late, *STATE)
    unnamed = invoke("watch", "update", "-", "--late", *STATE, input=Path("nov.csv").read_bytes())
    assert unnamed.exit_code == 2
    assert "--late needs the name of the batch" in " ".join(unnamed.stderr.split())


@pytest.mark.parametrize("word", ["today", "now", "99999999-01-01", "NaT", "", "2026-02-30"])
def test_windows_close_before_a_date_of_the_calendar(dated, word):
    done(*dated, "--date-column", "closes")
    told = refused("update", "nov.csv", "--closed-before", word, *STATE)
    assert told == f"--closed-before must be a date, such as 2026-01-31, not {word!r}"


def test_the_date_is_kept_as_it_was_understood(dated):
    done(*dated, "--date-column", "closes")
    assert update("nov.csv", "--closed-before", " 2026-11-05 01:30+02:00").exit_code == 0
    (waiting,) = it.Watch.load("watch.json").source["waiting"]
    assert waiting["closed_before"] == "2026-11-04T23:30:00"


@pytest.mark.usefixtures("dated")
def test_notes_name_no_level_of_few_rows():
    columns = ["--label", "y", "--prob", "p", "--on", "age,home", *STATE]
    small("reference.csv", 120, 1, home=["north", "south"])
    done("start", "reference.csv", *columns)
    homes = [*["west"] * 12, *["north"] * 46, "4 Elm Road", "5 Elm Road"]
    small("nov.csv", 60, 2, home=homes)
    few = " ".join(update("nov.csv", "--min-cell", "10").stderr.split())
    assert "values that the reference lacks: west (12 rows), 2 not named; only checks" in few
    assert "Elm" not in few
    small("dec.csv", 60, 3, home=homes)
    none = " ".join(update("dec.csv", "--min-cell", "20").stderr.split())
    assert "lacks: 3 not named; only checks" in none
    small("jan.csv", 60, 4, home=homes[12:-1])
    assert "values that the reference lacks: 1 not named" in " ".join(
        update("jan.csv", "--min-cell", "10").stderr.split()
    )
    small("feb.csv", 60, 5, home=homes[12:-1])
    assert "lacks: 4 Elm Road (1 row)" in " ".join(update("feb.csv").stderr.split())


def level_rows(name):
    found = json.loads(invoke("watch", "status", *STATE, "--json", "-").stdout)
    return {own["name"]: own["rows"] for own in found["levels"]}[name]


@pytest.mark.usefixtures("dated")
def test_batches_are_read_as_the_reference_was():
    small("reference.csv", 120, 1, zip=["A1", "22", "07"], code=["1", "2"])
    done("start", "reference.csv", "--label", "y", "--prob", "p", "--on", "zip,age,code",
         "--category", "code", *STATE)  # fmt: skip
    small("nov.csv", 60, 2, zip=["22", "07"], code=["1", "2"])
    told = update("nov.csv")
    assert told.exit_code == 0, told.stderr
    assert "lacks" not in told.stderr
    assert level_rows("zip = 22") == level_rows("zip = 07") == 30
    small("dec.csv", 60, 3, zip=["22"], code=["1", "2", "x"])
    assert "code has values that the reference lacks: x" in " ".join(
        update("dec.csv").stderr.split()
    )
    assert level_rows("code = 1") == 30 + 20
    small("jan.csv", 60, 4, zip=["22"], code=["1"], age=["30", "old"])
    told = refused("update", "jan.csv", *STATE)
    assert "'age' holds text that is no number; line 3 has 'old'" in told
    assert "--number" not in told
    small("next.csv", 120, 5, zip=["22", "07"], code=["1", "2"])
    done("start", "next.csv", "--new-model", *STATE)
    assert dict(it.Watch.load("watch.json").schema.columns)["zip"] == "category"
    small("other.csv", 120, 6)
    done("start", "other.csv", "--new-model", "--on", "age", "--category", "age", *STATE)


def test_dates_have_the_order_that_the_reference_showed(dated):
    small("reference.csv", 120, 1, closes=[f"{day:02d}/10/2026" for day in range(1, 29)])
    done(*dated, "--date-column", "closes")
    small("nov.csv", 100, 2, closes=[f"{day:02d}/11/2026" for day in range(1, 11)])
    assert update("nov.csv", "--closed-before", "2026-11-05").exit_code == 0
    (record,) = it.Watch.load("watch.json").history
    assert (record.start[:10], record.end[:10]) == ("2026-11-01", "2026-11-04")


@pytest.mark.usefixtures("dated")
def test_dates_that_cannot_be_told_are_refused_at_the_start_and_named_later():
    unclear = [f"{day:02d}/{day:02d}/2026" for day in range(1, 11)]
    small("unclear.csv", 120, 1, closes=unclear)
    start_it = ["start", "unclear.csv", *COLUMNS[:4], "--on", "age", *STATE]
    told = refused(*start_it, "--date-column", "closes")
    assert "cannot be read as dates: 01/01/2026; write them as in 2026-01-31, or say" in told
    done(*start_it, "--date-column", "closes", "--dates", "dmy")
    small("us.csv", 60, 3, closes=["11/21/2026"])
    told = refused("update", "us.csv", *STATE)
    assert "'closes' cannot be read as dates with the day first; write them as in" in told
    small("dec.csv", 60, 4, closes=["05/12/2026"])
    done("update", "dec.csv", *STATE)
    small("nov.csv", 60, 5, closes=["20/11/2026"])
    told = refused("update", "nov.csv", *STATE)
    assert "closes on 2026-11-20, before the last one that was counted, on 2026-12-05" in told
    assert "in batch 'dec'" in told


def test_batches_that_are_too_small_go_with_the_next(dated):
    done(*dated)
    Path("one.csv").write_text("".join(Path("nov.csv").read_text().splitlines(True)[:2]))
    told = "a batch needs at least 2 rows; this one has 1 (count them with the next batch)"
    assert refused("update", "one.csv", *STATE) == told
    other = ["--state", "levels.json"]
    done(*dated[:-2], "--missing", "level", *other)
    small("empty.csv", 30, 4, age=[""])
    told = refused("update", "empty.csv", *other)
    assert told.startswith("covariate 'age' holds no value in any row (every batch must have some")


@pytest.mark.usefixtures("dated")
def test_cures_that_only_the_start_takes_are_said_to_be_its_own():
    days = [f"{day:02d}/{day:02d}/2026" for day in range(1, 11)]
    small("reference.csv", 120, 1, seen=days)
    done("start", "reference.csv", *COLUMNS[:4], "--on", "age", *STATE)
    small("nov.csv", 100, 2, seen=days)
    assert "say --dates dmy of 'itrust watch start' or" in " ".join(
        update("nov.csv").stderr.split()
    )


def test_other_kinds_and_columns_are_told_in_words_of_the_shell(dated):
    small("reference.csv", 120, 1, urban=["true", "false"])
    done(*dated[:-3], "urban", *STATE)
    small("nov.csv", 60, 2, urban=["yes", "no"])
    told = refused("update", "nov.csv", *STATE)
    assert "'urban' is a category in the batch and a boolean in the reference" in told
    assert "=" not in told
    small("dec.csv", 60, 3)
    told = refused("update", "dec.csv", *STATE)
    assert told.startswith(
        "dec.csv has no column 'urban', which this watch has read from its start"
    )
    assert "--on" not in told


def test_the_state_has_room_for_columns_of_text_and_names_no_level(dated):
    texts = {
        f"t{k}": [f"street {k} of number {n:,}".replace(",", ".") for n in range(900)]
        for k in range(3)
    }
    small("reference.csv", 900, 1, **texts)
    done(*dated[:-3], "age,t0,t1,t2", *STATE)
    state = Path("watch.json").read_text()
    assert "street" not in state
    small("nov.csv", 60, 2, **{key: own[30:] for key, own in texts.items()})
    assert "lacks" not in update("nov.csv").stderr


def test_the_widest_categories_are_not_looked_at_where_there_is_no_room(monkeypatch):
    monkeypatch.setattr("itrust.cli.watch_state.MAX_LEVELS", 5)
    columns = {"wide": ["a", "b", "c", "d"], "narrow": ["a", "b", "a", "b"]}
    rows = it.Sample([0, 1, 0, 1], [0.2, 0.6, 0.3, 0.7], columns)
    assert levels_of(rows, b"salt").keys() == {"narrow"}
    (narrow, other) = (levels_of(rows, salt)["narrow"] for salt in (b"salt", b"other"))
    assert len(narrow) == 2
    assert narrow != other


@pytest.mark.parametrize("rule", ["error", "level"])
def test_rows_that_lack_something_are_refused_with_a_cure_that_there_is(dated, rule):
    done(*dated, "--date-column", "closes", "--missing", rule)
    for column in ("p", "closes"):
        lacking("some.csv", column)
        told = refused("update", "some.csv", *STATE)
        assert f"rows without {column}: 1 (first: line 4); fill them in" in told
        assert told.endswith(f"this watch was started with --missing {rule}")
    if rule == "error":
        lacking("some.csv", "age")
        assert "'age' in 1 row (first: line 4); fill them in" in refused(
            "update", "some.csv", *STATE
        )


def test_the_rule_of_the_watch_reaches_the_dates(dated):
    done(*dated, "--date-column", "closes", "--missing", "drop")
    lacking("one.csv", "p")
    first = update("one.csv", "--name", "first", "--closed-before", "2026-11-05")
    assert first.exit_code == 0, first.stderr
    assert "1 lacks 'p'" in first.stderr
    small("other.csv", 100, 4)
    lacking("two.csv", "closes", "other.csv")
    second = update("two.csv", "--late", "--name", "first")
    assert second.exit_code == 0, second.stderr
    assert "1 row of two.csv without 'closes': left out" in second.stderr
    small("more.csv", 100, 5)
    lacking("three.csv", "closes", "more.csv")
    assert update("three.csv", "--late").exit_code == 0
    assert [record.rows for record in it.Watch.load("watch.json").history] == [39, 60, 99]


def test_a_missing_label_waits_for_a_later_file_where_there_are_no_dates(dated):
    done(*dated)
    lacking("some.csv", "y")
    told = refused("update", "some.csv", *STATE)
    assert "whatever it is: keep it for a later file" in told
    assert "--closed-before" not in told


def test_one_row_that_has_closed_is_no_batch(dated):
    done(*dated, "--date-column", "closes")
    small("few.csv", 10, 3)
    told = refused("update", "few.csv", "--closed-before", "2026-11-02", *STATE)
    assert "only 1 row of few.csv closes in this time" in told


def test_batches_are_called_as_their_files_without_known_endings(dated):
    done(*dated)
    long = "x" * 240
    for seed, name in enumerate(("scores.2026-10.csv", "scores.2026-11.csv", f"{long}.csv")):
        small(name, 40, seed + 5)
        assert update(name).exit_code == 0
    small("zipped.csv", 40, 9)
    Path("scores.v2.CSV.gz").write_bytes(gzip.compress(Path("zipped.csv").read_bytes()))
    assert update("scores.v2.CSV.gz").exit_code == 0
    small(f"{long}.csv", 40, 10)
    assert update(f"{long}.csv").exit_code == 0
    names = [record.name for record in it.Watch.load("watch.json").history]
    first = ["scores.2026-10", "scores.2026-11", long[:200], "scores.v2"]
    assert names == [*first, f"{long[:196]} (2)"]


def test_names_of_200_characters_may_be_late():
    name = "x" * 200
    typed, late = (Options("watch update", None, {"name": name, "late": k}) for k in (False, True))
    assert free_name(name, {name}, typed) == name
    assert free_name(name, set(), late) == f"{'x' * 193} (late)"
    assert free_name(name, {f"{'x' * 193} (late)"}, late) == f"{'x' * 191} (late 2)"


@pytest.mark.usefixtures("folder")
def test_a_watch_that_was_begun_in_python_is_refused():
    rows = pa.parquet.read_table("reference.parquet")
    sample = it.Sample.from_frame(rows, label="y", prob="p", on=["age"])
    it.Watch.start(sample).save("watch.json")
    assert "begun in Python" in refused("update", "week0.parquet", *STATE)


def test_two_updates_at_once_are_both_counted(folder):
    start()
    with held(folder / "watch.json", Options("watch update", None, {"quiet": True})):
        code = "from itrust.__main__ import main; main()"
        command = [sys.executable, "-c", code, "watch", "update", "week0.parquet", *STATE]
        other = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        said = other.stderr.readline()
        assert b"another command is at work" in said
        assert history(folder) == ()
    assert other.wait(120) == 0
    other.stderr.close()
    assert update("week1.parquet").exit_code == 0
    assert [record.name for record in history(folder)] == ["week0", "week1"]


def test_a_state_that_somebody_changed_is_not_overwritten(folder):
    start()
    before = (folder / "watch.json").read_bytes()
    with held(folder / "watch.json", Options("watch update", None, {"quiet": True})) as write:
        (folder / "watch.json").write_bytes(before + b"\n")
        with pytest.raises(it.InputError, match="run the command again"):
            write({})
    assert (folder / "watch.json").read_bytes() == before + b"\n"


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_update_that_is_killed_between_two_files_can_be_run_again(folder, at):
    """The state is moved in last."""
    start()
    args = ["watch", "update", "week0.parquet", *STATE, "--report", "page.html", "--quiet"]
    killed_at_a_move(folder, args, at)
    again = invoke(*args)
    assert again.exit_code in (0, 2), again.stderr
    (record,) = history(folder)
    assert record.name == "week0"
    assert "week0" in (folder / "page.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.4, 1.2, 2.0])
def test_an_update_that_is_killed_leaves_the_old_state_or_the_new_one(folder, seconds):
    start()
    before = (folder / "watch.json").read_bytes()
    code = "from itrust.__main__ import main; main()"
    command = [sys.executable, "-c", code, "watch", "update", "week0.parquet", *STATE]
    run = subprocess.Popen([*command, "--report", "page.html"], stderr=subprocess.DEVNULL)
    threading.Event().wait(seconds)
    run.send_signal(signal.SIGKILL)
    run.wait()
    time.sleep(0.2)
    known = len(history(folder))
    assert known == (0 if (folder / "watch.json").read_bytes() == before else 1)
    again = update("week0.parquet", "--report", "page.html")
    assert again.exit_code == (2 if known else 0), again.stderr
    alone = invoke("watch", "start", "reference.parquet", *COLUMNS, "--state", "other.json")
    assert alone.exit_code == 0
    invoke("watch", "update", "week0.parquet", "--state", "other.json")
    assert (folder / "watch.json").read_bytes() == (folder / "other.json").read_bytes()
