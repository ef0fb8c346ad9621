"""The scan: sums over cells are those of regions, the best one is found, and it is exact."""

from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

import itrust as it
from itrust import Sample
from itrust.calibration import Shape, prepared_test, reach, region_scores
from oracles import plausible


def town(seed=0, n=700, shift=0.0, **settings):
    """A number with ties and holes, a category; a bias in a corner of both."""
    rng = np.random.default_rng(seed)
    x = {"a": rng.normal(size=n).round(1), "g": rng.choice(list("uvw"), n)}
    corner = (x["a"] > 0.4) & (x["g"] == "v")
    x["a"] = np.where(rng.random(n) < 0.1, np.nan, x["a"])
    p = rng.uniform(0.2, 0.6, n)
    return Sample(rng.random(n) < p + shift * corner, p, x, missing="level", **settings)


def scanned(sample):
    """The scores of the scan alone."""
    checks = it.default_dictionary(sample).only(families=["ranges", "regions"])
    return prepared_test(sample, checks, draws=19, rng=0).scores


def windows(axis, codes, alone):
    """All windows of a column's cells, by a naive double loop over sizes and starts."""
    (_, levels), cells = axis.cuts[0], axis.cells
    if levels is not None:
        return [codes == k for k in range(len(levels) + 1)]
    found, known = [codes == cells - 2], cells - 2
    for size in [size for k in range(6) for size in ((2**k, 3 * 2**k) if alone else (2**k,))]:
        if size < known and size / 1.5 < 2 ** int(np.log2(known - 1)):
            starts = {*range(0, known - size + 1, max(size // 4, 1)), known - size}
            found += [(codes >= start) & (codes < start + size) for start in starts]
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_region_is_that_of_a_naive_double_loop(weighted):
    rng = np.random.default_rng(1)
    w = rng.exponential(size=700) if weighted else np.ones(700)
    s = town(shift=0.3, weights=w if weighted else None)
    scores = scanned(s)
    assert [grid.entry.crossed for grid in scores.grids[:3]] == [(None,), ("a",), ("g",)]
    e, v = w * (s.y - s.p), w**2 * s.p * (1 - s.p) / np.mean(w**2)
    e = e / np.sqrt(np.mean(w**2))
    for k, grid in enumerate(scores.grids):
        names, least = grid.entry.crossed, {1: 12, 2: 60}[len(grid.entry.crossed)]
        axes = [grid.a, grid.b][: len(names)]
        cut = [windows(axis, axis.codes(s.points), len(axes) == 1) for axis in axes]
        best = (-np.inf, 0.0, None)
        for inside in product(*cut):
            shares = [own.mean() for own in inside]
            if not all((least / s.n) ** (1 / len(names)) <= share < 1 for share in shares):
                continue
            rows = np.all(inside, axis=0)
            if v[rows].sum() < 2:
                continue
            z = e[rows].sum() / np.sqrt(v[rows].sum())
            depth = sum(round(-np.log2(share)) for share in shares)
            score = -norm.logsf(abs(z)) - (1 + depth) * np.log(2)
            best = max(best, (score, z, rows), key=lambda own: own[0])
        entry = scores.entries[k]
        assert scores.standardised[k, 0] == pytest.approx(best[0], rel=1e-5)
        assert (entry.where.rows(s.points) == best[2]).all()
        assert entry.direction == np.sign(best[1])


def test_scores_and_reach_are_inverse():
    depths, z = np.arange(6), np.linspace(2.5, 9.0, 6)
    assert reach(region_scores(-z, depths), depths) == pytest.approx(z)


def test_the_level_is_exact():
    """At .25, where few runs tell much: the scan rejects as often as asked, not less."""
    runs, rejected = 160, 0
    for run in range(runs):
        checks = it.default_dictionary(town(run, 200)).only(families=["ranges", "regions"])
        rejected += it.klce_test(town(run, 200), checks, draws=19, rng=run).pvalue <= 0.25
    assert plausible(rejected, runs, 0.25, doubt=0.02)


def test_a_corner_is_told_in_words():
    s = town(3, 3_000, shift=0.3)
    checks = it.default_dictionary(s).only(families=["regions"])
    told, *_ = it.klce_test(s, checks, draws=99, rng=0).evidence()
    assert (told.name, told.shape, told.direction) == ("a x g: regions", Shape.REGION, 1)
    assert told.where.names == {"a", "g"}
    assert str(told) == f"the bias is higher where {told.where} than what is plainer explains"


def test_files_sum_the_same_cells(tmp_path):
    """Dask: `test_a_cluster_gives_the_answer_of_one_machine`."""
    s = town(shift=0.3)
    g = s.column("g")
    rows = {"y": s.y, "p": s.p, "a": s.column("a").values, "g": np.array(g.levels)[g.values]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet", row_group_size=150)
    scan = it.scan(tmp_path, label="y", prob="p", on=["a", "g"], missing="level")
    mine, theirs = scanned(s), scanned(scan)
    assert [entry.where for entry in theirs.entries] == [entry.where for entry in mine.entries]
    np.testing.assert_allclose(theirs.standardised, mine.standardised, rtol=1e-4)


def test_every_class_is_scanned_by_itself():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1_500)
    p = rng.dirichlet([4, 4, 4], 1_500)
    truth = np.clip(p + 0.25 * np.outer(x > 1, [1, -1, 0]), 0, 1)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (rng.random((1_500, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    made = it.klce_test(Sample(y, p, {"x": x}), draws=99, rng=0)
    scores = [{f.name: f.score for f in one.findings}["x: ranges"] for one in made.classes]
    assert min(scores[:2]) > scores[2] + 3
