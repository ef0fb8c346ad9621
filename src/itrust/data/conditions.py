"""Conditions on covariates: which rows a task is about."""

from __future__ import annotations

import operator
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from itrust._core import BoolArray, InputError, did_you_mean, listed
from itrust.data.column import Column
from itrust.data.regions import Everywhere, Region
from itrust.data.rows import Points

ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")
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
    raise InputError(f"there is no covariate {name!r}; {hint}{in_backticks(name, known)}")


def in_backticks(name: str, known: Sequence[str]) -> str:
    """What to do where a formula has cut a name at a hyphen or a blank.

    >>> in_backticks("hours", ["age", "hours-per-week"])
    ' In formulas it stands in backticks: `hours-per-week`'
    """
    cut = [other for other in known if other.startswith((f"{name}-", f"{name} "))]
    return f" In formulas it stands in backticks: `{cut[0]}`" if cut else ""


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
        return f"{quoted(self.name)} {self.sign} {written(self.value)}"

    @property
    def names(self) -> frozenset[str]:
        """The one covariate."""
        return frozenset([self.name])

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        column = covariate(points, self.name)
        value = _code(column, self.sign, self.value)
        missing = Missing(self.name).rows(points)
        return np.asarray(OPERATORS[self.sign](column.values, value) & ~missing)


def _code(column: Column, sign: str, value: Any) -> Any:
    """The value as the column holds it."""
    if column.is_category:
        if sign not in ("==", "!="):
            raise InputError(f"{column.name!r} is a category, so it has no {sign}; use == or !=")
        text = getattr(value, "text", str(value))  # 007 is not 7 where both are levels
        same = [k for k, level in enumerate(column.levels) if str(level) == text]
        same = same or [k for k, level in enumerate(column.levels) if level == value]
        if not same:
            hint = did_you_mean(str(value), [str(level) for level in column.levels])
            raise InputError(f"{column.name!r} has no level {value!r}; {hint}")
        return same[0]
    if column.kind == "date":
        return _days(column, value)
    if isinstance(value, str) or not isinstance(value, int | float | np.number | np.bool_):
        raise InputError(f"{column.name!r} is a {column.kind}; compare it with one, not {value!r}")
    return float(value)


def _days(column: Column, value: Any) -> float:
    """A date or time as days since 1970-01-01."""
    written = str(value) if isinstance(value, date | np.datetime64) else value
    if isinstance(written, str) and ISO.fullmatch(written.strip()):
        try:
            seconds = np.datetime64(written.strip().replace(" ", "T"), "s").astype(int)
        except ValueError:
            pass  # such as the 31st of February
        else:
            return float(seconds) / 86_400
    raise InputError(
        f"{column.name!r} is a date; compare it with one, as in '2026-01-31', not {value!r}"
    )


@dataclass(frozen=True)
class OneOfValues(Condition):
    """A covariate that has one of several values."""

    name: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{quoted(self.name)} in ({', '.join(map(written, self.values))})"

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
        last = str(column.levels[-1]) if column.levels else ""
        if last.strip("()") == "missing" and last.startswith("("):  # it is put last
            return np.asarray(column.values == len(column.levels) - 1)
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
    plain_word = name.isidentifier() and name not in RESERVED
    return name if plain_word else "`" + name.replace("`", "``") + "`"


def written(value: object) -> str:
    """A value as the grammar reads it.

    >>> written("a"), written(True), written(0.5)
    ('"a"', 'true', '0.5')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return getattr(value, "text", repr(value))
    return '"' + str(value).replace('"', '""') + '"'


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
            f"a condition is text such as 'age >= 65' or a mapping such as {{'race': 'Black'}}, "
            f"not a {type(where).__name__}"
        )
    found: Condition | None = None
    for name, value in where.items():
        part: Condition
        if value is None:
            part = Missing(str(name))
        elif isinstance(value, tuple) and len(value) == 2:
            raise InputError(
                f"{name}={value!r} could be a range or two values; write a list for any of them, "
                f"or text such as 'age >= 65 and age < 85'"
            )
        elif isinstance(value, list | tuple | set | frozenset):
            part = OneOfValues(str(name), tuple(value))
        else:
            part = Compared(str(name), "==", value)
        found = part if found is None else Both(found, part)
    return Always() if found is None else found
