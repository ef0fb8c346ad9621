"""Rows in files: fits on scans, files that are recalibrated some rows at a time, comparisons."""

import gzip
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust._core import progress, smallest_tickets, tickets
from itrust.data import copying
from itrust.recalibrate import METHODS, Local, Platt, compare, rows

QUICK = {"local": {"draws": 39, "widths": (0.4,), "ridges": (8.0,), "rounds": 1}}
NAMES = [name for name in METHODS if name != "mcgrad"]
OF_PREDICTION = [name for name in NAMES if not METHODS[name].reads_covariates]
ROLES = {"label": "y", "prob": "p", "on": ["age", "region"]}


def made(name):
    return METHODS[name](**QUICK.get(name, {}))


def table(n, seed=0):
    """Rows with a bias, weights of which some are 0, a category and gaps."""
    drawn = np.random.default_rng(seed)
    p, age = drawn.uniform(0.02, 0.98, n).round(3), drawn.integers(18, 90, n).astype(float)
    y = (drawn.random(n) < np.where(age > 50, p**2, p)).astype(int)
    region = np.array(["north", "south", None], dtype=object)[
        drawn.choice(3, n, p=[0.5, 0.45, 0.05])
    ]
    return pa.table(
        {
            "y": y,
            "p": p,
            "age": age,
            "region": pa.array(region, pa.string()),
            "w": drawn.integers(0, 4, n).astype(float),
        }
    )


def scanned(tmp_path, n=600, name="fit.parquet", group=250, **more):
    pa.parquet.write_table(table(n), tmp_path / name, row_group_size=group)
    return it.scan(tmp_path / name, **{**ROLES, "missing": "level", **more})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weights", [None, "w"])
def test_a_fit_on_few_rows_of_files_is_that_on_the_loaded_rows(name, weights, tmp_path):
    source = scanned(tmp_path, weights=weights, where="age >= 20")
    found, loaded = (made(name).fit(own) for own in (source, source.load()))
    assert found.to_dict() == loaded.to_dict()
    assert found.n_available_ == found.n_rows_ < 600


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_PREDICTION])
def test_of_many_rows_those_with_the_smallest_tickets_are_fitted_on(name, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MAX_ROWS", 400)
    source = scanned(tmp_path, 900)
    found = made(name).fit(source)
    some = source.load().take(smallest_tickets(tickets(0, 900), 400))
    assert found.to_dict()["learned"] == made(name).fit(some).to_dict()["learned"]
    facts = json.loads(json.dumps(found.to_dict()))
    assert (facts["rows"], facts["available_rows"]) == (400, 900)
    assert type(found).from_dict(facts).n_available_ == 900


@pytest.mark.parametrize("name", OF_PREDICTION)
@pytest.mark.parametrize("weights", [None, "w"])
def test_methods_of_the_prediction_alone_learn_from_all_of_many_rows(
    name, weights, tmp_path, monkeypatch
):
    source = scanned(tmp_path, 3_000, weights=weights)
    monkeypatch.setattr(rows, "CHUNK_ROWS", 500)
    whole = made(name).fit(source)
    monkeypatch.setattr(rows, "MAX_ROWS", 1_200)
    gathered = made(name).fit(source)
    assert gathered.n_rows_ == gathered.n_available_ == whole.n_rows_
    assert getattr(gathered, "edge_", None) == getattr(whole, "edge_", None)
    grid = np.linspace(0.011, 0.991, 197)
    assert gathered.predict(grid) == pytest.approx(whole.predict(grid), abs=1e-5)


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=40), st.integers(0, 2**16))
def test_cells_hold_the_weights_and_means_of_their_rows(p, seed):
    p = np.array(p)
    drawn = np.random.default_rng(seed)
    y, w = drawn.integers(0, 2, p.size).astype(float), drawn.uniform(0.1, 2, p.size)
    sums = rows._sums(y[:1], p[:1], w[:1]) + rows._sums(y[1:], p[1:], w[1:])
    labels, means, weights = rows._of_cells(sums, p.size)
    w = w * p.size / w.sum()
    for label in (0, 1):
        assert weights[labels == label].sum() == pytest.approx(w[y == label].sum())
    assert weights @ means == pytest.approx(w @ p)
    near = np.abs(means[:, None] - p).min(axis=1)  # every cell lies at its rows
    assert (near <= 2e-4 * np.minimum(means, 1 - means) + 2e-9).all()


def test_cells_are_half_a_million_at_most_and_follow_the_order_on_each_side():
    p = np.sort(np.random.default_rng(0).random(10_000))
    assert rows._NUMBER < 600_000
    assert rows._cell(np.array([0.0, 1.0, 0.5, 1e-300])).max() < rows._NUMBER
    assert (np.diff(rows._cell(p[p <= 0.5])) >= 0).all()
    assert (np.diff(rows._cell(p[p > 0.5])) <= 0).all()


def test_rows_with_a_design_are_loaded(tmp_path):
    own = table(300).append_column("city", pa.array(np.arange(300) // 3))
    pa.parquet.write_table(own, tmp_path / "a.parquet")
    source = it.scan(tmp_path / "a.parquet", **ROLES, cluster="city", missing="level")
    assert made("local").fit(source).clusters_ == 100
    assert Platt().fit(source).to_dict() == Platt().fit(source.load()).to_dict()


@pytest.mark.parametrize("name", ["platt", "multicalibration"])
def test_labels_that_are_all_equal_are_refused(name, tmp_path):
    pa.csv.write_csv(pa.table({"y": ["no"] * 5, "p": [0.5] * 5}), tmp_path / "a.csv")
    source = it.scan(tmp_path / "a.csv", label="y", prob="p", positive="yes")
    with pytest.raises(it.InputError, match="every label is 'no', so there is nothing to learn"):
        made(name).fit(source)


@pytest.mark.parametrize("name", ["platt", "multicalibration"])
def test_rows_without_weight_are_nothing_to_learn_from(name, tmp_path):
    own = table(50)
    pa.parquet.write_table(own.set_column(4, "w", pa.array(np.zeros(50))), tmp_path / "a.parquet")
    source = it.scan(tmp_path / "a.parquet", **ROLES, weights="w", missing="level")
    with pytest.raises(it.InputError, match=r"two (rows )?must count"):
        made(name).fit(source)


@pytest.mark.parametrize("name", ["platt", "multicalibration"])
def test_a_wrong_row_is_refused_wherever_it_stands(name, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MAX_ROWS", 20)
    wrong = table(300).to_pydict()
    wrong["p"][270] = 1.5
    pa.parquet.write_table(pa.table(wrong), tmp_path / "a.parquet", row_group_size=100)
    with pytest.raises(it.InputError, match=r"a\.parquet.*row 270 has 1\.5"):
        made(name).fit(it.scan(tmp_path / "a.parquet", **ROLES, missing="level"))


def test_what_is_neither_a_sample_nor_a_scan_is_refused():
    with pytest.raises(it.InputError, match=r"expected an itrust\.Sample, not a list"):
        Platt().fit([0, 1])
    with pytest.raises(it.InputError, match=r"expected an itrust\.Sample, not a list"):
        compare([Platt()], [0, 1], [0, 1])


# -- files that are recalibrated --------------------------------------------------------------


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(copying, "CHUNK_ROWS", 70)
    monkeypatch.setattr("itrust.data.formats.text.JSON_BLOCK_BYTES", 3_000)


@pytest.fixture
def platt():
    return Platt().fit(it.Sample.from_frame(table(500, 1), **ROLES, missing="level"))


def rich(n=300):
    """Columns of many types, in an order of their own."""
    drawn = np.random.default_rng(5)
    return pa.table(
        {
            "id": pa.array(2**60 + np.arange(n)),
            "note": pa.array(
                np.array(["plain", "a, b", 'say "x"', "line\nbreak", ""])[np.arange(n) % 5]
            ),
            **{name: table(n, 2)[name] for name in ("y", "p", "age", "region")},
            "at": pa.array(np.arange(n), pa.timestamp("ms", "Europe/Vienna")),
            "kind": pa.array(np.sort(drawn.choice(list("abcdef"), n))).dictionary_encode(),
            "parts": [[k] * (k % 3) for k in range(n)],
        },
        metadata={"who": "tests"},
    )


def check(path, out, whole, learned, read):
    """The file that was written is the whole table and its recalibrated column."""
    told = learned.apply(it.scan(path, **ROLES, missing="level"), out, column="q")
    expected = learned.predict(whole["p"])
    found = read(out)
    assert found["q"].to_numpy() == pytest.approx(expected, abs=1e-15)
    assert found.drop_columns(["q"]).to_pydict() == whole.to_pydict()
    again = told.load()
    assert (told.prob, told.files) == ("q", (out,))
    assert again.p == pytest.approx(expected, abs=1e-15)
    assert (again.y == whole["y"].to_numpy()).all()
    return found


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_types_zones_and_categories_stay_over_row_groups_of_any_size(ending, tmp_path, platt):
    pa.parquet.write_table(rich(), tmp_path / "a.parquet", row_group_size=33)
    read = {"parquet": pa.parquet.read_table, "feather": pa.feather.read_table}[ending]
    found = check(tmp_path / "a.parquet", tmp_path / f"b.{ending}", rich(), platt, read)
    given = pa.parquet.read_schema(tmp_path / "a.parquet")
    assert found.drop_columns(["q"]).schema.equals(given, check_metadata=True)


@pytest.mark.usefixtures("small_chunks")
def test_categories_of_all_batches_share_one_dictionary_in_a_feather_file(tmp_path, platt):
    own = rich()
    pieces = [own.slice(at, 100) for at in range(0, 300, 100)]
    for at, piece in enumerate(pieces):  # each with a dictionary of its own
        kind = pa.array(piece["kind"].to_pylist()).dictionary_encode()
        pa.feather.write_feather(piece.set_column(7, "kind", kind), tmp_path / f"a{at}.feather")
    out = tmp_path / "out.feather"
    platt.apply(it.scan(tmp_path / "a*.feather", **ROLES, missing="level"), out)
    found = pa.feather.read_table(out)
    assert found["kind"].to_pylist() == own["kind"].to_pylist()
    assert len({str(chunk.dictionary) for chunk in found["kind"].chunks}) == 1


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "tsv.gz"])
def test_text_stays_text_with_its_line_breaks(ending, tmp_path, platt, monkeypatch):
    monkeypatch.setattr("itrust.data.formats.text.CSV_BLOCK_BYTES", 4_000)
    monkeypatch.setattr("itrust.data.formats.text.MAX_BLOCK_BYTES", 1_500)
    sign = "," if ending.startswith("csv") else "\t"
    own = rich().select(["note", "y", "p", "age", "region"])
    cells = [
        [str(k).zfill(4), *("" if v is None else str(v) for v in row.values())]
        for k, row in enumerate(own.to_pylist())
    ]
    quoted = [
        [
            '"' + cell.replace('"', '""') + '"' if set(cell) & set(f'{sign}"\n') else cell
            for cell in row
        ]
        for row in cells
    ]
    lines = "".join(sign.join(row) + "\n" for row in [["code", *own.column_names], *quoted])
    opener = gzip.open if ending.endswith("gz") else open
    with opener(tmp_path / f"a.{ending}", "wt", newline="") as file:
        file.write(lines)
    out = tmp_path / f"b.{ending}"
    told = platt.apply(it.scan(tmp_path / f"a.{ending}", **ROLES, missing="level"), out)
    with opener(out, "rt", newline="") as file:
        written = file.read()
    expected = platt.predict(own["p"])
    assert told.load().p == pytest.approx(expected, abs=1e-15)
    new = iter([f"{sign}p_recalibrated", *(f"{sign}{value!r}" for value in expected.tolist())])
    rebuilt = "".join(f"{row}{next(new)}\n" for row in lines_of(lines))
    assert written == rebuilt


def lines_of(text):
    """Rows of a text; a line break within quotes is none."""
    found, held = [], ""
    for line in text.split("\n")[:-1]:
        held = f"{held}\n{line}" if held else line
        if held.count('"') % 2 == 0:
            found.append(held)
            held = ""
    return found


@pytest.mark.usefixtures("small_chunks")
def test_a_column_of_text_becomes_one_of_numbers_only_if_all_of_it_is(tmp_path, platt):
    n = 300
    columns = {
        "p": [0.5] * n,
        "y": [0, 1] * (n // 2),
        "whole": list(range(n)),
        "nearly": [*range(n - 1), "1e5"],
        "coded": [f"{k:04}" for k in range(n)],
    }
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    platt.apply(it.scan(tmp_path / "a.csv", label="y", prob="p"), tmp_path / "b.parquet")
    found = pa.parquet.read_table(tmp_path / "b.parquet")
    kinds = {name: str(found.schema.field(name).type) for name in columns}
    assert kinds == {
        "p": "double",
        "y": "double",
        "whole": "int64",
        "nearly": "string",
        "coded": "string",
    }
    assert found["whole"].to_pylist() == columns["whole"]
    assert found["nearly"].to_pylist() == [str(cell) for cell in columns["nearly"]]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_lines_of_json_keep_types_that_show_late(ending, tmp_path, platt):
    own = [
        {
            "y": k % 2,
            "p": 0.25,
            "age": 30.0,
            "region": "north",
            "late": 7 if k < 290 else 7.5,
            "nest": {"a": k} if k < 200 else {"a": k, "b": "x"},
        }
        for k in range(300)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in own))
    out = tmp_path / f"b.{ending}"
    platt.apply(it.scan(tmp_path / "a.jsonl", **ROLES), out)
    if ending == "parquet":
        found = pa.parquet.read_table(out).to_pylist()
    else:
        with (gzip.open if ending.endswith("gz") else open)(out, "rt") as file:
            found = [json.loads(line) for line in file]
    assert [row["late"] for row in found] == [row["late"] for row in own]
    assert found[0]["nest"] == {"a": 0, "b": None}
    assert found[-1]["nest"] == {"a": 299, "b": "x"}
    assert found[5]["p_recalibrated"] == pytest.approx(platt.predict([0.25])[0])


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("make", [lambda: Local(draws=39, rounds=1), METHODS["multicalibration"]])
def test_rows_get_what_predict_gives_them_however_files_are_cut(make, tmp_path, monkeypatch):
    monkeypatch.setattr("itrust.recalibrate.local.BLOCK_ROWS", 35)  # a whole number to a chunk
    learned = make().fit(it.Sample.from_frame(table(600, 1), **ROLES, missing="level"))
    own = table(400, 2)
    for at in range(0, 400, 200):  # whole numbers in one file, decimals in the other
        part = own.slice(at, 200)
        age = part["age"].cast(pa.int64()) if at else part["age"]
        place = tmp_path / f"part{at}.parquet"
        pa.parquet.write_table(part.set_column(2, "age", age), place, row_group_size=33)
    source = it.scan(tmp_path / "part*.parquet", **ROLES, missing="level")
    found = learned.apply(source, tmp_path / "out.parquet").load()
    assert (found.p == learned.predict(own["p"], own.select(["age", "region"]))).all()


@pytest.mark.usefixtures("small_chunks")
def test_a_wrong_row_is_told_with_its_file_and_the_target_stays(tmp_path, platt):
    for at in range(2):
        own = table(150, at).to_pydict()
        if at:
            own["p"][120] = -0.5
        pa.csv.write_csv(pa.table(own), tmp_path / f"a{at}.csv")
    (tmp_path / "out.csv").write_text("old")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(it.InputError, match=r"a1\.csv.*row 120 has -0\.5"):
        platt.apply(it.scan(tmp_path / "a*.csv", **ROLES, missing="level"), tmp_path / "out.csv")
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "out.csv").read_text() == "old"


def test_places_and_columns_that_cannot_be_are_refused(tmp_path, platt):
    source = scanned(tmp_path, 50)
    with pytest.raises(it.InputError, match="name it with out"):
        platt.apply(source)
    with pytest.raises(it.InputError, match="would overwrite"):
        platt.apply(source, tmp_path / "fit.parquet")
    with pytest.raises(it.InputError, match="has a column 'age' already"):
        platt.apply(source, tmp_path / "b.parquet", column="age")
    with pytest.raises(it.InputError, match="read, not written"):
        platt.apply(source, tmp_path / "b.dta")
    strict = it.scan(tmp_path / "fit.parquet", **ROLES)
    local = METHODS["multicalibration"]().fit(source)
    with pytest.raises(it.InputError, match=r"pass missing='level'$"):
        local.apply(strict, tmp_path / "b.parquet")
    assert os.listdir(tmp_path) == ["fit.parquet"]


def test_memory_does_not_grow_with_the_rows(tmp_path, platt):
    n = 600_000
    own = pa.table(
        {"y": np.zeros(n), "p": np.full(n, 0.5), **{f"x{k}": np.arange(n) for k in range(8)}}
    )
    pa.feather.write_feather(own, tmp_path / "a.feather")
    source = it.scan(tmp_path / "a.feather", label="y", prob="p")
    usual, watched = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(watched)
    try:
        platt.apply(source, tmp_path / "b.feather")
    finally:
        pa.set_memory_pool(usual)
    assert watched.max_memory() < own.nbytes / 2


# -- progress and comparisons -----------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch):
    """What the outermost work tells of itself: its title and the share done."""
    told = []

    def shown(meter, title):
        if title is not None:
            told.append((title(), meter.done))

    real = progress._display
    monkeypatch.setattr(
        progress, "_display", lambda show: shown if progress._above.get() is None else real(show)
    )
    return told


def test_progress_moves_with_the_rows(seen, tmp_path, platt, monkeypatch):
    monkeypatch.setattr(rows, "CHUNK_ROWS", 100)
    monkeypatch.setattr(copying, "CHUNK_ROWS", 100)
    source = scanned(tmp_path, 1_000)
    for work, least in (
        (lambda: Platt().fit(source), 10),
        (lambda: platt.apply(source, tmp_path / "b.csv"), 10),
    ):
        seen.clear()
        work()
        shares = [share for _, share in seen]
        assert shares == sorted(shares)
        assert len(set(shares)) >= least


def test_local_shows_progress_of_its_own(seen):
    sample = it.Sample.from_frame(table(500), **ROLES, missing="level")
    Local(draws=39, rounds=1).fit(sample)
    assert {title for title, _ in seen} == {"fitting Local"}
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert len(set(shares)) > 20
    assert shares[-1] == pytest.approx(1)


def test_methods_are_compared_on_rows_of_files(tmp_path, monkeypatch):
    learn = scanned(tmp_path, 500)
    pa.parquet.write_table(table(400, 9), tmp_path / "test.parquet")
    judge = it.scan(tmp_path / "test.parquet", **ROLES, missing="level")
    methods = [Platt(), METHODS["multicalibration"]()]
    settings = {"draws": 19, "rng": 0, "slices": False}
    whole, streamed = (
        compare(methods, *own, **settings) for own in ((learn.load(), judge.load()), (learn, judge))
    )
    facts = [
        {
            **own.to_dict(),
            "recalibrations": [
                {k: v for k, v in row.items() if k != "seconds"}
                for row in own.to_dict()["recalibrations"]
            ],
        }
        for own in (whole, streamed)
    ]
    assert facts[0] == facts[1]
    assert streamed.available_test_rows is None
    monkeypatch.setattr("itrust.data.survey.EXTRACT_ROWS", 100)
    monkeypatch.setattr(rows, "MAX_ROWS", 200)
    some = compare(methods, learn, judge, **settings)
    assert (some.calibration_rows, some.test_rows, some.available_test_rows) == (500, 100, 400)
    assert some.notes[0].startswith("judged on 100 rows, drawn at random from 400 without a look")
    assert some.notes[1].startswith(
        "Multicalibration: fitted on 200 rows, drawn at random from 500"
    )
    assert some["Platt"].fitted.n_rows_ == 500
    with pytest.raises(it.InputError, match="test rows are among the calibration rows"):
        compare(methods, learn, learn, **settings)
