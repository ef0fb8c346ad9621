"""All that validation asks of the rows: sums by prediction and by grade, some rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, place_of
from itrust.calibration.bins import (
    CELLS,
    EqualMass,
    PredictionCells,
    Sums,
    fine_cell,
    fine_ends,
    quantiles_of,
)
from itrust.data import (
    MISSING_LEVEL,
    Column,
    Design,
    Rows,
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

Grades = dict[str, tuple[Any, Sums]]  # of some rows, by name, with what they are ordered by


@dataclass(frozen=True, eq=False)
class Partition:
    """Where predictions are cut, and the covariate with the grades of rows."""

    edges: FloatArray
    thresholds: FloatArray
    cuts: FloatArray
    grades: str | None = None

    @classmethod
    def of(
        cls,
        source: Sample | Scan,
        grades: str | None = None,
        thresholds: Sequence[float] | None = None,
        cuts: Sequence[float] | None = None,
    ) -> Partition:
        """Cut predictions into ten groups of the same weight, and at round thresholds."""
        given = None if thresholds is None else _checked_cuts(thresholds, "thresholds")
        return cls(
            EqualMass(GROUPS).inner_edges(source),  # as the reliability curve of an audit
            _thresholds_of(source) if given is None else given,
            np.zeros(0) if cuts is None else _checked_cuts(cuts, "cuts"),
            grades,
        )

    @cached_property
    def borders(self) -> FloatArray:
        """All cuts, and those that tell 0 and 1 from other predictions.

        What lies at an edge is below it; what lies at a threshold or a cut point is above.
        """
        above = np.nextafter([*self.thresholds, *self.cuts, 1.0], 0.0)
        return np.unique([0.0, *self.edges, *above])

    def cells(self, p: FloatArray) -> IntArray:
        """Number cells of nearly equal predictions, in their order, none across a border."""
        return np.asarray(fine_cell(p) + np.searchsorted(self.borders, p))

    def gathered(self, cells: IntArray, sums: Sums) -> PredictionCells:
        """Predictions of such cells, by their means, which rounding must not move elsewhere."""
        above = np.nextafter(self.borders, 1.0)
        part = np.searchsorted(self.cells(above), cells, side="right")
        ends = np.append(0.0, above)[part], np.append(self.borders, 1.0)[part]
        mean = np.clip(sums.mean, *fine_ends(cells - part))
        return PredictionCells.of(np.clip(mean, *ends), sums)

    def graded(self, rows: Rows, w: FloatArray) -> Grades:
        """Sums by grade; none, unless grades are those of a covariate."""
        if self.grades is None:
            return {}
        column, grades = rows.column(self.grades), Grades()
        levels, codes = column.levels, column.codes
        order = codes or (levels if list(levels) == sorted(levels) else range(len(levels)))
        values, cell = np.unique(column.values, return_inverse=True)
        refuse_many_grades(values.size)
        sums = Sums.of(cell, values.size, rows.y, rows.p, w)
        for k, value in enumerate(values):
            name = grade_name(column, value)
            rank = 0 if name == MISSING_LEVEL else order[int(value)] if levels else value
            last = name == MISSING_LEVEL
            _add_grade(grades, name, (last, rank), sums.at(np.array([k])))
        return grades

    def __call__(self, rows: Rows, w: FloatArray) -> TallySums:
        """What some rows contribute."""
        places, cell = np.unique(self.cells(rows.p), return_inverse=True)
        sums = Sums.of(cell, places.size, rows.y, rows.p, w)
        return TallySums(places, sums, self.graded(rows, w), CELLS + self.borders.size)


def _thresholds_of(source: Sample | Scan) -> FloatArray:
    """Thresholds of a decision curve that tell the rows apart, in round numbers.

    Quantiles of the predictions, with as few digits of the distance from 0 or 1 as leave them
    different: a threshold that all predictions exceed, or none, would tell nothing.
    """
    low, *levels, high = quantiles_of(source, np.array([0.0, *LEVELS, 1.0]))
    inner = np.unique([level for level in levels if 0 < level < 1])
    if not inner.size:
        return np.array([0.5])
    for digits in (1, 2, 3, 6):
        rounded = np.unique([_with_digits(float(level), digits) for level in inner])
        inside: FloatArray = rounded[(rounded > low) & (rounded <= high)]
        if inside.size >= min(inner.size, ENOUGH):
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


def _checked_cuts(values: Sequence[float], argument: str) -> FloatArray:
    """Read rising numbers between 0 and 1."""
    try:
        cuts = np.asarray(values, dtype=float).ravel()
    except (TypeError, ValueError):
        cuts = np.array([np.nan])
    if not ((cuts > 0) & (cuts < 1)).all() or cuts.size > MAX_GRADES:
        raise InputError(
            "{argument} must be numbers above 0 and below 1, {most} at most, such as (0.01, 0.05), "
            "not {value}",
            argument=argument,
            value=values,
            most=str(MAX_GRADES),
        )
    return np.unique(cuts)


@dataclass(frozen=True, eq=False)
class Tallied:
    """Sums over all rows."""

    cells: PredictionCells
    graded: Grades
    partition: Partition
    gathered: bool
    design: Design | None = None
    rows: tuple[FloatArray, FloatArray, IntArray] | None = None  # labels, weights, cells

    def between(self, edges: FloatArray) -> Sums:
        """Sums between edges, which no cell lies across."""
        place = np.searchsorted(edges, self.cells.p)
        parts = vars(self.cells.sums).values()
        sums = [np.bincount(place, part, minlength=edges.size + 1) for part in parts]
        return Sums(*np.array(sums, dtype=float))

    @cached_property
    def groups(self) -> Sums:
        """Sums over groups of the prediction that hold rows."""
        groups = self.between(self.partition.edges)
        return groups.at(groups.occupied)

    def grades(self) -> tuple[Sequence[str], Sums]:
        """Names and sums of grades that hold rows, in their order."""
        if self.partition.grades is not None:
            graded = {name: own for name, own in self.graded.items() if own[1].occupied.size}
            names = sorted(graded, key=lambda name: graded[name][0])
            parts = zip(*(vars(graded[name][1]).values() for name in names), strict=True)
            return names, Sums(*map(np.concatenate, parts))
        if not self.partition.cuts.size:
            return [str(k + 1) for k in range(self.groups.rows.size)], self.groups
        cuts = self.partition.cuts
        ends = [f"{cut:g}" for cut in cuts]
        names = [f"{low} to {high}" for low, high in pairwise(ends)]
        names = [f"below {ends[0]}", *names, f"{ends[-1]} or more"]
        sums = self.between(np.nextafter(cuts, 0.0))
        return [names[k] for k in sums.occupied], sums.at(sums.occupied)

    @property
    def is_clustered(self) -> bool:
        """Whether some rows were drawn together, so that their labels may go together."""
        return self.design is not None and not self.design.rows_are_independent

    @property
    def freedom(self) -> float:
        """Degrees of freedom of variances; infinite for independent draws."""
        return np.inf if self.design is None else self.design.freedom

    def variance(self, zero: FloatArray, one: FloatArray) -> float:
        """Variance of a sum over rows of weights times a value of prediction and label."""
        if self.design is None or self.rows is None:
            sums = self.cells.sums
            return float(sums.squares0 @ np.square(zero) + sums.squares1 @ np.square(one))
        y, w, cell = self.rows
        return design_variance(self.design, w * np.where(y == 1, one[cell], zero[cell]))


def tallied(source: Sample | Scan, partition: Partition) -> Tallied:
    """Go over the rows once; those of a design, and up to 100,000, are taken as they are."""
    if isinstance(source, Sample) and (source.n <= rows_at_hand() or not source.design.is_simple):
        y, p, w = source.y, source.p, source.weights_or_ones
        cells = PredictionCells.of_rows(y, p, w)
        by_row = y, w, np.minimum(np.searchsorted(cells.p, p), cells.p.size - 1)
        design = None if source.design.is_simple else source.design
        return Tallied(cells, partition.graded(source, w), partition, False, design, by_row)
    total: TallySums | None = None
    for chunk in source.chunks(CHUNK_ROWS):
        part = partition(chunk, np.ones(chunk.n) if chunk.weights is None else chunk.weights)
        total = part if total is None else total.absorbed(part)
    assert total is not None  # more rows than can be at hand
    return total.tallied(partition)


@dataclass(frozen=True, eq=False)
class TallySums(Additive):
    """Sums over some rows, which add up: by cells of a partition that occur, and by grade."""

    places: IntArray
    fine: Sums
    graded: Grades
    size: int  # number of all cells

    def __add__(self, other: TallySums) -> TallySums:
        fine = Sums(*(values.copy() for values in vars(self.fine).values()))
        return TallySums(self.places, fine, self.graded, self.size).absorbed(other)

    def absorbed(self, other: TallySums) -> TallySums:
        """Add other rows, into the arrays of these where they hold all cells."""
        whole = self.places.size == self.size
        fine = self.fine if whole else Sums(*np.zeros((len(vars(self.fine)), self.size)))
        for part in (other,) if whole else (self, other):
            for values, more in zip(vars(fine).values(), vars(part.fine).values(), strict=True):
                values[part.places] += more
        graded = dict(self.graded)
        for name, (rank, sums) in other.graded.items():
            _add_grade(graded, name, rank, sums)
        refuse_many_grades(len(graded))
        return TallySums(np.arange(self.size), fine, graded, self.size)

    def tallied(self, partition: Partition) -> Tallied:
        """Make what validation needs."""
        cells = partition.gathered(self.places, self.fine)
        if cells.p.size == 0:
            raise InputError("{argument}: no row has a positive weight", argument="weights")
        return Tallied(cells, self.graded, partition, gathered=True)


def _add_grade(grades: Grades, name: str, rank: Any, sums: Sums) -> None:
    grades[name] = rank, (grades[name][1] + sums if name in grades else sums)


def read_grades(grades: object, n: int) -> Column:
    """Read grades that stand beside n rows."""
    name = getattr(grades, "name", None)
    column = encode(name if isinstance(name, str) and name else "grades", grades)
    if len(column) != n:
        problem = "{argument} has {value} values for {rows} rows"
        raise InputError(problem, argument="grades", value=len(column), rows=f"{n:,}")
    return column


def with_grades(source: Sample | Scan, grades: object) -> tuple[Sample | Scan, str | None]:
    """The rows with their grades among the covariates, and the name of these."""
    if grades is None:
        return source, None
    if not isinstance(grades, str):
        if isinstance(source, Scan):
            problem = "{argument} of rows in files is the name of a covariate, or use cuts="
            raise InputError(problem, argument="grades")
        column = read_grades(grades, source.n)
        return source.with_columns((column,)), column.name
    problem = "{argument}: there is no covariate {value}; {guess}"
    known = {} if source.names else {"guess": "arrays have no covariates"}
    place_of(grades, source.names, problem, argument="grades", **known)
    return source, grades


def refuse_many_grades(values: int) -> None:
    """Raise where a column has more values than there can be grades."""
    if values > MAX_GRADES:
        raise InputError(
            "{argument} has more than {value} values; grades are few: name a column of rating "
            "classes, or join some of these",
            argument="grades",
            value=MAX_GRADES,
        )


def grade_name(column: Column, value: Any) -> str:
    """What people call a grade.

    >>> grade_name(encode("rating", [1.0, 2.5]), 2.5), grade_name(encode("rating", ["A", "B"]), 1)
    ('2.5', 'B')
    """
    if column.is_category:
        return MISSING_LEVEL if value < 0 else str(column.levels[int(value)])
    return MISSING_LEVEL if np.isnan(value) else column.shown(float(value), 15)
