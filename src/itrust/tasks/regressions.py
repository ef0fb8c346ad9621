"""Coefficients of regressions as tasks: a canonical GLM of the label on covariates.

The coefficients b solve sum of w z (s - mean(z'b)) = 0 with labels, or with probabilities in their
place. So a coefficient moves with labels by H^-1 z at every row, H being the derivative of the
equation: the bias of the plug-in is a task like any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, did_you_mean
from itrust.data import Level, Points, Predicate, Sample, position_of, quoted, written
from itrust.tasks.bounds import Bounds
from itrust.tasks.differentials import Linearised
from itrust.tasks.expressions import Leaf, Task, TaskRows
from itrust.tasks.fits import LeafFit
from itrust.tasks.links import NewtonStep, solved
from itrust.tasks.quantities import Covariate, Quantity
from itrust.tasks.refusals import (
    refuse_collinear,
    refuse_few,
    refuse_label_by_name,
    refuse_outcome,
    without_solution,
)
from itrust.tasks.terms import (
    Frame,
    LevelOf,
    Regression,
    RegressionColumn,
    RegressionTerm,
    column_values,
    columns_of,
    first_levels,
    levels_of,
    observed,
    scaled_frame,
)

FEW_EACH = 0.5  # labels that count as one: ten are few, so five a coefficient are


@dataclass(frozen=True, eq=False)
class CoefficientFit(LeafFit):
    """A coefficient as some rows have it."""

    frame: Frame
    beta: FloatArray
    direction: FloatArray
    value: float
    mass: float = 1.0

    @classmethod
    def at(
        cls, frame: Frame, beta: FloatArray, curve: FloatArray, position: int | None
    ) -> CoefficientFit:
        """Take one of the coefficients of a regression that has been solved."""
        contrast = frame.contrast(position)
        direction = np.asarray(np.linalg.solve(curve, contrast), dtype=float)
        return cls(frame, beta, direction, float(contrast @ beta))

    def read(
        self, points: Points, weights: FloatArray, first: int = 0
    ) -> tuple[IntArray, FloatArray]:
        """Give the rows that count, and a constant with their scaled columns."""
        inside = np.asarray(self.frame.regression.where.rows(points) & (weights > 0))
        rows = np.flatnonzero(inside)
        return rows, self.frame.design(points, rows, first)

    def shares(
        self, read: tuple[IntArray, FloatArray], weights: FloatArray, stand_in: FloatArray
    ) -> FloatArray:
        """Give w d'z (s - mean), 0 outside, (n,)."""
        rows, design = read
        found = np.zeros(weights.size)
        left = stand_in[rows] - self.frame.link.mean(design @ self.beta)
        found[rows] = weights[rows] * (design @ self.direction) * left
        return found

    def lean(self, read: tuple[IntArray, FloatArray], weights: FloatArray) -> FloatArray:
        """Give w d'z, 0 outside, (n,)."""
        rows, design = read
        found = np.zeros(weights.size)
        found[rows] = weights[rows] * (design @ self.direction)
        return found


@dataclass(frozen=True)
class Coefficient(Leaf):
    """A coefficient of a regression."""

    of: RegressionTerm | None
    regression: Regression
    label: Any = None
    among_positives = False

    def __post_init__(self) -> None:
        self._refuse_depth()
        keys = [term.key for term in self.regression.terms]
        if self.of is not None and self.of.key not in keys:
            raise InputError(
                "{value} is not a term of the regression on {regression}; {guess}",
                argument="of",
                value=str(self.of),
                details={
                    "regression": str(self.regression),
                    "guess": did_you_mean(
                        str(self.of), [str(term) for term in self.regression.terms]
                    ),
                },
            )

    @cached_property
    def depth(self) -> int:
        """One more than that of the regression."""
        return 1 + self.regression.depth

    @property
    def names(self) -> frozenset[str]:
        """Covariates of the regression."""
        return self.regression.names

    @property
    def where(self) -> Predicate:  # type: ignore[override]
        """The rows that count."""
        return self.regression.where

    @property
    def is_rate(self) -> bool:
        """It is none."""
        return False

    @property
    def labels_each(self) -> float:
        """Ten labels of the rarer kind are few, and so are five for each coefficient."""
        return FEW_EACH * (1 + len(self.regression.terms))

    def __str__(self) -> str:
        explained = "" if self.label is None else f"{written(self.label)} ~ "
        return f"coef({explained}{1 if self.of is None else self.of} ; {self.regression})"

    def with_label(self, label: Any) -> Coefficient:
        """The same with another class."""
        return replace(self, label=label)

    def predicates(self) -> Iterator[Predicate]:
        """Where rows count, and the levels that it names."""
        yield self.where
        for factor in () if self.of is None else self.of.factors:
            if isinstance(factor, LevelOf):
                yield factor.where
        for name, level in self.regression.references:
            yield Level(name, level)

    def terms_of(
        self,
        points: Points,
        weights: FloatArray,
        first: int = 0,  # noqa: ARG002
    ) -> tuple[FloatArray, FloatArray]:
        """Nothing, and 1 for the rows that count, (n,) each."""
        return np.zeros(len(points)), self.inside_of(points, weights).astype(float)

    def frame(self, rows: TaskRows) -> Frame:
        """The columns of the regression on some rows, checked."""
        return frame_of(self, rows)[0]

    def columns_on(self, points: Points) -> tuple[Quantity, ...]:
        """The columns of the regression on some rows, whether or not they suffice for it."""
        inside = self.inside_of(points, np.ones(len(points)))
        counts = levels_of(self.regression, points, inside)
        return tuple(column.quantity for column in columns_of(self.regression, points, counts))

    def levels_on(self, points: Points) -> tuple[Predicate, ...]:
        """All levels of its categories that occur among the rows that count."""
        counts = levels_of(self.regression, points, self.inside_of(points, np.ones(len(points))))
        return tuple(
            Level(name, observed(points, name).levels[k])
            for name, own in counts.items()
            for k in np.flatnonzero(own)
        )

    def position(self, columns: Sequence[RegressionColumn], points: Points) -> int | None:
        """Which of the columns it is of; None for the constant."""
        if self.of is None:
            return None
        return _position(self, columns, points)

    def fit(self, rows: TaskRows) -> CoefficientFit:
        """Solve the estimating equation on rows in memory."""
        frame, at, design = frame_of(self, rows)
        w, s = rows.weights[at], rows.stand_in[at]
        beta = solved(frame.link, design, w, design.T @ (w * s))
        if beta is None:
            raise without_solution(self, frame, frame.values(rows.points, at), s)
        curve = NewtonStep.at(frame.link, beta, design, w, s).curve
        return CoefficientFit.at(frame, beta, curve, self.position(frame.columns, rows.points))

    def linear(self, rows: TaskRows) -> Linearised:
        """Solve, and give the shares of the rows."""
        fit = self.fit(rows)
        read = fit.read(rows.points, rows.weights)
        return Linearised(fit.value, fit.shares(read, rows.weights, rows.stand_in))

    def leaning(self, rows: TaskRows) -> Linearised:
        """Solve, and give what the rows' stand-ins move."""
        fit = self.fit(rows)
        return Linearised(fit.value, fit.lean(fit.read(rows.points, rows.weights), rows.weights))

    def reestimated(self, rows: TaskRows, weights: FloatArray) -> FloatArray:
        """Solve with R other sets of weights, (n, R) -> (R,); NaN where one has no solution."""
        fit = self.fit(rows)
        at, design = fit.read(rows.points, rows.weights)
        contrast = fit.frame.contrast(self.position(fit.frame.columns, rows.points))
        found = np.full(weights.shape[1], math.nan)
        for r in range(weights.shape[1]):
            moment = design.T @ (weights[at, r] * rows.stand_in[at])
            beta = solved(fit.frame.link, design, weights[at, r], moment, fit.beta)
            if beta is not None:
                found[r] = float(contrast @ beta)
        return found

    def tilts(self, rows: TaskRows) -> tuple[Quantity, ...]:
        """The columns of the regression."""
        return tuple(column.quantity for column in self.frame(rows).columns)

    def own_bounds(self, *rows: TaskRows) -> Bounds:  # noqa: ARG002
        """Any number."""
        return Bounds(-math.inf, math.inf)

    def between(self, smallest: float, largest: float) -> Bounds:  # noqa: ARG002
        """Any number."""
        return Bounds(-math.inf, math.inf)

    def carrying(self, rows: TaskRows) -> FloatArray:
        """How far each row's label moves it, (n,)."""
        return np.abs(self.leaning(rows).influence)

    def takes(self, rows: TaskRows) -> bool:
        """Whether the equation has a solution with these stand-ins."""
        frame, at, design = frame_of(self, rows)
        w = rows.weights[at]
        return solved(frame.link, design, w, design.T @ (w * rows.stand_in[at])) is not None

    def held(self, rows: TaskRows, labelled: TaskRows) -> float:  # noqa: ARG002
        """Nothing is divided by, so nothing is held back."""
        return 1.0

    def check(self, sample: Sample) -> None:
        """Refuse predictions and labels as covariates, and too few rows or labels."""
        refuse_label_by_name(self.regression, sample)
        rows = TaskRows.labelled(sample)
        frame, at, _ = frame_of(self, rows)
        values = frame.values(sample.points, at)
        for k, column in enumerate(frame.columns):
            refuse_outcome(column, values[:, k], sample.y[at], sample.p[at])
        ones = int(sample.y[at].sum())
        refuse_few(self, len(frame.columns), ones, at.size - ones)


def frame_of(coefficient: Coefficient, rows: TaskRows) -> tuple[Frame, IntArray, FloatArray]:
    """The columns of a regression on rows in memory, the rows that count, and the design."""
    coefficient._refuse_label()
    regression = coefficient.regression
    regression.where.check(rows.points)
    inside = coefficient.inside_of(rows.points, rows.weights)
    columns = columns_of(regression, rows.points, levels_of(regression, rows.points, inside))
    coefficient.position(columns, rows.points)
    at = np.flatnonzero(inside)
    if not at.size:
        raise coefficient.without_rows()
    values = column_values(regression, columns, rows.points, at)
    frame = scaled_frame(regression, columns, values)
    design = frame.design(rows.points, at)
    refuse_collinear(frame, (design * rows.weights[at][:, None]).T @ design)
    return frame, at, design


def _position(coefficient: Coefficient, columns: Sequence[RegressionColumn], points: Points) -> int:
    """Which of the columns a coefficient is of; a level that has none is refused."""
    term = coefficient.of
    assert term is not None
    wanted: list[Quantity] = []
    for factor in term.factors:
        if isinstance(factor, LevelOf):
            column = observed(points, factor.name)
            if not column.is_category:
                raise InputError(
                    "{column} is a {kind} and has no levels: write coef({name} ; ...)",
                    column=factor.name,
                    details={"kind": column.kind, "name": quoted(factor.name)},
                )
            place = position_of(column, factor.level)
            if place is None:
                raise InputError(
                    "{column} has no level {value}",
                    column=factor.name,
                    value=factor.level,
                    hint=did_you_mean(str(factor.level), [str(one) for one in column.levels]),
                )
            wanted.append(LevelOf(factor.name, column.levels[place]))
        elif isinstance(factor, Covariate) and observed(points, factor.name).is_category:
            example = str(LevelOf(factor.name, observed(points, factor.name).levels[-1]))
            raise InputError(
                "{column} is a category: say which level's coefficient is meant, as in {example}",
                column=factor.name,
                details={"example": f"coef({example} ; ...)"},
            )
        else:
            wanted.append(factor)
    key = frozenset(wanted)
    for k, own in enumerate(columns):
        if own.key == key:
            return k
    levels = [factor for factor in wanted if isinstance(factor, LevelOf)]
    raise InputError(
        "{level} has no coefficient of its own: it is the reference that other levels are compared "
        "with, or no row that counts has it; choose another reference, as in "
        "coef({level} ; {name} against ...)",
        argument="tasks",
        value=str(term),
        details={
            "level": str(levels[0]) if levels else str(term),
            "name": quoted(levels[0].name) if levels else str(term),
        },
    )


def has_regression(task: Task) -> bool:
    """Whether a task is made of coefficients, among others."""
    return any(isinstance(leaf, Coefficient) for leaf in task.leaves())


def refuse_other_levels(task: Task, here: TaskRows, there: TaskRows) -> None:
    """Refuse a population whose categories have other levels than those of the labelled rows."""
    for leaf in dict.fromkeys(task.leaves()):
        if not isinstance(leaf, Coefficient):
            continue
        leaf.where.check(there.points)
        own, others = (
            {str(column): column for column in _all_columns(leaf, rows)} for rows in (here, there)
        )
        for extra, lacking, who in (
            (others, own, "no labelled row that counts is"),
            (own, others, "no row of the population that counts is"),
        ):
            for name in extra:
                if name not in lacking:
                    raise InputError(
                        "{task} has a coefficient of {column}, and {who} there: leave the level "
                        "out with a condition, or join levels",
                        argument="population",
                        value=name,
                        details={"task": leaf, "column": name, "who": who},
                    )


def _all_columns(leaf: Coefficient, rows: TaskRows) -> list[Quantity]:
    """The columns of a regression with those of reference levels."""
    inside = leaf.inside_of(rows.points, rows.weights)
    counts = levels_of(leaf.regression, rows.points, inside)
    levels = [
        LevelOf(name, observed(rows.points, name).levels[k])
        for name, own in counts.items()
        for k in np.flatnonzero(own)
    ]
    columns = columns_of(leaf.regression, rows.points, counts)
    return [*levels, *(column.quantity for column in columns)]


def references_of(task: Task, sample: Sample) -> dict[str, Any]:
    """The levels that categories of a task are compared with, where none was chosen."""
    found: dict[str, Any] = {}
    for leaf in task.leaves():
        if isinstance(leaf, Coefficient):
            inside = leaf.inside_of(sample.points, sample.weights_or_ones)
            counts = levels_of(leaf.regression, sample.points, inside)
            found |= first_levels(leaf.regression, sample.points, counts)
    return found
