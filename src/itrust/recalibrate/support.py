"""Where the calibration rows lie, and how far from them another row is.

A row is among them if each of its values lies within the range of the calibration rows, or is a
level that they have, and if its values go together as theirs do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from itrust._core import (
    LARGEST_FLOAT,
    FloatArray,
    Maybe,
    Number,
    Numbers,
    Record,
    SavedLevel,
    same_size,
    tuple_of,
    unfit,
)
from itrust.data import Column, Points
from itrust.recalibrate.features import SCALE, VALUE, refuse_misfits, refuse_odd_scale
from itrust.recalibrate.rows import held_logit
from itrust.recalibrate.saved import matrix_of
from itrust.terms import Is, Reading, UnitScale

LONERS = 1  # values at each end that may be mistakes, and do not stretch the range
ROWS_PER_LONER = 100
FADING = 1 / 3  # of the range: how far beyond it the correction goes down to nothing
SHALLOW = 2.0  # p fades so slowly that a monotone map keeps its order
FREQUENT = 0.05  # share of the rows that makes a level count in what goes together
ROWS_PER_NUMBER = 10
MAX_NUMBERS = 60
BLUR = 0.01  # variance that every direction has, against rounding
USUAL = 0.99  # share of the calibration rows that are no farther than usual
FAR = 1.5  # times what is usual: outside
UNKNOWN = 2.0  # the largest distance, of levels and gaps that were never seen
WIDEST = 1e6  # of numbers of a size near 1, and of what BLUR lets their inverse covariance be

LogitMap = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Range:
    """Where a number was seen, and how far beyond that a correction fades."""

    low: float
    high: float
    below: float
    above: float
    gaps: bool  # whether values were missing

    @classmethod
    def of(cls, values: FloatArray) -> Range:
        """From the values of the calibration rows, NaN where missing."""
        present = np.sort(values[~np.isnan(values)])
        if not present.size:
            return cls(0.0, 0.0, 0.0, 0.0, True)
        loners = min(LONERS, present.size // ROWS_PER_LONER)
        low, high = float(present[loners]), float(present[-1 - loners])
        width = FADING * min(high - low, LARGEST_FLOAT)
        return cls(low, high, width, width, present.size < values.size)

    def held(self, values: FloatArray) -> FloatArray:
        """Values within the range, the nearest ones in place of others."""
        return np.clip(values, self.low, self.high)

    def kept_in_order(self, monotone: LogitMap) -> Range:
        """Fading so slowly that a rising map of logits still rises where it fades."""
        ends = np.array([self.low, self.high])
        below, above = self.below + SHALLOW * np.abs(monotone(ends) - ends)
        return replace(self, below=float(below), above=float(above))

    def distance(self, values: FloatArray) -> FloatArray:
        """0 within the range, 1 where corrections have faded, UNKNOWN for new gaps, (n,)."""
        missing = np.isnan(values)
        with np.errstate(over="ignore"):  # farther than any number is outside all the same
            under = _over(np.where(missing, 0.0, self.low - values), self.below)
            over = _over(np.where(missing, 0.0, values - self.high), self.above)
        outside = np.clip(np.maximum(under, over), 0.0, UNKNOWN)
        return np.where(missing, 0.0 if self.gaps else UNKNOWN, outside)


def _over(distance: FloatArray, width: float) -> FloatArray:
    """Distance in widths; UNKNOWN at any distance if there is none."""
    return distance / width if width else np.where(distance > 0, UNKNOWN, 0.0)


def faded(t: FloatArray) -> FloatArray:
    """A smooth step: 1 up to t = 0, 0 from t = 1."""
    t = np.clip(t, 0.0, 1.0)
    return np.asarray(1 - t**2 * (3 - 2 * t))


@dataclass(frozen=True, eq=False)
class Place:
    """One coordinate: the name of a covariate (None for the prediction) and what was seen of it.

    A number has a range and a scale of heights; a category its levels, those of at least 5 % of the
    rows in `frequent`.
    """

    name: str | None
    range: Range | None = None
    scale: UnitScale | None = None
    levels: tuple[Any, ...] = ()
    frequent: tuple[Any, ...] = ()

    @classmethod
    def of(cls, name: str | None, column: Column) -> Place:
        """Of the calibration rows."""
        if not column.is_category:
            values = np.asarray(column.values, dtype=float)
            return cls(name, Range.of(values), UnitScale.of_heights(values))
        codes, counts = np.unique(column.values[~column.missing], return_counts=True)
        often = codes[counts >= FREQUENT * len(column)]
        levels, frequent = (tuple(column.levels[k] for k in some) for some in (codes, often))
        return cls(name, levels=levels, frequent=frequent)

    @property
    def interval(self) -> Range:
        """The range, of a coordinate that is known to have one."""
        assert self.range is not None
        return self.range

    def distance(self, column: Column) -> FloatArray:
        """How far each row lies from what was seen of this coordinate, (n,)."""
        if self.range is not None:
            return self.range.distance(np.asarray(column.values, dtype=float))
        seen = [code for code, level in enumerate(column.levels) if level in set(self.levels)]
        return np.where(np.isin(column.values, seen), 0.0, UNKNOWN)

    def numbers(self, column: Column) -> list[FloatArray]:
        """The coordinate as numbers of a size near 1, each (n,)."""
        reading = Reading(column, self.scale)
        if self.scale is None:
            return [Is(self.name, level).of(reading) for level in self.frequent]
        return [reading.line]

    def refuse_misfit(self, place: str, kind: str | None) -> None:
        """Refuse what cannot be of a column of this kind, None for the prediction."""
        is_number, seen = kind != "category", self.range
        refuse_odd_scale(self.scale, f"{place}.scale", kind)
        if (seen is not None) != is_number:
            unfit(f"{place}.range", f"must be {'a record' if is_number else 'null'}")
        if seen is not None and seen.low > seen.high:
            unfit(f"{place}.range", f"must rise from low to high: {seen.low}, {seen.high}")
        for name in ("levels", "frequent") if is_number else ():
            if getattr(self, name):
                unfit(f"{place}.{name}", "must be empty: the column is no category")
        if not set(self.frequent) <= set(self.levels):
            unfit(f"{place}.frequent", f"must be some of {place}.levels")

    @property
    def size(self) -> int:
        """How many numbers `numbers` gives."""
        return len(self.frequent) if self.scale is None else 1


@dataclass(frozen=True, eq=False)
class Support:
    """Ranges, levels, and which values go together.

    Read as numbers are the prediction, numbers by their height, frequent levels as 0 and 1 and,
    where there are rows enough, their squares and products. Two distances count: that of
    Mahalanobis, and the largest one of a number from what all the others let expect. Both are
    compared with what is usual among the calibration rows, each judged by the rest.
    """

    places: tuple[Place, ...]
    products: bool
    means: FloatArray  # (k,)
    precision: FloatArray  # (k, k), inverse of the covariance
    usual: FloatArray  # (2,)

    @classmethod
    def of(cls, points: Points, some: Points, edge: float, monotone: LogitMap) -> Support:
        """Of the calibration rows, and of some of them what goes together: O(k^2) for each."""
        columns = _columns(points, edge)
        places = tuple(Place.of(name, column) for name, column in columns.items())
        places = (replace(places[0], range=places[0].interval.kept_in_order(monotone)), *places[1:])
        singles = _singles(places, list(_columns(some, edge).values()))
        n, k = singles.shape
        products = k + k * (k + 1) // 2 <= min(n / ROWS_PER_NUMBER, MAX_NUMBERS)
        numbers = _with_products(singles) if products else singles
        means = numbers.mean(axis=0)
        centred = numbers - means
        precision = np.linalg.inv(centred.T @ centred / n + BLUR * np.eye(means.size))
        squares = _squares(centred, precision)
        without = np.maximum(1 - squares[0] / n, 1 / n)  # each row, had it not been there
        usual = np.sqrt(np.quantile(squares / without, USUAL, axis=1))
        return cls(places, products, means, precision, usual)

    @property
    def of_prediction(self) -> Range:
        """Where the logits of the predictions were seen."""
        return self.places[0].interval

    def distance(self, points: Points, edge: float) -> FloatArray:
        """How far each row lies from the calibration rows, (n,): 0 among them, 1 outside."""
        columns = list(_columns(points, edge).values())
        singles = _singles(self.places, columns)
        numbers = _with_products(singles) if self.products else singles
        squares = _squares(numbers - self.means, self.precision)
        times = np.stack([_over(np.sqrt(s), u) for s, u in zip(squares, self.usual, strict=True)])
        together = np.clip((times.max(axis=0) - 1) / (FAR - 1), 0.0, UNKNOWN)
        alone = (p.distance(column) for p, column in zip(self.places, columns, strict=True))
        return np.asarray(np.maximum.reduce([together, *alone]))

    def refuse_misfit(self, place: str, kinds: Mapping[str, str]) -> None:
        """Refuse what cannot be of columns of these kinds."""
        refuse_misfits(self.places, f"{place}.places", kinds)
        singles = sum(own.size for own in self.places)
        size = singles + singles * (singles + 1) // 2 if self.products else singles
        same_size(f"{place}.means", self.means.size, f"the numbers of {place}.places", size)
        for length in self.precision.shape:
            same_size(f"{place}.precision", length, f"{place}.means", size)
        if not _is_positive(self.precision):
            unfit(f"{place}.precision", "must be the inverse of a covariance, positive definite")


WIDTH, LEVELS = Number(0, LARGEST_FLOAT), tuple_of(SavedLevel())
RANGE = Record.of(Range, low=VALUE, high=VALUE, below=WIDTH, above=WIDTH)
PLACE = Record.of(
    Place,
    range=Maybe(RANGE),
    scale=Maybe(SCALE),
    levels=LEVELS,
    frequent=tuple_of(SavedLevel(), at_most=int(1 / FREQUENT)),
)
NEAR_ONE = Number(-WIDEST, WIDEST)
SUPPORT = Record.of(
    Support,
    places=tuple_of(PLACE, at_least=1),
    means=Numbers(NEAR_ONE),
    precision=matrix_of(NEAR_ONE),
    usual=Numbers(Number(0, WIDEST), at_least=2, at_most=2),
)


def _is_positive(matrix: FloatArray) -> bool:
    """Whether a matrix is symmetric, but for rounding, and positive definite."""
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-6):
        return False
    try:
        np.linalg.cholesky((matrix + matrix.T) / 2)
    except np.linalg.LinAlgError:
        return False
    return True


def _squares(centred: FloatArray, precision: FloatArray) -> FloatArray:
    """Squared distances, (2, n): Mahalanobis, and the largest of a number given the others."""
    turned = centred @ precision
    whole = np.maximum((turned * centred).sum(axis=1), 0.0)  # rounding may leave less than nothing
    return np.stack([whole, (turned**2 / np.diag(precision)).max(axis=1)])


def _columns(points: Points, edge: float) -> dict[str | None, Column]:
    """The prediction, as a logit, and the covariates."""
    prediction = Column("p", "number", held_logit(points.p, edge))
    return {None: prediction, **{column.name: column for column in points.columns}}


def _singles(places: Sequence[Place], columns: Sequence[Column]) -> FloatArray:
    found = [p.numbers(column) for p, column in zip(places, columns, strict=True)]
    return np.column_stack([number for own in found for number in own])


def _with_products(singles: FloatArray) -> FloatArray:
    pairs = combinations_with_replacement(range(singles.shape[1]), 2)
    return np.column_stack([singles, *(singles[:, a] * singles[:, b] for a, b in pairs)])
