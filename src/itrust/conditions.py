"""Conditions on covariates: which rows a task is about."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust.columns import Column
from itrust.errors import InputError, did_you_mean, listed
from itrust.points import Points
from itrust.regions import Everywhere, Region
from itrust.typing import BoolArray

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def covariate(points: Points, name: str) -> Column:
    """One covariate by name, or a sentence with the closest one."""
    for column in points.columns:
        if column.name == name:
            return column
    known = [column.name for column in points.columns]
    hint = did_you_mean(name, known) if known else "there are none"
    raise InputError(f"there is no covariate {name!r}; {hint}")


@dataclass(frozen=True)
class Condition(Region):
    """A region that knows which covariates it reads. Join with `&`, `|`, `~`."""

    @property
    @abstractmethod
    def names(self) -> frozenset[str]:
        """Covariates that the condition reads."""

    def __and__(self, other: Condition) -> Condition:
        return Both(self, other)

    def __or__(self, other: Condition) -> Condition:
        return Either(self, other)

    def __invert__(self) -> Condition:
        return Not(self)


@dataclass(frozen=True)
class Always(Condition, Everywhere):
    """All rows."""

    @property
    def names(self) -> frozenset[str]:
        """None."""
        return frozenset()


@dataclass(frozen=True)
class Compared(Condition):
    """A covariate against a value; a missing value satisfies no comparison."""

    name: str
    sign: str
    value: Any

    def __post_init__(self) -> None:
        if self.sign not in OPERATORS:
            raise InputError(f"a comparison is one of {listed(OPERATORS)}, not {self.sign!r}")

    def __str__(self) -> str:
        value = f'"{self.value}"' if isinstance(self.value, str) else f"{self.value}"
        return f"{quoted(self.name)} {self.sign} {value}"

    @property
    def names(self) -> frozenset[str]:
        """The one covariate."""
        return frozenset([self.name])

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        column = covariate(points, self.name)
        value = _code(column, self.sign, self.value)
        return np.asarray(OPERATORS[self.sign](column.values, value) & ~column.missing)


def _code(column: Column, sign: str, value: Any) -> Any:
    """The value as the column holds it."""
    if column.is_category:
        if sign not in ("==", "!="):
            raise InputError(f"{column.name!r} is a category, so it has no {sign}; use == or !=")
        same = [k for k, level in enumerate(column.levels) if level == value]
        same = same or [k for k, level in enumerate(column.levels) if str(level) == str(value)]
        if not same:
            hint = did_you_mean(str(value), [str(level) for level in column.levels])
            raise InputError(f"{column.name!r} has no level {value!r}; {hint}")
        return same[0]
    if column.kind == "date" and isinstance(value, str):
        try:
            return (np.datetime64(value, "D") - np.datetime64(0, "D")).astype(int)
        except ValueError:
            raise InputError(
                f"{column.name!r} is a date; compare it with one, as in '2026-01-31', not {value!r}"
            ) from None
    if isinstance(value, np.datetime64):
        return (value.astype("datetime64[D]") - np.datetime64(0, "D")).astype(int)
    if isinstance(value, str) or not isinstance(value, int | float | np.number | np.bool_):
        raise InputError(f"{column.name!r} is a {column.kind}; compare it with one, not {value!r}")
    return float(value)


@dataclass(frozen=True)
class OneOfValues(Condition):
    """A covariate that has one of several values."""

    name: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        told = ", ".join(f'"{v}"' if isinstance(v, str) else str(v) for v in self.values)
        return f"{quoted(self.name)} in ({told})"

    @property
    def names(self) -> frozenset[str]:
        """The one covariate."""
        return frozenset([self.name])

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        marked = np.zeros(len(points), dtype=bool)
        for value in self.values:
            marked |= Compared(self.name, "==", value).rows(points)
        return marked


@dataclass(frozen=True)
class Missing(Condition):
    """A covariate without a value."""

    name: str

    def __str__(self) -> str:
        return f"{quoted(self.name)} is missing"

    @property
    def names(self) -> frozenset[str]:
        """The one covariate."""
        return frozenset([self.name])

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        column = covariate(points, self.name)
        if column.is_category and "(missing)" in column.levels:
            return np.asarray(column.values == column.levels.index("(missing)"))
        return column.missing


@dataclass(frozen=True)
class Both(Condition):
    """Rows in both."""

    left: Condition
    right: Condition

    def __str__(self) -> str:
        return f"{_inside(self.left)} and {_inside(self.right)}"

    @property
    def names(self) -> frozenset[str]:
        """Those of both."""
        return self.left.names | self.right.names

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        return self.left.rows(points) & self.right.rows(points)


@dataclass(frozen=True)
class Either(Condition):
    """Rows in one or both."""

    left: Condition
    right: Condition

    def __str__(self) -> str:
        return f"{self.left} or {self.right}"

    @property
    def names(self) -> frozenset[str]:
        """Those of both."""
        return self.left.names | self.right.names

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        return self.left.rows(points) | self.right.rows(points)


@dataclass(frozen=True)
class Not(Condition):
    """All other rows; those whose covariate is missing are among them."""

    condition: Condition

    def __str__(self) -> str:
        return f"not ({self.condition})"

    @property
    def names(self) -> frozenset[str]:
        """Those of the condition."""
        return self.condition.names

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        return ~self.condition.rows(points)


def _inside(condition: Condition) -> str:
    return f"({condition})" if isinstance(condition, Either) else str(condition)


def quoted(name: str) -> str:
    """A column name as the grammar reads it: in backticks unless it is a plain word.

    >>> quoted("age"), quoted("hours per week")
    ('age', '`hours per week`')
    """
    return name if name.isidentifier() and name not in RESERVED else f"`{name}`"


RESERVED = frozenset({"and", "or", "not", "in", "is", "missing", "true", "false"})


def as_condition(where: object) -> Condition:
    """Turn a mapping of covariates to values, or a condition, into a condition.

    A list or tuple of values means any of them; None means missing.

    >>> str(as_condition({"race": "Black", "region": ["south", "west"]}))
    'race == "Black" and region in ("south", "west")'
    """
    if where is None:
        return Always()
    if isinstance(where, Condition):
        return where
    if not isinstance(where, Mapping):
        raise InputError(
            f"where must map covariates to values, such as {{'race': 'Black'}}, not {where!r}"
        )
    found: Condition | None = None
    for name, value in where.items():
        part: Condition
        if value is None:
            part = Missing(str(name))
        elif isinstance(value, list | tuple | set | frozenset):
            part = OneOfValues(str(name), tuple(value))
        else:
            part = Compared(str(name), "==", value)
        found = part if found is None else Both(found, part)
    return Always() if found is None else found
