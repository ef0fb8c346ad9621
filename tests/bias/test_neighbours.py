"""Who is a neighbour: compact support, widths from rows without labels."""

import numpy as np
import pytest

import itrust as it
from itrust._core import InputError
from itrust.bias import Neighbours, neighbour_kernel
from itrust.bias.slice_search import roundest
from itrust.data import Points
from itrust.kernels import RBF, Constant, Laplace, Linear, LocalKernel


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


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(2.3, 2.4, 2.4), (0.1204, 0.1387, 0.13), (-3.2, -2.9, -3.0), (17, 23, 20), (5.0, 5.0, 5.0)],
)
def test_cuts_are_round_numbers(low, high, expected):
    assert roundest(low, high) == expected
