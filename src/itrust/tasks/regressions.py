"""Coefficients of regressions as tasks: a canonical GLM of the label on covariates.

The coefficients b solve sum of w z (s - mean(z'b)) = 0 with labels, or with probabilities in their
place. So a coefficient moves with labels by H^-1 z at every row, H being the derivative of the
equation: the bias of the plug-in is a task like any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    checked_choice,
    counted,
    did_you_mean,
    listed,
)
from itrust.data import (
    Level,
    Points,
    Predicate,
    Sample,
    column_of,
    position_of,
    quoted,
    written,
)
from itrust.tasks.bounds import Bounds
from itrust.tasks.differentials import Linearised
from itrust.tasks.expressions import LARGEST_VALUE, Leaf, Task, TaskRows
from itrust.tasks.fits import Fit
from itrust.tasks.links import LINKS, Link, NewtonStep, solved
from itrust.tasks.nodes import Node
from itrust.tasks.quantities import Covariate, Formula, Indicator, Quantity, needs_parentheses

MAX_COLUMNS = 200  # of a regression, levels counted
MAX_FACTORS = 2
MIN_ROWS, MIN_LABELS = 5, 2  # for every coefficient: rows, and labels of the rarer kind
FEW_EACH = 0.5  # labels that count as one: ten are few, so five a coefficient are
ALIKE = 1e-9  # share of a column's variance that the columns before it leave, or it is one of them
TELLS = 1e-4  # a column so much in another one, in standard deviations, is named
PREDICTIONS = ("prediction", "p (the model's)")
NO_PREDICTION = (
    "{name} is the model's prediction, and a prediction on the right side of a regression carries "
    "the model's error into its coefficients, where labels of {rows} rows cannot mend it; "
    "take covariates that were observed"
)


@dataclass(frozen=True)
class LevelOf(Quantity):
    """1 for rows with one level of a category, 0 for others.

    Parameters
    ----------
    name : str
        The category.
    level : object
        One of its levels.
    """

    name: str
    level: Any

    def __str__(self) -> str:
        return f"{quoted(self.name)}[{written(self.level)}]"

    @property
    def names(self) -> frozenset[str]:
        """The category."""
        return frozenset([self.name])

    @property
    def where(self) -> Predicate:
        """The rows with that level."""
        return Level(self.name, self.level)

    def of(self, points: Points) -> FloatArray:
        """Mark the rows of the level by 1, (n,)."""
        return Indicator(self.where).of(points)


@dataclass(frozen=True)
class Term(Node):
    """What a regression has coefficients of: a quantity, a category, or two of these multiplied.

    Parameters
    ----------
    factors : tuple of Quantity
        One, or two for an interaction. A `Covariate` that is a category stands for all its
        levels but one.
    """

    factors: tuple[Quantity, ...]

    def __post_init__(self) -> None:
        self._refuse_depth()
        if not 1 <= len(self.factors) <= MAX_FACTORS:
            raise InputError(
                "an interaction is of two covariates, as in age:race, not of {count}",
                argument="on",
                count=len(self.factors),
            )
        for factor in self.factors:
            if not factor.names:
                raise InputError(
                    "a term of a regression reads a covariate, and {value} reads none; the "
                    "constant is always there",
                    argument="on",
                    value=str(factor),
                )

    @property
    def parts(self) -> tuple[Node, ...]:
        """The factors."""
        return self.factors

    def __str__(self) -> str:
        return ":".join(_in_term(factor) for factor in self.factors)

    @property
    def key(self) -> frozenset[Quantity]:
        """The factors in no order, with categories in place of their levels."""
        return frozenset(
            Covariate(factor.name) if isinstance(factor, LevelOf) else factor
            for factor in self.factors
        )

    @property
    def categories(self) -> Iterator[str]:
        """Covariates that stand alone, and so may be categories."""
        return (factor.name for factor in self.factors if isinstance(factor, Covariate))


def _in_term(factor: Quantity) -> str:
    """A factor, in parentheses where it is a sum."""
    return f"({factor})" if needs_parentheses("*", factor, second=False) else str(factor)


@dataclass(frozen=True)
class Regression(Node):
    """A canonical GLM of the label on terms, with a constant, among some rows.

    Parameters
    ----------
    terms : tuple of Term
        What stands on the right side.
    link : {"logit", "identity", "log"}
        Log odds, means, or logs of means are sums of the terms.
    where : Predicate
        Rows that count.
    references : tuple of pairs of str and object
        Categories, each with the level that its others are compared with. Others take their
        first level among the rows that count.
    """

    terms: tuple[Term, ...]
    link: str
    where: Predicate
    references: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        checked_choice(self.link, "link", tuple(LINKS))
        if not self.terms:
            raise InputError(
                "a regression needs a covariate, as in coef(age ; age + income)", argument="on"
            )
        seen: set[frozenset[Quantity]] = set()
        for term in self.terms:
            if term.key in seen or len(term.key) < len(term.factors):
                raise InputError(
                    "{value} stands twice in one regression", argument="on", value=str(term)
                )
            if any(isinstance(factor, LevelOf) for factor in term.factors):
                raise InputError(
                    "{value} is one level: a regression takes the whole category, and coef names "
                    "the level, as in coef(race[\"b\"] ; age + race)",
                    argument="on",
                    value=str(term),
                )
            seen.add(term.key)
        known = {name for term in self.terms for name in term.categories}
        for name, _ in self.references:
            if name not in known:
                raise InputError(
                    "{value} has a reference level but is no term of the regression",
                    argument="reference",
                    value=name,
                )

    @cached_property
    def depth(self) -> int:
        """One more than that of the terms, or of the predicate."""
        return 1 + max([*(term.depth for term in self.terms), self.where.depth])

    @property
    def names(self) -> frozenset[str]:
        """Covariates of the terms and of the predicate."""
        return frozenset[str]().union(*(term.names for term in self.terms)) | self.where.names

    def __str__(self) -> str:
        left = dict(self.references)

        def told(factor: Quantity) -> str:
            text = _in_term(factor)
            if isinstance(factor, Covariate) and factor.name in left:
                text += f" against {written(left.pop(factor.name))}"
            return text

        terms = " + ".join(":".join(told(one) for one in term.factors) for term in self.terms)
        link = "" if self.link == "logit" else f" ; {self.link}"
        given = self.where.formula
        return f"{terms}{link}{' | ' if given else ''}{given}"

    def reference_of(self, name: str) -> Any | None:
        """The level that a category's others are compared with; None where none was chosen."""
        return dict(self.references).get(name)


@dataclass(frozen=True)
class Column:
    """A column of a regression: factors that are multiplied.

    Parameters
    ----------
    factors : tuple of Quantity
        Numbers, and levels in place of categories.
    """

    factors: tuple[Quantity, ...]

    def __str__(self) -> str:
        return ":".join(_in_term(factor) for factor in self.factors)

    @property
    def quantity(self) -> Quantity:
        """The product."""
        if len(self.factors) == 1:
            return self.factors[0]
        return Formula(self.factors[0], "*", self.factors[1])

    @property
    def key(self) -> frozenset[Quantity]:
        """The factors in no order."""
        return frozenset(self.factors)


def levels_of(regression: Regression, points: Points, inside: BoolArray) -> dict[str, IntArray]:
    """Count the rows that count for every level of the categories of a regression.

    Parameters
    ----------
    regression : Regression
        What is asked.
    points : Points
        The rows.
    inside : (n,) array of bool
        Those that count.

    Returns
    -------
    dict of str to (levels,) array
        By category; a number is none.
    """
    found = {}
    for name in dict.fromkeys(name for term in regression.terms for name in term.categories):
        column = observed(points, name)
        if column.is_category:
            codes = column.values[inside]
            found[name] = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    return found


def observed(points: Points, name: str) -> Any:
    """A covariate by name; the prediction is refused with the reason."""
    if name in PREDICTIONS and name not in {column.name for column in points.columns}:
        raise InputError(
            NO_PREDICTION,
            argument="tasks",
            value=name,
            details={"name": name, "rows": f"{len(points):,}"},
        )
    return column_of(points, name, prediction=False)


def columns_of(
    regression: Regression, points: Points, counts: Mapping[str, IntArray]
) -> tuple[Column, ...]:
    """Turn the terms of a regression into columns.

    Parameters
    ----------
    regression : Regression
        What is asked.
    points : Points
        Rows with the columns of the data, for their kinds and levels.
    counts : mapping of str to (levels,) array
        From `levels_of`, of all rows.

    Returns
    -------
    tuple of Column
        Without the constant; a category has one for each level that occurs, but for its
        reference.
    """
    coded: dict[str, list[Quantity]] = {}
    for name in dict.fromkeys(name for term in regression.terms for name in term.categories):
        column = observed(points, name)
        chosen = regression.reference_of(name)
        if not column.is_category:
            if chosen is not None:
                raise InputError(
                    "{column} is a {kind} and has no reference level",
                    column=name,
                    hint="categories=[...] makes codes a category",
                    details={"kind": column.kind},
                )
            coded[name] = [Covariate(name)]
            continue
        own = [k for k, count in enumerate(counts[name]) if count]
        first = _reference(column, chosen, own)
        coded[name] = [LevelOf(name, column.levels[k]) for k in own if k != first]
    found = []
    for term in regression.terms:
        sides = [
            coded[factor.name] if isinstance(factor, Covariate) else [factor]
            for factor in term.factors
        ]
        if len(sides) == 1:
            found += [Column((one,)) for one in sides[0]]
        else:
            found += [Column((one, other)) for one in sides[0] for other in sides[1]]
    if len(found) > MAX_COLUMNS:
        raise InputError(
            "a regression has at most {most} coefficients, and this one would have {count}: leave "
            "out categories of many levels, or join levels",
            argument="tasks",
            count=len(found),
            details={"most": MAX_COLUMNS},
        )
    return tuple(found)


def _reference(column: Any, chosen: Any | None, own: Sequence[int]) -> int | None:
    """The position of the level that the others of a category are compared with."""
    if chosen is None:
        return own[0] if own else None
    position = position_of(column, chosen)
    if position is None:
        raise InputError(
            "{column} has no level {value}",
            column=column.name,
            value=chosen,
            hint=did_you_mean(str(chosen), [str(level) for level in column.levels]),
        )
    if position not in own:
        raise InputError(
            "no row that counts has {column} = {value}, the reference level; choose another one",
            column=column.name,
            value=chosen,
        )
    return position


@dataclass(frozen=True, eq=False)
class Frame:
    """The columns of a regression, moved and scaled so that Newton's steps lose no digits.

    Attributes
    ----------
    regression : Regression
        What they belong to.
    columns : tuple of Column
        Without the constant.
    centre, scale : (k,) arrays
        What is subtracted from each, and what it is divided by.
    """

    regression: Regression
    columns: tuple[Column, ...]
    centre: FloatArray
    scale: FloatArray

    @property
    def link(self) -> Link:
        """How linear predictors give means."""
        return LINKS[self.regression.link]

    def values(self, points: Points, rows: IntArray, first: int = 0) -> FloatArray:
        """The columns as they are, (m, k), for some of the rows; all have to be finite."""
        return column_values(self.regression, self.columns, points, rows, first)

    def design(self, points: Points, rows: IntArray, first: int = 0) -> FloatArray:
        """A constant and the scaled columns of some of the rows, (m, 1 + k)."""
        scaled = (self.values(points, rows, first) - self.centre) / self.scale
        return np.concatenate([np.ones((rows.size, 1)), scaled], axis=1)

    def rows_of(self, points: Points, weights: FloatArray) -> tuple[IntArray, FloatArray]:
        """The rows that count, and their design."""
        rows = np.flatnonzero(self.regression.where.rows(points) & (weights > 0))
        return rows, self.design(points, rows)

    def contrast(self, position: int | None) -> FloatArray:
        """What a coefficient is of the scaled ones, (1 + k,); None is the constant."""
        found = np.zeros(1 + len(self.columns))
        if position is None:
            found[0], found[1:] = 1.0, -self.centre / self.scale
        else:
            found[1 + position] = 1 / self.scale[position]
        return found


def column_values(
    regression: Regression,
    columns: Sequence[Column],
    points: Points,
    rows: IntArray,
    first: int = 0,
) -> FloatArray:
    """The columns of a regression, (m, k), for some of the rows; what is not finite is refused."""
    some = points if rows.size == len(points) else points.take(rows)
    found = np.empty((rows.size, len(columns)))
    for k, column in enumerate(columns):
        found[:, k] = column.quantity.of(some)
        wrong = ~(np.abs(found[:, k]) <= LARGEST_VALUE)
        if wrong.any():
            raise _odd_values(regression, column, found[:, k], wrong, rows, first)
    return found


def _odd_values(
    regression: Regression,
    column: Column,
    values: FloatArray,
    wrong: BoolArray,
    rows: IntArray,
    first: int,
) -> InputError:
    row = first + int(rows[int(np.argmax(wrong))])
    told = {"column": str(column), "regression": str(regression)}
    if not np.isfinite(values[wrong]).all():
        name = quoted(min(column.quantity.names))
        return InputError(
            "{column} has no finite value in {rows} (first: {row}) that the regression on "
            "{regression} counts; leave them out with a condition, as in "
            "coef(... | {name} is not missing)",
            argument="tasks",
            row=row,
            count=int(wrong.sum()),
            details={**told, "rows": counted(int(wrong.sum()), "row"), "name": name},
        )
    return InputError(
        "{column} is {size} in {row}, too large for the regression on {regression}; take a larger "
        "unit",
        argument="tasks",
        row=row,
        count=int(wrong.sum()),
        details={**told, "size": f"{values[int(np.argmax(wrong))]:.3g}"},
    )


def refuse_collinear(frame: Frame, gram: FloatArray) -> None:
    """Refuse columns that are constant, or told by those before them.

    Parameters
    ----------
    frame : Frame
        The columns.
    gram : (1 + k, 1 + k) array
        Sums of w z z' of the constant and the scaled columns.
    """
    mass = gram[0, 0]
    mean = gram[0, 1:] / mass
    covariance = gram[1:, 1:] / mass - np.outer(mean, mean)
    left = covariance.copy()
    for k, column in enumerate(frame.columns):
        before = covariance[k, k]
        size = before + mean[k] ** 2  # in squared units of the scale
        if not before > ALIKE * max(size, 1.0):
            raise InputError(
                "{column} is the same in all rows that the regression on {regression} counts, so "
                "it has no coefficient; leave it out",
                argument="tasks",
                value=str(column),
                details={"column": str(column), "regression": str(frame.regression)},
            )
        if not left[k, k] > ALIKE * before:
            raise _told_by_others(frame, covariance, k)
        row = left[k] / left[k, k]
        left = left - np.outer(left[:, k], row)


def _told_by_others(frame: Frame, covariance: FloatArray, k: int) -> InputError:
    share = np.linalg.lstsq(covariance[:k, :k], covariance[:k, k], rcond=1e-9)[0]
    size = np.sqrt(np.diag(covariance)[:k] / covariance[k, k])
    told = [str(frame.columns[j]) for j in np.flatnonzero(np.abs(share) * size > TELLS)]
    return InputError(
        "in the regression on {regression}, {column} is told by {others} (collinear): leave one "
        "of them out",
        argument="tasks",
        value=str(frame.columns[k]),
        details={
            "regression": str(frame.regression),
            "column": str(frame.columns[k]),
            "others": listed(told) if told else "the columns before it",
        },
    )


@dataclass(frozen=True, eq=False)
class CoefficientFit(Fit):
    """A coefficient as some rows have it.

    Attributes
    ----------
    frame : Frame
        The columns of the regression.
    beta : (1 + k,) array
        All coefficients, of the scaled columns.
    direction : (1 + k,) array
        H^-1 times what the coefficient is of them: its product with a row of the columns is what
        the row's label moves.
    value, mass : float
        The coefficient, and 1.
    """

    frame: Frame
    beta: FloatArray
    direction: FloatArray
    value: float
    mass: float = 1.0

    @classmethod
    def at(
        cls, frame: Frame, beta: FloatArray, curve: FloatArray, position: int | None
    ) -> CoefficientFit:
        """Take one of the coefficients of a regression that has been solved.

        Parameters
        ----------
        frame : Frame
            The columns.
        beta : (1 + k,) array
            The solution.
        curve : (1 + k, 1 + k) array
            H there.
        position : int or None
            Which of the columns; None for the constant.

        Returns
        -------
        CoefficientFit
            In the unit of the covariate.
        """
        contrast = frame.contrast(position)
        direction = np.linalg.solve(curve, contrast)
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
    """A coefficient of a regression.

    Parameters
    ----------
    of : Term or None
        Which term, with a level in place of each category; None is the constant.
    regression : Regression
        On what.
    """

    of: Term | None
    regression: Regression
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
        return f"coef({1 if self.of is None else self.of} ; {self.regression})"

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

    def position(self, columns: Sequence[Column], points: Points) -> int | None:
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


def scaled_frame(
    regression: Regression, columns: tuple[Column, ...], values: FloatArray
) -> Frame:
    """Centre and scale columns by what some rows hold of them, (m, k)."""
    centre = values.mean(axis=0) if len(values) else np.zeros(len(columns))
    spread = values.std(axis=0) if len(values) else np.ones(len(columns))
    size = np.maximum(spread, 1e-12 * np.abs(centre))
    return Frame(regression, columns, centre, np.where(size > 0, size, 1.0))


def _position(coefficient: Coefficient, columns: Sequence[Column], points: Points) -> int:
    """Which of the columns a coefficient is of; a level that has none is refused."""
    term = coefficient.of
    assert term is not None
    wanted = []
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
        "{value} has no coefficient of its own: it is the reference that other levels are compared "
        "with, or no row that counts has it; choose another reference, as in "
        "coef({value} ; {name} against ...)",
        argument="tasks",
        value=str(levels[0]) if levels else str(term),
        details={"name": quoted(levels[0].name) if levels else str(term)},
    )


def refuse_label_by_name(regression: Regression, sample: Sample) -> None:
    """Refuse the label itself among the covariates, where it is not one of the columns."""
    known = {column.name for column in sample.columns}
    for name in sorted(regression.names - known):
        if name == sample.label:
            raise InputError(
                "{value} is the label that the regression explains, so it cannot stand on its "
                "right side",
                argument="tasks",
                value=name,
            )


def refuse_outcome(column: Column, values: FloatArray, y: FloatArray, p: FloatArray) -> None:
    """Refuse a column that is the label, or the prediction, under another name.

    Parameters
    ----------
    column : Column
        Of a regression.
    values, y, p : (n,) arrays
        Its values, labels and predictions.
    """
    if np.array_equal(values, y) or np.array_equal(values, 1 - y):
        raise InputError(
            "{value} equals the label in every row that counts: a label cannot stand on the right "
            "side of its own regression",
            argument="tasks",
            value=str(column),
        )
    for same in (p, 1 - p):
        if np.ptp(p) > 0 and np.allclose(values, same, rtol=1e-12, atol=0):
            raise InputError(
                NO_PREDICTION,
                argument="tasks",
                value=str(column),
                details={"name": str(column), "rows": f"{values.size:,}"},
            )


def refuse_few(coefficient: Coefficient, columns: int, ones: int, zeros: int) -> None:
    """Refuse a regression with fewer rows or labels than its coefficients need.

    Parameters
    ----------
    coefficient : Coefficient
        What is asked.
    columns : int
        How many there are, without the constant.
    ones, zeros : int
        Rows that count, by label.
    """
    number = 1 + columns
    told = {"task": coefficient, "number": number}
    if ones + zeros < MIN_ROWS * number:
        raise InputError(
            "{task} has {number} coefficients and {rows} rows: it needs at least {least}",
            argument="tasks",
            count=ones + zeros,
            details={**told, "rows": ones + zeros, "least": MIN_ROWS * number},
        )
    if min(ones, zeros) < MIN_LABELS * number:
        rare = "positives" if ones <= zeros else "rows that are not positive"
        raise InputError(
            "{task} has {number} coefficients and {rows} {rare}: it needs at least {least}",
            argument="tasks",
            count=min(ones, zeros),
            details={
                **told,
                "rows": min(ones, zeros),
                "rare": rare,
                "least": MIN_LABELS * number,
            },
        )


def without_solution(
    coefficient: Coefficient, frame: Frame, values: FloatArray, s: FloatArray
) -> InputError:
    """Make the error about a regression without finite coefficients, and say why.

    Parameters
    ----------
    coefficient : Coefficient
        What is asked.
    frame : Frame
        The columns.
    values : (n, k) array
        Of some rows.
    s : (n,) array
        Their labels or what stands for them.

    Returns
    -------
    InputError
        Names the level whose rows have all the same label, if there is one.
    """
    is_labels = bool(np.isin(s, (0.0, 1.0)).all())
    what = "labels" if is_labels else "probabilities"
    if frame.link.name == "log":
        for k, column in enumerate(frame.columns):
            own = values[:, k] != 0
            if 0 < own.sum() < own.size and not s[own].any():
                return _no_solution(
                    coefficient, f"no row with {column} is positive, so the log of its mean is none"
                )
        return _no_solution(
            coefficient, f"no finite coefficients make the means of these {what}; take another link"
        )
    for k, column in enumerate(frame.columns):
        own = values[:, k] != 0
        few = np.unique(values[:, k]).size
        if few == 2 and 0 < own.sum() < own.size:
            for part, said in ((own, f"with {column}"), (~own, f"without {column}")):
                if np.ptp(s[part]) == 0 and s[part][0] in (0.0, 1.0):
                    every = "all" if s[part][0] else "none"
                    return _no_solution(
                        coefficient,
                        f"of the rows {said}, {every} are positive, so its coefficient is infinite",
                    )
    return _no_solution(
        coefficient,
        f"the covariates tell the {what} apart without an exception, so coefficients are infinite",
    )


def _no_solution(coefficient: Coefficient, why: str) -> InputError:
    return InputError(
        "{task} has no estimate: {why}; leave such a covariate out, or join levels",
        argument="tasks",
        value=coefficient,
        details={"task": coefficient, "why": why},
    )


def references_of(task: Task, sample: Sample) -> dict[str, Any]:
    """The levels that categories of a task are compared with, where none was chosen.

    Parameters
    ----------
    task : Task
        With or without regressions.
    sample : Sample
        All rows.

    Returns
    -------
    dict of str to object
        By category.
    """
    found: dict[str, Any] = {}
    for leaf in task.leaves():
        if isinstance(leaf, Coefficient):
            inside = leaf.inside_of(sample.points, sample.weights_or_ones)
            counts = levels_of(leaf.regression, sample.points, inside)
            found |= first_levels(leaf.regression, sample.points, counts)
    return found


def first_levels(
    regression: Regression, points: Points, counts: Mapping[str, IntArray]
) -> dict[str, Any]:
    """The levels that categories are compared with, where none was chosen, by name."""
    return {
        name: observed(points, name).levels[int(np.argmax(own > 0))]
        for name, own in counts.items()
        if regression.reference_of(name) is None and own.any()
    }
