"""Who counts at a place: members of a region, or neighbours with widths from (p, x).

A Gaussian never ends, so its tails carry a bias from where the model is wrong to where it is right.
Here a weight is max(K - cut, 0) / (1 - cut): 0 beyond some widths, and a place is judged by rows
within them alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import AnyArray, FloatArray, InputError, IntArray, smallest_tickets, tickets
from itrust.data import Points, Predicate
from itrust.kernels import (
    RBF,
    Constant,
    GaussianGram,
    Gram,
    LocalKernel,
    MatchGram,
    Scale,
    default_covariate_kernel,
    split_match,
)

CUT = 0.05  # 2.4 widths of a Gaussian
ROWS_IN_LEAF = 512
MAX_FAMILY = 2_048  # places whose covariance is held
MAX_WEIGHTS = 2**22  # in a tile that holds all rows
PILOT_ROWS, PILOT_PLACES = 8_192, 256
NARROWEST, WIDEST = 1 / 64, 4.0  # of the spread of a column
STEPS, FIRST_STEP = 512, 288  # of factors between them; the one to begin with, 0.35
PAIRS_AT_ONCE = 2**16  # of a place and a row, whose weights are made at once
FEW = 40.0  # neighbours to aim at in small groups

Tile = tuple[IntArray, IntArray, AnyArray]  # places, rows and the weights between them


class Weights(ABC):
    """How much every row counts at every place, known without labels."""

    spread: bool  # whether squares are summed, too, which tell how much residuals vary

    @property
    @abstractmethod
    def places(self) -> int:
        """Number of places."""

    @abstractmethod
    def tiles(self, rows: Points, whole: bool = False, dtype: DTypeLike = float) -> Iterator[Tile]:
        """Weights of some rows at all places, without those that are 0 throughout.

        With `whole`, all rows of a place come in one tile; else all places of a family at which a
        row counts do, in ascending order.
        """

    @property
    def families(self) -> list[range]:
        """Places, 2,048 at most, whose correlation is known; else the largest is rather large."""
        places = range(self.places)
        return [places[at : at + MAX_FAMILY] for at in range(0, self.places, MAX_FAMILY)]


@dataclass(frozen=True)
class Members(Weights):
    """A row counts 1 inside a region and 0 outside."""

    regions: Sequence[Predicate]
    spread: bool = True

    @property
    def places(self) -> int:
        return len(self.regions)

    def tiles(self, rows: Points, whole: bool = False, dtype: DTypeLike = float) -> Iterator[Tile]:  # noqa: ARG002
        if self.regions:
            inside = np.array([region.rows(rows) for region in self.regions], dtype=dtype)
            yield np.arange(self.places), np.arange(len(rows)), inside


@dataclass(frozen=True, eq=False)
class Neighbours(Weights):
    """Kernel weights around points: max(K - cut, 0) / (1 - cut), K a share of its largest value."""

    points: Points
    kernel: LocalKernel
    cut: float = CUT
    spread: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.cut < 1:
            problem = "{argument} must be at least 0 and below 1, not {value}"
            raise InputError(problem, argument="cut", value=self.cut)
        if not 0 < self.kernel.supremum < math.inf or self.kernel.is_positional:
            problem = "a local bias needs a bounded kernel of values, such as RBF or Delta"
            raise InputError(f"{problem}, not {{value}}", argument="kernel", value=self.kernel)

    @property
    def places(self) -> int:
        return len(self.points)

    def tiles(self, rows: Points, whole: bool = False, dtype: DTypeLike = float) -> Iterator[Tile]:
        gram = self.kernel.gram(self.points, rows)
        smooth, match = split_match(gram)
        if whole:
            everyone = np.arange(len(rows))
            at_once = max(1, MAX_WEIGHTS // max(len(rows), 1))
            for first in range(0, self.places, at_once):
                places = np.arange(first, min(first + at_once, self.places))
                yield places, everyone, self._cut(gram.block_as(places, everyone, dtype))
            return
        for places, members in _matching(match, gram.shape):
            yield from self._near(smooth, places, members, dtype)

    def _near(
        self, smooth: Gram, places: IntArray, rows: IntArray, dtype: DTypeLike
    ) -> Iterator[Tile]:
        if not isinstance(smooth, GaussianGram) or self.cut == 0:
            at_once = max(1, MAX_WEIGHTS // max(places.size, 1))
            for first in range(0, rows.size, at_once):
                some = rows[first : first + at_once]
                yield places, some, self._cut(smooth.block_as(places, some, dtype))
            return
        reach2 = -2 * math.log(self.cut)
        features = smooth.left[places]
        for leaf in _leaves(smooth.right, rows):
            low, high = smooth.right[leaf].min(axis=0), smooth.right[leaf].max(axis=0)
            gap = np.maximum(features - high, low - features)
            np.maximum(gap, 0.0, out=gap)
            near = places[np.einsum("ij,ij->i", gap, gap) < reach2]
            if near.size:
                yield near, leaf, self._cut(smooth.block_as(near, leaf, dtype))

    def _cut(self, block: AnyArray) -> AnyArray:
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
    for code in np.intersect1d(match.left, match.right):
        yield np.flatnonzero(match.left == code), np.flatnonzero(match.right == code)


def _leaves(features: FloatArray, rows: IntArray) -> list[IntArray]:
    """Split rows at the median of the widest direction until every part is small."""
    if rows.size <= ROWS_IN_LEAF:
        return [rows]
    chosen = features[rows]
    if chosen.shape[1] == 1:
        order = np.argsort(chosen[:, 0], kind="stable")
        return np.array_split(rows[order], -(-rows.size // ROWS_IN_LEAF))
    column = chosen[:, int(np.argmax(chosen.max(axis=0) - chosen.min(axis=0)))]
    order = np.argpartition(column, rows.size // 2)
    halves = rows[order[: rows.size // 2]], rows[order[rows.size // 2 :]]
    return [leaf for half in halves for leaf in _leaves(features, half)]


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
    """
    columns = [c for c in points.columns if names is None or c.name in names]
    base = RBF(Scale()) if width is None else RBF(width)
    kernel = LocalKernel(
        base if prediction else Constant(), default_covariate_kernel(columns, base, exact)
    ).resolve(points, partial=True)
    if width is not None:
        return kernel
    pilot = points.take(smallest_tickets(tickets(0, len(points)), PILOT_ROWS))
    places = pilot.take(np.linspace(0, len(pilot) - 1, PILOT_PLACES).astype(int))
    smooth = sum(c.kind in ("number", "date") and c.name not in exact for c in columns)
    halves, dimensions = _half_distances(kernel, places, pilot), smooth + prediction
    # Effective neighbours of a typical row to aim at, of the rows that match it.
    sizes = [np.full(len(half), half.shape[1]) for half in halves]
    share, n = float(np.median(np.concatenate(sizes))) / len(pilot), n or len(points)
    aim = (1.0 if dimensions == 1 else 0.7) * math.pow(n * share, 0.8)
    wanted = max(aim, min(FEW, 0.9 * n * share)) / n * len(pilot)
    return kernel.widened(_factor(halves, wanted, dimensions))


def _factor(halves: list[AnyArray], wanted: float, dimensions: int) -> float:
    """The narrowest of some factors, a hundredth apart, with which a typical place has enough.

    Shares grow about as a power of the factor: a few steps along such lines come so near that only
    two neighbouring factors are left to look at.
    """
    factors = np.geomspace(NARROWEST, WIDEST, STEPS + 1)
    power = max(dimensions, 1) * math.log(WIDEST / NARROWEST) / STEPS  # of a step, to begin with
    low, high, at = 0, STEPS, FIRST_STEP
    tried: dict[int, float] = {}
    while high - low > 1:
        tried[at] = math.log(max(_effective(halves, factors[at]), 1e-300) / wanted)
        low, high = (low, at) if tried[at] >= 0 else (at, high)
        near = sorted(tried, key=lambda k: abs(tried[k]))[:2]
        if len(near) == 2:
            slope = (tried[near[1]] - tried[near[0]]) / (near[1] - near[0])
            power = slope if slope > 0 else power
        at = min(max(math.ceil(near[0] - tried[near[0]] / power), low + 1), high - 1)
    return float(factors[high])


def _half_distances(kernel: LocalKernel, places: Points, rows: Points) -> list[AnyArray]:
    """Half the squared distances between places and the rows that match them, at widths of 1."""
    smooth, match = split_match(kernel.gram(places, rows))
    halves: list[AnyArray] = []
    for matching, members in _matching(match, smooth.shape):
        at_once = max(1, PAIRS_AT_ONCE // members.size)
        for first in range(0, matching.size, at_once):
            some = matching[first : first + at_once]
            half = np.zeros((some.size, members.size), dtype=np.float32)
            if isinstance(smooth, GaussianGram):
                for left, right in zip(smooth.left.T, smooth.right.T, strict=True):
                    half += 0.5 * np.square(left[some][:, None] - right[members])
            halves.append(half)
    return halves


def _effective(halves: list[AnyArray], factor: float) -> float:
    """Effective number of rows that count at a typical place, with widths of this factor."""
    sizes = []
    for half in halves:
        weights = half * np.float32(-(factor**-2))
        np.exp(weights, out=weights)
        weights -= np.float32(CUT)
        np.maximum(weights, 0.0, out=weights)
        sizes.append(weights.sum(axis=1) ** 2 / np.einsum("ij,ij->i", weights, weights))
    return float(np.median(np.concatenate(sizes)))
