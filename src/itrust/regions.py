"""Parts of the data in words: everywhere, one level of a category, a tenth of a number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust.columns import Column
from itrust.points import Points
from itrust.typing import BoolArray

TENTHS = 10
MOST_LEVELS = 40


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
        text = f"{self.level:g}" if isinstance(self.level, float) else str(self.level)
        return f"{self.name} missing" if self.level is None else f"{self.name} = {text}"

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
    """Rows whose number lies between two others, ends included."""

    name: str
    low: float
    high: float
    text: str

    def __str__(self) -> str:
        return self.text

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows inside, (n,)."""
        values = _column(points, self.name).values
        return np.asarray((values >= self.low) & (values <= self.high))


def _column(points: Points, name: str) -> Column:
    return next(column for column in points.columns if column.name == name)


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
        yield from _tenths(column, present)
    elif values.size > 1:
        frequent = values[np.argsort(-counts, kind="stable")][:MOST_LEVELS]
        for value in frequent:
            level = column.levels[int(value)] if column.is_category else float(value)
            yield Level(column.name, level)
    if column.missing.any():
        yield Level(column.name, None)


def _tenths(column: Column, present: Any) -> Iterator[Region]:
    ordered = np.sort(present)
    edges = np.quantile(ordered, np.linspace(0, 1, TENTHS + 1))
    place = np.searchsorted(edges[1:-1], ordered, side="left")
    for number in np.unique(place):
        inside = ordered[place == number]
        low, high = float(inside[0]), float(inside[-1])
        shown = [column.shown(float(f"{value:.4g}")) for value in (low, high)]
        # The outermost tenths reach as far as the data do beyond the rows seen here.
        ends = (
            -np.inf if number == place[0] else low,
            np.inf if number == place[-1] else high,
        )
        text = f"{column.name} {shown[0]}" + (f" to {shown[1]}" if low < high else "")
        yield Between(column.name, float(ends[0]), float(ends[1]), text)
