"""A file that is read twice is the same file; one that has changed is refused in a sentence."""

import os
import pickle
import sqlite3
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust import InputError
from itrust.data import FilePart, FileSet

N = 2_000
ENDINGS = ["parquet", "feather", "csv"]


@pytest.fixture(autouse=True)
def few_rows_at_once(monkeypatch):
    monkeypatch.setattr("itrust.data.files.WINDOW_ROWS", 100)


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n).round(3)
    return pa.table({"y": (rng.random(n) < p).astype(int), "p": p, "a": rng.random(n).round(6)})


def write(table, path):
    {
        ".parquet": lambda: pq.write_table(table, path, row_group_size=500, compression="none"),
        ".feather": lambda: pa.feather.write_feather(table, path, "uncompressed", chunksize=500),
        ".csv": lambda: pa.csv.write_csv(table, path),
    }[path.suffix]()
    return path


def scan(path, **changes):
    return it.scan(path, **{"label": "y", "prob": "p", "on": "a", **changes})


def append(path):
    if path.suffix == ".parquet":
        write(pa.concat_tables([rows(), rows(1, 10)]), path)
    else:
        with path.open("ab") as file:
            file.write(b"1,.5,.5\n")


def replace_by_rename(path):
    time.sleep(0.02)  # file systems tell times in steps of some milliseconds
    write(rows(1), path.with_name(f".new{path.suffix}"))
    os.replace(path.with_name(f".new{path.suffix}"), path)


CHANGES = {
    "grew from": append,
    "shrank from": lambda path: os.truncate(path, path.stat().st_size // 2),
    "(grew|shrank|was written)": replace_by_rename,
    "was written or touched": lambda path: os.utime(path, ns=(1, 1)),
    "has vanished": lambda path: path.unlink(),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("told", CHANGES)
def test_a_change_between_two_passes_is_refused(tmp_path, ending, told):
    path = write(rows(), tmp_path / f"a.{ending}")
    source = scan(path)
    assert source.pilot(100).n == N
    CHANGES[told](path)
    sentence = rf"a\.{ending} {told}.* first looked at.*; scan it again when nobody .*copy it first"
    for read in (lambda: list(source.chunks(500)), source.load, lambda: source.n):
        with pytest.raises(InputError, match=sentence):
            read()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("told", CHANGES)
def test_a_change_during_the_last_pass_is_refused(tmp_path, ending, told):
    path = write(rows(), tmp_path / f"a.{ending}")
    source = scan(path)
    chunks = source.chunks(100)
    next(chunks)
    CHANGES[told](path)
    with pytest.raises(InputError, match=rf"a\.{ending} {told}"):
        list(chunks)


def test_the_test_of_a_growing_file_is_refused(tmp_path, monkeypatch):
    path = write(rows(), tmp_path / "a.csv")
    source = scan(path)
    survey = it.engines.Survey.of

    def then_append(*args):
        found = survey(*args)
        append(path)
        return found

    monkeypatch.setattr(it.engines.Survey, "of", then_append)
    with pytest.raises(InputError, match=r"a\.csv grew from [0-9,]+ to [0-9,]+ bytes"):
        it.klce_test(source, draws=9, rng=0)


def test_what_looks_broken_because_it_changed_is_told_as_changed(tmp_path):
    """Half a line that a writer has not finished is no wrong value of the user's."""
    path = write(rows(), tmp_path / "a.csv")
    batch, _ = next(scan(path)._batches())
    with pytest.raises(InputError, match="prob must lie"), batch.located():
        raise InputError("prob must lie in [0, 1]")
    with path.open("ab") as file:
        file.write(b"1,7.")
    with pytest.raises(InputError, match=r"a\.csv grew"), batch.located():
        raise InputError("prob must lie in [0, 1]")


@pytest.mark.parametrize("pattern", ["", "*.parquet", "**/*.parquet"])
def test_files_that_appear_later_are_not_read_and_those_that_vanish_are_named(tmp_path, pattern):
    for name in ("a", "b"):
        write(rows(), tmp_path / f"{name}.parquet")
    source = scan(str(tmp_path / pattern))
    write(rows(), tmp_path / "c.parquet")
    assert source.n == 2 * N
    os.remove(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet has vanished"):
        list(source.chunks(500))


def test_a_piece_on_another_machine_knows_what_its_file_was(tmp_path):
    path = write(rows(), tmp_path / "a.parquet")
    write(rows(), tmp_path / "b.parquet")
    part = FilePart(path, (1, 2), 500, 500, 1000)
    piece = pickle.loads(pickle.dumps(scan(tmp_path).only(part)))
    assert list(piece.file_set.states) == [path]  # few bytes travel
    assert piece.n == 1000
    os.remove(tmp_path / "b.parquet")
    assert piece.n == 1000
    replace_by_rename(path)
    with pytest.raises(InputError, match=r"a\.parquet"):
        list(piece.chunks(100))


def test_a_piece_that_ends_before_its_file_is_checked_to_its_last_row(tmp_path):
    path = write(rows(), tmp_path / "a.parquet")
    piece = scan(path).spanning([FilePart(path, (0, 1), 0, 0, 1000)], range(1000))
    assert sum(len(chunk.y) for chunk in piece.chunks(100)) == 1000
    chunks = piece.chunks(100)
    next(chunks)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InputError, match=r"a\.parquet was written or touched"):
        list(chunks)


def test_a_reader_that_stops_early_asks_no_more(tmp_path):
    path = write(rows(), tmp_path / "a.parquet")
    chunks = scan(path).chunks(100)
    next(chunks)
    append(path)
    chunks.close()


def test_changes_that_a_database_keeps_beside_it_are_seen(tmp_path):
    path = tmp_path / "a.sqlite"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("CREATE TABLE t (y, p)")
    writer.executemany("INSERT INTO t VALUES (?, ?)", [(0, 0.25), (1, 0.5)])
    writer.commit()
    source = it.scan(path, label="y", prob="p")
    assert source.n == 2
    before = path.read_bytes()
    writer.execute("INSERT INTO t VALUES (1, 0.75)")
    writer.commit()
    assert path.read_bytes() == before
    with pytest.raises(InputError, match=r"a\.sqlite grew"):
        source.load()
    writer.close()
    assert it.scan(path, label="y", prob="p").n == 3


def test_files_that_were_looked_at_before_keep_what_they_were(tmp_path):
    path = write(rows(), tmp_path / "a.csv")
    before = FileSet.of(path)
    append(path)
    with pytest.raises(InputError, match=r"a\.csv grew"):
        scan(before).load()
    assert scan(path).n == N + 1
