"""Weighted mean residuals: against plain loops, in any number of parts."""

from dataclasses import replace

import numpy as np
import pytest

import itrust as it
from itrust.bias import BEYOND_DOUBT, Members, Neighbours, average
from itrust.data import Everywhere, Level
from itrust.kernels import RBF, Delta, LocalKernel
from itrust.nulls import Bernoulli


def dense(weights, points) -> np.ndarray:
    """All weights as one matrix, (places, rows)."""
    matrix = np.zeros((weights.places, len(points)))
    for places, rows, block in weights.tiles(points, whole=False):
        matrix[np.ix_(places, rows)] += block
    return matrix


@pytest.fixture
def neighbours(mixed_sample) -> Neighbours:
    kernel = LocalKernel(
        RBF(0.3), {"income": RBF(8), "children": RBF(2), "urban": Delta(), "race": Delta(0.3)}
    )
    return Neighbours(mixed_sample.points, kernel)


def test_sums_equal_a_plain_loop(mixed_sample, neighbours):
    spread = replace(neighbours, spread=True)
    found = average(mixed_sample, spread, (Bernoulli(),), draws=30, seed=4)
    drawn = np.empty((mixed_sample.n, 30))
    Bernoulli().fill(drawn, mixed_sample, range(30), 4)
    residuals = np.column_stack([mixed_sample.residuals, drawn])
    a = dense(neighbours, mixed_sample.points) * mixed_sample.weights_or_ones
    p, e = mixed_sample.p, mixed_sample.residuals
    for place in range(mixed_sample.n):
        own = a[place]
        assert found.sums[0, place] == pytest.approx(own @ residuals, abs=1e-12)
        assert found.spread[place] == pytest.approx(own**2 @ residuals**2, abs=1e-12)
        assert found.values[place] == pytest.approx(own @ e / own.sum(), abs=1e-12)
        assert found.size[place] == pytest.approx(own.sum() ** 2 / (own**2).sum())
        assert found.mean_prediction[place] == pytest.approx(own @ p / own.sum())
        b = found.values[place]
        stderr = np.sqrt((own**2 * (e - b) ** 2).sum()) / own.sum()
        assert found.stderr[place] == pytest.approx(stderr, abs=1e-12)


@pytest.mark.parametrize("shift", [-0.2, 0.0, 0.15])
def test_moments_are_those_of_labels_with_that_bias(mixed_sample, neighbours, shift):
    found = average(mixed_sample, neighbours, (Bernoulli(),), draws=0, seed=0)
    a = dense(neighbours, mixed_sample.points) * mixed_sample.weights_or_ones
    variance, third = found.central(np.full(mixed_sample.n, shift))
    p = mixed_sample.p
    for place in range(mixed_sample.n):
        own = a[place]
        mean = own @ p / own.sum()
        truth = p * (1 + shift / mean) if shift < 0 else 1 - (1 - p) * (1 - shift / (1 - mean))
        truth = np.clip(truth, 0, 1)  # beyond "never" and "always" is nothing
        assert own @ truth / own.sum() == pytest.approx(np.clip(mean + shift, 0, 1))
        v = truth * (1 - truth)
        assert variance[place] == pytest.approx(own**2 @ v, abs=1e-12)
        assert third[place] == pytest.approx(own**3 @ (v * (1 - 2 * truth)), abs=1e-12)


def many_neighbours(rows, places):
    sample = it.simulate.survey(rows, rng=0).sample
    kernel = LocalKernel(RBF(0.1), {"income": RBF(9_000), "age": RBF(6), "region": Delta()})
    return sample, Neighbours(sample.take(slice(places)).points, kernel)


@pytest.mark.slow
def test_chunks_threads_and_leaves_change_nothing(monkeypatch):
    sample, weights = many_neighbours(3_000, places=300)
    reference = average(sample, weights, (Bernoulli(),), draws=20, seed=1)
    monkeypatch.setattr("itrust.engines.factor.Factor._chunk_rows", lambda *_: 701)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    other = average(sample, weights, (Bernoulli(),), draws=20, seed=1)
    assert other.sums == pytest.approx(reference.sums, abs=1e-10)
    assert other.multiplied == pytest.approx(reference.multiplied, abs=1e-10)
    assert other.third == pytest.approx(reference.third, abs=1e-10)
    (whole,) = [block for _, _, block in weights.tiles(sample.points, whole=True)]
    assert dense(weights, sample.points) == pytest.approx(whole, abs=1e-12)


def test_single_precision_changes_next_to_nothing(monkeypatch):
    sample, weights = many_neighbours(1_000, places=100)
    double = average(sample, weights, (Bernoulli(),), draws=50, seed=1)
    monkeypatch.setattr("itrust.bias.averages.MAX_IN_DOUBLE", 0)
    single = average(sample, weights, (Bernoulli(),), draws=50, seed=1)
    assert single.sums == pytest.approx(double.sums, abs=1e-4)
    assert single.multiplied == pytest.approx(double.multiplied, abs=1e-3)
    assert not np.array_equal(single.sums, double.sums)
    assert single.values == pytest.approx(double.values, abs=1e-7)  # weights are rounded, sums not


def test_members_are_means_of_groups(mixed_sample):
    regions = [Everywhere(), Level("race", "b")]
    found = average(mixed_sample, Members(regions), (Bernoulli(),), draws=5, seed=0)
    w, e = mixed_sample.weights_or_ones, mixed_sample.residuals
    inside = mixed_sample.column("race").values == 1
    assert found.values[0] == pytest.approx(w @ e / w.sum())
    assert found.values[1] == pytest.approx(w[inside] @ e[inside] / w[inside].sum())


def test_a_place_without_rows_has_no_value(mixed_sample):
    nowhere = Members([Level("race", "z")])
    found = average(mixed_sample, nowhere, (Bernoulli(),), draws=3, seed=0)
    assert np.isnan(found.values[0])
    assert (found.null_scores(studentised=False) == 0).all()


def test_clusters_are_summed_before_they_are_squared():
    town = it.simulate.repeated_units(40, 5, rng=0).sample
    cluster = np.random.default_rng(0).permutation(np.repeat(np.arange(40), 5))
    sample = it.Sample(town.y, town.p, cluster=cluster)
    found = average(sample, Members([Everywhere()]), (Bernoulli(),), draws=9, seed=0)
    b = sample.residuals.mean()
    sums = [(sample.residuals - b)[cluster == unit].sum() for unit in range(40)]
    many = 40 / 39  # clusters around their mean, which is 0 here
    assert found.stderr[0] == pytest.approx(np.sqrt(many * np.square(sums).sum()) / 200)
    kernel = LocalKernel(RBF(0.2))
    weights = Neighbours(sample.points.take(slice(10)), kernel.resolve(sample.points))
    local = average(sample, weights, (Bernoulli(),), draws=9, seed=0)
    a = weights.kernel.gram(weights.points, sample.points).block(slice(None), slice(None))
    a = np.maximum(a - weights.cut, 0) / (1 - weights.cut)
    for place in range(10):
        own, value = a[place], local.values[place]
        parts = own * (sample.residuals - value)
        sums = [parts[cluster == unit].sum() for unit in range(40)]
        spread = np.sqrt(many * np.square(sums).sum())
        assert local.stderr[place] == pytest.approx(spread / own.sum())


def test_labels_called_impossible_outrank_every_draw():
    sample = it.Sample([1, 0, 0, 0], [0.0, 0.0, 0.0, 0.0])
    scores = average(sample, Members([Everywhere()]), (Bernoulli(),), 9, 0).null_scores(
        studentised=False
    )
    assert scores[0, 0, 0] == BEYOND_DOUBT
    assert (scores[0, 0, 1:] == 0).all()
