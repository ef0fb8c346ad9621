"""Parts of the data in words: everywhere, one level of a category, a tenth of a number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import AnyArray, BoolArray, InputError, did_you_mean
from itrust.data.column import MISSING_LEVEL, Column
from itrust.data.rows import Points

TENTHS = 10
PREDICTION = "prediction"  # as if it were a covariate; one that is called so goes before
OTHER_NAME = "p (the model's)"  # of the prediction then
MAX_LEVELS = 40


@dataclass(frozen=True)
class Region(ABC):
    """Some of the rows, by what is known without labels."""

    @abstractmethod
    def __str__(self) -> str: ...

    @abstractmethod
    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""


@dataclass(frozen=True)
class Everywhere(Region):
    """All rows."""

    def __str__(self) -> str:
        return "everywhere"

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        return np.ones(len(points), dtype=bool)


@dataclass(frozen=True)
class Level(Region):
    """Rows with one value; None stands for missing."""

    name: str
    level: Any

    def __str__(self) -> str:
        text = f"{self.level:.15g}" if isinstance(self.level, float) else str(self.level)
        missing = self.level is None or self.level == MISSING_LEVEL
        return f"{self.name} missing" if missing else f"{self.name} = {text}"

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        column = _column(points, self.name)
        if self.level is None:
            return column.missing
        if not column.is_category:
            return np.asarray(column.values == self.level)
        known = self.level in column.levels
        return np.asarray(column.values == (column.levels.index(self.level) if known else -2))


@dataclass(frozen=True)
class Between(Region):
    """Rows whose number is at least `low` and below `high`."""

    name: str
    low: float
    high: float
    text: str

    def __str__(self) -> str:
        return f"{self.name} {self.text}"

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        values = _column(points, self.name).values
        return np.asarray((values >= self.low) & (values < self.high))


@dataclass(frozen=True)
class OneOf(Region):
    """Rows with one of some levels, which are too rare to stand alone."""

    name: str
    levels: tuple[Any, ...]

    def __str__(self) -> str:
        some = ", ".join(str(level) for level in self.levels[:3])
        more = f" and {len(self.levels) - 3} more" if len(self.levels) > 3 else ""
        return f"{self.name} = any of {some}{more}"

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        marked = np.zeros(len(points), dtype=bool)
        for level in self.levels:
            marked |= Level(self.name, level).rows(points)
        return marked


@dataclass(frozen=True)
class Every(Region):
    """Rows that are in every one of several regions."""

    conditions: tuple[Region, ...]

    def __str__(self) -> str:
        return " and ".join(str(condition) for condition in self.conditions)

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        marked = np.ones(len(points), dtype=bool)
        for condition in self.conditions:
            marked &= condition.rows(points)
        return marked


def column_of(points: Points, name: object) -> Column:
    """A covariate by name, or the prediction as one; a sentence if there is no such."""
    known = [column.name for column in points.columns]
    if not isinstance(name, str):
        raise InputError(
            f"a covariate is named by text, such as {(known or ['age'])[0]!r}, not {name!r}"
        )
    if name in known or name == PREDICTION:
        return _column(points, name)
    raise InputError(f"there is no covariate {name!r}; {did_you_mean(name, [*known, PREDICTION])}")


def _column(points: Points, name: str) -> Column:
    found = next((column for column in points.columns if column.name == name), None)
    if found is None and name in (PREDICTION, OTHER_NAME):
        return Column(PREDICTION, "number", points.p)
    assert found is not None, name
    return found


def regions_of(points: Points) -> tuple[Region, ...]:
    """Everywhere, every level of every category, every tenth of every number."""
    found: list[Region] = [Everywhere()]
    for column in points.columns:
        found.extend(_of_column(column))
    return tuple(found)


def _of_column(column: Column) -> Iterator[Region]:
    present = column.values[~column.missing]
    values, counts = np.unique(present, return_counts=True)
    if column.kind in ("number", "date") and values.size > TENTHS:
        yield from parts_of(column, TENTHS)
    elif values.size > 1:
        frequent = values[np.argsort(-counts, kind="stable")][:MAX_LEVELS]
        for value in frequent:
            level = column.levels[int(value)] if column.is_category else float(value)
            yield Level(column.name, level)
    if column.missing.any():
        yield Level(column.name, None)


def parts_of(column: Column, parts: int) -> list[Between]:
    """Cut a number into parts of about equal size that share no value; fewer where values tie."""
    values, counts = np.unique(column.values[~column.missing], return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / max(int(counts.sum()), 1)
    part = np.minimum((middle * parts).astype(int), parts - 1)
    first = np.flatnonzero(np.diff(part, prepend=-1))
    last = np.append(first[1:], values.size) - 1
    digits = next(
        d for d in (4, 6, 9, 17) if d == 17 or _distinct(column, values[first], values[last], d)
    )
    found = []
    for number, (start, stop) in enumerate(zip(first, last, strict=True)):
        low, high = (column.shown(float(values[k]), digits) for k in (start, stop))
        # Values that turn up in other rows only fall into the part below them.
        begin = -np.inf if number == 0 else float(values[start])
        end = np.inf if number == first.size - 1 else float(values[first[number + 1]])
        text = low if start == stop else f"{low} to {high}"
        found.append(Between(column.name, begin, end, text))
    return found


def _distinct(column: Column, first: AnyArray, last: AnyArray, digits: int) -> bool:
    """Whether so many digits tell all ends apart."""
    ends = np.unique(np.concatenate([first, last]))
    return len({column.shown(float(end), digits) for end in ends}) == ends.size
