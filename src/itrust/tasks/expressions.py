"""Inference tasks: the number that somebody wants to report, as a function of labels.

mean of a quantity among positives, E[g(x) | y = 1, where]; prevalence, P(y = 1 | where);
coefficients of regressions (`regressions.py`); and what ordinary arithmetic makes of them. Each of
these leaves has an outcome: "positives", or one of several classes. The bias of a single ratio is a
weighted sum of residuals y - p, with weights that no label has touched, over a denominator; that of
several is what arithmetic makes of these.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, cast

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    Result,
    Rng,
    checked_finite,
    checked_positive,
    counted,
)
from itrust.data import (
    And,
    Level,
    MulticlassSample,
    Points,
    Population,
    Predicate,
    Rows,
    Sample,
    Scan,
    all_of,
    quoted,
    written,
)
from itrust.tasks.arithmetic import (
    ARITHMETIC,
    RANK,
    RATES,
    Bounds,
    Indicator,
    Linearised,
    Node,
    Quantity,
)

if TYPE_CHECKING:
    from itrust.tasks.bias import TaskResult
    from itrust.tasks.estimated import TaskEstimate
    from itrust.tasks.regressions import CoefficientFit

Join = Callable[["Task", object], "Task"]
Value = TypeVar("Value", Linearised, Bounds)
# A mean, a rate or a coefficient as some rows have it: an M-estimator. What it moves if labels do
# is a sum over rows of a gradient g(x) times the move, so whatever corrects predictions by labels
# (a bias, a prediction-powered or a transported estimate) is made of value, lean and shares.
LeafFit: TypeAlias = "RatioFit | CoefficientFit"
LABEL = "y"  # what texts call the label, whatever its column is called
LARGEST_VALUE = 1e60  # of a quantity and of a task: the fourth powers of such are finite
# Shares that cancel to so little of what they are made of are rounding, or rows that sum to 1
# within the tolerance of the door: whatever the labels are, the number is the same.
CANCELLED = 2e-6


@dataclass(frozen=True, eq=False)
class TaskRows:
    """Rows that a task is evaluated on, and what stands for the labels of each outcome, (n, C)."""

    points: Points
    weights: FloatArray
    stand_in: FloatArray
    classes: tuple[Any, ...] = (None,)  # of the columns; None is whatever counts as positive

    def __post_init__(self) -> None:
        columns = self.stand_in.reshape(self.weights.size, len(self.classes))
        object.__setattr__(self, "stand_in", columns)

    @classmethod
    def predicted(cls, sample: Rows) -> Self:
        """Rows of a sample with probabilities in place of labels."""
        classes = sample.classes if sample.several else (None,)
        return cls(sample.points, sample.weights_or_ones, sample.predictions, classes)

    @classmethod
    def labelled(cls, sample: Rows) -> Self:
        """Rows of a sample with their labels."""
        classes = sample.classes if sample.several else (None,)
        labels = np.column_stack([sample.outcome(k).y for k in range(len(classes))])
        return cls(sample.points, sample.weights_or_ones, labels, classes)

    def of(self, leaf: Leaf) -> FloatArray:
        """What stands for the labels that a leaf is about, (n,)."""
        if leaf.label not in self.classes:
            problem = (
                "{task} names a class: evaluate it on a sample, which says what its labels are"
            )
            raise InputError(problem, argument="tasks", value=leaf, task=leaf)
        return self.stand_in[:, self.classes.index(leaf.label)]


def _joins(sign: str) -> tuple[Join, Join]:
    """Operators with a task on the left and on the right of a sign."""

    def forward(self: Task, other: object) -> Task:
        return combined(self, sign, other)

    def backward(self: Task, other: object) -> Task:
        return combined(other, sign, self)

    return forward, backward


class Task(Node):
    """A number to be reported. Tasks add, subtract, multiply and divide.

    `names` are the covariates that the task depends on: the X that has to be locally calibrated.
    """

    __add__, __radd__ = _joins("+")
    __sub__, __rsub__ = _joins("-")
    __mul__, __rmul__ = _joins("*")
    __truediv__, __rtruediv__ = _joins("/")

    def __neg__(self) -> Task:
        return combined(0, "-", self)

    @abstractmethod
    def joined(self, known: Mapping[Leaf, Value], number: Callable[[float], Value]) -> Value:
        """What arithmetic makes of values of the leaves, and of numbers.

        Parameters
        ----------
        known : mapping of Leaf to Linearised or Bounds
            A value of every leaf.
        number : callable
            The like of a number.

        Returns
        -------
        Linearised or Bounds
            The value of the task.
        """

    def bounds_of(self, known: Mapping[Leaf, Bounds]) -> Bounds:
        """Say what the number can be, from what its leaves can be.

        Parameters
        ----------
        known : mapping of Leaf to Bounds
            Of every leaf that it is made of.

        Returns
        -------
        Bounds
            By the arithmetic of intervals.
        """
        return self.joined(known, lambda value: Bounds(value, value))

    def at(self, leaves: Sequence[Leaf], values: Sequence[Any] | FloatArray) -> Linearised:
        """The number where leaves have some values, (k,) or (k, draws), and its slopes in them.

        Parameters
        ----------
        leaves : sequence of Leaf
            What it is made of, and others.
        values : (k,) or (k, draws) array
            Of these leaves.

        Returns
        -------
        Linearised
            The number, and its derivatives in the leaves.
        """
        known = {}
        for k, (leaf, value) in enumerate(zip(leaves, np.asarray(values, float), strict=True)):
            slope = np.zeros((len(leaves), *value.shape))
            slope[k] = 1.0
            known[leaf] = Linearised(value, slope)
        shape = np.shape(values)[1:]

        def number(value: float) -> Linearised:
            return Linearised(np.full(shape, value), np.zeros((len(leaves), *shape)))

        with np.errstate(over="ignore", invalid="ignore"):
            return self.joined(known, number)

    def fitted(self, rows: TaskRows) -> TaskFit:
        """Fit its leaves on some rows.

        Parameters
        ----------
        rows : TaskRows
            Covariates, weights and what stands for labels.

        Returns
        -------
        TaskFit
            Its value, and what rows do to it.
        """
        return TaskFit.of(self, {leaf: leaf.fit(rows) for leaf in self.leaves()})

    def linear(self, rows: TaskRows) -> Linearised:
        """Estimate the number with these labels or stand-ins, with the share of every row in it.

        Parameters
        ----------
        rows : TaskRows
            Covariates, weights and what stands for labels.

        Returns
        -------
        Linearised
            The estimate, and the share of every row in it.
        """
        return self.fitted(rows).linear(rows)

    def bounds(self, *rows: TaskRows) -> Bounds:
        """Say what the number can be, whatever the labels of the rows are.

        Parameters
        ----------
        *rows : TaskRows
            All rows that may count, in one part or several.

        Returns
        -------
        Bounds
            By the arithmetic of intervals; rates and shares are within [0, 1].
        """
        return self.bounds_of({leaf: leaf.own_bounds(*rows) for leaf in self.leaves()})

    def leaves(self) -> Iterator[Leaf]:
        """Give the means, shares, rates and coefficients that it is made of, from left to right.

        Yields
        ------
        Leaf
            Each as often as it occurs.
        """
        for part in self.parts:
            if isinstance(part, Task):
                yield from part.leaves()

    def ratios(self) -> Iterator[Ratio]:
        """Give the means, shares and rates among its leaves.

        Yields
        ------
        Ratio
            Each as often as it occurs.
        """
        for leaf in self.leaves():
            if isinstance(leaf, Ratio):
                yield leaf

    @abstractmethod
    def mapped(self, change: Callable[[Leaf], Task]) -> Task:
        """Put others in the place of its leaves.

        Parameters
        ----------
        change : callable
            What stands for a leaf; the leaf itself where nothing changes.

        Returns
        -------
        Task
            The same arithmetic of the others.
        """

    @property
    def tolerance(self) -> float | None:
        """Size of bias that would matter, in the task's own unit; None: not said."""
        return None

    @property
    def formula(self) -> str:
        """The text that `parse` reads back to the same task, with title and tolerance."""
        return str(self)

    def named(self, title: str, tolerance: float | None = None) -> Task:
        """Give the task a name to be shown by.

        Parameters
        ----------
        title : str
            The name.
        tolerance : float, optional
            Size of bias that would matter, in the task's own unit; default: not said.

        Returns
        -------
        Task
            The same number under that name.
        """
        return Named(self, str(title), tolerance)

    def matters_at(self, tolerance: float) -> Task:
        """Say which size of bias would matter.

        Parameters
        ----------
        tolerance : float
            In the task's own unit.

        Returns
        -------
        Task
            The same number with that tolerance.
        """
        return Named(self, str(self), tolerance)

    def estimate(
        self,
        population: Population | Scan,
        labelled: Sample | MulticlassSample,
        *,
        alpha: float = 0.05,
        selection: object = None,
        support: Literal["refuse", "exclude"] = "refuse",
        rng: Rng = 0,
    ) -> TaskEstimate:
        """Estimate the number on a population without labels, in five ways, one recommended.

        Prediction-powered: the estimate from labels, plus `lam` times the plug-in on the
        population less the plug-in on the labelled rows (Angelopoulos et al. 2023, 2024, for
        ratios and what arithmetic makes of them). Transported: the same for labelled rows that are
        no random sample, with probabilities recalibrated on other rows and weights that make the
        labelled rows like the population. All intervals are for where the population
        comes from, not for its own rows alone, and are approximate; none leaves the range of the
        number, such as [0, 1] for shares. Cost O(n N) at most; of more than 5e8 pairs of rows the
        recalibrated estimate is left out, and 400,000 random rows of a larger population
        serve for what goes beyond the plug-in.

        Parameters
        ----------
        population : Population or Scan
            With every covariate that the task reads; those it shares with `labelled` serve the
            recalibration and the weights. It may contain the labelled rows. Of several classes,
            a population with probabilities of the same classes.
        labelled : Sample or MulticlassSample
            Rows with labels. For the prediction-powered and the labelled estimate they are a random
            sample from where the population comes from, or carry weights that make them one.
        alpha : float
            Error that every interval is allowed.
        selection : array of n probabilities or str, optional
            Known probability of labelling of every labelled row, or the covariate that holds it;
            rows are then weighted by one over it. Default: it is not known.
        support : {"refuse", "exclude"}
            What to do about rows of the population that are unlike every labelled row: give no
            transported estimate where they are more than 10 %, or more than 1 % have levels that no
            labelled row has (the default), or leave them out.
        rng : int, Generator or None
            Divides labelled rows for the recalibration, and permutes rows.

        Returns
        -------
        TaskEstimate
            Plug-in, recalibrated, prediction-powered, transported and labelled estimates; `best`
            is the one to report.

        Examples
        --------
        >>> import itrust as it
        >>> from itrust import tasks
        >>> few, many = it.simulate.survey(6_000, rng=0).sample.split([0.2, 0.8], rng=0)
        >>> age = {c.name: c.values for c in many.columns if c.name == "age"}
        >>> found = tasks.mean("age").estimate(it.Population(many.p, age), labelled=few)
        >>> found.best.lower < found.best.value
        True
        """
        from itrust.tasks.population import estimate_tasks

        return estimate_tasks(
            [self], population, labelled, alpha=alpha, selection=selection, support=support, rng=rng
        )[0]

    def evaluate(
        self,
        sample: Sample | MulticlassSample,
        *,
        alpha: float = 0.05,
        draws: int = 999,
        rng: Rng = None,
    ) -> TaskResult:
        """Compare the number with probabilities and with labels.

        Parameters
        ----------
        sample : Sample or MulticlassSample
            Labels, predictions and covariates; of several classes the task names its own.
        alpha : float
            Error that the interval is allowed.
        draws : int
            Number of redrawn sets of labels that the p-value counts.
        rng : int, Generator or None
            Seed to redraw by; None takes a new one.

        Returns
        -------
        TaskResult
            Both estimates, their difference with its interval, and a p-value.
        """
        from itrust.tasks.bias import evaluate_tasks

        return evaluate_tasks(sample, [self], alpha=alpha, draws=draws, rng=rng)[0]


class OfTask(Result):
    """What is found about one task."""

    task: Task

    @property
    def name(self) -> str:
        """Text of the task, or the name it was given."""
        return str(self.task)

    @property
    def tolerance(self) -> float | None:
        """Size of bias that would matter, if the task says so."""
        return self.task.tolerance

    def _facts(self) -> Mapping[str, Any]:
        return {**super()._facts(), "task": self.name}


@dataclass(frozen=True, eq=False)
class TaskFit:
    """A task as some rows have it: fits of its leaves, its value, and its slopes in them, (k,)."""

    leaves: tuple[Leaf, ...]
    fits: tuple[LeafFit, ...]
    value: float
    slopes: FloatArray

    @classmethod
    def of(cls, task: Task, fits: Mapping[Leaf, LeafFit]) -> Self:
        """Join some fits; NaN where a task divides by 0."""
        leaves = tuple(dict.fromkeys(task.leaves()))
        chosen = tuple(fits[leaf] for leaf in leaves)
        found = task.at(leaves, [fit.value for fit in chosen])
        value = float(found.value)
        return cls(leaves, chosen, value if math.isfinite(value) else math.nan, found.slope)

    def shares(self, rows: TaskRows) -> FloatArray:
        """Shares of rows, (n,): none where labels of one class make up for those of another."""
        if math.isnan(self.value):
            return np.full(rows.weights.size, math.nan)
        parts = [
            slope * fit.shares(rows.points, rows.weights, rows.of(leaf))
            for slope, fit, leaf in zip(self.slopes, self.fits, self.leaves, strict=True)
        ]
        total = np.asarray(sum(parts, np.zeros(rows.weights.size)))
        if len({leaf.label for leaf in self.leaves}) > 1:
            largest = np.abs(parts).sum(axis=0).max()
            if np.abs(total).max() <= CANCELLED * largest:
                return np.zeros(rows.weights.size)
        return total

    def lean(self, rows: TaskRows) -> FloatArray:
        """What stand-ins of rows move, by class, (n, C)."""
        found = np.zeros((rows.weights.size, len(rows.classes)))
        for slope, fit, leaf in zip(self.slopes, self.fits, self.leaves, strict=True):
            moved = fit.lean(rows.points, rows.weights) / (fit.mass or math.nan)
            found[:, rows.classes.index(leaf.label)] += slope * moved
        return found

    def linear(self, rows: TaskRows) -> Linearised:
        """The number and the shares of rows at hand."""
        return Linearised(self.value, self.shares(rows))


class Leaf(Task):
    """A number that no arithmetic made: a mean, a share, a rate, or a coefficient."""

    where: Predicate
    among_positives: bool
    label: Any

    @property
    def bare(self) -> Leaf:
        """The same of whatever counts as positive, without the name of a class."""
        return self if self.label is None else self.with_label(None)

    def with_label(self, label: Any) -> Leaf:
        """Take another class, or None for whatever counts as positive."""
        changed: Any = replace(cast("Any", self), label=label)
        return cast("Leaf", changed)

    def mapped(self, change: Callable[[Leaf], Task]) -> Task:
        """What stands for it."""
        return change(self)

    @property
    def is_rate(self) -> bool:
        """Whether it is a rate or a share, within [0, 1]."""
        return False

    @abstractmethod
    def fit(self, rows: TaskRows) -> LeafFit:
        """Fit it on some rows."""

    @abstractmethod
    def predicates(self) -> Iterator[Predicate]:
        """Say what it asks of rows: where they count, and what counts."""

    def sets_on(self, points: Points) -> Iterator[BoolArray]:
        """Mark sets of rows that it tells of: where they count, and what counts there, (n,)."""
        inside = np.asarray(self.where.rows(points))
        yield inside
        for part in self.parts_on(points):
            yield np.asarray(inside & part.rows(points))

    @abstractmethod
    def parts_on(self, points: Points) -> Sequence[Predicate]:
        """Say what counts: the condition of a share, or all levels of a regression."""

    @abstractmethod
    def terms_of(
        self, points: Points, weights: FloatArray, first: int = 0
    ) -> tuple[FloatArray, FloatArray]:
        """Give g and h of some rows, 0 outside; none of them need satisfy the condition."""

    @abstractmethod
    def tilts(self, rows: TaskRows | None) -> tuple[Quantity, ...] | None:
        """Give what labels are followed along by the law that smooths them; None for rates."""

    def own_bounds(self, *rows: TaskRows) -> Bounds:
        """Say what it can be, whatever the labels of these rows are."""
        terms = [self.terms_of(some.points, some.weights) for some in rows]
        values = [g[h > 0] for g, h in terms]
        if not all(own.size for own in values):
            raise self.without_rows()
        return self.between(
            min(float(own.min()) for own in values), max(float(own.max()) for own in values)
        )

    def between(self, smallest: float, largest: float) -> Bounds:  # noqa: ARG002
        """Say what it can be if what is averaged goes from one value to another: any number."""
        return Bounds(-math.inf, math.inf)

    @abstractmethod
    def reestimated(self, rows: TaskRows, weights: FloatArray) -> FloatArray:
        """Estimate it with R other sets of weights, (n, R) -> (R,); NaN where there is nothing."""

    def carrying(self, rows: TaskRows) -> FloatArray:
        """Give how much each row's label carries, (n,): the weights of the rows that count."""
        return np.asarray(rows.weights * self.where.rows(rows.points))

    @property
    def labels_each(self) -> float:
        """Labels of the rarer kind that count as one, beside `carrying`."""
        return 1.0

    def check(self, sample: Sample) -> None:
        """Refuse rows with labels that cannot give it, in a sentence."""

    def leaves(self) -> Iterator[Leaf]:
        """Itself."""
        yield self

    def joined(self, known: Mapping[Leaf, Value], number: Callable[[float], Value]) -> Value:  # noqa: ARG002
        """Look its own up."""
        return known[self]

    def inside_of(self, points: Points, weights: FloatArray) -> BoolArray:
        """Mark the rows that count, (n,)."""
        return np.asarray(self.where.rows(points) & (weights > 0))

    def without_rows(self) -> InputError:
        """The error about a condition that no row meets."""
        problem = "no row of positive weight satisfies {where} in {task}"
        return InputError(
            problem, argument="tasks", value=self, where=self.where.formula, task=self
        )


@dataclass(frozen=True)
class Ratio(Leaf):
    """Sum of w g s over sum of w h s (among positives) or of w h (among rows); s is y or p."""

    quantity: Quantity
    where: Predicate
    among_positives: bool
    label: Any = None

    def __post_init__(self) -> None:
        self._refuse_depth()

    @classmethod
    def among(cls, quantity: Quantity, where: Predicate, label: Any = None) -> Ratio:
        """Average among rows of a class, which the condition may name: y == "tie"."""
        if label is None:
            label, where = label_apart(where, [LABEL])
        return cls(quantity, where, among_positives=True, label=label)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The quantity and the predicate."""
        return self.quantity, self.where

    def __str__(self) -> str:
        given = self.where.formula
        if not self.among_positives:
            if self.label is None:
                return f"prevalence({given})"
            return f"prevalence({written(self.label)}{' | ' if given else ''}{given})"
        if self.label is not None:
            given = all_of([Level(LABEL, self.label), self.where]).formula
        kind = "share" if isinstance(self.quantity, Indicator) else "mean"
        return f"{kind}({self.quantity}{' | ' if given else ''}{given})"

    def predicates(self) -> Iterator[Predicate]:
        """What it asks of rows: where they count, and what counts."""
        yield self.where
        yield from self.parts_on()

    def parts_on(self, points: Points | None = None) -> Sequence[Predicate]:  # noqa: ARG002
        """The condition of a share, or of a rate."""
        return (self.quantity.where,) if isinstance(self.quantity, Indicator) else ()

    def terms_of(
        self, points: Points, weights: FloatArray, first: int = 0
    ) -> tuple[FloatArray, FloatArray]:
        """Give g and h of some rows, 0 outside; none of them need satisfy the condition."""
        inside = self.inside_of(points, weights)
        if not inside.any():
            return np.zeros(len(points)), np.zeros(len(points))
        g = np.where(inside, self.quantity.of(points), 0.0)
        rows = np.arange(first, first + g.size)
        refuse_odd_values(g, rows, self.quantity, "{task}", "mean", task=self)
        return g, inside.astype(float)

    @property
    def is_rate(self) -> bool:
        """Whether it is a rate or a share, within [0, 1]."""
        return isinstance(self.quantity, Indicator)

    def between(self, smallest: float, largest: float) -> Bounds:
        """Say what it can be if the quantity goes from one value to another."""
        if self.is_rate:
            return RATES
        found = Bounds(smallest, largest)
        return found if self.among_positives else found.hull(Bounds(0.0, 0.0))

    def _sums(self, rows: TaskRows, weights: FloatArray) -> Any:
        """What is divided, and by what, with some weights (n,) or sets of them (n, R)."""
        self.where.check(rows.points)
        g, h = self.terms_of(rows.points, rows.weights)
        if not h.any():
            raise self.without_rows()
        s = rows.of(self)
        return (g * s) @ weights, (h * s if self.among_positives else h) @ weights

    def fit(self, rows: TaskRows) -> RatioFit:
        """Divide one weighted sum by the other; NaN where there is nothing to divide by."""
        above, mass = map(float, self._sums(rows, rows.weights))
        return RatioFit(self, above / mass if mass > 0 else math.nan, mass)

    def reestimated(self, rows: TaskRows, weights: FloatArray) -> FloatArray:
        """Divide one weighted sum by the other with R other sets of weights, (n, R) -> (R,)."""
        above, mass = self._sums(rows, weights)
        return np.asarray(above / np.where(mass > 0, mass, math.nan))

    def tilts(self, rows: TaskRows | None) -> tuple[Quantity, ...] | None:  # noqa: ARG002
        """What is averaged among positives."""
        return (self.quantity,) if self.among_positives else None


@dataclass(frozen=True, eq=False)
class RatioFit:
    """A ratio as some rows have it."""

    ratio: Ratio
    value: float
    mass: float

    def shares(self, points: Points, weights: FloatArray, stand_in: FloatArray) -> FloatArray:
        """Give what rows add to the numerator, less the ratio times what they add below, (n,)."""
        g, h = self.ratio.terms_of(points, weights)
        below = h * stand_in if self.ratio.among_positives else h
        return weights * (g * stand_in - self.value * below) / (self.mass or math.nan)

    def lean(self, points: Points, weights: FloatArray, first: int = 0) -> FloatArray:
        """Give w (g - value h) among positives, else w g: what stand-ins move, times mass, (n,)."""
        g, h = self.ratio.terms_of(points, weights, first)
        return weights * (g - self.value * h) if self.ratio.among_positives else weights * g


def refuse_odd_values(
    values: FloatArray, rows: IntArray, quantity: Quantity, whole: str, kind: str, **words: object
) -> None:
    """Refuse values that are missing, infinite, or so large that sums of them are.

    `rows` are the numbers of the rows, and `whole` is what counts them.
    """
    infinite, wrong = ~np.isfinite(values), ~(np.abs(values) <= LARGEST_VALUE)
    if not wrong.any():
        return
    size = "{quantity} is {size} in {row}, too large to be summed in "
    problem = f"{size}{whole}; take a larger unit"
    if infinite.any():
        wrong = infinite
        problem = (
            f"{{quantity}} has no finite value in {{rows}} (first: {{row}}) that {whole} counts; "
            f"leave them out with a condition, as in {kind}(... | {{name}} is not missing)"
        )
    at, count = int(np.argmax(wrong)), int(wrong.sum())
    words |= {
        "quantity": quantity,
        "size": f"{values[at]:.3g}",
        "rows": counted(count, "row"),
        "name": quoted(min(quantity.names, default="x")),
    }
    value = words.get("task")
    raise InputError(
        problem, argument="tasks", row=int(rows[at]), value=value, count=count, details=words
    )


def label_apart(where: Predicate, names: Sequence[str]) -> tuple[Any, Predicate]:
    """Take the value that a label must have out of a condition.

    Examples
    --------
    >>> from itrust.data import parse_condition
    >>> label, rest = label_apart(parse_condition('age > 30 and y == "tie"'), ["y"])
    >>> label, rest.formula
    ('tie', 'age > 30')
    """
    parts = where.parts if isinstance(where, And) else (where,)
    for k, part in enumerate(parts):
        if isinstance(part, Level) and part.name in names:
            return part.level, all_of([*parts[:k], *parts[k + 1 :]])
    return None, where


@dataclass(frozen=True)
class FixedNumber(Task, Quantity):
    """A number, in an expression of tasks or the same for every row."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", checked_finite(self.value, "task"))

    def __str__(self) -> str:
        small = abs(self.value) < 1e15
        return str(int(self.value)) if small and self.value == int(self.value) else repr(self.value)

    def mapped(self, change: Callable[[Leaf], Task]) -> Task:  # noqa: ARG002
        """Itself: it has no leaves."""
        return self

    def joined(self, known: Mapping[Leaf, Value], number: Callable[[float], Value]) -> Value:  # noqa: ARG002
        """The number."""
        return number(self.value)

    def of(self, points: Points) -> FloatArray:
        """Repeat the number, (n,)."""
        return np.full(len(points), self.value)


@dataclass(frozen=True)
class Combined(Task, Quantity):
    """Two tasks, or two quantities, and the arithmetic sign between them."""

    left: Any
    sign: str
    right: Any

    def __post_init__(self) -> None:
        self._refuse_depth()

    def __str__(self) -> str:
        left, right = (
            f"({part})" if needs_parentheses(self.sign, part, second=second) else str(part)
            for part, second in ((self.left, False), (self.right, True))
        )
        return f"{left} {self.sign} {right}"

    @property
    def parts(self) -> tuple[Node, ...]:
        """Both sides."""
        return self.left, self.right

    def mapped(self, change: Callable[[Leaf], Task]) -> Task:
        """Both sides with other leaves."""
        left, right = self.left.mapped(change), self.right.mapped(change)
        if left is self.left and right is self.right:
            return self
        return Combined(left, self.sign, right)

    def joined(self, known: Mapping[Leaf, Value], number: Callable[[float], Value]) -> Value:
        """Join both sides."""
        both: Value = ARITHMETIC[self.sign](
            self.left.joined(known, number), self.right.joined(known, number)
        )
        return both

    def of(self, points: Points) -> FloatArray:
        """Evaluate both sides and join them row by row, (n,)."""
        with np.errstate(all="ignore"):
            both = ARITHMETIC[self.sign](self.left.of(points), self.right.of(points))
        return np.asarray(both, dtype=float)


def needs_parentheses(sign: str, part: Node, *, second: bool) -> bool:
    """Whether a part beside a sign is read as one only in parentheses."""
    if not isinstance(part, Combined):
        return False
    own, inner = RANK[sign], RANK[part.sign]
    from_right = sign == "**"
    return inner < own or (inner == own and second != from_right)


@dataclass(frozen=True)
class Named(Task):
    """A task with a name and a size of bias that would matter; all values are the task's."""

    task: Task
    title: str
    matters: float | None

    def __post_init__(self) -> None:
        self._refuse_depth()
        if not self.title:
            raise InputError("a title has one character or more", argument="title", value="")
        if self.matters is not None:
            object.__setattr__(self, "matters", checked_positive(self.matters, "tolerance"))

    def __str__(self) -> str:
        return self.title

    @property
    def formula(self) -> str:
        """Title, task and tolerance."""
        told = self.title.replace('"', '""')
        title = "" if self.title == str(self.task) else f'"{told}": '
        matters = "" if self.matters is None else f" ~ {self.matters!r}"
        return f"{title}{self.task}{matters}"

    @property
    def parts(self) -> tuple[Node, ...]:
        """The task."""
        return (self.task,)

    @property
    def tolerance(self) -> float | None:
        """Size of bias that would matter."""
        return self.matters

    def mapped(self, change: Callable[[Leaf], Task]) -> Task:
        """The task with other leaves, under the same name."""
        task = self.task.mapped(change)
        return self if task is self.task else replace(self, task=task)

    def joined(self, known: Mapping[Leaf, Value], number: Callable[[float], Value]) -> Value:
        """What the task makes of them."""
        return self.task.joined(known, number)


def combined(left: object, sign: str, right: object) -> Task:
    """Two tasks, or a task and a number, joined by a sign."""
    return Combined(_as_part(left), sign, _as_part(right))


def _as_part(part: object) -> Task:
    """A task as it is, a number as a task."""
    if isinstance(part, Task):
        return part
    if isinstance(part, Real) and not isinstance(part, bool):
        return FixedNumber(checked_finite(part, "task"))
    raise InputError(
        "a task joins with tasks and numbers, not with {value}", argument="task", value=part
    )


def leaves_of(tasks: Iterable[Task]) -> tuple[Leaf, ...]:
    """What tasks are made of, each once."""
    return tuple(dict.fromkeys(leaf for task in tasks for leaf in task.leaves()))


def reestimated(task: Task, rows: TaskRows, weights: FloatArray) -> FloatArray:
    """Estimate a task with other sets of weights, such as replicate weights, (n, R) -> (R,)."""
    leaves = leaves_of([task])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            task.at(leaves, [leaf.reestimated(rows, weights) for leaf in leaves]).value
        )
