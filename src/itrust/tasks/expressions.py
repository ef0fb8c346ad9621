"""Inference tasks: the number that somebody wants to report, as a function of labels.

mean of a quantity among positives, E[g(x) | y = 1, where]; prevalence, P(y = 1 | where); and what
ordinary arithmetic makes of them. The bias of a single ratio is a weighted sum of residuals y - p,
with weights that no label has touched, over a denominator; that of several is what arithmetic
makes of these.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from itrust._core import FloatArray, InputError, Rng, counted
from itrust.data import Everywhere, Points, Population, Predicate, Sample, as_predicate, quoted
from itrust.tasks.quantities import (
    ARITHMETIC,
    Callback,
    Covariate,
    Indicator,
    Quantity,
    number_text,
)

if TYPE_CHECKING:
    from itrust.tasks.bias import TaskResult
    from itrust.tasks.population import TaskEstimate


__all__ = [
    "Task",
    "mean",
    "parse",
    "prevalence",
    "share",
]


@dataclass(frozen=True, eq=False)
class Linear:
    """An estimate and the share of every row in it: estimate - truth ~ sum of `influence`."""

    value: float
    influence: FloatArray

    def __add__(self, other: Linear) -> Linear:
        return Linear(self.value + other.value, self.influence + other.influence)

    def __sub__(self, other: Linear) -> Linear:
        return Linear(self.value - other.value, self.influence - other.influence)

    def __mul__(self, other: Linear) -> Linear:
        return Linear(
            self.value * other.value,
            self.influence * other.value + self.value * other.influence,
        )

    def __truediv__(self, other: Linear) -> Linear:
        if other.value == 0:
            return Linear(math.nan, np.full_like(self.influence, math.nan))
        value = self.value / other.value
        return Linear(value, (self.influence - value * other.influence) / other.value)


@dataclass(frozen=True, eq=False)
class Dual:
    """Values of a task for the data and all draws, and their slopes in its ratios."""

    value: FloatArray  # (1 + draws,)
    slope: FloatArray  # (ratios, 1 + draws)

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Dual) -> Dual:
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Dual) -> Dual:
        slope = self.slope * other.value + self.value * other.slope
        return Dual(self.value * other.value, slope)

    def __truediv__(self, other: Dual) -> Dual:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.value / other.value
            return Dual(value, (self.slope - value * other.slope) / other.value)


@dataclass(frozen=True, eq=False)
class Rows:
    """Where labels or probabilities stand in for labels: `stand_in` is y, p or what repairs p."""

    points: Points
    weights: FloatArray
    stand_in: FloatArray


@dataclass(frozen=True)
class Task(ABC):
    """A number to be reported. Tasks add, subtract, multiply and divide."""

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    @abstractmethod
    def names(self) -> frozenset[str]:
        """Covariates that the task depends on: the X that has to be locally calibrated."""

    @abstractmethod
    def linear(self, rows: Rows) -> Linear:
        """Estimate with these labels or stand-ins."""

    @abstractmethod
    def leaning(self, rows: Rows) -> Linear:
        """Estimate, and how much it moves if the stand-in of a row does."""

    @abstractmethod
    def dual(self, values: Sequence[Dual], position: Mapping[Ratio, int]) -> Dual:
        """Value and slopes, from those of the ratios it is made of."""

    @property
    def tolerance(self) -> float | None:
        """Size of bias that would matter, in the task's own unit; None: not said."""
        return None

    def named(self, title: str, tolerance: float | None = None) -> Task:
        """Give the task a name to be shown by, and the size of bias that would matter."""
        return Named(self, str(title), tolerance)

    def matters_at(self, tolerance: float) -> Task:
        """Say which size of bias would matter, in the task's own unit."""
        return Named(self, str(self), float(tolerance))

    def __add__(self, other: object) -> Task:
        return _combined(self, "+", other)

    def __radd__(self, other: object) -> Task:
        return _combined(other, "+", self)

    def __sub__(self, other: object) -> Task:
        return _combined(self, "-", other)

    def __rsub__(self, other: object) -> Task:
        return _combined(other, "-", self)

    def __mul__(self, other: object) -> Task:
        return _combined(self, "*", other)

    def __rmul__(self, other: object) -> Task:
        return _combined(other, "*", self)

    def __truediv__(self, other: object) -> Task:
        return _combined(self, "/", other)

    def __rtruediv__(self, other: object) -> Task:
        return _combined(other, "/", self)

    def __neg__(self) -> Task:
        return _combined(0, "-", self)

    def estimate(
        self,
        population: Population,
        labelled: Sample,
        *,
        alpha: float = 0.05,
    ) -> TaskEstimate:
        """Estimate on a population without labels: see `itrust.estimates.estimate_task`."""
        from itrust.tasks.population import estimate_task

        return estimate_task(self, population, labelled, alpha=alpha)

    def evaluate(
        self, sample: Sample, *, alpha: float = 0.05, draws: int = 999, rng: Rng = None
    ) -> TaskResult:
        """Plug-in, estimate from labels, bias with interval and p-value; see `TaskResult`."""
        from itrust.tasks.bias import evaluate_tasks

        return evaluate_tasks(sample, [self], alpha=alpha, draws=draws, rng=rng)[0]


@dataclass(frozen=True)
class Ratio(Task):
    """Sum of w g s over sum of w h s (among positives) or of w h (among rows); s is y or p."""

    quantity: Quantity
    where: Predicate
    among_positives: bool

    def __str__(self) -> str:
        given = self.where.formula
        if not self.among_positives:
            return f"prevalence({given})"
        kind = "share" if isinstance(self.quantity, Indicator) else "mean"
        return f"{kind}({self.quantity}{' | ' if given else ''}{given})"

    @property
    def names(self) -> frozenset[str]:
        """Those of the quantity and the condition."""
        return self.quantity.names | self.where.names

    def _parts(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """G and h, 0 outside, (n,) each."""
        self.where.check(rows.points)
        inside = self.where.rows(rows.points) & (rows.weights > 0)
        if not inside.any():
            raise InputError(f"no row of positive weight satisfies {self.where.formula} in {self}")
        g = np.where(inside, self.quantity.of(rows.points), 0.0)
        wrong = ~np.isfinite(g)
        if wrong.any():
            raise InputError(
                f"{self.quantity} has no finite value in {counted(int(wrong.sum()), 'row')} "
                f"(first: row {int(np.argmax(wrong))}) that {self} counts; leave them out with a "
                f"condition, as in mean(... | {_first_name(self.quantity)} is not missing)"
            )
        return g, inside.astype(float)

    def _below(self, rows: Rows, h: FloatArray) -> FloatArray:
        return h * rows.stand_in if self.among_positives else h

    def linear(self, rows: Rows) -> Linear:
        """Estimate with these labels or stand-ins."""
        g, h = self._parts(rows)
        below = self._below(rows, h)
        mass = float(rows.weights @ below)
        if mass <= 0:
            return Linear(math.nan, np.full(g.size, math.nan))
        value = float(rows.weights @ (g * rows.stand_in)) / mass
        return Linear(value, rows.weights * (g * rows.stand_in - value * below) / mass)

    def leaning(self, rows: Rows) -> Linear:
        """Estimate, and how much it moves if the stand-in of a row does."""
        estimate = self.linear(rows)
        lean, _ = self.parts_of_bias(rows, estimate.value)
        return Linear(estimate.value, lean / (self.denominator(rows) or math.nan))

    def parts_of_bias(self, rows: Rows, value: float) -> tuple[FloatArray, FloatArray]:
        """Weights c of residuals and h of labels: the bias is sum c e / sum h y, (n,) each.

        Among rows the denominator is not made of labels, and h is 0.
        """
        g, h = self._parts(rows)
        if not self.among_positives:
            return rows.weights * g, np.zeros(g.size)
        return rows.weights * (g - value * h), rows.weights * h

    def denominator(self, rows: Rows) -> float:
        """What is divided by, with these labels or stand-ins."""
        _, h = self._parts(rows)
        return float(rows.weights @ self._below(rows, h))

    def dual(self, values: Sequence[Dual], position: Mapping[Ratio, int]) -> Dual:
        """Its own."""
        return values[position[self]]


def _first_name(quantity: Quantity) -> str:
    names = sorted(quantity.names)
    return quoted(names[0]) if names else "x"


@dataclass(frozen=True)
class Fixed(Task):
    """A number in an expression."""

    value: float

    def __str__(self) -> str:
        return number_text(self.value)

    @property
    def names(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def linear(self, rows: Rows) -> Linear:
        """The number; no row has a share in it."""
        return Linear(self.value, np.zeros(rows.weights.size))

    leaning = linear

    def dual(self, values: Sequence[Dual], position: Mapping[Ratio, int]) -> Dual:
        """The number; it has no slope."""
        if not position:
            return Dual(np.array([self.value]), np.zeros((0, 1)))
        like = values[0]
        return Dual(np.full_like(like.value, self.value), np.zeros_like(like.slope))


@dataclass(frozen=True)
class Combined(Task):
    """Two tasks and an arithmetic sign."""

    left: Task
    sign: str
    right: Task

    def __str__(self) -> str:
        left, right = (
            f"({part})" if self._binds(part, second) else str(part)
            for part, second in ((self.left, False), (self.right, True))
        )
        return f"{left} {self.sign} {right}"

    def _binds(self, part: Task, second: bool) -> bool:
        if not isinstance(part, Combined):
            return False
        strong = self.sign in "*/"
        return (strong and part.sign in "+-") or (second and self.sign in "-/")

    @property
    def names(self) -> frozenset[str]:
        """Those of both."""
        return self.left.names | self.right.names

    def linear(self, rows: Rows) -> Linear:
        """By the rules of differentials."""
        combined: Linear = ARITHMETIC[self.sign](self.left.linear(rows), self.right.linear(rows))
        return combined

    def leaning(self, rows: Rows) -> Linear:
        """By the rules of differentials."""
        combined: Linear = ARITHMETIC[self.sign](self.left.leaning(rows), self.right.leaning(rows))
        return combined

    def dual(self, values: Sequence[Dual], position: Mapping[Ratio, int]) -> Dual:
        """By the rules of differentials."""
        left, right = (part.dual(values, position) for part in (self.left, self.right))
        combined: Dual = ARITHMETIC[self.sign](left, right)
        return combined


@dataclass(frozen=True)
class Named(Task):
    """A task with a name and a size of bias that would matter."""

    task: Task
    title: str
    matters: float | None

    def __post_init__(self) -> None:
        if self.matters is not None and not (
            isinstance(self.matters, int | float) and 0 < self.matters < math.inf
        ):
            raise InputError(f"tolerance must be a positive number, not {self.matters!r}")

    def __str__(self) -> str:
        return self.title

    @property
    def names(self) -> frozenset[str]:
        """Those of the task."""
        return self.task.names

    @property
    def tolerance(self) -> float | None:
        """Size of bias that would matter."""
        return self.matters

    def linear(self, rows: Rows) -> Linear:
        """That of the task."""
        return self.task.linear(rows)

    def leaning(self, rows: Rows) -> Linear:
        """That of the task."""
        return self.task.leaning(rows)

    def dual(self, values: Sequence[Dual], position: Mapping[Ratio, int]) -> Dual:
        """That of the task."""
        return self.task.dual(values, position)


def _combined(left: object, sign: str, right: object) -> Task:
    parts: list[Task] = []
    for part in (left, right):
        if isinstance(part, Real) and not isinstance(part, bool) and math.isfinite(part):
            parts.append(Fixed(float(part)))
        elif isinstance(part, Task):
            parts.append(part)
        else:
            raise InputError(f"a task joins with tasks and numbers, not with {part!r}")
    return Combined(parts[0], sign, parts[1])


def mean(
    quantity: str | Quantity | Callable[[Mapping[str, Any]], Any],
    where: object = None,
    *,
    name: str | None = None,
    **values: Any,
) -> Task:
    """Average of a covariate, or of a function of covariates, among positives.

    E[g(x) | y = 1, where].

    Parameters
    ----------
    quantity : str or callable
        A covariate, or a function that takes a mapping of covariates to arrays and gives an
        array of numbers.
    where : mapping or text, optional
        Covariates and the value they must have, a list of values, or None for missing; or a
        condition such as 'race == "Black" and age >= 65'. Also as keywords: race="Black".
    name : str, optional
        For a function.

    Examples
    --------
    >>> from itrust import tasks
    >>> str(tasks.mean("age", where={"race": "Black"}) - tasks.mean("age", where={"race": "White"}))
    'mean(age | race == "Black") - mean(age | race == "White")'
    """
    chosen = _condition(where, values, "mean")
    return Ratio(_as_quantity(quantity, name), chosen, among_positives=True)


def _as_quantity(quantity: object, name: str | None) -> Quantity:
    if isinstance(quantity, Quantity):
        return quantity
    if isinstance(quantity, str):
        return Covariate(quantity)
    if callable(quantity):
        title = str(name or getattr(quantity, "__name__", "function"))
        return Callback(quantity, title)
    raise InputError(
        f"mean takes the name of a covariate or a function, not a {type(quantity).__name__}"
    )


def share(condition: object = None, where: object = None, **values: Any) -> Task:
    """Share of positives for which a condition holds: P(condition | y = 1, where).

    Parameters
    ----------
    condition : mapping or text
        As `where` of `mean`; or keywords.
    where : mapping or text, optional
        Among which rows.

    Examples
    --------
    >>> str(share("age >= 65", where={"race": "Black"}))
    'share(age >= 65 | race == "Black")'
    >>> from itrust import tasks
    >>> str(tasks.share(race="Black"))
    'share(race == "Black")'
    """
    chosen = _condition(condition, values, "share")
    if isinstance(chosen, Everywhere):
        raise InputError("share needs a condition, as in share(race='Black')")
    return Ratio(Indicator(chosen), _condition(where, {}, "share"), among_positives=True)


def prevalence(where: object = None, **values: Any) -> Task:
    """Rate of positives: P(y = 1 | where).

    Parameters
    ----------
    where : mapping or text, optional
        As `where` of `mean`; or keywords.

    Examples
    --------
    >>> from itrust import tasks
    >>> str(tasks.prevalence(race="Black") - tasks.prevalence(race="White"))
    'prevalence(race == "Black") - prevalence(race == "White")'
    """
    chosen = _condition(where, values, "prevalence")
    return Ratio(Indicator(Everywhere()), chosen, among_positives=False)


def _condition(condition: object, values: Mapping[str, Any], name: str) -> Predicate:
    if condition is not None and values:
        raise InputError(f"{name} takes a condition or keywords, not both")
    if isinstance(condition, str):
        from itrust.tasks.parser import parse_condition

        return parse_condition(condition)
    return as_predicate(values or None if condition is None else condition)


def parse(text: str) -> Task:
    """Read a task from text; the grammar is in `help(itrust.grammar)`.

    >>> str(parse('100 * share(age >= 65 | race == "Black")'))
    '100 * share(age >= 65 | race == "Black")'
    """
    from itrust.tasks.parser import parse as read

    return read(text)


def as_tasks(tasks: object) -> list[Task]:
    """One task or several, as such or as text."""
    several = [tasks] if isinstance(tasks, str | Task) else tasks
    if not isinstance(several, list | tuple):
        raise InputError(f"tasks are a list such as ['mean(age)'], not {tasks!r}")
    return [parse(task) if isinstance(task, str) else task for task in several]
