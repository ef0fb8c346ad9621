"""Several classes in files: a scan names them, and loads what a frame of all rows would give."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import itrust as it
from itrust import InputError, Population, Sample
from itrust.data import MulticlassPopulation, files

PROB = {"win": "p1", "tie": "pt", "loss": "p2"}


@pytest.fixture
def games(tmp_path):
    """Two files of games whose columns hold all kinds of things, and all their rows."""
    rng = np.random.default_rng(0)
    n = 900
    p = rng.dirichlet([2, 1, 2], n)
    y = np.array(list(PROB))[(rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)]
    frame = pd.DataFrame(
        {
            "y": y,
            "p1": p[:, 0],
            "pt": p[:, 1],
            "p2": p[:, 2],
            "age": rng.normal(40, 10, n).round(3),
            "region": rng.choice(["south", "north", "west"], n),
            "year": rng.integers(2000, 2004, n),
            "w": rng.uniform(1, 2, n),
            "person": np.arange(n) // 3,
            "day": pd.date_range("2024-01-01", periods=n),
        }
    )
    frame.loc[500:, "region"] = frame.loc[500:, "region"].replace("west", "abroad")
    for number, part in enumerate((frame[:500], frame[500:])):
        pa.parquet.write_table(
            pa.Table.from_pandas(part, preserve_index=False), tmp_path / f"{number}.parquet"
        )
    return tmp_path, frame


def same(one, other):
    """Two samples have the same bits everywhere."""
    assert one.classes == other.classes
    assert one.label == other.label
    assert one.dropped == other.dropped
    assert one.rescaled == other.rescaled
    np.testing.assert_array_equal(one.p, other.p)
    np.testing.assert_array_equal(one.codes, other.codes)
    for mine, its in zip(one.columns, other.columns, strict=True):
        assert (mine.name, mine.kind, mine.levels) == (its.name, its.kind, its.levels)
        np.testing.assert_array_equal(mine.values, its.values)
    for name in ("weights", "cluster", "strata", "replicate_weights"):
        mine, its = getattr(one.design, name), getattr(other.design, name)
        assert (mine is None) == (its is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize(
    "settings",
    [
        {"on": ["age", "region", "year"]},
        {"on": "region", "weights": "w", "cluster": "person"},
        {"on": ["age", "day"], "cluster": "blocks(day)", "missing": "level"},
        {"on": ["age", "person"], "cluster": "person", "where": "region == 'south' or age < 30"},
        {"on": "year", "categories": "year", "missing": "drop", "na_values": [2001]},
    ],
)
def test_a_scan_loads_what_a_frame_gives(games, settings, monkeypatch):
    folder, frame = games
    monkeypatch.setattr("itrust.data.files.WINDOW_ROWS", 128)
    scan = it.scan(folder, label="y", prob=PROB, **settings)
    assert scan.several
    assert scan.classes == ("win", "tie", "loss")
    own = scan.load()
    same(own, Sample.from_frame(frame, label="y", prob=PROB, **settings))
    assert not own.p.flags.writeable


def test_one_class_of_a_scan_is_a_scan(games):
    folder, _ = games
    scan = it.scan(folder / "*.parquet", label="y", prob=PROB, on=["age", "region"])
    own = scan.one_class("tie")
    assert not own.several
    loaded, binary = own.load(), scan.load().one_class("tie")
    np.testing.assert_array_equal(loaded.y, binary.y)
    np.testing.assert_array_equal(loaded.p, binary.p)
    usual = it.scan(folder, label="y", prob="pt", on=["age", "region"], positive="tie")
    assert it.klce2(own) == it.klce2(usual)
    assert scan.with_names(["age"]).load().names == ("age",)
    assert repr(scan) == (
        "<Scan: 2 files, classes 'win', 'tie', 'loss', covariates 'age', 'region'>"
    )
    assert scan.rows_expected == 900
    assert scan.is_simple
    assert scan.notes == ()
    again = pickle.loads(pickle.dumps(scan))
    assert again.classes == scan.classes


def test_patterns_and_numbers_name_classes(tmp_path):
    frame = pd.DataFrame({"y": [0, 2, 1, 2], "p_2": [0.2, 0.5, 0.2, 0.6]})
    frame = frame.assign(p_0=[0.3, 0.2, 0.2, 0.2], p_1=[0.5, 0.3, 0.6, 0.2])
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    scan = it.scan(path, label="y", prob="p_*")
    assert scan.classes == (2, 0, 1)
    np.testing.assert_array_equal(scan.load().codes, [1, 0, 2, 0])
    np.testing.assert_array_equal(scan.one_class(2).load().y, [0, 1, 0, 1])
    same(scan.load(), Sample.from_frame(frame, label="y", prob="p_*"))
    texts = frame.assign(y=["a0", "a2", "a1", "a2"]).rename(columns=lambda c: c.replace("p_", "a"))
    texts.to_csv(path, index=False)
    listed = it.scan(path, label="y", prob=["a0", "a1", "a2"])
    np.testing.assert_array_equal(listed.load().codes, [0, 2, 1, 2])
    shell = it.scan(path, label="y", prob="a0=a0,a1=a1,a2=a2")
    np.testing.assert_array_equal(shell.load().p, listed.load().p)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pt": 0.9}, r"1.parquet: the probabilities of a row must sum to 1; those of row 3 sum"),
        ({"p1": -0.5}, r"1.parquet: prob must lie in .*row 3 has -0.5 for the class 'win'"),
        ({"p2": np.nan}, r"1.parquet: 1 row has no prob \(first: row 3\)"),
        ({"y": "draw"}, r"1.parquet: row 3 has the label 'draw', which is none of the classes"),
        ({"age": np.inf}, r"1.parquet: covariate 'age' must be finite; row 3 has inf"),
        ({"w": -1.0}, r"1.parquet: weights must not be negative; row 3 has -1"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_row(games, changes, message):
    folder, frame = games
    part = frame[500:].copy()
    for name, value in changes.items():
        part.loc[503, name] = value
    pa.parquet.write_table(pa.Table.from_pandas(part), folder / "1.parquet")
    scan = it.scan(folder, label="y", prob=PROB, on=["age"], weights="w")
    with pytest.raises(InputError, match=message):
        scan.load()


def test_wrong_roles_in_files_are_refused(games):
    folder, _ = games
    for prob, settings, message in [
        ("q_*", {}, "prob: no column matches"),
        ({"win": "p1", "tie": "px"}, {}, "prob: there is no column 'px'"),
        (PROB, {"on": "pt"}, "'pt' is the prob column; take it out"),
        (PROB, {"positive": "win"}, "positive is for one column"),
        (PROB, {"where": "prediction > 0.5"}, "where: there is no column 'prediction'"),
    ]:
        with pytest.raises(InputError, match=message):
            it.scan(folder, label="y", prob=prob, **settings)
    empty = it.scan(folder, label="y", prob=PROB, where="age > 1000")
    with pytest.raises(InputError, match="a sample needs at least 2"):
        empty.load()
    assert files.WINDOW_ROWS == 65_536


def test_populations_of_several_classes():
    p = np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    people = Population(p, {"age": [30, 41, 52]}, classes=list("abc"), weights=[1, 2, 3])
    assert type(people) is MulticlassPopulation
    own = people.one_class("b")
    assert type(own) is Population
    assert people.one_class("b") is own
    np.testing.assert_array_equal(own.p, p[:, 1])
    np.testing.assert_array_equal(own.weights, [1, 2, 3])
    assert own.columns is people.columns
    assert pickle.loads(pickle.dumps(people)).classes == ("a", "b", "c")
    assert type(pickle.loads(pickle.dumps(own))) is Population
    named = Population(pd.DataFrame(p, columns=["c", "b", "a"]), classes=["a", "b", "c"])
    np.testing.assert_array_equal(named.p, p[:, ::-1])
    dropped = Population(
        np.where(p == 0.7, np.nan, p), [1, 2, 3], classes=list("abc"), missing="drop"
    )
    assert dropped.n == 2
    assert dropped.notes == ("left out 1 row of 3 with missing values: 1 lacks 'prob'",)
    assert type(Population([0.2, 0.7])) is Population
    with pytest.raises(InputError, match=r"prob has 3 columns without names; .*classes=\[...\]"):
        Population(p)
    with pytest.raises(InputError, match=r"those of row 0 sum to 0\.9"):
        Population(p * 0.9, classes=list("abc"))
    with pytest.raises(InputError, match="at least 1 row"):
        Population(p[:0], classes=list("abc"))


def test_populations_in_frames_and_files(games):
    folder, frame = games
    whole = Population.from_frame(frame, prob=PROB, on=["age", "region"], weights="w")
    scan = Population.scan(folder, prob=PROB, on=["age", "region"], weights="w")
    assert scan.several
    assert scan.label is None
    loaded = scan.load()
    assert type(loaded) is type(whole) is MulticlassPopulation
    np.testing.assert_array_equal(loaded.p, whole.p)
    np.testing.assert_array_equal(loaded.weights, whole.weights)
    np.testing.assert_array_equal(loaded.columns[1].values, whole.columns[1].values)
    one = scan.one_class("loss").load()
    np.testing.assert_array_equal(one.p, whole.one_class("loss").p)
    young = Population.from_frame(frame, prob=PROB, on="age", where="age < 30")
    assert (
        young.dropped
        == Population.scan(folder, prob=PROB, on="age", where="age < 30").load().dropped
    )
    with pytest.raises(InputError, match="'age' is the prob column; take it out"):
        Population.from_frame(frame, prob={"a": "p1", "b": "age"}, on="age")


def test_what_is_of_two_classes_refuses_more():
    p = np.full((4, 3), 1 / 3)
    fix = it.recalibrate.Isotonic().fit(Sample([0, 1] * 20, np.linspace(0, 1, 40)))
    with pytest.raises(InputError, match="prob must be one column, not 3"):
        fix.predict(p)
    several = Sample([0, 1, 2, 0], p)
    with pytest.raises(InputError, match=r"this is a MulticlassSample; use .*one_class\(name\)"):
        it.local_bias(several)

    class Flat:
        classes_ = np.array(["a", "b", "c"])

        def predict_proba(self, X):
            return np.full((len(X), 3), 1 / 3)

    score = it.scores.scorer(it.scores.ece)
    with pytest.raises(InputError, match="the model knows 3 classes, 'a', 'b', 'c'; pass"):
        score(Flat(), np.zeros((4, 1)), ["a", "b", "c", "a"])
