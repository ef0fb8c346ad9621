"""Inference tasks: the number that somebody wants to report, as a function of labels.

mean of a quantity among positives, E[g(x) | y = 1, where]; prevalence, P(y = 1 | where); and what
ordinary arithmetic makes of them. The bias of a single ratio is a weighted sum of residuals y - p,
with weights that no label has touched, over a denominator; that of several is what arithmetic
makes of these.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t

from itrust.averages import BEYOND_DOUBT
from itrust.conditions import Always, Condition, Missing, as_condition, quoted
from itrust.errors import InputError, counted
from itrust.groups import checked_reach, rowwise_null
from itrust.klce import cluster_notes
from itrust.multiplicity import own_pvalues, step_down
from itrust.nulls import RowwiseNull
from itrust.plain import plain
from itrust.points import Chunk, Points
from itrust.population import Population
from itrust.quantities import (
    ARITHMETIC,
    Callback,
    Covariate,
    Indicator,
    Quantity,
    number_text,
)
from itrust.sample import Sample, checked_sample
from itrust.seeds import Rng, as_seed
from itrust.tails import normal_score
from itrust.typing import FloatArray

if TYPE_CHECKING:
    from itrust.estimates import TaskEstimate

ROWS_AT_ONCE, DRAWS_AT_ONCE = 65_536, 128
FEW_LABELS = 10  # that carry an estimate


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
    def material(self) -> float | None:
        """Size of bias that would matter, in the task's own unit; None: not said."""
        return None

    def named(self, title: str, material: float | None = None) -> Task:
        """Give the task a name to be shown by, and the size of bias that would matter."""
        return Named(self, str(title), material)

    def matters_at(self, material: float) -> Task:
        """Say which size of bias would matter, in the task's own unit."""
        return Named(self, str(self), float(material))

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
        level: float = 0.05,
    ) -> TaskEstimate:
        """Estimate on a population without labels: see `itrust.estimates.estimate_task`."""
        from itrust.estimates import estimate_task

        return estimate_task(self, population, labelled, level=level)

    def evaluate(
        self, sample: Sample, *, level: float = 0.05, draws: int = 999, rng: Rng = None
    ) -> TaskResult:
        """Plug-in, estimate from labels, bias with interval and p-value; see `TaskResult`."""
        return evaluate_tasks(sample, [self], level=level, draws=draws, rng=rng)[0]


@dataclass(frozen=True)
class Ratio(Task):
    """Sum of w g s over sum of w h s (among positives) or of w h (among rows); s is y or p."""

    quantity: Quantity
    where: Condition
    among_positives: bool

    def __str__(self) -> str:
        given = "" if isinstance(self.where, Always) else str(self.where)
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
        inside = self.where.rows(rows.points) & (rows.weights > 0)
        if not inside.any():
            raise InputError(f"no row of positive weight satisfies {self.where} in {self}")
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
            raise InputError(f"material must be a positive number, not {self.matters!r}")

    def __str__(self) -> str:
        return self.title

    @property
    def names(self) -> frozenset[str]:
        """Those of the task."""
        return self.task.names

    @property
    def material(self) -> float | None:
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
    if isinstance(chosen, Always):
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
    return Ratio(Indicator(Always()), chosen, among_positives=False)


def _condition(condition: object, values: Mapping[str, Any], name: str) -> Condition:
    if condition is not None and values:
        raise InputError(f"{name} takes a condition or keywords, not both")
    if isinstance(condition, str):
        from itrust.grammar import parse_condition

        return parse_condition(condition)
    return as_condition(values or None if condition is None else condition)


@dataclass(frozen=True)
class TaskResult:
    """What a model does to one number.

    Attributes
    ----------
    task : Task
    plugin : float
        The estimate with probabilities in place of labels.
    from_labels : float
        The estimate from the labels of the sample.
    lower, upper : float
        Interval of the bias; for all tasks evaluated together.
    stderr : float
        Of the bias.
    own_pvalue, pvalue : float
        For "no bias for this task", alone and adjusted for all tasks evaluated together.
    covariates : names that the task depends on
    few_labels : bool
        Whether fewer than ten labels carry the estimate.
    uncovered : those among them that the audit did not judge
    """

    task: Task
    plugin: float
    from_labels: float
    lower: float
    upper: float
    stderr: float
    own_pvalue: float
    pvalue: float
    level: float
    n: int
    draws: int
    seed: int
    covariates: tuple[str, ...]
    few_labels: bool = False
    uncovered: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of the task."""
        return str(self.task)

    @property
    def bias(self) -> float:
        """From labels minus plug-in; positive: the model understates the number."""
        return self.from_labels - self.plugin

    @property
    def material(self) -> float | None:
        """Size of bias that would matter, if the task says so."""
        return self.task.material

    @property
    def finding(self) -> str:
        """What p-value, interval and materiality come to, in words."""
        wrong, size = self.pvalue <= self.level, self.material
        least = max(self.lower, -self.upper)
        if math.isnan(self.bias):
            return "labels give no estimate"
        if size is None:
            return "biased" if wrong else "no bias shown"
        if max(-self.lower, self.upper) <= size and not self.few_labels:
            return f"within {size:g}"
        if not wrong:
            return f"no bias shown, {size:g} not excluded"
        return "biased" if least >= size else f"biased, by {size:g} or more not shown"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        kept = (
            "plugin",
            "from_labels",
            "bias",
            "lower",
            "upper",
            "stderr",
            "own_pvalue",
            "pvalue",
            "level",
            "n",
            "draws",
            "seed",
            "material",
        )
        found: dict[str, Any] = plain(
            {
                "task": self.name,
                "finding": self.finding,
                **{name: getattr(self, name) for name in kept},
                "covariates": self.covariates,
                "few_labels": self.few_labels,
                "uncovered": self.uncovered,
                "notes": self.notes,
            }
        )
        return found

    def __str__(self) -> str:
        lines = [
            self.name,
            f"  with probabilities  {self.plugin:.6g}",
            f"  with labels         {self.from_labels:.6g}",
            f"  bias                {self.bias:+.4g}   ({self.lower:+.4g} to {self.upper:+.4g})",
            f"  p-value             {self.pvalue:.4g}   (H0: no bias for this task)",
            f"  depends on          {', '.join(self.covariates) or 'no covariate'}",
            "  bias = with labels - with probabilities; positive: the model understates it",
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)


def evaluate_tasks(
    sample: Sample,
    tasks: Sequence[Task],
    *,
    level: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> tuple[TaskResult, ...]:
    """Evaluate several tasks on the same redraws.

    P-values are adjusted for all of them, and intervals hold for all of them (Bonferroni).
    """
    checked_sample(sample)
    draws, seed = checked_reach(draws, level), as_seed(rng)
    null = rowwise_null(sample)
    plug_ins, labels, leanings = checked_tasks(sample, tasks)
    if not tasks:
        return ()
    scores = task_scores(sample, tasks, null, draws, seed)
    own, adjusted = own_pvalues(np.abs(scores)), step_down(np.abs(scores))
    found = []
    for k, task in enumerate(tasks):
        bias = labels[k].value - plug_ins[k].value
        shares = labels[k].influence - plug_ins[k].influence
        stderr, freedom = _uncertainty(shares, leanings[k].influence, sample)
        wide = float(t.isf(level / (2 * len(tasks)), freedom))
        notes = list(cluster_notes(sample, null)[1:])
        if math.isnan(bias):
            notes.insert(0, "labels give no estimate: a denominator is 0")
        elif freedom < FEW_LABELS:
            notes.insert(0, "few labels carry this estimate: the interval is rough")
        notes.extend(_missing_notes(task, sample.points))
        found.append(
            TaskResult(
                task=task,
                plugin=plug_ins[k].value,
                from_labels=labels[k].value,
                lower=bias - wide * stderr,
                upper=bias + wide * stderr,
                stderr=stderr,
                own_pvalue=math.nan if math.isnan(bias) else float(own[k]),
                pvalue=math.nan if math.isnan(bias) else float(adjusted[k]),
                level=float(level),
                n=sample.n,
                draws=draws,
                seed=seed,
                covariates=covariates_of(task, sample.points),
                few_labels=freedom < FEW_LABELS,
                notes=tuple(notes),
            )
        )
    return tuple(found)


def _missing_notes(task: Task, points: Points) -> list[str]:
    """Rows that no comparison holds for."""
    said = []
    for name in sorted(task.names):
        missing = int(Missing(name).rows(points).sum())
        if missing and f"{quoted(name)} is" not in str(task):
            told = counted(missing, "row")
            said.append(f"{told} without {name}: no comparison with it holds for them")
    return said


def _uncertainty(shares: FloatArray, leaning: FloatArray, sample: Sample) -> tuple[float, float]:
    """Standard error of a bias, and how many rows or clusters carry it, less one.

    At least what labels drawn from the probabilities would have: a handful of equal labels has
    no variance of its own.
    """
    own = units_of(shares, sample)
    drawn = leaning**2 * sample.p * (1 - sample.p)
    if sample.cluster is None and drawn.sum() > np.square(own).sum():
        squares = drawn
    else:
        squares = np.square(own)
    total = float(squares.sum())
    carried = total**2 / float(np.square(squares).sum()) if total > 0 else 1.0
    correction = own.size / max(own.size - 1, 1)
    return math.sqrt(correction * total), max(carried - 1, 1.0)


def checked_tasks(
    sample: Sample, tasks: Sequence[Task]
) -> tuple[list[Linear], list[Linear], list[Linear]]:
    """Plug-in, from labels, and sensitivity to labels, of every task; refuses what cannot be."""
    w = sample.weights_or_ones
    with_p, with_y = (Rows(sample.points, w, s) for s in (sample.p, sample.y))
    for task in tasks:
        if isinstance(task, Task) and not _ratios(task):
            raise InputError(f"{task} is a number and no task; use mean, share or prevalence")
        if not isinstance(task, Task):
            raise InputError(
                f"a task is made with tasks.mean, tasks.share, tasks.prevalence or tasks.parse, "
                f"not {task!r}"
            )
    plug_ins = [task.linear(with_p) for task in tasks]
    for task, plug_in in zip(tasks, plug_ins, strict=True):
        if not math.isfinite(plug_in.value):
            raise InputError(f"{task} has no finite value when probabilities stand for labels")
    return (
        plug_ins,
        [task.linear(with_y) for task in tasks],
        [task.leaning(with_p) for task in tasks],
    )


def covariates_of(task: Task, points: Points) -> tuple[str, ...]:
    """Names in the order of the sample; a function's are those it reads."""
    names = set(task.names)
    for part in _ratios(task):
        if isinstance(part.quantity, Callback):
            names |= part.quantity.asked_by(points)
    return tuple(column.name for column in points.columns if column.name in names)


def _ratios(task: Task) -> list[Ratio]:
    if isinstance(task, Ratio):
        return [task]
    if isinstance(task, Named):
        return _ratios(task.task)
    return [*_ratios(task.left), *_ratios(task.right)] if isinstance(task, Combined) else []


def units_of(influence: FloatArray, sample: Sample) -> FloatArray:
    """Shares of rows, or summed over clusters."""
    if sample.cluster is None:
        return influence
    _, unit = np.unique(sample.cluster, return_inverse=True)
    return np.asarray(np.bincount(unit, influence), dtype=float)


def spread_of(influence: FloatArray, sample: Sample) -> float:
    """Standard error from the rows' shares; rows of a cluster are summed first."""
    shares = units_of(influence, sample)
    correction = shares.size / max(shares.size - 1, 1)
    return math.sqrt(correction * float(np.square(shares).sum()))


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


def task_scores(
    sample: Sample, tasks: Sequence[Task], null: RowwiseNull, draws: int, seed: int
) -> FloatArray:
    """Bias of every task in its own standard errors, data first, (k, 1 + draws).

    The bias itself is taken, F of the ratios with labels less F of those with probabilities, and
    divided by its standard error at those labels, or by that of labels drawn from the
    probabilities where it is larger; then brought to the normal scale by its skewness under the
    null, so that tasks compare.
    """
    ratios = list(dict.fromkeys(ratio for task in tasks for ratio in _ratios(task)))
    rows = Rows(sample.points, sample.weights_or_ones, sample.p)
    plug_ins = [ratio.linear(rows).value for ratio in ratios]
    lean = np.zeros((len(ratios), sample.n))
    below = np.zeros((len(ratios), sample.n))
    for k, ratio in enumerate(ratios):
        lean[k], below[k] = ratio.parts_of_bias(rows, plug_ins[k])
    sums, squares, masses = along(sample, lean, below, null, draws, seed)
    scores = np.zeros((len(tasks), 1 + draws))
    v = sample.p * (1 - sample.p)
    expected = (lean * v) @ lean.T
    for k, task in enumerate(tasks):
        labelled = np.array([ratio.among_positives for ratio in ratios])[:, None]
        mass = np.where(labelled & (masses > 0), masses, _denominators(ratios, rows)[:, None])
        leaves = {ratio: j for j, ratio in enumerate(ratios)}
        moved = task.dual(
            [
                Dual(plug_ins[j] + sums[j] / mass[j], _unit(len(ratios), j, 1 + draws))
                for j in range(len(ratios))
            ],
            leaves,
        )
        start = task.dual(
            [Dual(np.array([plug_ins[j]]), _unit(len(ratios), j, 1)) for j in range(len(ratios))],
            leaves,
        )
        slope = moved.slope / mass
        drawn = np.einsum("jb,jlb,lb->b", slope, squares, slope)
        null_variance = np.einsum("jb,jl,lb->b", slope, expected, slope)
        at_null = (start.slope[:, 0] / _denominators(ratios, rows)) @ lean
        third = float(at_null**3 @ (v * (1 - 2 * sample.p)))
        second = float(at_null**2 @ v)
        skewness = third / second**1.5 if second > 0 and sample.cluster is None else 0.0
        scale = drawn if sample.cluster is not None else np.maximum(drawn, null_variance)
        bias = np.nan_to_num(moved.value - start.value[0])
        known = scale > 0
        z = np.where(known, bias / np.sqrt(np.where(known, scale, 1.0)), 0.0)
        scores[k] = normal_score(np.nan_to_num(z), np.array(skewness))
        if second <= 0 and abs(bias[0]) > 0:  # labels that were called impossible
            scores[k] = 0.0
            scores[k, 0] = BEYOND_DOUBT
    return scores


def _unit(size: int, position: int, columns: int) -> FloatArray:
    slope = np.zeros((size, columns))
    slope[position] = 1.0
    return slope


def _denominators(ratios: Sequence[Ratio], rows: Rows) -> FloatArray:
    return np.array([ratio.denominator(rows) for ratio in ratios])


def along(
    sample: Sample,
    lean: FloatArray,
    below: FloatArray,
    null: RowwiseNull,
    draws: int,
    seed: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums over rows for the data and all draws, data first.

    Of c e (k, 1 + draws); of c c' e^2 (k, k, 1 + draws), with clusters of the products of their
    sums; of h y (k, 1 + draws), with clusters the data's. Cost O(k^2 n draws); memory O(rows at
    once x draws at once).
    """
    count = len(lean)
    sums, masses = np.zeros((count, 1 + draws)), np.zeros((count, 1 + draws))
    squares = np.zeros((count, count, 1 + draws))
    pairs = [(j, k) for j in range(count) for k in range(j, count)]
    for chunk in sample.chunks(ROWS_AT_ONCE):
        here = slice(chunk.first, chunk.first + chunk.y.size)
        c, h = lean[:, here], below[:, here]
        products = np.array([c[j] * c[k] for j, k in pairs])
        for columns, e in _residuals(chunk, null, draws, seed):
            sums[:, columns] += c @ e
            masses[:, columns] += h @ (e + chunk.p[:, None])
            for (j, k), part in zip(pairs, products @ e**2, strict=True):
                squares[j, k, columns] += part
                if j != k:
                    squares[k, j, columns] += part
    if sample.cluster is not None:
        units = np.array([units_of(own * sample.residuals, sample) for own in lean])
        squares[:] = (units @ units.T)[:, :, None]
        masses[:] = masses[:, :1]
    return sums, squares, masses


def _residuals(
    chunk: Chunk, null: RowwiseNull, draws: int, seed: int
) -> Iterator[tuple[slice, FloatArray]]:
    """Of the data, then of some draws at a time, with the columns they belong to."""
    yield slice(0, 1), (chunk.y - chunk.p)[:, None]
    for at in range(0, draws, DRAWS_AT_ONCE):
        block = range(at, min(at + DRAWS_AT_ONCE, draws))
        drawn = null.draw(chunk, block, seed)
        e = drawn - chunk.p[:, None] if drawn.dtype == bool else drawn
        yield slice(1 + at, 1 + block.stop), np.asarray(e)


def covered(result: TaskResult, judged: Sequence[str]) -> TaskResult:
    """Note the covariates of a task that were not judged."""
    left_out = tuple(name for name in result.covariates if name not in judged)
    if not left_out:
        return result
    note = (
        f"this task depends on {', '.join(left_out)}, which the audit did not judge: its verdict "
        f"does not cover this number"
    )
    return replace(result, uncovered=left_out, notes=(*result.notes, note))


def parse(text: str) -> Task:
    """Read a task from text; the grammar is in `help(itrust.grammar)`.

    >>> str(parse('100 * share(age >= 65 | race == "Black")'))
    '100 * share(age >= 65 | race == "Black")'
    """
    from itrust.grammar import parse as read

    return read(text)
