"""Functions of one column, the letters that dictionary entries are written in; no labels here.

Numbers are read on the scale of their ranks among the pilot rows, so that an income and its
logarithm give the same test and one outlier cannot carry it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import logit, ndtri

from itrust._core import BoolArray, FloatArray
from itrust.data import Column, Points

MAX_KNOTS = 512
STEEPEST_LOGIT = 6.0
LEAST_VARIANCE = 0.02  # added to p(1 - p), so that a label next to 0 or 1 does not carry all

ColumnName = str | None  # None: the prediction


@dataclass(frozen=True, eq=False)
class RankScale:
    """Where values stand among those of the pilot rows: 0 lowest, 1 highest."""

    knots: FloatArray
    fractions: FloatArray

    @classmethod
    def of(cls, present: FloatArray) -> RankScale:
        """Middle ranks of the distinct values, thinned where there are many."""
        values, counts = np.unique(present, return_counts=True)
        fractions = (np.cumsum(counts) - counts / 2) / max(present.size, 1)
        if values.size > MAX_KNOTS:
            kept = np.unique(np.linspace(0, values.size - 1, MAX_KNOTS).astype(int))
            values, fractions = values[kept], fractions[kept]
        return cls(values, fractions) if values.size else cls(np.zeros(1), np.full(1, 0.5))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Fractions of values, (n,); a missing value is put in the middle."""
        present = values if np.isfinite(values).all() else np.nan_to_num(values)
        return np.asarray(np.interp(present, self.knots, self.fractions))


@dataclass(frozen=True, eq=False)
class Reading:
    """One column of some rows, on its scales."""

    column: Column
    scale: RankScale | None

    @cached_property
    def missing(self) -> BoolArray:
        """Rows without a value."""
        return self.column.missing

    @cached_property
    def fraction(self) -> FloatArray:
        """Rank between 0 and 1."""
        assert self.scale is not None
        return self.scale(self.column.values)

    @cached_property
    def score(self) -> FloatArray:
        """The rank on the scale of a standard normal; 0 where missing."""
        return np.where(self.missing, 0.0, ndtri(self.fraction))

    @cached_property
    def cosine(self) -> FloatArray:
        """cos(pi u), from which the others follow."""
        return np.cos(np.pi * self.fraction)

    @cached_property
    def waves(self) -> list[FloatArray]:
        """Waves found so far."""
        return []

    def wave(self, order: int) -> FloatArray:
        """sqrt(2) cos(order pi u), by the recurrence of Chebyshev; 0 where missing."""
        found = self.waves
        if not found:
            start = np.where(self.missing, 0.0, np.sqrt(2.0))
            found.extend([start, start * self.cosine])
        while len(found) <= order:
            found.append(2 * self.cosine * found[-1] - found[-2])
        return found[order]


Readings = Mapping[ColumnName, Reading]


def read(points: Points, scales: Mapping[ColumnName, RankScale]) -> Readings:
    """Put every column of some rows on its scales."""
    columns: dict[ColumnName, Column] = {column.name: column for column in points.columns}
    columns[None] = points.prediction
    return {name: Reading(column, scales.get(name)) for name, column in columns.items()}


@dataclass(frozen=True)
class Term(ABC):
    """A function of one column."""

    column: ColumnName
    is_positive: ClassVar[bool] = False  # whether it is 0 or more in every row

    @abstractmethod
    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,)."""


@dataclass(frozen=True)
class Line(Term):
    """The normal score z of the rank."""

    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,)."""
        return reading.score


@dataclass(frozen=True)
class Curve(Term):
    """Hermite polynomials of the normal score: z^2 - 1 and z^3 - 3z."""

    order: int

    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,); 0 where missing."""
        z = reading.score
        if self.order == 3:
            return z**3 - 3 * z
        return np.where(reading.missing, 0.0, z**2 - 1)


@dataclass(frozen=True)
class Wave(Term):
    """sqrt(2) cos(order pi u) of the rank u: the eigenfunctions of a smooth kernel on [0, 1]."""

    order: int

    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,)."""
        return reading.wave(self.order)


def fading(width: float, order: int) -> float:
    """Give the root of the eigenvalue of a Gaussian on [0, 1], reflected at its ends."""
    return math.exp(-((math.pi * order * width) ** 2) / 4)


@dataclass(frozen=True)
class Slope(Term):
    """The logit of the prediction, held within [-6, 6]: where a bad temperature shows."""

    column: ColumnName = None

    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,)."""
        edge = 1 / (1 + np.exp(STEEPEST_LOGIT))
        return np.asarray(logit(np.clip(reading.column.values, edge, 1 - edge)))


@dataclass(frozen=True)
class Precision(Term):
    """1 / (p(1 - p) + 0.02): the weights with which an equal bias everywhere shows best."""

    is_positive: ClassVar[bool] = True
    column: ColumnName = None

    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,)."""
        p = reading.column.values
        return np.asarray(1 / (p * (1 - p) + LEAST_VARIANCE))


@dataclass(frozen=True)
class Inside(Term):
    """1 where the value is at least `low` and below `high`; 0 where missing."""

    is_positive: ClassVar[bool] = True
    low: float
    high: float

    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,)."""
        values = reading.column.values
        return np.asarray((values >= self.low) & (values < self.high), dtype=float)


@dataclass(frozen=True)
class Is(Term):
    """1 where the value is this one."""

    is_positive: ClassVar[bool] = True
    level: Any

    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,)."""
        column = reading.column
        if not column.is_category:
            return np.asarray(column.values == self.level, dtype=float)
        if self.level not in column.levels:
            return np.zeros(len(column))
        return np.asarray(column.values == column.levels.index(self.level), dtype=float)


@dataclass(frozen=True)
class Absent(Term):
    """1 where the value is missing."""

    is_positive: ClassVar[bool] = True

    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,)."""
        return reading.missing.astype(float)
