"""Numbers that every row has: a covariate, or a formula of some."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError
from itrust.data import Points, Predicate, column_of, quoted

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "log": np.log,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
}


def number_text(value: float) -> str:
    """All digits, and no more.

    >>> number_text(2.0), number_text(0.123456789), number_text(1234567.891)
    ('2', '0.123456789', '1234567.891')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


@dataclass(frozen=True)
class Quantity(ABC):
    """A number for every row, from its covariates."""

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    @abstractmethod
    def names(self) -> frozenset[str]:
        """Covariates that it reads."""

    @abstractmethod
    def of(self, points: Points) -> FloatArray:
        """The numbers, (n,); NaN where a covariate is missing."""


@dataclass(frozen=True)
class Number(Quantity):
    """The same number for every row."""

    value: float

    def __str__(self) -> str:
        return number_text(self.value)

    @property
    def names(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def of(self, points: Points) -> FloatArray:
        """The number, (n,)."""
        return np.full(len(points), self.value)


@dataclass(frozen=True)
class Covariate(Quantity):
    """A covariate that is a number, a boolean or a date (days since 1970-01-01)."""

    name: str

    def __str__(self) -> str:
        return quoted(self.name)

    @property
    def names(self) -> frozenset[str]:
        """Itself."""
        return frozenset([self.name])

    def of(self, points: Points) -> FloatArray:
        """Its values, (n,)."""
        column = column_of(points, self.name, prediction=False)
        if column.is_category:
            level = column.levels[0]
            raise InputError(
                f"{self.name!r} is a category and has no mean; for a share write "
                f"share({quoted(self.name)} == {level!r})"
            )
        return np.asarray(column.values)


@dataclass(frozen=True)
class Indicator(Quantity):
    """1 where a condition holds, 0 elsewhere."""

    condition: Predicate

    def __str__(self) -> str:
        return self.condition.formula

    @property
    def names(self) -> frozenset[str]:
        """Those of the condition."""
        return self.condition.names

    def of(self, points: Points) -> FloatArray:
        """1 and 0, (n,)."""
        self.condition.check(points)
        return self.condition.rows(points).astype(float)


@dataclass(frozen=True)
class Formula(Quantity):
    """Two quantities and an arithmetic sign."""

    left: Quantity
    sign: str
    right: Quantity

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"

    @property
    def names(self) -> frozenset[str]:
        """Those of both."""
        return self.left.names | self.right.names

    def of(self, points: Points) -> FloatArray:
        """Evaluated row by row, (n,)."""
        with np.errstate(all="ignore"):
            return np.asarray(
                ARITHMETIC[self.sign](self.left.of(points), self.right.of(points)), dtype=float
            )


@dataclass(frozen=True)
class Function(Quantity):
    """A named function of a quantity: log, log10, exp, sqrt, abs."""

    name: str
    argument: Quantity

    def __str__(self) -> str:
        return f"{self.name}({self.argument})"

    @property
    def names(self) -> frozenset[str]:
        """Those of the argument."""
        return self.argument.names

    def of(self, points: Points) -> FloatArray:
        """Evaluated row by row, (n,)."""
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
    """A user's function of a mapping of covariates to arrays (text for categories)."""

    function: Callable[[Mapping[str, Any]], Any]
    title: str

    def __str__(self) -> str:
        return self.title

    @property
    def names(self) -> frozenset[str]:
        """None that are known before; `asked_by` finds out which are read."""
        return frozenset()

    def of(self, points: Points) -> FloatArray:
        """What the function gives, (n,)."""
        read = _Read(points)
        values = np.asarray(self.function(read), dtype=float)
        if values.shape != (len(points),):
            raise InputError(
                f"{self.title} must give one number for each of {len(points):,} rows, not an array "
                f"of shape {values.shape}"
            )
        return values

    def asked_by(self, points: Points) -> frozenset[str]:
        """Covariates that the function reads on these rows."""
        read = _Read(points)
        self.function(read)
        return frozenset(read.asked)
