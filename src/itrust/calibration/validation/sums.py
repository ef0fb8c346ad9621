"""Sums over rows that statistics of the prediction need: by cells of it, groups and thresholds.

Everything that validators print is a function of a few sums over rows of nearly the same
prediction, so rows can be read in any order, some at a time. Up to 100,000 rows a cell holds one
prediction, and nothing is lost. Of more rows, a cell holds predictions whose distance from 0 or 1
differs by a factor of 1.0005 at most; those below 1e-16, where 1 - p is 1, are one cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logit

from itrust._core import AnyArray, FloatArray, IntArray

FINENESS = 11  # binary digits that are kept of how far a prediction is from 0 or 1
NO_DISTANCE = 1e-16  # closer to 0 than this is one cell; no double is closer to 1
FIELDS = 7
ROUNDING = 1e-14  # a mean of predictions is as close to 1 as this if all of them are 1


@dataclass(frozen=True, eq=False)
class Sums:
    """Rows and weights by label, in every one of several places."""

    array: FloatArray

    @property
    def zeros(self) -> FloatArray:
        """Rows of label 0."""
        return np.asarray(self.array[0])

    @property
    def ones(self) -> FloatArray:
        """Rows of label 1."""
        return np.asarray(self.array[1])

    @property
    def weights0(self) -> FloatArray:
        """Weights of the rows of label 0."""
        return np.asarray(self.array[2])

    @property
    def weights1(self) -> FloatArray:
        """Weights of the rows of label 1."""
        return np.asarray(self.array[3])

    @property
    def squares0(self) -> FloatArray:
        """Squared weights of the rows of label 0."""
        return np.asarray(self.array[4])

    @property
    def squares1(self) -> FloatArray:
        """Squared weights of the rows of label 1."""
        return np.asarray(self.array[5])

    @property
    def rows(self) -> FloatArray:
        """All rows."""
        return np.asarray(self.array[0] + self.array[1])

    @property
    def weights(self) -> FloatArray:
        """Their weights."""
        return np.asarray(self.array[2] + self.array[3])

    @property
    def squares(self) -> FloatArray:
        """Their squared weights."""
        return np.asarray(self.array[4] + self.array[5])

    @property
    def predicted(self) -> FloatArray:
        """Mean prediction of every place; NaN where there is no weight."""
        found = np.minimum(_ratio(self.array[6], self.weights), 1.0)
        return np.where(1 - found < ROUNDING, 1.0, found)  # weights of both labels add up otherwise

    @property
    def observed(self) -> FloatArray:
        """Rate of label 1 in every place; NaN where there is no weight."""
        return _ratio(self.array[3], self.weights)

    @property
    def effective(self) -> FloatArray:
        """How many rows of the same weight they are worth; the rows, where all weights are 1."""
        return _ratio(np.square(self.weights), self.squares)

    def at(self, places: AnyArray) -> Sums:
        """Keep some places."""
        return Sums(self.array[:, places])


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))


def sums_by_place(
    place: IntArray, number: int, y: FloatArray, p: FloatArray, w: FloatArray
) -> FloatArray:
    """Sum over some rows, place by place."""
    counts = (w > 0).astype(float)
    square = w * w
    values = counts * (1 - y), counts * y, w * (1 - y), w * y, square * (1 - y), square * y, w * p
    return np.array([np.bincount(place, value, minlength=number) for value in values])


def _differ(sums: Sums) -> bool:
    """Whether some weight is not 1: weights and their squares add up to the rows otherwise."""
    return not (np.array_equal(sums.weights, sums.rows) and np.array_equal(sums.squares, sums.rows))


@dataclass(frozen=True, eq=False)
class PredictionCells:
    """Rows gathered by their prediction, in its order; only cells that count."""

    p: FloatArray
    sums: Sums
    are_weighted: bool

    @classmethod
    def of_rows(cls, y: FloatArray, p: FloatArray, w: FloatArray | None) -> PredictionCells:
        """Gather rows of exactly the same prediction."""
        weights = np.ones(y.size) if w is None else w
        values, place = np.unique(p, return_inverse=True)
        sums = Sums(sums_by_place(place, values.size, y, p, weights))
        held = np.flatnonzero(sums.weights > 0)
        sums = sums.at(held)
        return cls(values[held], sums, w is not None and _differ(sums))

    @classmethod
    def of_fine(cls, places: IntArray, array: FloatArray, are_weighted: bool) -> PredictionCells:
        """Take sums over cells of `fine_place`."""
        sums = Sums(array)
        held = np.flatnonzero(sums.weights > 0)
        sums, place = sums.at(held), places[held]
        p = np.clip(_ratio(sums.array[6], sums.weights), *_ends(place))
        return cls(p, sums, are_weighted and _differ(sums))

    @cached_property
    def logit(self) -> FloatArray:
        """Of the prediction; infinite at 0 and 1."""
        return np.asarray(logit(self.p))

    @cached_property
    def is_certain(self) -> AnyArray:
        """Mark predictions of exactly 0 or 1."""
        return np.asarray((self.p == 0) | (self.p == 1))

    @property
    def certain(self) -> int:
        """How many rows have such a prediction."""
        return int(self.sums.rows[self.is_certain].sum())

    @property
    def contrary(self) -> int:
        """How many of these have the other label."""
        wrong = self.sums.ones[self.p == 0].sum() + self.sums.zeros[self.p == 1].sum()
        return int(wrong)

    @cached_property
    def variance(self) -> FloatArray:
        """What the squared residuals of each cell are worth if the model is calibrated, times w."""
        return self.sums.weights * self.p * (1 - self.p)

    def some(self, kept: AnyArray) -> PredictionCells:
        """Keep some cells."""
        return PredictionCells(self.p[kept], self.sums.at(kept), self.are_weighted)

    def merged(self, first: IntArray) -> PredictionCells:
        """Put neighbouring cells together."""
        sums = Sums(np.add.reduceat(self.sums.array, first, axis=1))
        last = np.append(first[1:], self.p.size) - 1
        mean = _ratio(sums.array[6], sums.weights)
        p = np.clip(mean, self.p[first], self.p[last])  # no rounding beyond what is joined
        return PredictionCells(p, sums, self.are_weighted)


def _digits(distance: FloatArray) -> IntArray:
    return np.asarray(distance).view(np.int64) >> (52 - FINENESS)


_FIRST = int(_digits(np.array([NO_DISTANCE]))[0])
_HALF = int(_digits(np.array([0.5]))[0]) - _FIRST + 1
CELLS = 2 * _HALF + 2  # about 210,000; the first and the last hold exactly 0 and 1


def fine_place(p: FloatArray) -> IntArray:
    """Number the cell of each prediction, in the order of predictions."""
    distance = np.maximum(np.minimum(p, 1 - p), NO_DISTANCE)
    step = _digits(distance) - _FIRST
    inside = np.where(p > 0.5, CELLS - 2 - step, 1 + step)
    return np.asarray(np.select([p == 0, p == 1], [0, CELLS - 1], inside))


def _ends(place: IntArray) -> tuple[FloatArray, FloatArray]:
    """The least and the largest prediction of each cell.

    >>> p = np.array([0.0, 1e-20, 0.3, 0.999999999999, 1.0])
    >>> low, high = _ends(fine_place(p))
    >>> bool(((low <= p) & (p <= high)).all()), high[0], low[4]
    (True, np.float64(0.0), np.float64(1.0))
    """
    above = place >= _HALF + 1
    step = np.where(above, CELLS - 2 - place, place - 1) + _FIRST
    near, far = (((step + k) << (52 - FINENESS)).view(np.float64) for k in (0, 1))
    near = np.where(step == _FIRST, np.nextafter(0.0, 1.0), near)
    inside = [
        np.where(above, np.minimum(1 - own, np.nextafter(1.0, 0.0)), own) for own in (near, far)
    ]
    low, high = np.minimum(*inside), np.maximum(*inside)
    exact = [place == 0, place == CELLS - 1]
    return np.select(exact, [0.0, 1.0], low), np.select(exact, [0.0, 1.0], high)
