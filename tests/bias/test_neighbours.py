"""Who is a neighbour: compact support, widths from rows without labels."""

import numpy as np
import pytest

import itrust as it
from itrust._core import InputError
from itrust.bias import Neighbours, neighbour_kernel
from itrust.data import Points
from itrust.kernels import RBF, Constant, Delta, Laplace, Linear, LocalKernel, Scale


def weights_of(neighbours, points):
    matrix = np.zeros((neighbours.places, len(points)))
    for places, rows, block in neighbours.tiles(points, whole=False):
        matrix[np.ix_(places, rows)] += block
    return matrix


def line(n: int = 101) -> Points:
    return it.Sample(np.arange(n) % 2, np.full(n, 0.5), {"x": np.linspace(0, 10, n)}).points


@pytest.mark.parametrize("kernel", [RBF(1.0), Laplace(1.0)])
def test_weights_end_where_the_kernel_falls_below_the_cut(kernel):
    points = line()
    k = LocalKernel(Constant(), kernel)
    found = weights_of(Neighbours(points, k, cut=0.1), points)
    raw = k.gram(points).block(slice(None), slice(None))
    assert found == pytest.approx(np.maximum(raw - 0.1, 0) / 0.9)
    assert (found[0][points.columns[0].values > 3] == 0).all()
    assert found.max() == pytest.approx(1.0)


def test_without_a_cut_the_kernel_is_as_it_is():
    points = line(30)
    k = LocalKernel(Constant(), RBF(1.0))
    raw = k.gram(points).block(slice(None), slice(None))
    assert weights_of(Neighbours(points, k, cut=0.0), points) == pytest.approx(raw)


@pytest.mark.parametrize("n", [500, 4_000])
def test_a_typical_row_has_the_promised_neighbours(n):
    sample = it.simulate.survey(n, rng=0).sample
    kernel = neighbour_kernel(sample.points)
    weights = weights_of(Neighbours(sample.points, kernel), sample.points)
    size = weights.sum(1) ** 2 / (weights**2).sum(1)
    matching = np.bincount(sample.column("region").values)[sample.column("region").values]
    assert np.median(size) == pytest.approx(0.7 * np.median(matching) ** 0.8, rel=0.15)


def bisected(sample, names, exact, prediction) -> LocalKernel:
    """The rule by its words: halve the range of factors, count all weights each time."""
    points = sample.points
    places = points.take(np.linspace(0, len(points) - 1, 256).astype(int))

    def typical(kernel):
        weights = weights_of(Neighbours(places, kernel), points)
        return np.median(weights.sum(1) ** 2 / (weights**2).sum(1))

    numbers = [n for n in names if n not in exact and not sample.column(n).is_category]
    spread = {n: Scale()(sample.column(n).values[~sample.column(n).missing]) for n in numbers}
    parts = {n: RBF(w) for n, w in spread.items()} | {n: Delta() for n in names if n not in spread}
    prob = RBF(Scale()(sample.p)) if prediction else Constant()
    kernel = LocalKernel(prob, parts or Constant())
    matching, smooth = typical(kernel.widened(1e6)), len(numbers) + prediction
    wanted = max((1.0 if smooth == 1 else 0.7) * matching**0.8, min(40.0, 0.9 * matching))
    low, high = np.log(1 / 64), np.log(4.0)
    if typical(kernel.widened(4.0)) < wanted:
        return kernel.widened(4.0)
    while high - low > 0.02:
        middle = (low + high) / 2
        enough = typical(kernel.widened(np.exp(middle))) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return kernel.widened(np.exp(high))


@pytest.mark.parametrize(
    ("names", "exact", "prediction"),
    [
        (["age"], [], False),
        ([], [], True),
        (["age", "lab"], [], True),
        (["age", "few", "g"], ["few"], False),
        (["g"], [], False),
        (["id", "age"], [], False),
    ],
)
def test_widths_are_those_of_plain_bisection(names, exact, prediction):
    rng = np.random.default_rng(1)
    n = 700
    x = {
        "age": rng.integers(20, 80, n),
        "lab": np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n)),
        "few": rng.integers(0, 3, n),
        "g": rng.choice(["a", "b", "c"], n, p=[0.7, 0.2, 0.1]).astype(object),
        "id": np.array([f"u{k // 5}" for k in range(n)], dtype=object),
    }
    p = rng.beta(2, 5, n)
    sample = it.Sample(rng.random(n) < p, p, x, missing="level")
    kernel = neighbour_kernel(sample.points, names, exact=exact, prediction=prediction)
    places = sample.points.take(np.arange(0, n, 17))
    found, right = (
        weights_of(Neighbours(places, own), sample.points)
        for own in (kernel, bisected(sample, names, exact, prediction))
    )
    assert found == pytest.approx(right, abs=1e-9)


def test_tiny_groups_do_not_make_the_rule_fail():
    rng = np.random.default_rng(0)
    x = {"id": [f"u{k // 3}" for k in range(300)], "a": rng.normal(size=300)}
    kernel = neighbour_kernel(it.Sample(rng.random(300) < 0.5, np.full(300, 0.5), x).points)
    assert "Delta" in repr(kernel)


@pytest.mark.parametrize("cut", [-0.1, 1.0])
def test_a_cut_outside_0_to_1_is_refused(cut):
    with pytest.raises(InputError, match="cut must be at least 0"):
        Neighbours(line(), LocalKernel(RBF(0.1), RBF(1.0)), cut)


def test_a_kernel_without_bound_is_refused():
    with pytest.raises(InputError, match="bounded kernel"):
        Neighbours(line(), LocalKernel(RBF(0.1), Linear()))
