"""All rows, counted in one pass, and random ones of them in memory for what needs rows at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from itrust._core import FloatArray, IntArray, keyed_fractions, smallest_tickets, tickets
from itrust.data.column import Column
from itrust.data.formats import FilePart
from itrust.data.oddities import MAX_VALUES
from itrust.data.rows import Points
from itrust.data.source import Pilot, Source

if TYPE_CHECKING:
    from itrust.data.sample import Sample

EXTRACT_ROWS = 100_000
DESIGN_ROWS = 500_000  # of whole clusters, that an audit of a design takes at most
RUN_ROWS, RUNS = 50, 400  # rows that follow each other, and how many such stretches
MAX_LEVELS = 50_000  # of a category that are counted; one with more names rows, not groups


def rows_at_hand(size: int | None = None) -> int:
    """How many rows are kept in memory: as many as asked for, or 100,000.

    >>> rows_at_hand(), rows_at_hand(500)
    (100000, 500)
    """
    return EXTRACT_ROWS if size is None else size


@dataclass(frozen=True)
class ValueCounts:
    """How often every value of a covariate occurs, as long as these are few."""

    values: Mapping[Any, int] | None
    codes: Mapping[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, column: Column) -> ValueCounts:
        """Count the values of some rows."""
        if column.is_category:
            present = column.values[~column.missing]
            counts = np.bincount(present, minlength=len(column.levels))
            found = {column.levels[k]: int(counts[k]) for k in np.flatnonzero(counts)}
            codes = dict(zip(column.levels, column.codes, strict=True)) if column.codes else {}
            return cls(found if len(found) <= MAX_LEVELS else None, codes)
        head = np.unique(column.values[:1_000])  # nearly always enough to see that there are many
        if np.count_nonzero(~np.isnan(head)) > MAX_VALUES:
            return cls(None)
        values, counts = np.unique(column.values[~column.missing], return_counts=True)
        few = values.size <= MAX_VALUES
        return cls(dict(zip(values.tolist(), counts.tolist(), strict=True)) if few else None)

    def plus(self, other: ValueCounts, is_category: bool) -> ValueCounts:
        """Add what other rows have."""
        if self.values is None or other.values is None:
            return ValueCounts(None)
        both = dict(self.values)
        for value, count in other.values.items():
            both[value] = both.get(value, 0) + count
        codes = {**self.codes, **other.codes}
        return ValueCounts(
            both if len(both) <= (MAX_LEVELS if is_category else MAX_VALUES) else None, codes
        )


@dataclass(frozen=True, eq=False)
class Census:
    """What one pass counts of the rows, without a look at labels."""

    n: int
    mass: float
    lowest: float
    highest: float
    counts: Mapping[str, ValueCounts]

    @classmethod
    def of(cls, points: Points, weights: FloatArray | None) -> Census:
        """Count some rows."""
        n = len(points)
        mass = float(n) if weights is None else float(weights.sum())
        counts = {column.name: ValueCounts.of(column) for column in points.columns}
        lowest, highest = (points.p.min(), points.p.max()) if n else (np.inf, -np.inf)
        return cls(n, mass, float(lowest), float(highest), counts)

    def plus(self, other: Census, categories: Sequence[str]) -> Census:
        """Add what other rows have; some covariates are categories."""
        counts = {
            name: own.plus(other.counts[name], name in categories)
            for name, own in self.counts.items()
        }
        return Census(
            self.n + other.n,
            self.mass + other.mass,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            counts,
        )


@dataclass(frozen=True, eq=False)
class Extract:
    """All rows, what a first pass counted of them, and random ones of them in memory.

    Whatever must see rows at hand takes `some`, which were chosen without a look at labels and are
    the same in memory, from files and on many machines.
    """

    source: Source
    some: Sample
    tickets: FloatArray
    weights: FloatArray | None
    census: Census
    parts: tuple[FilePart, ...] = ()
    runs: Sample | None = None

    @property
    def n(self) -> int:
        """Number of all rows."""
        return self.census.n

    @property
    def is_all(self) -> bool:
        """Whether all rows are at hand."""
        return self.some.n == self.n

    @property
    def bar(self) -> float:
        """Rows whose ticket is at most this are at hand, and no others."""
        return 1.0 if self.is_all else float(self.tickets.max())

    def pilot(self, size: int) -> Pilot:
        """Choose random rows of the whole without labels; no further pass is made."""
        rows = smallest_tickets(self.tickets, size)
        points = self.some.points.take(rows)
        v = points.p * (1 - points.p)
        if self.weights is not None:
            v = np.square(self.weights[rows]) * v
        return Pilot(points, v, self.tickets[rows], self.n)

    def only(self, names: Sequence[str]) -> Extract:
        """Keep some covariates."""
        if tuple(names) == self.some.names:
            return self
        counts = {name: self.census.counts[name] for name in names}
        return replace(
            self,
            source=self.source.with_names(names),
            some=self.some.only(*names),
            runs=None if self.runs is None else self.runs.only(*names),
            census=replace(self.census, counts=counts),
        )


def extract_of_sample(sample: Sample, size: int | None) -> Extract:
    """Take random rows of those in memory; of few rows all."""
    weights = None if sample.weights is None else sample.weights_or_ones
    census, drawn = Census.of(sample.points, weights), tickets(0, sample.n)
    most = rows_at_hand(size)
    if sample.n <= most:
        return Extract(sample, sample, drawn, weights, census)
    rows = smallest_tickets(drawn, most)
    some = with_all_levels(sample.take(rows), census)
    kept = None if weights is None else weights[rows]
    chosen, lots = rows_of_runs(0, sample.n)
    runs = with_all_levels(sample.take(chosen[whole_runs(lots)]), census)
    return Extract(sample, some, drawn[rows], kept, census, runs=runs)


def rows_of_runs(first: int, count: int, bar: float = 1.0) -> tuple[IntArray, FloatArray]:
    """Which of some consecutive rows may belong to the random stretches, and their lots."""
    stretches = np.arange(first // RUN_ROWS, -(-(first + count) // RUN_ROWS))
    lots = keyed_fractions(2, stretches, np.zeros(1, dtype=np.int64))
    kept = np.flatnonzero(lots <= bar)
    if kept.size > RUNS + 1:  # the last stretch of a file need not be whole
        kept = smallest_tickets(lots, RUNS + 1)
    rows = (stretches[kept, None] * RUN_ROWS + np.arange(RUN_ROWS)).ravel() - first
    inside = (rows >= 0) & (rows < count)
    return rows[inside], np.repeat(lots[kept], RUN_ROWS)[inside]


def whole_runs(lots: FloatArray) -> IntArray:
    """Places of the rows of the stretches with the smallest lots that are whole."""
    distinct, counts = np.unique(lots, return_counts=True)
    chosen = distinct[counts == RUN_ROWS][:RUNS]
    return np.flatnonzero(np.isin(lots, chosen))


def with_all_levels(some: Sample, census: Census) -> Sample:
    """Give categories the levels that all rows have, whether some rows have them or not."""
    columns = []
    for column in some.columns:
        counted = census.counts[column.name]
        if column.is_category and counted.values is not None:
            known = [level for level in column.levels if level in counted.values]
            others = [level for level in counted.values if level not in column.levels]
            codes_of = counted.codes  # levels with value labels stand in the order of their codes
            levels = [*known, *others]
            if others:
                levels = sorted(levels, key=lambda level: codes_of.get(level, level))
            codes = [counted.codes[level] for level in levels] if counted.codes else []
            column = column.with_levels(levels, codes)
        columns.append(column)
    return some.with_columns(tuple(columns))
