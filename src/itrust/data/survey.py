"""Random rows of the whole, always the same ones, and what one pass counts of all rows.

Every row has a ticket, a random number that depends on its number alone. The rows with the smallest
tickets are chosen, so they are the same in memory, from files and on many machines, and a smaller
size gives some of the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from itrust._core import FloatArray, IntArray, keyed_fractions, smallest_tickets
from itrust.data.column import MAX_VALUES, Column, Points, called_impossible
from itrust.data.formats import FilePart
from itrust.data.selection import SelectionCounts

if TYPE_CHECKING:
    from itrust.data.rows import Rows

EXTRACT_ROWS = 100_000
DESIGN_ROWS = 500_000  # of whole clusters, that an audit of a design takes at most
RUN_ROWS, RUNS = 50, 400  # rows that follow each other, and how many such stretches
COUNTED_LEVELS = 50_000  # of a category that are counted; one with more names rows, not groups


def rows_at_hand(size: int | None = None) -> int:
    """How many rows are kept in memory: as many as asked for, or 100,000."""
    return EXTRACT_ROWS if size is None else size


@dataclass(frozen=True, eq=False)
class Pilot:
    """Random rows of the whole, always the same ones, without their labels."""

    points: Points
    weights: FloatArray | None
    n: int
    tickets: FloatArray = field(default_factory=lambda: np.empty(0))
    dropped: int = 0
    notes: tuple[str, ...] = ()  # of rows that are not among them
    joint: FloatArray | None = None  # variances for several classes at once

    @property
    def is_all(self) -> bool:
        """Whether all rows are at hand."""
        return len(self.points) == self.n

    @cached_property
    def variances(self) -> FloatArray:
        """Of the labels, if the model is calibrated, times the squares of the weights, (n,)."""
        p = self.points.p
        v = p * (1 - p) if self.joint is None else self.joint
        return v if self.weights is None else np.square(self.weights) * v

    def first(self, size: int) -> Pilot:
        """The pilot rows that a smaller size would have given."""
        if self.tickets.size <= size:
            return self
        rows = smallest_tickets(self.tickets, size)
        own = self.take(rows)
        return replace(own, n=self.n, tickets=self.tickets[rows], notes=self.notes)

    def take(self, rows: Any) -> Pilot:
        """Keep some of the rows at hand; the others no longer count."""
        points = self.points.take(rows)
        whole = len(points) if self.is_all else round(self.n * len(points) / len(self.points))
        w = None if self.weights is None else self.weights[rows]
        return Pilot(points, w, whole, dropped=self.dropped)


@dataclass(frozen=True)
class ValueCounts:
    """How often every value of a covariate occurs, as long as these are few."""

    values: Mapping[Any, int] | None
    codes: Mapping[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, column: Column) -> ValueCounts:
        """Count the values of some rows."""
        if column.is_category:
            counts = np.bincount(column.values[~column.missing], minlength=len(column.levels))
            values = {column.levels[k]: int(counts[k]) for k in np.flatnonzero(counts)}
            codes = dict(zip(column.levels, column.codes, strict=True)) if column.codes else {}
            return cls(values if len(values) <= COUNTED_LEVELS else None, codes)
        head = np.unique(column.values[:1_000])  # nearly always enough to see that there are many
        if np.count_nonzero(~np.isnan(head)) > MAX_VALUES:
            return cls(None)
        numbers, counts = np.unique(column.values[~column.missing], return_counts=True)
        few = numbers.size <= MAX_VALUES
        return cls(dict(zip(numbers.tolist(), counts.tolist(), strict=True)) if few else None)

    def plus(self, other: ValueCounts, is_category: bool) -> ValueCounts:
        """Add what other rows have."""
        if self.values is None or other.values is None:
            return ValueCounts(None)
        both = Counter(self.values)
        both.update(other.values)
        few = len(both) <= (COUNTED_LEVELS if is_category else MAX_VALUES)
        return ValueCounts(both if few else None, {**self.codes, **other.codes})

    def completed(self, column: Column) -> Column:
        """The column of some rows with the levels of all rows, where it is a category."""
        if not column.is_category or self.values is None:
            return column
        levels = [level for level in column.levels if level in self.values]
        others = [level for level in self.values if level not in column.levels]
        if others:  # levels with value labels stand in the order of their codes
            levels = sorted([*levels, *others], key=lambda level: self.codes.get(level, level))
        return column.with_levels(levels, [self.codes[v] for v in levels] if self.codes else [])


@dataclass(frozen=True, eq=False)
class Census:
    """What one pass counts of the rows; nothing that is chosen by it looks at labels."""

    n: int
    mass: float
    mass2: float
    lowest: float
    highest: float
    labels: IntArray  # rows of every class
    impossible: IntArray  # by outcome, rows whose label had probability 0
    uncertain: int  # rows with a probability between 0 and 1
    counts: Mapping[str, ValueCounts]

    @property
    def pair_weight(self) -> float:
        """Sum over i != j of w_i w_j."""
        return self.mass**2 - self.mass2

    @classmethod
    def of(cls, rows: Rows, weights: FloatArray | None) -> Census:
        """Count some rows, which have these weights."""
        p, outcomes = rows.predictions, range(rows.predictions.shape[1])
        marked = [called_impossible(rows.outcome(k).y, p[:, k], weights) for k in outcomes]
        labels = rows.counts if rows.labelled else np.zeros(len(rows.classes), dtype=np.int64)
        return cls(
            n=rows.n,
            mass=float(rows.n) if weights is None else float(weights.sum()),
            mass2=float(rows.n) if weights is None else float(np.square(weights).sum()),
            lowest=float(p.min(initial=np.inf)),
            highest=float(p.max(initial=-np.inf)),
            labels=labels,
            impossible=np.array([np.count_nonzero(own) for own in marked]),
            uncertain=int(np.count_nonzero(((p > 0) & (p < 1)).any(axis=1))),
            counts={column.name: ValueCounts.of(column) for column in rows.columns},
        )

    def plus(self, other: Census, categories: Sequence[str]) -> Census:
        """Add what other rows have; some covariates are categories."""
        sums = {
            name: value + vars(other)[name]
            for name, value in vars(self).items()
            if name not in ("lowest", "highest", "counts")
        }
        return Census(
            **sums,
            lowest=min(self.lowest, other.lowest),
            highest=max(self.highest, other.highest),
            counts={k: v.plus(other.counts[k], k in categories) for k, v in self.counts.items()},
        )


@dataclass(frozen=True, eq=False)
class Extract:
    """All rows, what a first pass counted of them, and random ones of them in memory.

    Whatever must see rows at hand takes `some`, which were chosen without a look at labels.
    """

    source: Any
    some: Any
    tickets: FloatArray
    weights: FloatArray | None
    census: Census
    parts: tuple[FilePart, ...] = ()
    runs: Any = None
    notes: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()  # of these notes, those on rows that were left out

    @property
    def n(self) -> int:
        """Number of all rows."""
        return self.census.n

    @property
    def is_all(self) -> bool:
        """Whether all rows are at hand."""
        return bool(self.some.n == self.n)

    def pilot(self, size: int) -> Pilot:
        """Choose random rows of the whole without labels; no further pass is made."""
        rows = Pilot(self.some.points, self.weights, self.n, self.tickets, notes=self.selected)
        return rows.first(size)

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


@dataclass(eq=False)
class Smallest:
    """The rows with the smallest tickets, `size` at most, of those that were added so far."""

    size: int
    bar: float = 1.0
    drawn: FloatArray = field(default_factory=lambda: np.empty(0))
    table: pa.Table = field(default_factory=lambda: pa.table({}))

    def add(self, drawn: FloatArray, table: pa.Table) -> IntArray:
        """Take in those of some rows that may be among them, and tell which."""
        rows = np.flatnonzero(drawn <= self.bar)
        rows = rows[smallest_tickets(drawn[rows], self.size)]
        if rows.size:
            table = table.take(pa.array(rows))
            both = [table, self.table] if self.drawn.size else [table]
            self.table = pa.concat_tables(both[::-1], promote_options="permissive")
            self.drawn = np.concatenate([self.drawn, drawn[rows]])
            if self.drawn.size > 2 * self.size:
                self.settle()
        return rows

    def settle(self) -> Smallest:
        """Leave out what is not among them."""
        if self.drawn.size > self.size:
            chosen = smallest_tickets(self.drawn, self.size)
            self.drawn = self.drawn[chosen]
            self.table = self.table.take(pa.array(chosen)).combine_chunks()
            self.bar = float(self.drawn.max())
        return self

    @classmethod
    def of(cls, parts: Sequence[Smallest], size: int) -> Smallest:
        """Those of several pieces, in the order of the files."""
        whole = cls(size)
        for part in parts:
            whole.add(part.drawn, part.table)
        return whole.settle()


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Rows that may be among the chosen ones, and what a pass over some files counted of all."""

    rows: Smallest
    counts: SelectionCounts
    runs: Smallest
    census: Census | None = None
    rounded: tuple[int, float] = (0, 0.0)


def run_tickets(first: int, count: int) -> FloatArray:
    """Tickets of consecutive rows, of which those of a stretch have the same one."""
    stretches = np.arange(first // RUN_ROWS, -(-(first + count) // RUN_ROWS))
    drawn = keyed_fractions(2, stretches, np.zeros(1, dtype=np.int64))
    return np.repeat(drawn, RUN_ROWS)[first % RUN_ROWS :][:count]


def rows_of_runs() -> int:
    """How many rows to look for: one stretch more, as the last of a file need not be whole."""
    return (RUNS + 1) * RUN_ROWS


def whole_runs(drawn: FloatArray) -> IntArray:
    """Places of the rows of the stretches with the smallest tickets that are whole."""
    rows = smallest_tickets(drawn, rows_of_runs())
    distinct, counts = np.unique(drawn[rows], return_counts=True)
    chosen = distinct[counts == RUN_ROWS][:RUNS]
    return rows[np.isin(drawn[rows], chosen)]
