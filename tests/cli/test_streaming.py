"""Files too large for memory: when they are read as a stream, and `itrust recalibrate` on them."""

import gzip
import json
import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import itrust as it
from itrust.cli import inputs
from itrust.cli.options import Options
from itrust.data import copying
from itrust.recalibrate import rows
from itrust.recalibrate.applying import Application
from shell import invoke

COLUMNS = ("--label", "y", "--prob", "p", "--on", "age,region")
MULTI = ("--method", "multicalibration")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn = np.random.default_rng(0)
    n = 400
    p, age = drawn.uniform(0.02, 0.98, n), drawn.integers(18, 90, n)
    y = np.where(drawn.random(n) < np.where(age > 50, p**2, p), "yes", "no")
    region = drawn.choice(["north", "south"], n)
    note = np.array(["plain", 'a, "b"', "line\nbreak"])[np.arange(n) % 3]
    table = pa.table({"y": y, "p": p, "age": age, "region": region, "note": note})
    pa.csv.write_csv(table, "a.csv")
    pa.parquet.write_table(table, "a.parquet", row_group_size=90)
    with gzip.open("a.csv.gz", "wb") as file:
        pa.csv.write_csv(table, file)
    monkeypatch.setattr(copying, "CHUNK_ROWS", 128)


def run(*args):
    return invoke("recalibrate", *args, env={"COLUMNS": "200"})


def test_files_larger_than_a_fifth_of_free_memory_are_streamed(monkeypatch):
    for name in ("a.csv", "a.parquet", "a.csv.gz"):
        known = os.path.getsize(name) * (5 if name.endswith("gz") else 1)
        with inputs.opened(Options("audit", name, {})) as source:
            for free, streamed in ((5 * known - 1, True), (5 * known, False)):
                monkeypatch.setattr(inputs, "free_memory", lambda free=free: free)
                assert source.streams(asked=False) == streamed
                assert source.streams(asked=True)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
@pytest.mark.parametrize("out", ["out.csv", "out.csv.gz", "out.parquet", "out.feather"])
def test_streamed_and_whole_write_the_same_bytes_and_words(name, out, tmp_path):
    said, written = [], []
    for more in ((), ("--stream",)):
        result = run(
            name, *COLUMNS, *MULTI, "--positive", "yes", "--apply", name, "--out", out, *more
        )
        assert result.exit_code == 0, result.output
        said.append(result.stdout)
        written.append((tmp_path / out).read_bytes())
        assert ("some rows at a time" in result.stderr) == bool(more)
    assert said[0] == said[1]
    assert written[0] == written[1]


def test_the_command_streams_by_itself_and_tells_how_many_rows_it_drew(monkeypatch, tmp_path):
    monkeypatch.setattr(inputs, "free_memory", lambda: 1_000.0)
    monkeypatch.setattr(rows, "MAX_ROWS", 300)
    result = run("a.parquet", *COLUMNS, *MULTI, "--positive", "yes", "--save", "r.json")
    assert result.exit_code == 0, result.output
    told = "fitted multicalibration on 300 rows of a.parquet, drawn at random from 400 without"
    assert told in result.stdout
    assert it.recalibrate.load(tmp_path / "r.json").n_available_ == 400
    platt = ("--method", "platt")
    result = run("a.parquet", *COLUMNS, *platt, "--positive", "yes", "--save", "r.json")
    assert "fitted platt on 400 rows of a.parquet\n" in result.stdout


def test_columns_are_guessed_and_clusters_are_loaded_on_a_stream():
    table = pa.parquet.read_table("a.parquet")
    y = pa.array([int(label == "yes") for label in table["y"].to_pylist()])
    unit = pa.array(np.arange(400) // 4)
    table = table.set_column(0, "y", y).append_column("unit", unit)
    pa.parquet.write_table(table, "b.parquet", row_group_size=90)
    result = run("b.parquet", "--on", "age", *MULTI, "--cluster", "unit", "--save", "r", "--stream")
    assert result.exit_code == 0, result.output
    assert "taking 'y' for --label" in result.stderr
    assert "taking 'p' for --prob" in result.stderr


def test_a_wrong_row_of_a_stream_is_one_sentence_with_its_place():
    table = pa.parquet.read_table("a.parquet").to_pydict()
    table["p"][350] = 1.25
    pa.parquet.write_table(pa.table(table), "b.parquet", row_group_size=90)
    args = (*COLUMNS, *MULTI, "--positive", "yes", "--stream")
    result = run("b.parquet", *args, "--save", "r.json")
    assert result.exit_code == 2
    assert "b.parquet: --prob must lie in [0, 1]; the 351st row has 1.25" in result.stderr
    result = run("a.parquet", *args, "--apply", "b.parquet", "--out", "c.parquet")
    assert result.exit_code == 2
    assert "b.parquet: --prob p must lie in [0, 1]; the 351st row has 1.25" in result.stderr
    assert not os.path.exists("c.parquet")


def stopped(how):
    """Ends the work in the second chunk of rows."""
    real = Application.__call__

    def call(self, frame):
        if self.rows:
            how()
        return real(self, frame)

    return call


def interrupted():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("how", "code"),
    [
        (interrupted, 130),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), 143),
        (lambda: os.kill(os.getpid(), signal.SIGHUP), 129),
        (lambda: 1 / 0, 70),
    ],
)
def test_whatever_ends_the_work_changes_nothing_and_leaves_nothing(
    how, code, monkeypatch, tmp_path
):
    (tmp_path / "out.csv").write_text("old")
    (tmp_path / "out.csv").chmod(0o640)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    args = ("a.csv", *COLUMNS, *MULTI, "--positive", "yes", "--save", "r.json")
    with monkeypatch.context() as patched:
        patched.setattr(Application, "__call__", stopped(how))
        result = run(*args, "--apply", "a.csv", "--out", "out.csv")
    assert result.exit_code == code
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert run(*args, "--apply", "a.csv", "--out", "out.csv").exit_code == 0
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o640
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_link_stays_a_link_and_a_wrong_ending_is_refused(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    args = ("a.csv", *COLUMNS, *MULTI, "--positive", "yes", "--apply", "a.csv", "--out")
    assert run(*args, "link.csv").exit_code == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert "p_recalibrated" in (tmp_path / "real.csv").read_text()
    for name in ("a.parquet.gz", "a.gz", "a.xlsx"):
        result = run(*args, name)
        assert result.exit_code == 2
        assert "--out must end with one of" in result.stderr


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    town = it.simulate.survey(600, rng=0).sample
    region = town.column("region")
    file = tmp_path_factory.mktemp("homes") / "homes.csv"
    rows = zip(town.y, town.p, town.column("age").values, region.values, strict=True)
    lines = [f"{y:.0f},{float(p)!r},{age:g},{region.levels[int(k)]}" for y, p, age, k in rows]
    file.write_text("\n".join(["y,p,age,region", *lines]) + "\n")
    return file


AUDIT = ["--label", "y", "--prob", "p", "--on", "age,region", "--draws", "99", "--json", "-"]


@pytest.mark.parametrize("at_hand", [100_000, 300])
def test_an_audit_that_streams_is_the_same_audit(homes, at_hand, monkeypatch):
    monkeypatch.setattr("itrust.data.survey.EXTRACT_ROWS", at_hand)
    whole, streamed = (
        json.loads(invoke("audit", homes, *AUDIT, "--task", "mean(age)", *flags).stdout)
        for flags in ([], ["--stream"])
    )
    assert streamed["rows_at_hand"] == min(at_hand, 600)
    assert streamed["n"] == whole["n"] == 600
    assert streamed["provenance"]["sha256"] == whole["provenance"]["sha256"]
    for key in ("pvalue", "verdict", "sentence"):
        if at_hand == 100_000:
            assert streamed[key] == whole[key]
    assert streamed["tasks"][0]["bias"] == pytest.approx(whole["tasks"][0]["bias"])
    assert streamed["overall"]["brier"] == pytest.approx(whole["overall"]["brier"])


def test_an_audit_of_a_stream_says_so_and_fails_in_one_sentence(homes, tmp_path):
    found = invoke("audit", homes, *AUDIT[:-2], "--stream")
    assert found.exit_code == 0
    assert "reading some rows at a time" in found.stderr
    bad = tmp_path / "bad.csv"
    bad.write_text(homes.read_text() + "2,0.5,30,south\n")
    wrong = invoke("audit", bad, *AUDIT, "--stream")
    assert wrong.exit_code == 2
    assert "Traceback" not in wrong.stderr
    assert "bad.csv" in wrong.stderr
