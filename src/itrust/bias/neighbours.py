"""Who counts as a neighbour: kernel weights cut to compact support, and widths from (p, x).

A Gaussian never ends, so its tails carry a bias from where the model is wrong to where it is right.
Here a weight is max(K - cut, 0) / (1 - cut): 0 beyond some widths, and a place is judged by rows
within them alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, smallest_tickets, tickets
from itrust.bias.smoothing import Tile, Weights
from itrust.data import Column, Points
from itrust.kernels import (
    RBF,
    Constant,
    Delta,
    GaussianGram,
    Gram,
    Kernel,
    LocalKernel,
    MatchGram,
    Product,
    Scale,
    split_match,
)

CUT = 0.05  # 2.4 widths of a Gaussian
ROWS_IN_LEAF, PLACES_IN_LEAF = 512, 64
MAX_WEIGHTS = 2**22  # in a tile that holds all rows
PILOT_ROWS, PILOT_PLACES = 8_192, 256
NARROWEST, WIDEST = 1 / 64, 4.0  # of the spread of a column
EVERYBODY = 1e6  # so wide that all rows are near
FEW = 40.0  # neighbours to aim at in small groups


@dataclass(frozen=True, eq=False)
class Neighbours(Weights):
    """Kernel weights around points, cut to compact support.

    A weight is max(K - cut, 0) / (1 - cut), with K as a share of the kernel's largest value, so it
    falls to 0 without a jump.

    Parameters
    ----------
    points : Points
        The places whose neighbours are asked for.
    kernel : LocalKernel
        Nearness, with explicit widths.
    cut : float
        Share of the kernel's largest value below which a row is no neighbour; 0 for none.
    """

    points: Points
    kernel: LocalKernel
    cut: float = CUT

    def __post_init__(self) -> None:
        if not 0 <= self.cut < 1:
            raise InputError(
                "{argument} must be at least 0 and below 1, not {value}",
                argument="cut",
                value=self.cut,
            )
        if not 0 < self.kernel.supremum < math.inf or self.kernel.is_positional:
            raise InputError(
                "a local bias needs a bounded kernel of values, such as RBF or Delta, not {value}",
                argument="kernel",
                value=self.kernel,
            )

    @property
    def places(self) -> int:
        """Number of points."""
        return len(self.points)

    def tiles(self, rows: Points, *, whole: bool) -> Iterator[Tile]:
        """Leaves of rows with the leaves of places that may be near."""
        gram = self.kernel.gram(self.points, rows)
        smooth, match = split_match(gram)
        if whole or (match is None and not isinstance(smooth, GaussianGram)):
            everyone = np.arange(len(rows))
            at_once = max(1, MAX_WEIGHTS // max(len(rows), 1))
            for first in range(0, self.places, at_once):
                some = np.arange(first, min(first + at_once, self.places))
                yield some, everyone, self._cut(gram.block(some, everyone))
            return
        for places, members in _matching(match, gram.shape):
            yield from self._near(smooth, places, members)

    def _near(self, smooth: Gram, places: IntArray, rows: IntArray) -> Iterator[Tile]:
        if not isinstance(smooth, GaussianGram) or self.cut == 0:
            yield places, rows, self._cut(smooth.block(places, rows))
            return
        reach = math.sqrt(-2 * math.log(self.cut))
        place_leaves = _leaves(smooth.left, places, PLACES_IN_LEAF)
        place_boxes = np.array([_box(smooth.left[leaf]) for leaf in place_leaves])
        for row_leaf in _leaves(smooth.right, rows, ROWS_IN_LEAF):
            low, high = _box(smooth.right[row_leaf])
            gap = np.maximum(place_boxes[:, 0] - high, low - place_boxes[:, 1]).clip(min=0.0)
            near = np.flatnonzero(np.linalg.norm(gap, axis=1) < reach)
            if near.size:
                chosen = np.concatenate([place_leaves[k] for k in near])
                yield chosen, row_leaf, self._cut(smooth.block(chosen, row_leaf))

    def _cut(self, block: FloatArray) -> FloatArray:
        if self.cut > 0:
            block /= self.kernel.supremum
            block -= self.cut
            np.maximum(block, 0.0, out=block)
            block /= 1 - self.cut
        return block


def _matching(
    match: MatchGram | None, shape: tuple[int, int]
) -> Iterator[tuple[IntArray, IntArray]]:
    """Places and rows whose categories match exactly."""
    if match is None:
        yield np.arange(shape[0]), np.arange(shape[1])
        return
    left, right = match.left, match.right
    orders = [np.argsort(side, kind="stable") for side in (left, right)]
    sorted_codes = [side[order] for side, order in zip((left, right), orders, strict=True)]
    for code in np.intersect1d(left, right):
        found = [
            order[np.searchsorted(codes, code) : np.searchsorted(codes, code, side="right")]
            for order, codes in zip(orders, sorted_codes, strict=True)
        ]
        yield found[0], found[1]


def _box(features: FloatArray) -> tuple[FloatArray, FloatArray]:
    return features.min(axis=0), features.max(axis=0)


def _leaves(features: FloatArray, index: IntArray, size: int) -> list[IntArray]:
    """Split at the median of the widest direction until every part is small."""
    if index.size <= size:
        return [index]
    chosen = features[index]
    column = chosen[:, int(np.argmax(np.ptp(chosen, axis=0)))]
    order = np.argpartition(column, index.size // 2)
    halves = index[order[: index.size // 2]], index[order[index.size // 2 :]]
    return [leaf for half in halves for leaf in _leaves(features, half, size)]


def neighbour_kernel(
    points: Points,
    names: Sequence[str] | None = None,
    *,
    exact: Sequence[str] = (),
    prediction: bool = True,
    width: float | None = None,
    n: int | None = None,
) -> LocalKernel:
    """Widths from (p, x) such that a typical row has 0.7 m^0.8 effective neighbours.

    m is the number of rows that match it in all categories; the power is that of optimal smoothing
    in one dimension, where 0.7 becomes 1. Numbers and dates get an RBF whose width is one common
    multiple of their spread, between 1/64 and 4; categories and booleans match exactly.

    Parameters
    ----------
    points : Points
    names : covariates to be local in, optional
        Default: all.
    exact : covariates that have to match exactly, whatever their kind
    prediction : bool
        Whether to be local in the prediction, too.
    width : float, optional
        Of the one number, in place of the rule.
    n : int, optional
        Number of all rows, where `points` are random ones of them; default: they are all.
    """
    columns = [c for c in points.columns if names is None or c.name in names]
    base = RBF(Scale()) if width is None else RBF(width)
    kernel = LocalKernel(
        base if prediction else Constant(), _covariate_kernel(columns, exact, base)
    ).resolve(points, partial=True)
    if width is not None:
        return kernel
    pilot = points.take(smallest_tickets(tickets(0, len(points)), PILOT_ROWS))
    places = pilot.take(np.linspace(0, len(pilot) - 1, PILOT_PLACES).astype(int))
    smooth = sum(c.kind in ("number", "date") and c.name not in exact for c in columns)
    wanted = _wanted_share(kernel, places, pilot, n or len(points), smooth + prediction)
    low, high = math.log(NARROWEST), math.log(WIDEST)
    if _typical_share(kernel.widened(WIDEST), places, pilot) < wanted:
        return kernel.widened(WIDEST)
    while high - low > 0.02:
        middle = (low + high) / 2
        enough = _typical_share(kernel.widened(math.exp(middle)), places, pilot) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return kernel.widened(math.exp(high))


def _wanted_share(
    kernel: LocalKernel, places: Points, pilot: Points, n: int, dimensions: int
) -> float:
    """Effective neighbours of a typical row to aim at, as a share of all rows."""
    matching = n * _typical_share(kernel.widened(EVERYBODY), places, pilot)
    aim = (1.0 if dimensions == 1 else 0.7) * math.pow(matching, 0.8)
    return max(aim, min(FEW, 0.9 * matching)) / n


def _covariate_kernel(columns: Sequence[Column], exact: Sequence[str], smooth: Kernel) -> Kernel:
    numbers = [c.name for c in columns if c.kind in ("number", "date") and c.name not in exact]
    parts: list[Kernel] = [smooth.on(*numbers)] if numbers else []
    parts.extend(Delta().on(c.name) for c in columns if c.name not in numbers)
    if not parts:
        return Constant()
    return parts[0] if len(parts) == 1 else Product(tuple(parts))


def _typical_share(kernel: LocalKernel, places: Points, rows: Points) -> float:
    """Median over places of the effective share of rows that count."""
    sums, squares = np.zeros(len(places)), np.zeros(len(places))
    for chosen, _, weights in Neighbours(places, kernel).tiles(rows, whole=False):
        sums[chosen] += weights.sum(axis=1)
        squares[chosen] += np.square(weights).sum(axis=1)
    size = np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0)
    return float(np.median(size)) / len(rows)
