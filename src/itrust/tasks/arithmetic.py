"""What formulas are made of: signs, numbers that rows have, and values that follow arithmetic."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError
from itrust.data import Points, Predicate, column_of, quoted

MAX_DEPTH = 100  # texts, hashes and copies of formulas go down part by part, within Python's stack
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 3}  # how strongly a sign binds
FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "log": np.log,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
}


class Node(ABC):
    """A part of a formula; its text is read back to the same part."""

    @cached_property
    def depth(self) -> int:
        """How many parts lie within each other, this one among them."""
        return 1 + max((part.depth for part in self.parts), default=0)

    def _refuse_depth(self) -> None:
        """Refuse a part that others are nested in too deeply."""
        if self.depth > MAX_DEPTH:
            problem = (
                "a formula of more than {most} parts within each other, such as a sum of so many "
                "terms, is not taken; take fewer, or a mean of a function of covariates"
            )
            raise InputError(problem, argument="task", most=MAX_DEPTH)

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    def parts(self) -> tuple[Any, ...]:
        """What it is made of, predicates among others; nothing for the smallest parts."""
        return ()

    @property
    def names(self) -> frozenset[str]:
        """Covariates that it reads."""
        return frozenset[str]().union(*(part.names for part in self.parts))


@dataclass(frozen=True, eq=False)
class Linearised:
    """A value, or one for the data and each draw, and its derivatives; they follow calculus.

    Of an estimate these are shares of rows: estimate - truth ~ their sum.

    Whether a value is finite is asked at the end, where a task is refused in a sentence.
    """

    value: Any
    slope: FloatArray

    def __add__(self, other: Linearised) -> Linearised:
        return Linearised(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Linearised) -> Linearised:
        return Linearised(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Linearised) -> Linearised:
        slope = self.slope * other.value + self.value * other.slope
        return Linearised(self.value * other.value, slope)

    def __truediv__(self, other: Linearised) -> Linearised:
        below = np.where(np.equal(other.value, 0), np.nan, other.value)
        value = self.value / below
        return Linearised(value, (self.slope - value * other.slope) / below)


@dataclass(frozen=True)
class Bounds:
    """All numbers from one to another; either may be infinite."""

    lower: float
    upper: float

    def __add__(self, other: Bounds) -> Bounds:
        return _known(self.lower + other.lower, self.upper + other.upper)

    def __sub__(self, other: Bounds) -> Bounds:
        return _known(self.lower - other.upper, self.upper - other.lower)

    def __mul__(self, other: Bounds) -> Bounds:
        ends = [
            a * b if a and b else 0.0  # 0 times infinity is 0: the ends are limits of numbers
            for a in (self.lower, self.upper)
            for b in (other.lower, other.upper)
        ]
        return Bounds(min(ends), max(ends))

    def __truediv__(self, other: Bounds) -> Bounds:
        if other.lower < 0 < other.upper or other.lower == other.upper == 0:
            return Bounds(-math.inf, math.inf)
        # A divisor may come as near to 0 as one likes, from its own side.
        lower = 1 / other.upper if other.upper else -math.inf
        upper = 1 / other.lower if other.lower else math.inf
        return self * Bounds(lower, upper)

    def hull(self, other: Bounds) -> Bounds:
        """The smallest range that holds both."""
        return Bounds(min(self.lower, other.lower), max(self.upper, other.upper))

    def nearest(self, value: float) -> float:
        """The number of the range that is nearest to a value; NaN if that is."""
        return value if math.isnan(value) else min(max(value, self.lower), self.upper)

    def clipped(self, lower: float, upper: float) -> tuple[float, float]:
        """Cut an interval off at both ends, unless nothing would be left of it."""
        inside = self.nearest(lower), self.nearest(upper)
        return inside if inside[0] < inside[1] else (lower, upper)


def _known(lower: float, upper: float) -> Bounds:
    """Bounds whose ends are numbers; the sum of both infinities says nothing."""
    return Bounds(
        -math.inf if math.isnan(lower) else lower, math.inf if math.isnan(upper) else upper
    )


RATES = Bounds(0.0, 1.0)


# --- numbers that every row has ---------------------------------------------------------------


class Quantity(Node):
    """A number for every row, from its covariates."""

    @abstractmethod
    def of(self, points: Points) -> FloatArray:
        """Give the numbers."""


@dataclass(frozen=True)
class Covariate(Quantity):
    """A covariate that is a number, a boolean or a date (days since 1970-01-01)."""

    name: str

    def __str__(self) -> str:
        return quoted(self.name)

    @property
    def names(self) -> frozenset[str]:
        """The covariate itself."""
        return frozenset([self.name])

    def of(self, points: Points) -> FloatArray:
        """Look the values up, (n,)."""
        column = column_of(points, self.name, prediction=False)
        if column.is_category:
            example = f"share({quoted(self.name)} == {column.levels[0]!r})"
            problem = "{column} is a category and has no mean"
            raise InputError(problem, column=self.name, hint=f"for a share write {example}")
        return np.asarray(column.values)


@dataclass(frozen=True)
class Indicator(Quantity):
    """1 where a predicate holds, 0 elsewhere."""

    where: Predicate

    @property
    def parts(self) -> tuple[Any, ...]:
        """The predicate."""
        return (self.where,)

    def __str__(self) -> str:
        return self.where.formula

    def of(self, points: Points) -> FloatArray:
        """Mark the rows inside by 1, (n,)."""
        self.where.check(points)
        return self.where.rows(points).astype(float)


@dataclass(frozen=True)
class Function(Quantity):
    """A named function of a quantity: log, log10, exp, sqrt, abs."""

    name: str
    argument: Quantity

    def __post_init__(self) -> None:
        self._refuse_depth()

    def __str__(self) -> str:
        return f"{self.name}({self.argument})"

    @property
    def parts(self) -> tuple[Node, ...]:
        """The argument."""
        return (self.argument,)

    def of(self, points: Points) -> FloatArray:
        """Apply the function row by row, (n,)."""
        with np.errstate(all="ignore"):
            return np.asarray(FUNCTIONS[self.name](self.argument.of(points)))


class _Read(Mapping[str, Any]):
    """Covariates as arrays that people expect; notes which ones are asked for."""

    def __init__(self, points: Points) -> None:
        self.points = points
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        column = column_of(self.points, name, prediction=False)
        self.asked.add(name)
        if not column.is_category:
            return column.values
        values = np.empty(len(column), dtype=object)
        for code, level in enumerate(column.levels):
            values[column.values == code] = level
        return values

    def __iter__(self) -> Iterator[str]:
        return (column.name for column in self.points.columns)

    def __len__(self) -> int:
        return len(self.points.columns)


@dataclass(frozen=True)
class Callback(Quantity):
    """A user's function of a mapping of covariates to arrays (text for categories).

    Which covariates it reads is not known before it is called; `asked_by` finds out.
    """

    function: Callable[[Mapping[str, Any]], Any]
    title: str

    def __str__(self) -> str:
        return self.title

    def of(self, points: Points) -> FloatArray:
        """Call the function, (n,)."""
        read = _Read(points)
        values = np.asarray(self.function(read), dtype=float)
        if values.shape != (len(points),):
            problem = (
                "{title} must give one number for each of {rows} rows, not an array of shape "
                "{value}"
            )
            raise InputError(
                problem, argument="quantity", value=values.shape, title=self.title, rows=len(points)
            )
        return values

    def asked_by(self, points: Points) -> frozenset[str]:
        """Find out which covariates the function reads."""
        read = _Read(points)
        self.function(read)
        return frozenset(read.asked)
