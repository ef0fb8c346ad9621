"""All that validation asks of the rows: sums by prediction and by grade, some rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, counted, did_you_mean
from itrust.calibration.bins import (
    CELLS,
    EqualMass,
    PredictionCells,
    Sums,
    bin_sums,
    fine_cell,
    quantiles_of,
)
from itrust.calibration.score_inputs import ScoredRows, ScoreSource
from itrust.data import (
    MISSING_LEVEL,
    Chunk,
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


@dataclass(frozen=True, eq=False)
class GradeColumn:
    """Grades of the rows: values beside them, or the name of a covariate."""

    name: str
    values: Column | None = None

    @classmethod
    def asked(cls, source: ScoreSource, grades: object) -> GradeColumn:
        """Find the covariate with this name, or read a column beside the rows."""
        if not isinstance(grades, str):
            if isinstance(source, Scan):
                raise InputError(
                    "{argument} of rows in files is the name of a covariate, or use cuts=",
                    argument="grades",
                )
            return cls.read(grades, source.n)
        if isinstance(source, ScoredRows):
            raise InputError(
                "{argument} {value}: arrays have no covariates; give a column of n values",
                argument="grades",
                value=grades,
            )
        if grades not in source.names:
            raise InputError(
                "{argument}: there is no covariate {value}; {guess}",
                argument="grades",
                value=grades,
                details={"guess": did_you_mean(grades, source.names)},
            )
        return cls(grades)

    @classmethod
    def read(cls, grades: object, n: int) -> GradeColumn:
        """Read grades that stand beside n rows."""
        name = getattr(grades, "name", None)
        values = encode(name if isinstance(name, str) and name else "grades", grades)
        if len(values) != n:
            raise InputError(
                "{argument} has {value} values for {rows} rows",
                argument="grades",
                value=len(values),
                details={"rows": f"{n:,}"},
            )
        return cls(values.name, values)

    def of(self, chunk: Chunk) -> Column:
        """Give the grades of consecutive rows."""
        if self.values is not None:
            return self.values.take(slice(chunk.first, chunk.first + chunk.y.size))
        return next(column for column in chunk.points.columns if column.name == self.name)


@dataclass(frozen=True, eq=False)
class Partition:
    """Where predictions are cut, and the grades of rows; called, it sums over some of them."""

    edges: FloatArray
    thresholds: FloatArray
    cuts: FloatArray
    grades: GradeColumn | None = None

    @classmethod
    def of(
        cls,
        source: ScoreSource,
        grades: GradeColumn | None = None,
        thresholds: Sequence[float] | None = None,
        cuts: Sequence[float] | None = None,
    ) -> Partition:
        """Cut predictions into ten groups of the same weight, and at round thresholds."""
        given = None if thresholds is None else _checked_cuts(thresholds, "thresholds")
        return cls(
            edges_of(source),
            _thresholds_of(source) if given is None else given,
            np.zeros(0) if cuts is None else _checked_cuts(cuts, "cuts"),
            grades,
        )

    def __call__(self, chunk: Chunk, w: FloatArray) -> TallySums:
        """What some rows contribute."""
        y, p = chunk.y, chunk.p
        places, cell = np.unique(fine_cell(p), return_inverse=True)
        return TallySums(
            places,
            Sums.of(cell, places.size, y, p, w),
            bin_sums(y, p, w, self.edges),
            bin_sums(y, p, w, self.thresholds, "right"),
            bin_sums(y, p, w, self.cuts, "right"),
            GradeSums() if self.grades is None else GradeSums.of(self.grades.of(chunk), y, p, w),
        )


def edges_of(source: ScoreSource) -> FloatArray:
    """Cut predictions into ten groups of the same weight, as the reliability curve of an audit."""
    return EqualMass(GROUPS).inner_edges(source)


def _thresholds_of(source: ScoreSource) -> FloatArray:
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
    if not ((cuts > 0) & (cuts < 1)).all():
        raise InputError(
            "{argument} must be numbers above 0 and below 1, such as (0.01, 0.05), not {value}",
            argument=argument,
            value=values,
        )
    if cuts.size > MAX_GRADES:
        raise InputError(
            "{argument} has {numbers}; {value} at most",
            argument=argument,
            value=MAX_GRADES,
            details={"numbers": counted(cuts.size, "number")},
        )
    return np.unique(cuts)


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
    design: Design | None = None
    rows: tuple[FloatArray, FloatArray, IntArray] | None = None  # labels, weights, cells

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


def tallied(source: ScoreSource, partition: Partition) -> Tallied:
    """Go over the rows once; those of a design, and up to 100,000, are taken as they are."""
    design = source.design if isinstance(source, Sample) and not source.design.is_simple else None
    unit = 1.0 if isinstance(source, Scan) or design is not None else _unit(source.weights)
    most = np.inf if design is not None else rows_at_hand()
    total: TallySums | None = None
    few: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    rows = 0
    for chunk in source.chunks(CHUNK_ROWS if design is None else source.n):
        w = np.ones(chunk.y.size) if chunk.weights is None else chunk.weights / unit
        part = partition(chunk, w)
        total = part if total is None else total.absorbed(part)
        rows += chunk.y.size
        few = [*few, (chunk.y, chunk.p, w)] if rows <= most else []
    if total is None:
        raise InputError("there are no rows", argument="sample")
    if not few:
        return total.tallied(partition)
    y, p, w = (np.concatenate(parts) for parts in zip(*few, strict=True))
    cells = PredictionCells.of_rows(y, p, w)
    by_row = y, w, np.minimum(np.searchsorted(cells.p, p), max(cells.p.size - 1, 0))
    return replace(total.tallied(partition, cells), design=design, rows=by_row)


def _unit(weights: FloatArray | None) -> float:
    """The power of two, which changes no digit, that leaves weights whose squares add up."""
    most = 0.0 if weights is None else float(weights.max(initial=0.0))
    return 1.0 if most == 0 else float(np.ldexp(1.0, int(np.frexp(most)[1]) - 1))


@dataclass(frozen=True, eq=False)
class TallySums(Additive):
    """Sums over some rows, which add up."""

    places: IntArray
    fine: Sums
    groups: Sums
    between: Sums
    cuts: Sums
    graded: GradeSums

    def __add__(self, other: TallySums) -> TallySums:
        fine = Sums(*(values.copy() for values in vars(self.fine).values()))
        return replace(self, fine=fine).absorbed(other)

    def absorbed(self, other: TallySums) -> TallySums:
        """Add other rows, into the arrays of these where they hold all cells."""
        fine = self.fine
        if self.places.size < CELLS:
            fine = Sums(*np.zeros((7, CELLS)))
            _add_at(fine, self.places, self.fine)
        _add_at(fine, other.places, other.fine)
        names = ("groups", "between", "cuts", "graded")
        rest = (getattr(self, name) + getattr(other, name) for name in names)
        return TallySums(np.arange(CELLS), fine, *rest)

    def tallied(self, partition: Partition, cells: PredictionCells | None = None) -> Tallied:
        """Make what validation needs; of gathered rows, unless cells of single predictions."""
        gathered = cells is None
        if cells is None:
            cells = PredictionCells.of_fine(self.places, self.fine)
        if cells.p.size == 0:
            raise InputError("{argument}: no row has a positive weight", argument="weights")
        groups = self.groups.at(self.groups.occupied)
        names, grades = tuple(str(k + 1) for k in range(groups.rows.size)), groups
        if partition.grades is not None:
            names, grades = self.graded.in_order()
        elif partition.cuts.size:
            names = tuple(_interval(partition.cuts, int(k)) for k in self.cuts.occupied)
            grades = self.cuts.at(self.cuts.occupied)
        return Tallied(cells, groups, self.between, grades, names, partition, gathered)


def _add_at(sums: Sums, cells: IntArray, others: Sums) -> None:
    for values, more in zip(vars(sums).values(), vars(others).values(), strict=True):
        values[cells] += more


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
class GradeSums:
    """Sums by grade over some rows, which add up; a grade is a level, a number or None."""

    sums: Mapping[Any, Sums] = field(default_factory=dict)
    names: Mapping[Any, str] = field(default_factory=dict)
    levels: tuple[Any, ...] = ()
    codes: Mapping[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, column: Column, y: FloatArray, p: FloatArray, w: FloatArray) -> GradeSums:
        """Sum over some rows."""
        values, cell = np.unique(column.values, return_inverse=True)
        _refuse_more(values.size)
        every = Sums.of(cell, values.size, y, p, w)
        sums: dict[Any, Sums] = {}
        for k, value in enumerate(values):
            _add_grade(sums, _grade_key(column, value), every.at(np.array([k])))
        return cls(
            sums,
            {_grade_key(column, value): grade_name(column, value) for value in values},
            column.levels,
            dict(zip(column.levels, column.codes, strict=True)) if column.codes else {},
        )

    def __add__(self, other: GradeSums) -> GradeSums:
        both = dict(self.sums)
        for key, sums in other.sums.items():
            _add_grade(both, key, sums)
        _refuse_more(len(both))
        codes = {**self.codes, **other.codes}
        levels, every = max(self.levels, other.levels, key=len), {*self.levels, *other.levels}
        if len(every) > len(levels):  # each of some rows: they were sorted
            levels = tuple(sorted(every, key=lambda level: codes.get(level, level)))
        return GradeSums(both, {**self.names, **other.names}, levels, codes)

    def in_order(self) -> tuple[tuple[str, ...], Sums]:
        """Names and sums of grades with rows that count, in their order, missing values last."""
        position = {level: k for k, level in enumerate(self.levels)}
        keys = sorted(
            (key for key, sums in self.sums.items() if sums.occupied.size),
            key=lambda key: (key is None, 0 if key is None else position.get(key, key)),
        )
        parts = zip(*(vars(self.sums[key]).values() for key in keys), strict=True)
        return tuple(self.names[key] for key in keys), Sums(*map(np.concatenate, parts))


def _add_grade(sums: dict[Any, Sums], key: Any, more: Sums) -> None:
    sums[key] = sums[key] + more if key in sums else more


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
