"""All that validation asks of the rows, in memory or some at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, counted
from itrust.calibration.score_inputs import ScoredRows, ScoreSource, equal_mass_edges, quantiles_of
from itrust.calibration.validation.sums import (
    CELLS,
    FIELDS,
    PredictionCells,
    Sums,
    fine_place,
    sums_by_place,
)
from itrust.data import (
    MISSING_LEVEL,
    Column,
    Design,
    Sample,
    Scan,
    design_variance,
    encode,
    rows_at_hand,
)
from itrust.engines import Additive

CHUNK_ROWS = 65_536
GROUPS = 10
MAX_GRADES = 50
LEVELS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 0.99)  # of thresholds
ENOUGH = 8  # thresholds that are worth another digit
PARTS = ("groups", "between", "cuts")  # of sums, beside those by cell


@dataclass(frozen=True, eq=False)
class Partition:
    """Where predictions are cut."""

    edges: FloatArray
    thresholds: FloatArray
    cuts: FloatArray

    def sums(self, y: FloatArray, p: FloatArray, w: FloatArray) -> tuple[FloatArray, ...]:
        """Sum over some rows: by group, between thresholds, and by grade."""
        places = (
            np.searchsorted(self.edges, p),
            np.searchsorted(self.thresholds, p, side="right"),
            np.searchsorted(self.cuts, p, side="right"),
        )
        numbers = (self.edges.size + 1, self.thresholds.size + 1, self.cuts.size + 1)
        return tuple(
            sums_by_place(place, number, y, p, w)
            for place, number in zip(places, numbers, strict=True)
        )


@dataclass(frozen=True, eq=False)
class DesignRows:
    """Rows of a design, for variances."""

    design: Design
    y: FloatArray
    w: FloatArray
    cell: IntArray


@dataclass(frozen=True, eq=False)
class Tallied:
    """Sums over all rows."""

    cells: PredictionCells
    groups: Sums
    between: Sums
    grades: Sums
    names: tuple[str, ...]
    partition: Partition
    gathered: bool
    rows: DesignRows | None = None

    @property
    def is_clustered(self) -> bool:
        """Whether some rows were drawn together, so that their labels may go together."""
        return self.rows is not None and not self.rows.design.rows_are_independent

    @property
    def freedom(self) -> float:
        """Degrees of freedom of variances; infinite for independent draws."""
        return np.inf if self.rows is None else self.rows.design.freedom

    @property
    def by_model(self) -> bool:
        """Whether the textbooks' variances hold: rows are independent and count alike."""
        return self.rows is None and not self.cells.are_weighted

    def variance(self, zero: FloatArray, one: FloatArray) -> float:
        """Variance of a sum over rows of weights times a value of prediction and label."""
        if self.rows is None:
            sums = self.cells.sums
            return float(sums.squares0 @ np.square(zero) + sums.squares1 @ np.square(one))
        rows = self.rows
        shares = rows.w * np.where(rows.y == 1, one[rows.cell], zero[rows.cell])
        return design_variance(rows.design, shares)


def edges_of(source: ScoreSource) -> FloatArray:
    """Cut predictions into ten groups of the same weight, as the reliability curve of an audit."""
    return equal_mass_edges(source, GROUPS)


def thresholds_of(source: ScoreSource) -> FloatArray:
    """Thresholds of a decision curve that tell the rows apart, in round numbers.

    Quantiles of the predictions, with as few digits of the distance from 0 or 1 as leave them
    different: a threshold that all predictions exceed, or none, would tell nothing.
    """
    found = quantiles_of(source, np.array([0.0, *LEVELS, 1.0]))
    low, high, own = found[0], found[-1], np.unique(found[1:-1])
    own = own[(own > 0) & (own < 1)]
    if not own.size:
        return np.array([0.5])
    for digits in (1, 2, 3, 6):
        rounded = np.unique([_with_digits(float(level), digits) for level in own])
        inside: FloatArray = rounded[(rounded > low) & (rounded <= high)]
        if inside.size >= min(own.size, ENOUGH):
            return inside
    return inside if inside.size else rounded


def _with_digits(level: float, digits: int) -> float:
    """Round how far a number is from 0 or 1.

    >>> _with_digits(0.0437, 1), _with_digits(0.9837, 1), _with_digits(0.0437, 2)
    (0.04, 0.98, 0.044)
    """
    if level <= 0.5:
        return float(f"{level:.{digits}g}")
    # rounded again: 1 less a short decimal is none in binary
    return round(1 - float(f"{1 - level:.{digits}g}"), 12)


def tallied(source: ScoreSource, partition: Partition, column: GradeColumn | None) -> Tallied:
    """Go over the rows once."""
    design = _design_of(source)
    if design is None and (isinstance(source, Scan) or source.n > rows_at_hand()):
        return _streamed(source, partition, column)
    assert not isinstance(source, Scan)
    y, p = source.y, source.p
    weights = source.weights
    if design is None and weights is not None:
        weights = _in_range(weights)
    w = np.ones(y.size) if weights is None else weights
    cells = PredictionCells.of_rows(y, p, weights)
    groups, between, by_cuts = partition.sums(y, p, w)
    rows = None
    if design is not None:
        cell = np.minimum(np.searchsorted(cells.p, p), cells.p.size - 1)
        rows = DesignRows(design, y, w, cell)
    graded = None
    if column is not None:
        points = None if isinstance(source, ScoredRows) else source.points
        graded = GradeSums.of(column.of(source.n, 0, points), y, p, w)
    return _finished(cells, (groups, between, by_cuts), graded, partition, False, rows)


def _in_range(weights: FloatArray) -> FloatArray:
    """Weights whose squares add up, whatever their unit; a power of two changes no digit."""
    most = float(weights.max(initial=0.0))
    return weights if most == 0 else np.ldexp(weights, 1 - int(np.frexp(most)[1]))


def _design_of(source: ScoreSource) -> Design | None:
    if isinstance(source, Sample) and not source.design.is_simple:
        return source.design
    return None


def _streamed(source: ScoreSource, partition: Partition, column: GradeColumn | None) -> Tallied:
    total: TallySums | None = None
    graded, weighted, rows = GradeSums(), False, 0
    small: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for chunk in source.chunks(CHUNK_ROWS):
        weighted |= chunk.weights is not None
        w = np.ones(chunk.y.size) if chunk.weights is None else chunk.weights
        own = TallySums.of(chunk.y, chunk.p, w, partition)
        total = own if total is None else total.absorbed(own)
        rows += chunk.y.size
        small = [*small, (chunk.y, chunk.p, w)] if rows <= rows_at_hand() else []
        if column is not None:
            grades = column.of(chunk.y.size, chunk.first, chunk.points)
            graded = graded + GradeSums.of(grades, chunk.y, chunk.p, w)
    if total is None:
        raise InputError("there are no rows", argument="sample")
    if small:  # few enough to be taken as they are
        y, p, w = (np.concatenate(parts) for parts in zip(*small, strict=True))
        cells = PredictionCells.of_rows(y, p, w if weighted else None)
    else:
        cells = PredictionCells.of_fine(total.places, total.fine, weighted)
    parts = (total.groups, total.between, total.cuts)
    by_grade = None if column is None else graded
    return _finished(cells, parts, by_grade, partition, not small, None)


@dataclass(frozen=True, eq=False)
class TallySums(Additive):
    """Sums over some rows, which add up."""

    places: IntArray
    fine: FloatArray
    groups: FloatArray
    between: FloatArray
    cuts: FloatArray

    @classmethod
    def of(cls, y: FloatArray, p: FloatArray, w: FloatArray, partition: Partition) -> TallySums:
        """Sum over some rows."""
        places, place = np.unique(fine_place(p), return_inverse=True)
        fine = sums_by_place(place, places.size, y, p, w)
        return cls(places, fine, *partition.sums(y, p, w))

    def __add__(self, other: TallySums) -> TallySums:
        return replace(self, fine=self.fine.copy()).absorbed(other)

    def absorbed(self, other: TallySums) -> TallySums:
        """Add other rows, into the arrays of these where they hold all cells."""
        fine = self.fine
        if self.places.size < CELLS:
            fine = np.zeros((FIELDS, CELLS))
            fine[:, self.places] = self.fine
        fine[:, other.places] += other.fine
        rest = (getattr(self, name) + getattr(other, name) for name in PARTS)
        return TallySums(np.arange(CELLS), fine, *rest)

    def tallied(
        self, partition: Partition, are_weighted: bool, graded: GradeSums | None = None
    ) -> Tallied:
        """Make what validation needs."""
        cells = PredictionCells.of_fine(self.places, self.fine, are_weighted)
        parts = (self.groups, self.between, self.cuts)
        return _finished(cells, parts, graded, partition, True, None)


def _finished(
    cells: PredictionCells,
    parts: tuple[FloatArray, ...],
    graded: GradeSums | None,
    partition: Partition,
    gathered: bool,
    rows: DesignRows | None,
) -> Tallied:
    if cells.p.size == 0:
        raise InputError("{argument}: no row has a positive weight", argument="weights")
    groups, between, by_cuts = (Sums(part) for part in parts)
    held = np.flatnonzero(groups.weights > 0)
    groups = groups.at(held)
    if graded is not None:
        names, grades = graded.finished()
    elif partition.cuts.size:
        kept = np.flatnonzero(by_cuts.weights > 0)
        names = tuple(_interval(partition.cuts, int(k)) for k in kept)
        grades = by_cuts.at(kept)
    else:
        names, grades = tuple(str(k + 1) for k in range(held.size)), groups
    return Tallied(cells, groups, between, grades, names, partition, gathered, rows)


def _interval(cuts: FloatArray, number: int) -> str:
    """A grade by its ends.

    >>> _interval(np.array([0.01, 0.05]), 0), _interval(np.array([0.01, 0.05]), 1)
    ('below 0.01', '0.01 to 0.05')
    """
    if number == 0:
        return f"below {cuts[0]:g}"
    if number == cuts.size:
        return f"{cuts[-1]:g} or more"
    return f"{cuts[number - 1]:g} to {cuts[number]:g}"


@dataclass(frozen=True, eq=False)
class GradeColumn:
    """Grades of the rows: values beside them, or the name of a covariate."""

    name: str
    values: Column | None = None

    @classmethod
    def read(cls, grades: object, n: int) -> GradeColumn:
        """Read grades that stand beside n rows."""
        own = getattr(grades, "name", None)
        values = encode(own if isinstance(own, str) and own else "grades", grades)
        if len(values) != n:
            raise InputError(
                "{argument} has {value} values for {rows} rows",
                argument="grades",
                value=len(values),
                details={"rows": f"{n:,}"},
            )
        return cls(values.name, values)

    def of(self, rows: int, first: int, points: Any) -> Column:
        """Give the grades of consecutive rows."""
        if self.values is not None:
            return self.values.take(slice(first, first + rows))
        own: Column = next(column for column in points.columns if column.name == self.name)
        return own


@dataclass(frozen=True, eq=False)
class GradeSums:
    """Sums by grade over some rows, which add up."""

    sums: Mapping[Any, FloatArray] = field(default_factory=dict)
    names: Mapping[Any, str] = field(default_factory=dict)
    levels: tuple[Any, ...] = ()
    codes: Mapping[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, column: Column, y: FloatArray, p: FloatArray, w: FloatArray) -> GradeSums:
        """Sum over some rows."""
        values, place = np.unique(column.values, return_inverse=True)
        _refuse_more(values.size)
        parts = sums_by_place(place, values.size, y, p, w)
        sums: dict[Any, FloatArray] = {}
        for k, value in enumerate(values):
            key = _grade_key(column, value)
            sums[key] = sums[key] + parts[:, k] if key in sums else parts[:, k]
        return cls(
            sums,
            {_grade_key(column, value): grade_name(column, value) for value in values},
            column.levels,
            dict(zip(column.levels, column.codes, strict=True)) if column.codes else {},
        )

    def __add__(self, other: GradeSums) -> GradeSums:
        both = dict(self.sums)
        for key, sums in other.sums.items():
            both[key] = both[key] + sums if key in both else sums
        _refuse_more(len(both))
        codes = {**self.codes, **other.codes}
        levels = self.levels
        if not set(other.levels) <= set(levels):
            levels = other.levels
        if not set(self.levels) <= set(levels):  # each of some rows: they were sorted
            every = {*self.levels, *other.levels}
            levels = tuple(sorted(every, key=lambda level: codes.get(level, level)))
        return GradeSums(both, {**self.names, **other.names}, levels, codes)

    def finished(self) -> tuple[tuple[str, ...], Sums]:
        """Put grades with rows that count in their order, missing values last."""
        position = {level: k for k, level in enumerate(self.levels)}
        kept = sorted(
            (key for key in self.sums if self.sums[key][2:4].sum() > 0),
            key=lambda key: (key is None, 0 if key is None else position.get(key, key)),
        )
        sums = np.column_stack([self.sums[key] for key in kept])
        return tuple(self.names[key] for key in kept), Sums(sums)


def refuse_many_grades(column: Column) -> None:
    """Raise where a column has more values than there can be grades."""
    _refuse_more(np.unique(column.values).size)


def _refuse_more(values: int) -> None:
    if values > MAX_GRADES:
        raise InputError(
            "{argument} has more than {value} values; grades are few: name a column of rating "
            "classes, or join some of these",
            argument="grades",
            value=MAX_GRADES,
        )


def _grade_key(column: Column, value: Any) -> Any:
    """A level or a number; None for missing values, which may have a level of their own."""
    if column.is_category:
        level = None if value < 0 else column.levels[int(value)]
        return None if level == MISSING_LEVEL else level
    return None if np.isnan(value) else float(value)


def grade_name(column: Column, value: Any) -> str:
    """What people call a grade.

    Examples
    --------
    >>> from itrust.data import encode
    >>> grade_name(encode("rating", [1.0, 2.5]), 2.5), grade_name(encode("rating", ["A", "B"]), 1)
    ('2.5', 'B')
    """
    key = _grade_key(column, value)
    if key is None:
        return MISSING_LEVEL
    return str(key) if column.is_category else column.shown(key, 15)


def checked_cuts(values: Sequence[float] | None, argument: str) -> FloatArray:
    """Read rising numbers between 0 and 1."""
    if values is None:
        return np.zeros(0)
    try:
        found = np.asarray(values, dtype=float).ravel()
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if not (np.isfinite(found).all() and (found > 0).all() and (found < 1).all()):
        raise InputError(
            "{argument} must be numbers above 0 and below 1, such as (0.01, 0.05), not {value}",
            argument=argument,
            value=values,
        )
    if found.size > MAX_GRADES:
        raise InputError(
            "{argument} has {numbers}; {value} at most",
            argument=argument,
            value=MAX_GRADES,
            details={"numbers": counted(found.size, "number")},
        )
    return np.unique(found)
