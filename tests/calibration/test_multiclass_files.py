"""Several classes in files, read some at a time: the numbers of memory to the last bit."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import itrust as it
from itrust import InputError
from itrust.data import Scan
from itrust.engines import Auto

CLASSES = list("abcd")


def table(n=2_500, seed=0):
    """Class a is taken for b in the north; a covariate lacks some values."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 2.0), n)
    region = rng.choice(["north", "south", "east"], n)
    truth = p.copy()
    moved = 0.5 * truth[:, 0] * (region == "north")
    truth[:, 0] -= moved
    truth[:, 1] += moved
    y = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    columns = {f"p_{name}": p[:, k] for k, name in enumerate(CLASSES)}
    age = np.where(rng.random(n) < 0.02, np.nan, rng.normal(50, 10, n))
    w = rng.uniform(0.5, 2, n)
    units = np.arange(n) // 5
    y = np.array(CLASSES)[y]
    return pd.DataFrame({"y": y, **columns, "age": age, "region": region, "w": w, "unit": units})


def written(folder, frame, cuts=(700, 1_900), group=300):
    for number, part in enumerate(np.split(np.arange(len(frame)), cuts)):
        rows = pa.Table.from_pandas(frame.iloc[part], preserve_index=False)
        pa.parquet.write_table(rows, folder / f"{number}.parquet", row_group_size=group)
    return folder


@pytest.fixture
def few_rows_at_once(monkeypatch):
    """As if files were large: few rows are read at once, and none are loaded."""
    monkeypatch.setattr("itrust.calibration.classes.MAX_LOADED_ROWS", 100)
    monkeypatch.setattr("itrust.data.files.WINDOW_ROWS", 1_024)


def scan_of(folder, **settings):
    named = {"label": "y", "prob": "p_*", "on": ["age", "region"], "missing": "level"}
    return it.scan(folder, **{**named, **settings})


@pytest.mark.usefixtures("few_rows_at_once")
@pytest.mark.parametrize(
    "settings",
    [{}, {"where": "region != 'east'", "missing": "drop"}, {"on": []}],
    ids=["plain", "selected", "no covariates"],
)
def test_files_give_the_bits_of_memory_without_being_loaded(tmp_path, monkeypatch, settings):
    scan = scan_of(written(tmp_path, table()), **settings)
    kept = it.klce_test(scan.load(), draws=29, rng=3)
    monkeypatch.setattr(Scan, "load", lambda _: pytest.fail("rows were loaded"))
    found = it.klce_test(scan, draws=29, rng=3)
    assert found.to_dict() == kept.to_dict()
    np.testing.assert_array_equal(found.null_distribution, kept.null_distribution)
    assert [pair.to_dict() for pair in found.pairs] == [pair.to_dict() for pair in kept.pairs]
    assert found.pvalue == 1 / 30
    assert found.n == kept.n


@pytest.mark.usefixtures("few_rows_at_once")
def test_weights_in_files_give_the_numbers_of_memory_up_to_their_scale(tmp_path):
    scan = scan_of(written(tmp_path, table()), weights="w")
    found, kept = (it.klce_test(rows, draws=29, rng=3) for rows in (scan, scan.load()))
    assert found.weighted
    assert (found.pvalue, found.n) == (kept.pvalue, kept.n)
    assert found.statistic == pytest.approx(kept.statistic, rel=1e-9)
    np.testing.assert_allclose(found.null_distribution, kept.null_distribution, rtol=1e-9)
    for own, other in zip(found.classes, kept.classes, strict=True):
        assert (own.pvalue, own.positives) == (other.pvalue, other.positives)
        assert [f.name for f in own.findings] == [f.name for f in other.findings]


def late(frame):
    """A covariate that was made after the labels."""
    rng = np.random.default_rng(1)
    return frame.assign(age=frame["y"].map(ord) + rng.uniform(-0.1, 0.1, len(frame)))


def in_pairs(frame):
    """Labels of neighbours are the same."""
    return frame.assign(y=np.repeat(frame["y"].to_numpy()[::2], 2))


@pytest.mark.usefixtures("few_rows_at_once")
@pytest.mark.parametrize(
    ("changed", "words"), [(late, "tells nearly every label"), (in_pairs, "residuals go together")]
)
def test_files_warn_where_the_loaded_rows_do(tmp_path, changed, words):
    scan = scan_of(written(tmp_path, changed(table())))
    with pytest.warns(it.AssumptionWarning, match=words):
        warnings = it.klce_test(scan, draws=19, rng=3).assumption_warnings
    with pytest.warns(it.AssumptionWarning, match=words):
        assert it.klce_test(scan.load(), draws=19, rng=3).assumption_warnings == warnings


def test_a_tally_equals_the_loop_over_rows():
    rng = np.random.default_rng(0)
    p = rng.choice([[1.0, 0, 0], [0.0, 0.5, 0.5], [0.2, 0.3, 0.5]], 200)
    codes, w = rng.integers(0, 3, 200), rng.uniform(1, 2, 200)
    sample = it.MulticlassSample(codes, p, weights=w, classes=[0, 1, 2])
    found = Auto().run(Auto().survey_of(sample.extract()), []).tally
    never, refuted = 0, np.zeros(3, dtype=int)
    for own, k in zip(p, codes, strict=True):
        never += own[k] == 0
        refuted += [(own[j] == 0 and j == k) or (own[j] == 1 and j != k) for j in range(3)]
    assert found.impossible == never == sample.impossible.size > 0
    np.testing.assert_array_equal(found.refuted, refuted)
    np.testing.assert_array_equal(found.positives, np.bincount(codes, minlength=3))
    assert found.certain == np.count_nonzero(p[:, 0] == 1)
    w /= w.mean()
    pairs = sum(w[i] * w[j] for i in range(200) for j in range(200) if i != j)
    assert found.pair_weight == pytest.approx(pairs)


@pytest.mark.usefixtures("few_rows_at_once")
def test_a_wrong_row_is_told_with_its_file_and_its_number(tmp_path):
    frame = table()
    frame.loc[1_950, "p_a"] = 1.5
    scan = scan_of(written(tmp_path, frame))
    with pytest.raises(InputError, match=r"2\.parquet") as raised:
        it.klce_test(scan, draws=9, rng=0)
    assert raised.value.row == 50
    frame = table()
    frame.loc[3, "y"] = "zebra"
    with pytest.raises(InputError, match="zebra"):
        it.klce_test(scan_of(written(tmp_path, frame)), draws=9, rng=0)


@pytest.mark.usefixtures("few_rows_at_once")
def test_files_without_rows_are_refused(tmp_path):
    scan = scan_of(written(tmp_path, table(), group=100), where="age > 1000", missing="drop")
    with pytest.raises(InputError, match="no rows that count"):
        it.klce_test(scan, draws=9, rng=0)


@pytest.mark.usefixtures("few_rows_at_once")
@pytest.mark.parametrize("settings", [{"cluster": "unit"}, {"strata": "region", "on": ["age"]}])
def test_rows_that_are_not_simple_are_loaded(tmp_path, settings):
    scan = scan_of(written(tmp_path, table(600), cuts=(200,)), **settings)
    found = it.klce_test(scan, draws=19, rng=0)
    assert found.pvalue == it.klce_test(scan.load(), draws=19, rng=0).pvalue
