"""All that validation asks of the rows, in memory or some at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from itrust.data import Column, Design, Sample, Scan, design_variance, rows_at_hand
from itrust.engines import Additive

CHUNK_ROWS = 65_536
GROUPS = 10
MAX_GRADES = 500
MISSING = "(missing)"
LEVELS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 0.99)  # of thresholds
ENOUGH = 8  # thresholds that are worth another digit
PARTS = ("groups", "between", "cuts")  # of sums, beside those by cell


@dataclass(frozen=True, eq=False)
class Partition:
    """Where predictions are cut.

    Attributes
    ----------
    edges : (g - 1,) array
        Between the groups of Hosmer and Lemeshow; a group is closed on the right.
    thresholds : (t,) array
        Of the decision curve; a prediction at a threshold is acted on.
    cuts : (k,) array
        Between grades, which are closed on the left; empty where grades are these groups, or a
        column.
    """

    edges: FloatArray
    thresholds: FloatArray
    cuts: FloatArray

    def sums(self, y: FloatArray, p: FloatArray, w: FloatArray) -> tuple[FloatArray, ...]:
        """Sum over some rows: by group, between thresholds, and by grade.

        Parameters
        ----------
        y, p, w : (n,) arrays
            Labels, predictions and weights.

        Returns
        -------
        tuple of (7, b) arrays
            That add up over rows.
        """
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
    """Rows of a design, for variances.

    Attributes
    ----------
    design : Design
        How they were drawn.
    y, w : (n,) arrays
        Labels and weights.
    cell : (n,) array of int
        Which cell each row is in; rows of weight 0 are in any.
    """

    design: Design
    y: FloatArray
    w: FloatArray
    cell: IntArray


@dataclass(frozen=True, eq=False)
class Tallied:
    """Sums over all rows.

    Attributes
    ----------
    cells : PredictionCells
        By prediction.
    groups : Sums
        By groups of Hosmer and Lemeshow, those with rows.
    between : Sums
        Below, between and above the thresholds.
    grades : Sums
        By grade.
    names : tuple of str
        Of the grades.
    partition : Partition
        Where predictions were cut.
    gathered : bool
        Whether cells hold several predictions.
    rows : DesignRows or None
        Of a design; None where rows are independent draws.
    """

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
        """Variance of a sum over rows of weights times a value of prediction and label.

        Parameters
        ----------
        zero, one : (m,) arrays
            Values of the cells, for each label.

        Returns
        -------
        float
            The sum of squares for independent draws, otherwise that of the design.
        """
        if self.rows is None:
            sums = self.cells.sums
            return float(sums.squares0 @ np.square(zero) + sums.squares1 @ np.square(one))
        rows = self.rows
        shares = rows.w * np.where(rows.y == 1, one[rows.cell], zero[rows.cell])
        return design_variance(rows.design, shares)


def edges_of(source: ScoreSource) -> FloatArray:
    """Cut predictions into ten groups of the same weight, as the reliability curve of an audit.

    Parameters
    ----------
    source : Sample, Scan or ScoredRows
        The rows; labels are not looked at.

    Returns
    -------
    (g - 1,) array
        Rising; fewer than nine where predictions are tied.
    """
    return equal_mass_edges(source, GROUPS)


def thresholds_of(source: ScoreSource) -> FloatArray:
    """Thresholds of a decision curve that tell the rows apart, in round numbers.

    Quantiles of the predictions, with as few digits of the distance from 0 or 1 as leave them
    different: a threshold that all predictions exceed, or none, would tell nothing.

    Parameters
    ----------
    source : Sample, Scan or ScoredRows
        The rows; labels are not looked at.

    Returns
    -------
    (t,) array
        Rising, eleven at most; above the smallest prediction and not above the largest, unless all
        predictions are 0 or 1, or alike.
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
    """Go over the rows once.

    Parameters
    ----------
    source : Sample, Scan or ScoredRows
        The rows; those of a design are in memory.
    partition : Partition
        Where predictions are cut.
    column : GradeColumn or None
        Grades that stand beside the rows or among the covariates; None: those of the partition.

    Returns
    -------
    Tallied
        The same for rows in memory and in files.
    """
    design = _design_of(source)
    if design is None and (isinstance(source, Scan) or source.n > rows_at_hand()):
        return _streamed(source, partition, column)
    assert not isinstance(source, Scan)
    y, p = source.y, source.p
    w = np.ones(y.size) if source.weights is None else source.weights
    cells = PredictionCells.of_rows(y, p, source.weights)
    groups, between, by_cuts = partition.sums(y, p, w)
    rows = None
    if design is not None:
        cell = np.minimum(np.searchsorted(cells.p, p), cells.p.size - 1)
        rows = DesignRows(design, y, w, cell)
    graded = _Graded()
    if column is not None:
        points = None if isinstance(source, ScoredRows) else source.points
        graded.add(column.of(source.n, 0, points), y, p, w)
    return _finished(cells, (groups, between, by_cuts), graded, partition, column, False, rows)


def _design_of(source: ScoreSource) -> Design | None:
    if isinstance(source, Sample) and not source.design.is_simple:
        return source.design
    return None


def _streamed(source: ScoreSource, partition: Partition, column: GradeColumn | None) -> Tallied:
    total: TallySums | None = None
    graded, weighted, rows = _Graded(), False, 0
    small: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for chunk in source.chunks(CHUNK_ROWS):
        weighted |= chunk.weights is not None
        w = np.ones(chunk.y.size) if chunk.weights is None else chunk.weights
        own = TallySums.of(chunk.y, chunk.p, w, partition)
        total = own if total is None else total.absorbed(own)
        rows += chunk.y.size
        small = [*small, (chunk.y, chunk.p, w)] if rows <= rows_at_hand() else []
        if column is not None:
            graded.add(column.of(chunk.y.size, chunk.first, chunk.points), chunk.y, chunk.p, w)
    if total is None:
        raise InputError("there are no rows", argument="sample")
    if small:  # few enough to be taken as they are
        y, p, w = (np.concatenate(parts) for parts in zip(*small, strict=True))
        cells = PredictionCells.of_rows(y, p, w if weighted else None)
    else:
        cells = PredictionCells.of_fine(total.fine, weighted)
    parts = (total.groups, total.between, total.cuts)
    return _finished(cells, parts, graded, partition, column, not small, None)


@dataclass(frozen=True, eq=False)
class TallySums(Additive):
    """Sums over some rows, which add up.

    Attributes
    ----------
    places : (u,) array of int
        Fine cells of the prediction that hold rows; those of many rows are all cells.
    fine : (7, u) array
        Sums in these cells.
    groups, between, cuts : (7, b) arrays
        As in `Partition.sums`.
    """

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
        """Add other rows, into the arrays of these where they hold all cells.

        Parameters
        ----------
        other : TallySums
            Of other rows; not changed.

        Returns
        -------
        TallySums
            Of both, with all cells.
        """
        fine = self.fine
        if self.places.size < CELLS:
            fine = np.zeros((FIELDS, CELLS))
            fine[:, self.places] = self.fine
        fine[:, other.places] += other.fine
        rest = (getattr(self, name) + getattr(other, name) for name in PARTS)
        return TallySums(np.arange(CELLS), fine, *rest)

    def tallied(self, partition: Partition, are_weighted: bool) -> Tallied:
        """Make what validation needs, with grades by prediction.

        Parameters
        ----------
        partition : Partition
            Where predictions were cut.
        are_weighted : bool
            Whether rows count differently.

        Returns
        -------
        Tallied
            Of all rows that were added up.
        """
        cells = PredictionCells.of_fine(self.fine, are_weighted)  # in the order of the prediction
        parts = (self.groups, self.between, self.cuts)
        return _finished(cells, parts, _Graded(), partition, None, True, None)


def _finished(
    cells: PredictionCells,
    parts: tuple[FloatArray, ...],
    graded: _Graded,
    partition: Partition,
    column: GradeColumn | None,
    gathered: bool,
    rows: DesignRows | None,
) -> Tallied:
    if cells.p.size == 0:
        raise InputError("{argument}: no row has a positive weight", argument="weights")
    groups, between, by_cuts = (Sums(part) for part in parts)
    held = np.flatnonzero(groups.weights > 0)
    groups = groups.at(held)
    if column is not None:
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
    """Grades of the rows: values beside them, or the name of a covariate.

    Attributes
    ----------
    name : str or None
        Of a covariate of the rows.
    values : Column or None
        Of all rows, where it is not a covariate.
    """

    name: str | None
    values: Column | None

    def of(self, rows: int, first: int, points: Any) -> Column:
        """Give the grades of consecutive rows.

        Parameters
        ----------
        rows, first : int
            How many, and the number of the first of them.
        points : Points or None
            Their covariates.

        Returns
        -------
        Column
            With a value for each of them.
        """
        if self.values is not None:
            return self.values.take(slice(first, first + rows))
        own: list[Column] = [column for column in points.columns if column.name == self.name]
        if not own:
            raise InputError(
                "{argument}: there is no covariate {value}",
                argument="grades",
                value=self.name,
            )
        return own[0]


class _Graded:
    """Sums by grade, which are found one after the other."""

    def __init__(self) -> None:
        self.found: dict[Any, FloatArray] = {}

    def add(self, column: Column, y: FloatArray, p: FloatArray, w: FloatArray) -> None:
        values, place = np.unique(column.values, return_inverse=True)
        sums = sums_by_place(place, values.size, y, p, w)
        for k in range(values.size):
            key = self._key(column, values[k])
            self.found[key] = self.found.get(key, 0) + sums[:, k]
        if len(self.found) > MAX_GRADES:
            raise InputError(
                "{argument} has more than {value} values; grades are few: name a column of rating "
                "classes, or cut points with cuts=",
                argument="grades",
                value=MAX_GRADES,
            )

    @staticmethod
    def _key(column: Column, value: Any) -> Any:
        if column.is_category:
            return (1, MISSING) if value < 0 else (0, str(column.levels[int(value)]))
        return (1, MISSING) if np.isnan(value) else (0, float(value))

    def finished(self) -> tuple[tuple[str, ...], Sums]:
        kept = sorted((key for key in self.found if self.found[key][2:4].sum() > 0), key=_order)
        sums = np.column_stack([self.found[key] for key in kept])
        return tuple(_named(key[1]) for key in kept), Sums(sums)


def _order(key: tuple[int, Any]) -> tuple[int, bool, Any]:
    """Missing values last, numbers before texts."""
    return key[0], isinstance(key[1], str), key[1]


def _named(value: Any) -> str:
    """A grade for people.

    >>> _named(7.0), _named(2.5), _named(1000001.0)
    ('7', '2.5', '1000001')
    """
    if isinstance(value, str):
        return value
    return str(int(value)) if value.is_integer() else repr(value)


def checked_cuts(values: Sequence[float] | None, argument: str) -> FloatArray:
    """Read rising numbers between 0 and 1.

    Parameters
    ----------
    values : sequence of float or None
        None: none.
    argument : str
        What they are called.

    Returns
    -------
    (k,) array
        Rising.
    """
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
