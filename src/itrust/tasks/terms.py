"""What stands on the right side of a regression: terms, and the columns that rows make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, IntArray, checked_choice
from itrust.data import Level, Points, Predicate, code_of, column_of, quoted, written
from itrust.tasks.arithmetic import Covariate, Indicator, Node, Quantity
from itrust.tasks.expressions import Combined, needs_parentheses, refuse_odd_values
from itrust.terms import LINKS, Link

MAX_COLUMNS = 200  # of a regression, levels counted
MAX_FACTORS = 2
PREDICTIONS = ("prediction", "p (the model's)")
IS_PREDICTION = "is the model's prediction"
TELLS_PREDICTION = "orders the rows as the model's prediction does, so that it tells it"
NO_PREDICTION = (
    "{name} {is_told}, and a prediction on the right side of a regression carries "
    "the model's error into its coefficients, where labels of {rows} rows cannot mend it; "
    "take covariates that were observed"
)


@dataclass(frozen=True)
class LevelOf(Quantity):
    """1 for rows with one level of a category, 0 for others."""

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
class RegressionTerm(Node):
    """What a regression has coefficients of: a quantity, a category, or two of these multiplied."""

    factors: tuple[Quantity, ...]

    def __post_init__(self) -> None:
        self._refuse_depth()
        if not 1 <= len(self.factors) <= MAX_FACTORS:
            problem = "an interaction is of two covariates, as in age:race, not of {count}"
            raise InputError(problem, argument="on", count=len(self.factors))
        for factor in self.factors:
            if not factor.names:
                problem = (
                    "a term of a regression reads a covariate, and {value} reads none; the "
                    "constant is always there"
                )
                raise InputError(problem, argument="on", value=str(factor))

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
    def quantity(self) -> Quantity:
        """The product, where no factor is a category."""
        if len(self.factors) == 1:
            return self.factors[0]
        return Combined(self.factors[0], "*", self.factors[1])


def _in_term(factor: Quantity) -> str:
    """A factor, in parentheses where it is a sum."""
    return f"({factor})" if needs_parentheses("*", factor, second=False) else str(factor)


@dataclass(frozen=True)
class Regression(Node):
    """A canonical GLM of the label on terms, with a constant, among some rows."""

    terms: tuple[RegressionTerm, ...]
    link: str
    where: Predicate
    references: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        checked_choice(self.link, "link", tuple(LINKS))
        if not self.terms:
            problem = "a regression needs a covariate, as in coef(age ; age + income)"
            raise InputError(problem, argument="on")
        seen: set[frozenset[Quantity]] = set()
        for term in self.terms:
            if term.key in seen or len(term.key) < len(term.factors):
                problem = "{value} stands twice in one regression"
                raise InputError(problem, argument="on", value=str(term))
            if any(isinstance(factor, LevelOf) for factor in term.factors):
                problem = (
                    "{value} is one level: a regression takes the whole category, and coef names "
                    'the level, as in coef(race["b"] ; age + race)'
                )
                raise InputError(problem, argument="on", value=str(term))
            seen.add(term.key)
        known = self.alone
        for name, _ in self.references:
            if name not in known:
                problem = "{value} has a reference level but is no term of the regression"
                raise InputError(problem, argument="reference", value=name)
        # In the order of the terms, as the text has them: equal regressions are equal.
        in_order = sorted(self.references, key=lambda pair: known.index(pair[0]))
        object.__setattr__(self, "references", tuple(in_order))

    @property
    def alone(self) -> list[str]:
        """Covariates that stand alone in its terms, and so may be categories."""
        factors = [factor for term in self.terms for factor in term.factors]
        return list(dict.fromkeys(own.name for own in factors if isinstance(own, Covariate)))

    @property
    def parts(self) -> tuple[Any, ...]:
        """The terms and the predicate."""
        return *self.terms, self.where

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


@dataclass(frozen=True, eq=False)
class Frame:
    """The columns of a regression, moved and scaled so that Newton's steps lose no digits."""

    regression: Regression
    columns: tuple[RegressionTerm, ...]
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

    def rows_of(
        self, points: Points, weights: FloatArray, first: int = 0
    ) -> tuple[IntArray, FloatArray]:
        """The rows that count, and their design."""
        rows = np.flatnonzero(self.regression.where.rows(points) & (weights > 0))
        return rows, self.design(points, rows, first)

    def contrast(self, position: int | None) -> FloatArray:
        """What a coefficient is of the scaled ones, (1 + k,); None is the constant."""
        found = np.zeros(1 + len(self.columns))
        if position is None:
            found[0], found[1:] = 1.0, -self.centre / self.scale
        else:
            found[1 + position] = 1 / self.scale[position]
        return found


def observed(points: Points, name: str) -> Any:
    """A covariate by name; the prediction is refused with the reason."""
    if name in PREDICTIONS and name not in {column.name for column in points.columns}:
        raise InputError(
            NO_PREDICTION,
            argument="tasks",
            value=name,
            name=name,
            is_told=IS_PREDICTION,
            rows=f"{len(points):,}",
        )
    return column_of(points, name, prediction=False)


def levels_of(regression: Regression, points: Points, inside: BoolArray) -> dict[str, IntArray]:
    """Count the rows that count for every level of the categories of a regression."""
    found = {}
    for name in regression.alone:
        column = observed(points, name)
        if column.is_category:
            codes = column.values[inside]
            found[name] = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    return found


def columns_of(
    regression: Regression, points: Points, counts: Mapping[str, IntArray]
) -> tuple[RegressionTerm, ...]:
    """Turn the terms of a regression into columns."""
    coded: dict[str, list[Quantity]] = {}
    for name in regression.alone:
        column = observed(points, name)
        chosen = regression.reference_of(name)
        if not column.is_category:
            if chosen is not None:
                problem = "{column} is a {kind} and has no reference level"
                raise InputError(
                    problem,
                    column=name,
                    hint="categories=[...] makes codes a category",
                    kind=column.kind,
                )
            coded[name] = [Covariate(name)]
            continue
        own = [k for k, count in enumerate(counts[name]) if count]
        first = _reference(column, chosen, own)
        coded[name] = [LevelOf(name, column.levels[k]) for k in own if k != first]
    found = [
        RegressionTerm(factors)
        for term in regression.terms
        for factors in product(
            *(coded[own.name] if isinstance(own, Covariate) else [own] for own in term.factors)
        )
    ]
    if len(found) > MAX_COLUMNS:
        problem = (
            "a regression has at most {most} coefficients, and this one would have {count}: leave "
            "out categories of many levels, or join levels"
        )
        raise InputError(problem, argument="tasks", count=len(found), most=MAX_COLUMNS)
    return tuple(found)


def _reference(column: Any, chosen: Any | None, own: Sequence[int]) -> int | None:
    """The position of the level that the others of a category are compared with."""
    if chosen is None:
        return own[0] if own else None
    position = int(code_of(column, chosen))
    if position not in own:
        problem = (
            "no row that counts has {column} = {value}, the reference level; choose another one"
        )
        raise InputError(problem, column=column.name, value=chosen)
    return position


def first_levels(
    regression: Regression, points: Points, counts: Mapping[str, IntArray]
) -> dict[str, Any]:
    """The levels that categories are compared with, where none was chosen, by name."""
    return {
        name: observed(points, name).levels[int(np.argmax(own > 0))]
        for name, own in counts.items()
        if regression.reference_of(name) is None and own.any()
    }


def column_values(
    regression: Regression,
    columns: Sequence[RegressionTerm],
    points: Points,
    rows: IntArray,
    first: int = 0,
) -> FloatArray:
    """The columns of a regression, (m, k), for some of the rows; what is not finite is refused."""
    some = points if rows.size == len(points) else points.take(rows)
    values = np.empty((rows.size, len(columns)))
    for k, column in enumerate(columns):
        values[:, k] = column.quantity.of(some)
        whole, told = "the regression on {regression}", {"regression": regression}
        refuse_odd_values(values[:, k], first + rows, column.quantity, whole, "coef", **told)
    return values


def scaled_frame(
    regression: Regression, columns: tuple[RegressionTerm, ...], values: FloatArray
) -> Frame:
    """Centre and scale columns by what some rows hold of them, (m, k)."""
    centre = values.mean(axis=0) if len(values) else np.zeros(len(columns))
    spread = values.std(axis=0) if len(values) else np.ones(len(columns))
    size = np.maximum(spread, 1e-12 * np.abs(centre))
    return Frame(regression, columns, centre, np.where(size > 0, size, 1.0))
