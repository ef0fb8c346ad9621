"""Inference tasks: the number that somebody wants to report, as a function of labels.

mean of a quantity among positives, E[g(x) | y = 1, where]; prevalence, P(y = 1 | where); and what
ordinary arithmetic makes of them. A task is linearised around its plug-in value, so that its bias
is a weighted sum of residuals y - p with weights that no label has touched.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from itrust.conditions import Always, Condition, as_condition, quoted
from itrust.errors import InputError, counted
from itrust.klce import checked_draws, checked_null, cluster_notes
from itrust.multiplicity import own_pvalues, step_down
from itrust.nulls import RowwiseNull
from itrust.points import Points
from itrust.population import Population
from itrust.quantities import ARITHMETIC, Callback, Covariate, Indicator, Quantity
from itrust.sample import Sample, checked_sample
from itrust.seeds import Rng, as_seed
from itrust.typing import FloatArray

if TYPE_CHECKING:
    from itrust.estimates import TaskEstimate

ROWS_AT_ONCE, DRAWS_AT_ONCE = 65_536, 128


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
        inside = self.where.rows(rows.points)
        if not (inside & (rows.weights > 0)).any():
            raise InputError(f"no row satisfies {self.where} in {self}")
        g = np.where(inside, self.quantity.of(rows.points), 0.0)
        wrong = ~np.isfinite(g)
        if wrong.any():
            raise InputError(
                f"{self.quantity} has no finite value in {counted(int(wrong.sum()), 'row')} "
                f"(first: row {int(np.argmax(wrong))}) that {self} counts; leave them out with a "
                f"condition such as not ({_first_name(self.quantity)} is missing)"
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
        g, h = self._parts(rows)
        estimate = self.linear(rows)
        mass = float(rows.weights @ self._below(rows, h))
        slope = g - estimate.value * h if self.among_positives else g
        return Linear(estimate.value, rows.weights * slope / (mass or math.nan))


def _first_name(quantity: Quantity) -> str:
    names = sorted(quantity.names)
    return quoted(names[0]) if names else "x"


@dataclass(frozen=True)
class Fixed(Task):
    """A number in an expression."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:g}"

    @property
    def names(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def linear(self, rows: Rows) -> Linear:
        """The number; no row has a share in it."""
        return Linear(self.value, np.zeros(rows.weights.size))

    leaning = linear


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


def _combined(left: object, sign: str, right: object) -> Task:
    parts: list[Task] = []
    for part in (left, right):
        if isinstance(part, int | float) and not isinstance(part, bool) and math.isfinite(part):
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
) -> Task:
    """Average of a covariate, or of a function of covariates, among positives.

    E[g(x) | y = 1, where].

    Parameters
    ----------
    quantity : str or callable
        A covariate, or a function that takes a mapping of covariates to arrays and gives an
        array of numbers.
    where : mapping, optional
        Covariates and the value they must have, a list of values, or None for missing.
    name : str, optional
        For a function.

    Examples
    --------
    >>> from itrust import tasks
    >>> str(tasks.mean("age", where={"race": "Black"}) - tasks.mean("age", where={"race": "White"}))
    'mean(age | race == "Black") - mean(age | race == "White")'
    """
    return Ratio(_as_quantity(quantity, name), as_condition(where), among_positives=True)


def _as_quantity(quantity: object, name: str | None) -> Quantity:
    if isinstance(quantity, Quantity):
        return quantity
    if isinstance(quantity, str):
        return Covariate(quantity)
    if callable(quantity):
        title = str(name or getattr(quantity, "__name__", "function"))
        return Callback(quantity, title, frozenset())
    raise InputError(f"mean takes the name of a covariate or a function, not {quantity!r}")


def share(condition: object = None, where: object = None, **values: Any) -> Task:
    """Share of positives for which a condition holds: P(condition | y = 1, where).

    >>> from itrust import tasks
    >>> str(tasks.share(race="Black"))
    'share(race == "Black")'
    """
    chosen = as_condition(values if condition is None else condition)
    if isinstance(chosen, Always):
        raise InputError("share needs a condition, as in share(race='Black')")
    return Ratio(Indicator(chosen), as_condition(where), among_positives=True)


def prevalence(where: object = None, **values: Any) -> Task:
    """Rate of positives: P(y = 1 | where).

    >>> from itrust import tasks
    >>> str(tasks.prevalence(race="Black") - tasks.prevalence(race="White"))
    'prevalence(race == "Black") - prevalence(race == "White")'
    """
    chosen = as_condition(values or None if where is None else where)
    return Ratio(Indicator(Always()), chosen, among_positives=False)


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
        Interval of the bias.
    stderr : float
        Of the bias.
    own_pvalue, pvalue : float
        For "no bias for this task", alone and adjusted for all tasks evaluated together.
    covariates : names that the task depends on
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
        if max(-self.lower, self.upper) <= size:
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
        return {
            "task": self.name,
            "finding": self.finding,
            **{name: getattr(self, name) for name in kept},
            "covariates": list(self.covariates),
            "uncovered": list(self.uncovered),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [
            self.name,
            f"  with probabilities  {self.plugin:.6g}",
            f"  with labels         {self.from_labels:.6g}",
            f"  bias                {self.bias:+.4g}   ({self.lower:+.4g} to {self.upper:+.4g})",
            f"  p-value             {self.pvalue:.4g}   (no bias for this task)",
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
    """Evaluate several tasks on the same redraws; p-values are adjusted for all of them."""
    checked_sample(sample)
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level!r}")
    draws, seed = checked_draws(draws), as_seed(rng)
    null = checked_null(None, sample)
    assert isinstance(null, RowwiseNull)
    plug_ins, labels, leanings = checked_tasks(sample, tasks)
    if not tasks:
        return ()
    coefficients = np.array([leaning.influence for leaning in leanings])
    sums, squares = along(sample, coefficients, null, draws, seed)
    scores = np.divide(np.abs(sums), np.sqrt(squares), out=np.zeros_like(sums), where=squares > 0)
    own, adjusted = own_pvalues(scores), step_down(scores)
    wide = float(ndtri(1 - level / 2))
    found = []
    for k, task in enumerate(tasks):
        stderr = spread_of(labels[k].influence - plug_ins[k].influence, sample)
        bias = labels[k].value - plug_ins[k].value
        undefined = math.isnan(bias)
        notes = [
            *(
                ["no positive label counts for this task: labels give no estimate"]
                if undefined
                else []
            ),
            *cluster_notes(sample, null),
        ]
        found.append(
            TaskResult(
                task=task,
                plugin=plug_ins[k].value,
                from_labels=labels[k].value,
                lower=bias - wide * stderr,
                upper=bias + wide * stderr,
                stderr=stderr,
                own_pvalue=float(own[k]),
                pvalue=float(adjusted[k]),
                level=float(level),
                n=sample.n,
                draws=draws,
                seed=seed,
                covariates=covariates_of(task, sample.points),
                notes=tuple(notes),
            )
        )
    return tuple(found)


def checked_tasks(
    sample: Sample, tasks: Sequence[Task]
) -> tuple[list[Linear], list[Linear], list[Linear]]:
    """Plug-in, from labels, and sensitivity to labels, of every task; refuses what cannot be."""
    w = sample.weights_or_ones
    with_p, with_y = (Rows(sample.points, w, s) for s in (sample.p, sample.y))
    for task in tasks:
        if not isinstance(task, Task):
            raise InputError(
                f"a task is made with tasks.mean, tasks.share, tasks.prevalence or tasks.parse, "
                f"not {task!r}"
            )
    plug_ins = [task.linear(with_p) for task in tasks]
    for task, plug_in in zip(tasks, plug_ins, strict=True):
        if not math.isfinite(plug_in.value):
            raise InputError(f"{task} divides by 0 when probabilities stand for labels")
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


def spread_of(influence: FloatArray, sample: Sample) -> float:
    """Standard error from the rows' shares; rows of a cluster are summed first."""
    shares = influence
    if sample.cluster is not None:
        _, unit = np.unique(sample.cluster, return_inverse=True)
        shares = np.asarray(np.bincount(unit, influence), dtype=float)
    correction = shares.size / max(shares.size - 1, 1)
    return math.sqrt(correction * float(np.square(shares).sum()))


def along(
    sample: Sample, coefficients: FloatArray, null: RowwiseNull, draws: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Sums of c e and c^2 e^2 for the data and all draws, data first, (k, 1 + draws) each.

    Cost O(k n draws); memory O(rows at once x draws at once).
    """
    shape = (len(coefficients), 1 + draws)
    sums, squares = np.zeros(shape), np.zeros(shape)
    for chunk in sample.chunks(ROWS_AT_ONCE):
        c = coefficients[:, chunk.first : chunk.first + chunk.y.size]
        e = chunk.y - chunk.p
        sums[:, 0] += c @ e
        squares[:, 0] += c**2 @ e**2
        for at in range(0, draws, DRAWS_AT_ONCE):
            block = range(at, min(at + DRAWS_AT_ONCE, draws))
            drawn = null.draw(chunk, block, seed)
            residuals = drawn - chunk.p[:, None] if drawn.dtype == bool else drawn
            sums[:, 1 + at : 1 + block.stop] += c @ residuals
            squares[:, 1 + at : 1 + block.stop] += c**2 @ residuals**2
    return sums, squares


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
    """Read a task from text such as 'mean(age | race == "Black")'; see `itrust.grammar`."""
    from itrust.grammar import parse as read

    return read(text)
