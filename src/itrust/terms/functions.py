"""Functions of one column and their products, the letters that checks and features are written in.

A term knows what it is called and which rows it is about. It reads a column on a scale that was
settled without labels, and is evaluated on rows by `Features`, which multiply terms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import logit

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
from itrust.terms.scales import ColumnName, Reading, UnitScale, read, scales_of

STEEPEST_LOGIT = 6.0
LEAST_VARIANCE = 0.02  # added to p(1 - p), so that a label next to 0 or 1 does not carry all
BLOCK_ROWS = 2**14  # that are read at a time


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
class Value(Term):
    """The number as it is; `middle` where missing."""

    middle: float = 0.0

    def of(self, reading: Reading) -> FloatArray:
        return np.where(reading.missing, self.middle, reading.column.values)


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


class _Group(Term):
    """1 in some rows and 0 in all others."""

    kind, is_positive, is_group = Shape.GROUP, True, True


@dataclass(frozen=True)
class Inside(_Group):
    """1 where the value is at least `low` and below `high`."""

    low: float
    high: float
    kind = Shape.PART

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
class Is(_Group):
    """1 where the value is this one."""

    level: Any

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


class Absent(_Group):
    """1 where the value is missing."""

    @property
    def name(self) -> str:
        return f"{self.column} missing"

    def of(self, reading: Reading) -> FloatArray:
        return reading.missing.astype(float)


Product = tuple[Term, ...]  # of its terms; the empty product is 1


class ProductName(NamedTuple):
    """What people are told of a product."""

    name: str
    covariates: tuple[str, ...]
    shape: Shape
    where: Predicate

    @classmethod
    def of(cls, product: Product) -> ProductName:
        """Its one function within its groups, its groups together, or two functions crossed."""
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
        return cls(name, tuple(covariates), shape, all_of(term.where for term in product))


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


def plain_features(points: Points, most: int) -> Features:
    """Columns for a model that takes numbers: the prediction, numbers, levels, what is missing.

    A missing number is the median of these rows, and marked in a column of its own.
    """
    terms: list[Term] = [Value(None)]
    for column in points.columns:
        if column.is_category:
            codes = frequent_values(column)[0][:most]
            terms += [Is(column.name, column.levels[code]) for code in codes]
        else:
            present = column.values[~column.missing]
            terms.append(Value(column.name, float(np.median(present)) if present.size else 0.0))
        if column.missing.any():
            terms.append(Absent(column.name))
    return Features(tuple((term,) for term in terms), {})
