"""Where numbers lie between 0 and 1, settled on rows without labels, and columns read on that."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from itrust._core import BoolArray, FloatArray
from itrust.data import Column, Points

RANK_KNOTS, HEIGHT_KNOTS = 512, 256
SHARE_OF_RANKS = 0.5  # of a height: ranks alone would blur sparse ends, values alone dense middles

ColumnName = str | None  # None: the prediction


@dataclass(frozen=True, eq=False)
class UnitScale:
    """Straight lines between `heights` in [0, 1] at `knots`, both rising; flat beyond the ends."""

    knots: FloatArray
    heights: FloatArray

    @classmethod
    def of_ranks(cls, values: FloatArray) -> UnitScale:
        """Middle ranks: an income and its logarithm are the same, and no outlier carries much."""
        present = values[~np.isnan(values)]
        if not present.size:
            return cls(np.zeros(1), np.full(1, 0.5))
        return cls(*_middle_ranks(present))._thinned(RANK_KNOTS)

    @classmethod
    def of_heights(cls, values: FloatArray) -> UnitScale:
        """Half the rank, half the place between the ends, as smooth corrections need it."""
        present = values[~np.isnan(values)]
        if not present.size or present.min() == present.max():
            return cls(np.zeros(1), np.full(1, 0.5))
        knots, ranks = _middle_ranks(present)
        low, high = np.quantile(present, [0.001, 0.999])  # one outlier must not squeeze the rest
        if high <= low:
            low, high = knots[0], knots[-1]
        # Halves: the difference of two finite numbers may be none.
        places = np.clip((knots / 2 - low / 2) / (high / 2 - low / 2), 0, 1)
        heights = SHARE_OF_RANKS * ranks + (1 - SHARE_OF_RANKS) * places
        return cls(knots, heights)._thinned(HEIGHT_KNOTS)

    def _thinned(self, most: int) -> UnitScale:
        if self.knots.size <= most:
            return self
        kept = np.unique(np.linspace(0, self.knots.size - 1, most).astype(int))
        return UnitScale(self.knots[kept], self.heights[kept])

    def __call__(self, values: FloatArray) -> FloatArray:
        """Heights of values, (n,)."""
        return interpolated(values, self.knots, self.heights)


def _middle_ranks(present: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The distinct values, and the middle of their ranks between 0 and 1."""
    values, counts = np.unique(present, return_counts=True)
    return values, (np.cumsum(counts) - counts / 2) / present.size


def interpolated(values: FloatArray, knots: FloatArray, heights: FloatArray) -> FloatArray:
    """Straight lines between `heights` at rising `knots`, beyond the ends the height of the end.

    As `numpy.interp`, but never beyond the two heights that a value lies between: its slopes
    overflow where knots are very near to each other or very far apart.

    Examples
    --------
    >>> import numpy as np
    >>> ends = np.array([-1e308, 1e308])
    >>> interpolated(np.array([-1.5e308, 0.0, 5e307]), ends, np.array([0.0, 1.0]))
    array([0.  , 0.5 , 0.75])
    """
    held = np.clip(values, knots[0], knots[-1])
    at = np.minimum(np.searchsorted(knots, held, side="right"), knots.size) - 1
    after = np.minimum(at + 1, knots.size - 1)
    # Halves: the difference of two finite numbers may be none.
    gap = knots[after] / 2 - knots[at] / 2
    far = held / 2 - knots[at] / 2
    share = np.divide(far, gap, out=np.zeros(held.shape), where=gap > 0)
    low, high = heights[at], heights[after]
    found = low + np.minimum(share, 1.0) * (high - low)
    return np.asarray(np.clip(found, np.minimum(low, high), np.maximum(low, high)))


@dataclass(frozen=True, eq=False)
class Reading:
    """One column of some rows, on its scale; categories have none."""

    column: Column
    scale: UnitScale | None

    @cached_property
    def missing(self) -> BoolArray:
        """Rows without a value."""
        return self.column.missing

    @cached_property
    def height(self) -> FloatArray:
        """Between 0 and 1; anything where missing."""
        assert self.scale is not None
        return self.scale(np.where(self.missing, 0.0, self.column.values))

    @cached_property
    def score(self) -> FloatArray:
        """The height as a quantile of the standard normal law; 0 where missing."""
        return np.where(self.missing, 0.0, ndtri(self.height))

    @cached_property
    def line(self) -> FloatArray:
        """The height with variance 1 where it is uniform; 0 where missing."""
        return np.where(self.missing, 0.0, math.sqrt(12) * (self.height - 0.5))

    @cached_property
    def _cosine(self) -> FloatArray:
        return np.cos(np.pi * self.height)

    @cached_property
    def _waves(self) -> list[FloatArray]:
        start = np.where(self.missing, 0.0, np.sqrt(2.0))
        return [start, start * self._cosine]

    def wave(self, order: int) -> FloatArray:
        """sqrt(2) cos(order pi u), by the recurrence of Chebyshev; 0 where missing."""
        waves = self._waves
        while len(waves) <= order:
            waves.append(2 * self._cosine * waves[-1] - waves[-2])
        return waves[order]


def columns_by_name(points: Points) -> dict[ColumnName, Column]:
    """The prediction, under None, and the covariates."""
    return {None: points.prediction, **{column.name: column for column in points.columns}}


def scales_of(
    points: Points,
    make: Callable[[FloatArray], UnitScale],
    names: Container[ColumnName] | None = None,
) -> dict[ColumnName, UnitScale]:
    """A scale for the prediction and for every number, or for those of these names."""
    return {
        name: make(np.asarray(column.values, dtype=float))
        for name, column in columns_by_name(points).items()
        if not column.is_category and (name is None or names is None or name in names)
    }


def read(points: Points, scales: Mapping[ColumnName, UnitScale]) -> dict[ColumnName, Reading]:
    """Put every column of some rows on its scale."""
    columns = columns_by_name(points)
    return {name: Reading(column, scales.get(name)) for name, column in columns.items()}


def fading(width: float, order: int) -> float:
    """Give the root of the eigenvalue of a Gaussian on [0, 1], reflected at its ends."""
    return math.exp(-((math.pi * order * width) ** 2) / 4)
