"""The scan: the largest bias of any region, over regions that are fixed without labels.

A check of the scan is all windows of one column, or all rectangles of two. Residuals are summed
over its cells, for the data and every draw; products with the windows give the sums of all regions.
A region's z is that sum by its null standard deviation; its score is minus the log of the tail of
|z|, less log 2 for every halving that its rows have taken: there are as many more regions of that
size. The largest score counts. Draws, with the data among them, say how large it is on the scale of
other checks; they are treated alike, so the p-value stays exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.special import log_ndtr, ndtri_exp

from itrust._core import AnyArray, FloatArray, IntArray
from itrust.calibration.dictionary.entries import Entry
from itrust.data import Pilot, Points, Predicate, Rows, all_of
from itrust.engines import Drawn
from itrust.terms import ColumnName, WindowAxis

MAX_CELLS = 2**14  # of all checks together
PARTS = 32, 16, 8
MIN_CELL = 2.0  # rows of a cell on average, if all cells were crossed
FEW = {1: 12, 2: 60, 3: 60}  # rows of the smallest region of so many columns, on average
LEAST_VARIANCE = 2.0  # of a region's sum, in labels: below that no sum is nearly normal
COLUMNS_AT_ONCE = 256
LOG_2 = math.log(2)
QUANTILES = 0.5, 0.9  # of draws that settle the scale
TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Grid:
    """A check of the scan: two axes, whose windows make its regions."""

    entry: Entry
    a: WindowAxis
    b: WindowAxis

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.a.cells * self.b.cells

    @cached_property
    def depths(self) -> IntArray:
        """How often rows are halved to get a region's, if columns were independent, (a, b)."""
        return np.add.outer(self.a.depths, self.b.depths)

    def regions(self, cells: AnyArray) -> FloatArray:
        """Sums over all regions from sums over cells, (a, b)."""
        table = cells.reshape(self.a.cells, self.b.cells)
        return np.asarray(self.a.windows @ table @ self.b.windows.T, dtype=float)

    def where(self, region: Sequence[int]) -> Predicate:
        """The rows of a region."""
        return all_of((self.a.conditions[region[0]], self.b.conditions[region[1]]))

    def scales(self, variance: AnyArray) -> FloatArray:
        """One by the null standard deviation of all regions; 0 where that is too small, (a, b)."""
        total = self.regions(variance)
        enough = total >= LEAST_VARIANCE
        return np.where(enough, 1 / np.sqrt(np.where(enough, total, 1.0)), 0.0)

    def scores(self, cells: AnyArray, expected: FloatArray, variance: FloatArray) -> FloatArray:
        """The largest score of all regions for many columns of sums over cells, (columns,)."""
        scales, (a, b) = self.scales(variance).astype(np.float32), (self.a, self.b)
        starts = np.flatnonzero(np.diff(b.depths, prepend=-1))
        found = np.empty(cells.shape[1])
        for at in range(0, found.size, COLUMNS_AT_ONCE):
            block = cells[:, at : at + COLUMNS_AT_ONCE] - expected.astype(np.float32)[:, None]
            rows = (a.windows @ block.reshape(a.cells, -1)).reshape(-1, b.cells, block.shape[1])
            best = np.full(block.shape[1], -np.inf)
            for first, last in pairwise(
                [*np.flatnonzero(np.diff(a.depths, prepend=-1)), len(rows)]
            ):
                z = np.abs(scales[first:last, :, None] * b.windows @ rows[first:last]).max(axis=0)
                largest = np.maximum.reduceat(z, starts, axis=0).astype(float)
                price = LOG_2 * (1 + a.depths[first] + b.depths[starts])
                best = np.maximum(best, (-log_ndtr(-largest) - price[:, None]).max(axis=0))
            found[at : at + COLUMNS_AT_ONCE] = best
        return found

    def best(self, cells: FloatArray, variance: FloatArray) -> tuple[tuple[int, int], float]:
        """The region with the largest score, and its z."""
        z = self.regions(cells) * self.scales(variance)
        at = np.unravel_index(int(np.argmax(region_scores(z, self.depths))), z.shape)
        return (int(at[0]), int(at[1])), float(z[at])


def region_scores(z: AnyArray, depths: AnyArray | float) -> FloatArray:
    """Minus the log of the tails of |z|, less what regions pay for being many."""
    return np.asarray(-log_ndtr(-np.abs(z)) - LOG_2 * (1 + depths))


def make_grids(entries: Sequence[Entry], pilot: Pilot) -> Iterator[Grid]:
    """Cut the columns that entries cross; entries without any region are left out."""
    several = [entry for entry in entries if len(entry.crossed) == 2]
    fits = (k for k in PARTS if len(several) * k**2 <= MAX_CELLS and MIN_CELL * k**2 <= pilot.n)
    parts, rows = next(fits, PARTS[-1]), max(pilot.n, 1)

    @cache
    def axis_of(name: ColumnName, parts: int, least: float, alone: bool) -> WindowAxis | None:
        return WindowAxis.of(name, pilot.points, parts, least, alone=alone)

    for entry in entries:
        least = (FEW[len(entry.crossed)] / rows) ** (1 / len(entry.crossed))
        own = parts if len(entry.crossed) < 3 else PARTS[-1]
        axes = [axis_of(name, own, least, len(entry.crossed) == 1) for name in entry.crossed]
        some = [axis for axis in axes if axis is not None]
        if len(some) == len(axes):
            a, *others = some
            for axis in others[:-1]:
                a = a.crossed(axis)
            yield Grid(entry, a, others[-1] if others else WindowAxis.everything())


# Sums in all cells for many columns, (C, columns), of weighted labels, flipped or drawn residuals;
# what is taken off each, and sums of w^2 p (1 - p) and of squares of observed residuals, (3, C).
CellSums = tuple[AnyArray, FloatArray]


class CellsPartial:
    """What one chunk contributes to the cells of all grids, being made."""

    def __init__(
        self, grids: Sequence[Grid], chunk: Rows, weights: FloatArray, columns: int
    ) -> None:
        starts = np.cumsum([0, *(grid.cells for grid in grids)])
        codes = np.stack([codes_of(grid, chunk.points) for grid in grids], axis=1) + starts[:-1]
        ends = np.arange(0, codes.size + 1, len(grids))
        shape = int(starts[-1]), chunk.n
        by_row = csc_array((np.ones(codes.size, np.float32), codes.ravel(), ends), shape)
        self.counted, self.columns = csr_array(by_row), columns
        self.weights = None if chunk.weights is None else weights.astype(np.float32)
        p, e = chunk.p, chunk.y - chunk.p
        squares = np.square(weights)
        told = np.stack([weights * p, squares * p * (1 - p), squares * e**2], axis=1)
        self.moments = (self.counted @ told).T
        self.sums: AnyArray | None = None

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""
        numbers = drawn.as_type(np.float32)
        if self.weights is not None:
            numbers = numbers * self.weights[:, None]
        found = self.counted @ numbers
        if not drawn.is_label:
            self.moments[0] = 0.0
        if found.shape[1] == self.columns:
            self.sums = found
            return
        if self.sums is None:
            self.sums = np.empty((len(found), self.columns), dtype=np.float32)
        self.sums[:, drawn.columns] = found

    def finished(self) -> CellSums:
        """Sums and moments of all cells."""
        assert self.sums is not None
        return self.sums, self.moments


def codes_of(grid: Grid, points: Points) -> IntArray:
    """The cell of every row in a grid, (n,)."""
    return grid.a.codes(points) * grid.b.cells + grid.b.codes(points)


@dataclass(frozen=True, eq=False)
class RegionLaw:
    """How large the largest scores of regions are if the model is calibrated.

    Those of a check follow exp(-K exp(-s / b)) nearly, with b = 1 where rows are independent; the
    quantiles of draws and data together give K, and b where clusters are kept whole.
    """

    middle: FloatArray  # median of a check's scores, (E,)
    spread: FloatArray  # b, (E,)
    log_weights: FloatArray
    maxima: FloatArray  # of all checks on one scale, (draws,)

    @classmethod
    def of(cls, scores: FloatArray, log_weights: FloatArray, *, independent: bool) -> RegionLaw:
        """From the largest scores of all checks, the data first, (E, 1 + draws)."""
        middle, upper = np.quantile(scores, QUANTILES, axis=1)
        spread = np.ones_like(middle)
        if not independent:
            spread = np.maximum((upper - middle) / math.log(LOG_2 / -math.log(QUANTILES[1])), 1.0)
        law = cls(middle, spread, log_weights, np.empty(0))
        maxima = (law.tails(scores[:, 1:]) + log_weights[:, None]).max(axis=0)
        return replace(law, maxima=np.sort(maxima))

    def tails(self, scores: FloatArray) -> FloatArray:
        """Minus the log of tails of the largest scores, (E, columns)."""
        away = (scores - self.middle[:, None]) / self.spread[:, None]
        rate = LOG_2 * np.exp(-np.clip(away, -7.0, 20.0))
        tails = np.where(away > 20.0, away - math.log(LOG_2), -np.log(-np.expm1(-rate)))
        return np.asarray(tails)

    def pvalue(self, check: int, score: float) -> float:
        """How often any region of a calibrated model shows as much as this score."""
        own = self.tails(np.full((self.middle.size, 1), score))[check, 0] + self.log_weights[check]
        below = np.searchsorted(self.maxima, own * (1 - TIE), side="left")
        return float((1 + self.maxima.size - below) / (1 + self.maxima.size))

    def scores_of(self, tails: FloatArray) -> FloatArray:
        """The largest scores of all checks that have these tails, (E,)."""
        rate = -np.log1p(-np.exp(-tails))
        return np.asarray(self.middle - self.spread * np.log(rate / LOG_2))

    def critical(self, alpha: float) -> FloatArray:
        """Scores that only a share `alpha` of calibrated models exceed anywhere, by check, (E,)."""
        allowed = math.floor(alpha * (1 + self.maxima.size) + 1e-9)
        if allowed < 1:
            return np.full(self.middle.size, math.inf)
        return self.scores_of(np.maximum(self.maxima[-allowed] - self.log_weights, TIE))


def reach(score: AnyArray | float, depths: AnyArray) -> FloatArray:
    """The |z| of regions that have a score, the inverse of `region_scores`."""
    tails = np.minimum(-(score + LOG_2 * (1 + np.asarray(depths, dtype=float))), -LOG_2)
    return np.asarray(-ndtri_exp(tails))
