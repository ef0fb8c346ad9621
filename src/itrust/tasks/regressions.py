"""Coefficients of regressions as tasks: a canonical GLM of the label on covariates.

The coefficients b solve sum of w z (s - mean(z'b)) = 0 with labels, or with probabilities in their
place: a concave problem, with one solution or none. So a coefficient moves with labels by H^-1 z at
every row, H being the derivative of the equation: the bias of the plug-in is a task like any other.
Regressions that rows cannot give are refused in a sentence that says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, did_you_mean, listed
from itrust.data import Level, Points, Predicate, Rows, Sample, code_of, quoted, written
from itrust.tasks.arithmetic import Covariate, Quantity
from itrust.tasks.expressions import Leaf, Task, TaskRows
from itrust.tasks.terms import (
    IS_PREDICTION,
    NO_PREDICTION,
    TELLS_PREDICTION,
    Frame,
    LevelOf,
    Regression,
    RegressionTerm,
    column_values,
    columns_of,
    first_levels,
    levels_of,
    observed,
    scaled_frame,
)
from itrust.terms import Link, RegressionRows, RegressionSums, fit_glm, is_flat

NAMED = 10  # rows that a level has at least, if an error names it and tells of its labels
SETTLED = 1e-9  # a step so short, in standard deviations of the columns, is the last one
FEW_EACH = 0.5  # labels that count as one: ten are few, so five a coefficient are
MIN_ROWS, MIN_LABELS = 5, 2  # for every coefficient: rows, and labels of the rarer kind
ALIKE = 1e-9  # share of a column's variance that the columns before it leave, or it is one of them
# A column with this rank correlation with the prediction tells it, if it has so many values.
SAME_ORDER, MANY_VALUES, NEARLY_ALL = 0.999, 100, 0.9
TELLS = 1e-4  # a column so much in another one, in standard deviations, is named


@dataclass(frozen=True, eq=False)
class CoefficientFit:
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

    def shares(self, points: Points, weights: FloatArray, stand_in: FloatArray) -> FloatArray:
        """Give w d'z (s - mean), 0 outside, (n,)."""
        rows, design = self.frame.rows_of(points, weights)
        found = np.zeros(weights.size)
        left = stand_in[rows] - self.frame.link.mean(design @ self.beta)
        found[rows] = weights[rows] * (design @ self.direction) * left
        return found

    def lean(self, points: Points, weights: FloatArray, first: int = 0) -> FloatArray:
        """Give w d'z, 0 outside, (n,)."""
        rows, design = self.frame.rows_of(points, weights, first)
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
            problem = "{value} is not a term of the regression on {regression}; {guess}"
            raise InputError(
                problem,
                argument="of",
                value=str(self.of),
                regression=str(self.regression),
                guess=did_you_mean(str(self.of), [str(term) for term in self.regression.terms]),
            )

    @property
    def parts(self) -> tuple[Any, ...]:
        """The regression."""
        return (self.regression,)

    @property
    def where(self) -> Predicate:  # type: ignore[override]
        """The rows that count."""
        return self.regression.where

    @property
    def labels_each(self) -> float:
        """Ten labels of the rarer kind are few, and so are five for each coefficient."""
        return FEW_EACH * (1 + len(self.regression.terms))

    def __str__(self) -> str:
        explained = "" if self.label is None else f"{written(self.label)} ~ "
        return f"coef({explained}{1 if self.of is None else self.of} ; {self.regression})"

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

    def counts(self, points: Points, weights: FloatArray | None = None) -> dict[str, IntArray]:
        """How many of the rows that count have each level of its categories."""
        w = np.ones(len(points)) if weights is None else weights
        return levels_of(self.regression, points, self.inside_of(points, w))

    def columns_on(self, points: Points, weights: FloatArray) -> tuple[RegressionTerm, ...]:
        """The columns of the regression on some rows, whether or not they suffice for it."""
        return columns_of(self.regression, points, self.counts(points, weights))

    def levels_on(self, points: Points, weights: FloatArray | None = None) -> tuple[LevelOf, ...]:
        """All levels of its categories that occur among the rows that count."""
        return tuple(
            LevelOf(name, observed(points, name).levels[k])
            for name, own in self.counts(points, weights).items()
            for k in np.flatnonzero(own)
        )

    def parts_on(self, points: Points) -> Sequence[Predicate]:
        """These levels as conditions."""
        return [level.where for level in self.levels_on(points)]

    def position(self, columns: Sequence[RegressionTerm], points: Points) -> int | None:
        """Which of the columns it is of; None for the constant. Levels without one are refused."""
        if self.of is None:
            return None
        key = frozenset(_observed_factor(factor, points) for factor in self.of.factors)
        for k, own in enumerate(columns):
            if frozenset(own.factors) == key:
                return k
        level = next((factor for factor in key if isinstance(factor, LevelOf)), None)
        problem = (
            "{level} has no coefficient of its own: it is the reference that other levels are "
            "compared with, or no row that counts has it; choose another reference, as in "
            "coef({level} ; {name} against ...)"
        )
        name = str(self.of) if level is None else quoted(level.name)
        told = {"level": level or self.of, "name": name}
        raise InputError(problem, argument="tasks", value=str(self.of), details=told)

    def fit(self, rows: TaskRows) -> CoefficientFit:
        """Solve the estimating equation on rows in memory."""
        frame, at, design = frame_of(self, rows)
        w, s = rows.weights[at], rows.of(self)[at]
        fit = fitted_to(self, frame, rows.points, (design, w, design.T @ (w * s)))
        if fit is None:
            raise without_solution(self, frame, frame.values(rows.points, at), s)
        return fit

    def reestimated(self, rows: TaskRows, weights: FloatArray) -> FloatArray:
        """Solve with R other sets of weights, (n, R) -> (R,); NaN where one has no solution."""
        fit = self.fit(rows)
        at, design = fit.frame.rows_of(rows.points, rows.weights)
        contrast = fit.frame.contrast(self.position(fit.frame.columns, rows.points))
        found = np.full(weights.shape[1], math.nan)
        for r in range(weights.shape[1]):
            moment = design.T @ (weights[at, r] * rows.of(self)[at])
            solution = solved(fit.frame.link, design, weights[at, r], moment, fit.beta)
            if solution is not None:
                found[r] = float(contrast @ solution[0])
        return found

    def tilts(self, rows: TaskRows | None) -> tuple[Quantity, ...]:
        """The columns of the regression."""
        assert rows is not None
        return tuple(column.quantity for column in frame_of(self, rows)[0].columns)

    def carrying(self, rows: TaskRows) -> FloatArray:
        """How far each row's label moves it, (n,)."""
        return np.abs(self.fit(rows).lean(rows.points, rows.weights))

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
    regression = coefficient.regression
    regression.where.check(rows.points)
    columns = coefficient.columns_on(rows.points, rows.weights)
    coefficient.position(columns, rows.points)
    at = np.flatnonzero(coefficient.inside_of(rows.points, rows.weights))
    if not at.size:
        raise coefficient.without_rows()
    values = column_values(regression, columns, rows.points, at)
    frame = scaled_frame(regression, columns, values)
    design = frame.design(rows.points, at)
    refuse_collinear(frame, (design * rows.weights[at][:, None]).T @ design)
    return frame, at, design


def _observed_factor(factor: Quantity, points: Points) -> Quantity:
    """What a coefficient is of, with the level as the column has it; refused where it has none."""
    if isinstance(factor, LevelOf):
        column = observed(points, factor.name)
        if not column.is_category:
            problem = "{column} is a {kind} and has no levels: write coef({name} ; ...)"
            name = quoted(factor.name)
            raise InputError(problem, column=factor.name, kind=column.kind, name=name)
        return LevelOf(factor.name, column.levels[int(code_of(column, factor.level))])
    if isinstance(factor, Covariate) and observed(points, factor.name).is_category:
        example = LevelOf(factor.name, observed(points, factor.name).levels[-1])
        problem = "{column} is a category: say which level's coefficient is meant, as in {example}"
        raise InputError(problem, column=factor.name, example=f"coef({example} ; ...)")
    return factor


def has_regression(task: Task) -> bool:
    """Whether a task is made of coefficients, among others."""
    return any(isinstance(leaf, Coefficient) for leaf in task.leaves())


def refuse_other_levels(task: Task, here: TaskRows, there: TaskRows) -> None:
    """Refuse a population whose categories have other levels than those of the labelled rows."""
    problem = (
        "{task} has a coefficient of {column}, and {who} there: leave the level out with a "
        "condition, or join levels"
    )
    for leaf in dict.fromkeys(task.leaves()):
        if not isinstance(leaf, Coefficient):
            continue
        leaf.where.check(there.points)
        own, others = (
            [
                *map(str, leaf.levels_on(rows.points, rows.weights)),
                *map(str, leaf.columns_on(rows.points, rows.weights)),
            ]
            for rows in (here, there)
        )
        for name in [*others, *own]:
            if name not in own or name not in others:
                rows = "labelled row" if name in others else "row of the population"
                told = {"task": leaf, "column": name, "who": f"no {rows} that counts is"}
                raise InputError(problem, argument="population", value=name, details=told)


def references_of(task: Task, sample: Rows) -> dict[str, Any]:
    """The levels that categories of a task are compared with, where none was chosen."""
    found: dict[str, Any] = {}
    for leaf in task.leaves():
        if isinstance(leaf, Coefficient):
            counts = leaf.counts(sample.points, sample.weights_or_ones)
            found |= first_levels(leaf.regression, sample.points, counts)
    return found


def solved(
    link: Link,
    design: FloatArray,
    w: FloatArray,
    moment: FloatArray,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray] | None:
    """Solve sum of w z mean(z'b) = moment; gives b and the derivative, None without a solution.

    Labels, or what stands for them, count by the sum of w z s only: that is the moment.
    """
    mass = float(w.sum())
    if not mass > 0:
        return None
    w, moment = w / mass, moment / mass
    if start is None:
        start = np.zeros(design.shape[1])
        start[0] = link.start(float(moment[0]))
    rows = RegressionRows(design, np.zeros(w.size), w)
    beta, is_settled = fit_glm(
        link, lambda: (rows,), np.zeros(start.size), start, done=SETTLED**2, moment=moment
    )
    curve = curve_at(link, beta, design, w)
    flat = not is_settled or is_flat(curve, (design * w[:, None]).T @ design)
    return None if flat else (beta, mass * curve)


def fitted_to(
    leaf: Coefficient,
    frame: Frame,
    points: Points,
    equation: tuple[FloatArray, FloatArray, FloatArray],
    weights: FloatArray | None = None,
) -> CoefficientFit | None:
    """Solve for a design, weights and a moment; None where there is no solution.

    The derivative of the equation is taken with other weights, if there are such.
    """
    solution = solved(frame.link, *equation)
    if solution is None:
        return None
    beta, curve = solution
    if weights is not None:
        curve = curve_at(frame.link, beta, equation[0], weights)
    return CoefficientFit.at(frame, beta, curve, leaf.position(frame.columns, points))


def curve_at(link: Link, beta: FloatArray, design: FloatArray, w: FloatArray) -> FloatArray:
    """The derivative of the equation, (k, k)."""
    return RegressionSums.at(link, beta, RegressionRows(design, np.zeros(w.size), w)).curve


def refuse_collinear(frame: Frame, gram: FloatArray) -> None:
    """Refuse columns that are constant, or told by those before them."""
    mass = gram[0, 0]
    mean = gram[0, 1:] / mass
    covariance = gram[1:, 1:] / mass - np.outer(mean, mean)
    left = covariance.copy()
    for k, column in enumerate(frame.columns):
        before = covariance[k, k]
        size = before + mean[k] ** 2  # in squared units of the scale
        if not before > ALIKE * max(size, 1.0):
            problem = (
                "{column} is the same in all rows that the regression on {regression} counts, so "
                "it has no coefficient; leave it out"
            )
            raise InputError(
                problem,
                argument="tasks",
                value=str(column),
                regression=str(frame.regression),
                details={"column": str(column)},
            )
        if not left[k, k] > ALIKE * before:
            raise _told_by_others(frame, covariance, k)
        row = left[k] / left[k, k]
        left = left - np.outer(left[:, k], row)


def _told_by_others(frame: Frame, covariance: FloatArray, k: int) -> InputError:
    share = np.linalg.lstsq(covariance[:k, :k], covariance[:k, k], rcond=1e-9)[0]
    size = np.sqrt(np.diag(covariance)[:k] / covariance[k, k])
    told = [str(frame.columns[j]) for j in np.flatnonzero(np.abs(share) * size > TELLS)]
    problem = (
        "in the regression on {regression}, {column} is told by {others} (collinear): leave one "
        "of them out"
    )
    return InputError(
        problem,
        argument="tasks",
        value=str(frame.columns[k]),
        regression=str(frame.regression),
        others=listed(told) if told else "the columns before it",
        details={"column": str(frame.columns[k])},
    )


def refuse_label_by_name(regression: Regression, sample: Rows) -> None:
    """Refuse the label itself among the covariates, where it is not one of the columns."""
    known = {column.name for column in sample.columns}
    for name in sorted(regression.names - known):
        if name == sample.label:
            problem = (
                "{value} is the label that the regression explains, so it cannot stand on its "
                "right side"
            )
            raise InputError(problem, argument="tasks", value=name)


def refuse_outcome(
    column: RegressionTerm, values: FloatArray, y: FloatArray, p: FloatArray
) -> None:
    """Refuse a column that is the label, or tells the prediction, under another name.

    A column tells the prediction if it orders the rows as that does, in either direction, and has
    many values: percents, logits and rounded probabilities do. A covariate that the model leans on
    does not, as long as the model reads others beside it.
    """
    if np.array_equal(values, y) or np.array_equal(values, 1 - y):
        problem = (
            "{value} equals the label in every row that counts: a label cannot stand on the right "
            "side of its own regression"
        )
        raise InputError(problem, argument="tasks", value=str(column))
    is_same = any(np.allclose(values, same, rtol=1e-12, atol=0) for same in (p, 1 - p))
    if np.ptp(p) > 0 and (is_same or _tells(values, p)):
        told = IS_PREDICTION if is_same else TELLS_PREDICTION
        raise InputError(
            NO_PREDICTION,
            argument="tasks",
            value=str(column),
            name=str(column),
            is_told=told,
            rows=f"{values.size:,}",
        )


def _tells(values: FloatArray, p: FloatArray) -> bool:
    """Whether values have the order of p, and are more than, say, years would be."""
    if np.unique(values).size <= min(MANY_VALUES, NEARLY_ALL * values.size):
        return False
    return abs(float(np.corrcoef(_ranks(values), _ranks(p))[0, 1])) > SAME_ORDER


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks, the mean of them where values are equal, (n,)."""
    _, place, often = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(often)
    return np.asarray((last - (often - 1) / 2)[place])


def refuse_few(coefficient: Task, columns: int, ones: int, zeros: int) -> None:
    """Refuse a regression with fewer rows or labels than its coefficients need."""
    number, rarest = 1 + columns, min(ones, zeros)
    rare = "positives" if ones <= zeros else "rows that are not positive"
    for count, kind, each in ((ones + zeros, "rows", MIN_ROWS), (rarest, rare, MIN_LABELS)):
        if count < each * number:
            problem = (
                "{task} has {number} coefficients and {rows} {rare}: it needs at least {least}"
            )
            told = {"task": coefficient, "number": number, "rows": count, "rare": kind}
            told["least"] = each * number
            raise InputError(problem, argument="tasks", count=count, details=told)


def without_solution(
    coefficient: Task, frame: Frame, values: FloatArray, s: FloatArray
) -> InputError:
    """Make the error about a regression without finite coefficients, and say why."""
    is_labels = bool(np.isin(s, (0.0, 1.0)).all())
    what = "labels" if is_labels else "probabilities"
    if frame.link.name == "log":
        for k, column in enumerate(frame.columns):
            own = values[:, k] != 0
            if 0 < own.sum() < own.size and not s[own].any():
                named = f"with {column}" if own.sum() >= NAMED else "of a level that few rows have"
                why = f"no row {named} is positive, so the log of its mean is none"
                return _no_solution(coefficient, why)
        return _no_solution(
            coefficient, f"no finite coefficients make the means of these {what}; take another link"
        )
    for k, column in enumerate(frame.columns):
        own = values[:, k] != 0
        few = np.unique(values[:, k]).size
        if few == 2 and 0 < own.sum() < own.size:
            for part, said in ((own, f"with {column}"), (~own, f"without {column}")):
                if np.ptp(s[part]) == 0 and s[part][0] in (0.0, 1.0):
                    if part.sum() < NAMED:  # whose labels the sentence would tell
                        why = "a level that few rows have tells them, so a coefficient is infinite"
                        return _no_solution(coefficient, why)
                    every = "all" if s[part][0] else "none"
                    return _no_solution(
                        coefficient,
                        f"of the rows {said}, {every} are positive, so its coefficient is infinite",
                    )
    return _no_solution(
        coefficient,
        f"the covariates tell the {what} apart without an exception, so coefficients are infinite",
    )


def _no_solution(coefficient: Task, why: str) -> InputError:
    problem = "{task} has no estimate: {why}; leave such a covariate out, or join levels"
    return InputError(problem, argument="tasks", value=coefficient, task=coefficient, why=why)
