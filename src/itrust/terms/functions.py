"""Functions of one column and their products, the letters that checks and features are written in.

A term knows what it is called and which rows it is about. It reads a column on a scale that was
settled without labels (`UnitScale`, where numbers lie between 0 and 1), and is evaluated on rows by
`Features`, which multiply terms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import logit, ndtri

from itrust._core import AnyArray, BoolArray, FloatArray, IntArray
from itrust.data import (
    Between,
    Column,
    Everywhere,
    Missing,
    Points,
    Predicate,
    all_of,
    is_few,
    level_of,
)

RANK_KNOTS, HEIGHT_KNOTS = 512, 256
SHARE_OF_RANKS = 0.5  # of a height: ranks alone would blur sparse ends, values alone dense middles
STEEPEST_LOGIT = 6.0
LEAST_VARIANCE = 0.02  # added to p(1 - p), so that a label next to 0 or 1 does not carry all
BLOCK_ROWS = 2**14  # that are read at a time

# How many levels of a category, or values of a number, count: one limit for each purpose.
# `data` settles COUNTED_LEVELS that a first pass counts (a category of more names rows, no groups),
# CUT_LEVELS that a cut of a column shows, and MAX_VALUES of a number that may be codes.

# A check of a level costs a row of the bank and a share of its family's weight. What lies beyond
# is checked together by a kernel, so nothing is lost but the name of the level.
CHECKED_LEVELS = 100
# Directions of interval nulls and contrasts of classes are made for every level and law.
DIRECTION_LEVELS = 20
# Every check of a watch keeps sums for all stakes and onsets in a file for years.
WATCHED_LEVELS = 30
WATCHED_CROSSED = 8  # of either column, where two are crossed: cells grow with the square
# Columns of a matrix that is solved or learned from, in O(columns^2): balancing weights,
# recalibration, patches and regressors. Rarer levels count by their other covariates.
COLUMN_LEVELS = 40
# A search for slices looks at all rectangles of two columns: the square of the levels.
SEARCHED_LEVELS = 30
# What people read in one picture or one table.
SHOWN_LEVELS = 40
# Groups of an audit share one family of redraws; of several classes each has its own.
GROUP_LEVELS = 500
CLASS_GROUP_LEVELS = 100

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


class Shape(Enum):
    """What kind of bias a check looks for."""

    LEVEL = "level"  # the same bias in all rows
    TREND = "trend"  # a bias that rises or falls with a number
    QUADRATIC = "quadratic"  # a bias that differs between both ends of a number and its middle
    CUBIC = "cubic"  # a bias with two turns along a number
    SMOOTH = "smooth"  # any smooth function of one number, or any difference between levels
    GROUP = "group"  # the rows of one level, of a crossing of levels, or without a value
    PART = "part"  # the rows between two values of a number
    PRODUCT = "product"  # a bias where two numbers are both high or both low
    PAIR = "pair"  # any smooth function of two columns
    REGION = "region"  # the rows of one region of many: ranges and levels of up to three columns
    JOINT = "joint"  # small biases along many covariates that add up
    FULL = "full"  # any smooth function of everything
    KERNEL = "kernel"  # a kernel that the user named
    IMPOSSIBLE = "impossible"  # labels that the model gave probability 0


POWERS = (Shape.TREND, Shape.QUADRATIC, Shape.CUBIC)  # by order


@dataclass(frozen=True)
class Term(ABC):
    """A function of one column, and the rows that it is about."""

    column: ColumnName
    where: Predicate = field(default=Everywhere(), compare=False, kw_only=True)
    kind: ClassVar[Shape] = Shape.SMOOTH
    is_positive: ClassVar[bool] = False  # whether it is 0 or more in every row
    is_group: ClassVar[bool] = False  # whether it is 1 in some rows and 0 in all others

    @abstractmethod
    def of(self, reading: Reading) -> FloatArray:
        """Values for the rows of a reading, (n,); 0 where missing, unless it says otherwise."""

    @property
    def shape(self) -> Shape:
        """The kind of bias that it shows."""
        return self.kind

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{'prediction' if self.column is None else self.column}: {self.shape.value}"


@dataclass(frozen=True)
class Wave(Term):
    """sqrt(2) cos(order pi u) of the height u: the eigenfunctions of a smooth kernel on [0, 1]."""

    order: int

    def of(self, reading: Reading) -> FloatArray:
        return reading.wave(self.order)


@dataclass(frozen=True)
class Curve(Term):
    """Hermite polynomials of the normal score z of the rank: z, z^2 - 1 and z^3 - 3z."""

    order: int

    @property
    def shape(self) -> Shape:
        return POWERS[self.order - 1]

    def of(self, reading: Reading) -> FloatArray:
        z = reading.score
        if self.order == 2:
            return np.where(reading.missing, 0.0, z**2 - 1)
        return z if self.order == 1 else z**3 - 3 * z


class Power(Curve):
    """Polynomials of the height as a line h of variance 1: h, h^2 - 1 (also where missing), ..."""

    def of(self, reading: Reading) -> FloatArray:
        h = reading.line
        if self.order == 2:
            return np.square(h) - 1
        return h if self.order == 1 else h * (np.square(h) - 1.8)


@dataclass(frozen=True)
class Slope(Term):
    """The logit of the prediction, held within [-6, 6]: where a bad temperature shows."""

    column: ColumnName = None
    kind = Shape.TREND
    name = "prediction: slope"

    def of(self, reading: Reading) -> FloatArray:
        edge = 1 / (1 + np.exp(STEEPEST_LOGIT))
        return np.asarray(logit(np.clip(reading.column.values, edge, 1 - edge)))


@dataclass(frozen=True)
class Precision(Term):
    """1 / (p(1 - p) + 0.02): the weights with which an equal bias everywhere shows best."""

    column: ColumnName = None
    kind, is_positive = Shape.LEVEL, True
    name = "overall level, by precision"

    def of(self, reading: Reading) -> FloatArray:
        p = reading.column.values
        return np.asarray(1 / (p * (1 - p) + LEAST_VARIANCE))


@dataclass(frozen=True)
class Inside(Term):
    """1 where the value is at least `low` and below `high`."""

    low: float
    high: float
    kind, is_positive, is_group = Shape.PART, True, True

    @classmethod
    def part(cls, part: Between, *, of_prediction: bool = False) -> Inside:
        """A part of a number, or of the prediction."""
        return cls(None if of_prediction else part.name, part.low, part.high, where=part)

    @property
    def name(self) -> str:
        return str(self.where)

    def of(self, reading: Reading) -> FloatArray:
        values = reading.column.values
        return np.asarray((values >= self.low) & (values < self.high), dtype=float)


@dataclass(frozen=True)
class Is(Term):
    """1 where the value is this one."""

    level: Any
    kind, is_positive, is_group = Shape.GROUP, True, True

    @property
    def name(self) -> str:
        text = f"{self.level:g}" if isinstance(self.level, float) else str(self.level)
        return f"{self.column} = {text}"

    def of(self, reading: Reading) -> FloatArray:
        column = reading.column
        if not column.is_category:
            return np.asarray(column.values == self.level, dtype=float)
        if self.level not in column.levels:
            return np.zeros(len(column))
        return np.asarray(column.values == column.levels.index(self.level), dtype=float)


class Absent(Term):
    """1 where the value is missing."""

    kind, is_positive, is_group = Shape.GROUP, True, True

    @property
    def name(self) -> str:
        return f"{self.column} missing"

    def of(self, reading: Reading) -> FloatArray:
        return reading.missing.astype(float)


Product = tuple[Term, ...]  # of its terms; the empty product is 1


def product_facts(product: Product) -> dict[str, Any]:
    """Name, covariates, shape and rows of a product, as people are told.

    Its one function within its groups, its groups together, or two functions crossed.
    """
    groups = ", ".join(term.name for term in product if term.is_group)
    others = [term for term in product if not term.is_group]
    if len(others) > 1:
        name, shape = f"{' x '.join(str(own.column) for own in others)}: trend", Shape.PRODUCT
    elif others:
        name = f"{others[0].name} where {groups}" if groups else others[0].name
        shape = others[0].shape
    elif product:
        name, shape = groups, product[0].shape if len(product) == 1 else Shape.GROUP
    else:
        name, shape = "overall level", Shape.LEVEL
    covariates = dict.fromkeys(term.column for term in product if term.column is not None)
    where = all_of(term.where for term in product)
    return {"name": name, "covariates": tuple(covariates), "shape": shape, "where": where}


@dataclass(frozen=True, eq=False)
class Features:
    """Products of terms, read on scales that rows without labels have settled."""

    products: tuple[Product, ...]
    scales: Mapping[ColumnName, UnitScale]
    centres: FloatArray | None = None  # taken from each product, but for its groups

    @classmethod
    def ranked(cls, products: Sequence[Product], points: Points) -> Features:
        """Products that read numbers by their ranks among some rows."""
        names = {term.column for product in products for term in product}
        return cls(tuple(products), scales_of(points, UnitScale.of_ranks, names))

    def __len__(self) -> int:
        return len(self.products)

    def take(self, chosen: Sequence[int] | IntArray) -> Features:
        """Some of the products, in this order."""
        products = tuple(self.products[k] for k in chosen)
        centres = None if self.centres is None else self.centres[np.asarray(chosen, dtype=int)]
        return replace(self, products=products, centres=centres)

    @cached_property
    def _factors(self) -> list[tuple[list[Term], list[Term]]]:
        """Terms that are multiplied, and the groups that come after centring."""
        factors = []
        for product in self.products:
            groups = [term for term in product if term.is_group]
            others = [term for term in product if not term.is_group]
            factors.append((others, groups) if others else (groups, []))
        return factors

    def _values(self, points: Points, dtype: DTypeLike) -> dict[Term, AnyArray]:
        """Every term once."""
        readings = read(points, self.scales)
        terms = dict.fromkeys(term for product in self.products for term in product)
        return {own: own.of(readings[own.column]).astype(dtype, copy=False) for own in terms}

    def matrix(self, points: Points, dtype: DTypeLike = np.float64) -> AnyArray:
        """All products of some rows, (k, n)."""
        matrix = np.empty((len(self), len(points)), dtype=dtype)
        self.fill(matrix, points)
        return matrix

    def fill(self, out: AnyArray, points: Points) -> None:
        """Write all products of some rows into an array, (k, n)."""
        centres = np.zeros(len(self)) if self.centres is None else self.centres
        for first in range(0, len(points), BLOCK_ROWS):
            rows = slice(first, first + BLOCK_ROWS)
            values = self._values(points.take(rows), out.dtype)
            for row, centre, (others, groups) in zip(
                out[:, rows], centres.tolist(), self._factors, strict=True
            ):
                _multiply(row, [values[term] for term in others])
                row -= centre
                for term in groups:
                    row *= values[term]

    def centred(
        self, points: Points, variances: FloatArray, chosen: BoolArray | None = None
    ) -> Features:
        """The same, or those chosen, uncorrelated with the level if labels have these variances.

        A function within a group is centred within the group, so that it is uncorrelated with the
        group, too.
        """
        values = self._values(points, np.float64)
        centres, rest = np.zeros(len(self)), np.empty(len(points))
        for row, (others, groups) in enumerate(self._factors):
            if others and (chosen is None or chosen[row]):
                _multiply(rest, [values[term] for term in others])
                mass = variances.copy()
                for term in groups:
                    mass *= values[term]
                total = float(mass.sum())
                centres[row] = float(np.sum(mass * rest)) / total if total > 0 else 0.0
        return replace(self, centres=centres)


def _multiply(out: AnyArray, factors: Sequence[AnyArray]) -> None:
    """Write a product of arrays; 1 where there are none."""
    out[...] = factors[0] if factors else 1.0
    for factor in factors[1:]:
        out *= factor


@dataclass(frozen=True, eq=False)
class Described:
    """A column, the levels that are functions of their own, and whether values are missing.

    A number with few values, which may be codes, has levels as well.
    """

    column: Column
    levels: tuple[Is, ...]  # frequent ones first; none for most numbers
    rows: tuple[int, ...]  # of each level
    distinct: int  # values in all; 0 for most numbers
    has_missing: bool
    is_number: bool

    @classmethod
    def of(cls, column: Column, most: int, least: float = 1) -> Described:
        """From rows without labels: at most so many levels, of at least so many rows."""
        values, counts = frequent_values(column)
        missing = int(column.missing.sum()) >= least
        is_number = column.kind in ("number", "date") and values.size > 2
        if is_number and (column.declared or not is_few(column.kind, column.values)):
            return cls(column, (), (), 0, missing, True)
        levels = [
            Is(
                column.name,
                column.levels[int(value)] if column.is_category else float(value),
                where=level_of(column, int(value) if column.is_category else value),
            )
            for value in values[:most][counts[:most] >= least]
        ]
        rows = tuple(counts[: len(levels)].tolist())
        return cls(column, tuple(levels), rows, values.size, missing, is_number)

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    def frequent(self, least: int, most: int | None = None) -> list[Is]:
        """The levels of at least so many rows, among the first ones."""
        pairs = zip(self.levels[:most], self.rows, strict=False)
        return [level for level, rows in pairs if rows >= least]

    @property
    def absent(self) -> Iterator[Absent]:
        """The rows without a value, if there are any."""
        if self.has_missing:
            yield Absent(self.name, where=Missing(self.name))


def frequent_values(column: Column) -> tuple[AnyArray, IntArray]:
    """The values of a column, codes of a category, most frequent first, and their rows."""
    values, counts = np.unique(column.values[~column.missing], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return values[order], counts[order]
