"""Predicates on one column: a value, several, a range, a comparison, no value at all."""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from itrust._core import BoolArray, InputError, checked_choice, is_blank
from itrust.data.column import Column, Kind
from itrust.data.predicates.algebra import Everywhere, Predicate, all_of
from itrust.data.predicates.grammar import quoted, written
from itrust.data.predicates.lookup import (
    code_of,
    column_of,
    date_text,
    missing_rows,
    position_of,
)
from itrust.data.rows import Points

MAX_NAMED = 3  # values of `OneOf` that are named one by one
NO_POSITION = -2  # of a level that a category does not have
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class _OfOneColumn(Predicate):
    """A predicate that reads one column."""

    name: str

    @property
    def names(self) -> frozenset[str]:
        """The one column."""
        return frozenset([self.name])

    @property
    def formula(self) -> str:
        """The name of the column and what is asked of it."""
        return f"{quoted(self.name)} {self._asked()}"

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows by the values of the column, (n,)."""
        return self._marked(column_of(points, self.name))

    def __str__(self) -> str:
        return f"{self.name} {self._told()}"

    @abstractmethod
    def _asked(self) -> str:
        """What follows the name in a formula."""

    @abstractmethod
    def _told(self) -> str:
        """What follows the name in reading words."""

    @abstractmethod
    def _marked(self, column: Column) -> BoolArray:
        """Mark the rows inside, (n,)."""


@dataclass(frozen=True)
class Level(_OfOneColumn):
    """Rows with one value; none where a category does not have it.

    Rows without a value are those of `Missing`.

    Examples
    --------
    >>> south = Level("region", "south")
    >>> str(south), south.formula
    ('region = south', 'region == "south"')
    """

    kind = "level"
    level: Any

    def __post_init__(self) -> None:
        if self.level is None:
            raise InputError("a level is a value; Missing(name) stands for rows without one")
        refuse_no_value(self.level)

    def _asked(self) -> str:
        return f"== {written(self.level)}"

    def _told(self) -> str:
        return f"= {_read(self.level)}"

    def _marked(self, column: Column) -> BoolArray:
        if not column.is_category:
            return np.asarray(column.values == code_of(column, self.level))
        position = position_of(column, self.level)
        return np.asarray(column.values == (NO_POSITION if position is None else position))

    def _check(self, points: Points) -> None:
        code_of(column_of(points, self.name, prediction=False), self.level)


@dataclass(frozen=True)
class OneOf(_OfOneColumn):
    """Rows with one of several values; in reading words, at most three are named.

    The same rows as those of `Level` for each value, joined by or.

    Examples
    --------
    >>> some = OneOf("region", ("south", "west"))
    >>> str(some), some.formula
    ('region = any of south, west', 'region in ("south", "west")')
    """

    kind = "one of"
    levels: tuple[Any, ...]

    def __post_init__(self) -> None:
        for level in self.levels:
            refuse_no_value(level)

    def _asked(self) -> str:
        return f"in ({', '.join(map(written, self.levels))})"

    def _told(self) -> str:
        some = ", ".join(_read(level) for level in self.levels[:MAX_NAMED])
        more = len(self.levels) - MAX_NAMED
        return f"= any of {some}{f' and {more} more' if more > 0 else ''}"

    def _marked(self, column: Column) -> BoolArray:
        marked = np.zeros(len(column), dtype=bool)
        for level in self._each():
            marked |= level._marked(column)
        return marked

    def _each(self) -> list[Level]:
        return [Level(self.name, level) for level in self.levels]

    def _check(self, points: Points) -> None:
        for level in self._each():
            level._check(points)


@dataclass(frozen=True)
class Missing(_OfOneColumn):
    """Rows without a value, also where missing values are a level of their own.

    The prediction is never missing.

    Examples
    --------
    >>> str(Missing("age")), Missing("age").formula
    ('age missing', 'age is missing')
    """

    kind = "missing"

    @property
    def negated_formula(self) -> str:
        """Such as `age is not missing`."""
        return f"{quoted(self.name)} is not missing"

    def _asked(self) -> str:
        return "is missing"

    def _told(self) -> str:
        return "missing"

    def _marked(self, column: Column) -> BoolArray:
        return missing_rows(column)


@dataclass(frozen=True)
class Between(_OfOneColumn):
    """Rows whose number is at least `low` and below `high`.

    Examples
    --------
    >>> middle = Between("age", 30.0, 41.0, "30 to 40")
    >>> str(middle), middle.formula
    ('age 30 to 40', 'age >= 30 and age < 41')
    """

    kind = "between"
    low: float
    high: float
    text: str
    holds: Kind = "number"

    def _asked(self) -> str:
        """One comparison for each end that there is."""
        ends = ((">=", self.low), ("<", self.high))
        told = [f"{sign} {self._end(end)}" for sign, end in ends if math.isfinite(end)]
        return f" and {quoted(self.name)} ".join(told) or "is not missing"

    def _end(self, end: float) -> str:
        if self.holds == "date":
            return written(date_text(end))
        return str(int(end)) if end == int(end) and abs(end) < 1e15 else repr(float(end))

    @property
    def is_joined(self) -> bool:
        """Whether it has two ends."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def _told(self) -> str:
        return self.text

    def _marked(self, column: Column) -> BoolArray:
        return np.asarray((column.values >= self.low) & (column.values < self.high))


@dataclass(frozen=True)
class Compared(_OfOneColumn):
    """A covariate against a value; a missing value satisfies no comparison.

    Examples
    --------
    >>> other = Compared("region", "!=", "south")
    >>> str(other), other.formula
    ('region != south', 'region != "south"')
    """

    kind = "compared"
    sign: str
    value: Any

    def __post_init__(self) -> None:
        checked_choice(self.sign, "sign", tuple(OPERATORS))
        refuse_no_value(self.value)

    def _asked(self) -> str:
        return f"{self.sign} {written(self.value)}"

    def _told(self) -> str:
        return f"{'=' if self.sign == '==' else self.sign} {_read(self.value)}"

    def _marked(self, column: Column) -> BoolArray:
        value = self._code(column)
        return np.asarray(OPERATORS[self.sign](column.values, value) & ~missing_rows(column))

    def _code(self, column: Column) -> float:
        """What is compared with; some rows of a file need not have every level of a category."""
        lacks = column.is_category and position_of(column, self.value) is None
        if lacks and self.sign in ("==", "!="):
            return NO_POSITION
        return code_of(column, self.value, self.sign)

    def _check(self, points: Points) -> None:
        code_of(column_of(points, self.name, prediction=False), self.value, self.sign)


def refuse_no_value(value: object) -> None:
    """Refuse what no cell of a file holds: a list, an array, or a number that is not finite."""
    kind = type(value).__name__
    try:
        hash(value)
        is_finite = not isinstance(value, Real) or math.isfinite(value)
    except TypeError:
        raise InputError(
            "a value to compare with is text, a number, true, false or a date, not a {kind}",
            argument="where",
            value=value,
            details={"kind": kind},
        ) from None
    except OverflowError:  # a whole number of hundreds of digits
        is_finite = False
    if not is_finite:
        raise InputError(
            "a value to compare with must be finite, not {value}",
            argument="where",
            value=value,
            hint="None stands for missing values" if value != value else None,
        )


def _read(value: object) -> str:
    """A value for people; in quotes where nothing of it can be seen."""
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    return written(text) if is_blank(text) else text


def as_predicate(where: object) -> Predicate:
    """Turn a mapping of covariates to values, or a predicate, into a predicate.

    A list or tuple of values means any of them; None means missing.

    >>> as_predicate({"race": "Black", "region": ["south", "west"]}).formula
    'race == "Black" and region in ("south", "west")'
    """
    if where is None:
        return Everywhere()
    if isinstance(where, Predicate):
        return where
    if not isinstance(where, Mapping):
        raise InputError(
            "a condition is text such as 'age >= 65' or a mapping such as {'race': 'Black'}, not a "
            "{kind}",
            argument="where",
            value=where,
            details={"kind": type(where).__name__},
        )
    return all_of(_asked(str(name), value) for name, value in where.items())


def _asked(name: str, value: object) -> Predicate:
    """One covariate and what it must be."""
    if value is None:
        return Missing(name)
    if isinstance(value, tuple) and len(value) == 2:
        raise InputError(
            "{name}={value} could be a range or two values; write a list for any of them, or text "
            "such as 'age >= 65 and age < 85'",
            argument="where",
            value=value,
            details={"name": name},
        )
    if isinstance(value, list | tuple | set | frozenset):
        return OneOf(name, tuple(value))
    return Level(name, value)
