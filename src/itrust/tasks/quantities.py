"""Numbers that every row has: a covariate, or a formula of some."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError
from itrust.data import Points, Predicate, column_of, quoted
from itrust.tasks.arithmetic import Node

FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "log": np.log,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
}


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
