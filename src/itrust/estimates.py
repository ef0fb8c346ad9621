"""A task on a population without labels: plug-in, repaired, rectified, each with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from itrust.averages import Weights
from itrust.errors import InputError, listed
from itrust.neighbours import Neighbours, neighbour_kernel
from itrust.points import Points
from itrust.population import Population
from itrust.sample import Sample, checked_sample
from itrust.tasks import Linear, Rows, Task, checked_tasks, spread_of
from itrust.typing import FloatArray

CHUNK_ROWS, PLACES_AT_ONCE = 8_192, 4_096
# A mean over many points wants little smoothing: noise averages out, smoothing bias does not.
NARROWER = 0.5
FEWEST = 4  # effective neighbours below which a prediction is left as it is


@dataclass(frozen=True)
class Estimate:
    """One way to estimate the number.

    Attributes
    ----------
    value, stderr, lower, upper : float
    assumes : str
        What the interval rests on.
    """

    value: float
    stderr: float
    lower: float
    upper: float
    assumes: str

    @property
    def width(self) -> float:
        """Of the interval."""
        return self.upper - self.lower

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return vars(self)


@dataclass(frozen=True)
class TaskEstimate:
    """A task on a population, estimated in four ways.

    Attributes
    ----------
    plugin : Estimate
        Probabilities in place of labels.
    repaired : Estimate
        Probabilities plus the local bias of the labelled rows.
    rectified : Estimate
        Prediction-powered: probabilities of the population, corrected by labelled rows.
    labelled : Estimate
        Labels of the labelled rows alone.
    power : float
        How much weight the probabilities have in `rectified`, chosen for a short interval.
    """

    task: Task
    plugin: Estimate
    repaired: Estimate
    rectified: Estimate
    labelled: Estimate
    power: float
    n: int
    size: int
    level: float
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        ways = ("plugin", "repaired", "rectified", "labelled")
        return {
            "task": str(self.task),
            **{way: getattr(self, way).to_dict() for way in ways},
            "power": self.power,
            "n": self.n,
            "population": self.size,
            "level": self.level,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"{self.task} on {self.size:,} rows without labels, {self.n:,} with"]
        for name in ("plugin", "repaired", "rectified", "labelled"):
            way: Estimate = getattr(self, name)
            ends = f"({way.lower:.5g} to {way.upper:.5g})"
            lines.append(f"  {name:<10} {way.value:>10.5g}  {ends:<22}  {way.assumes}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def estimate_task(
    task: Task, population: Population, labelled: Sample, *, level: float = 0.05
) -> TaskEstimate:
    """Estimate a task on a population whose labels are not known.

    Parameters
    ----------
    task : Task
    population : Population
        With every covariate that the task reads, and those of `labelled` for the repair.
    labelled : Sample
        Rows with labels. For `rectified` they are a random sample of the population, or carry
        weights that make them one.
    level : float

    Notes
    -----
    Rectified: with u(s) the rows' shares in the estimate with labels or stand-ins s, the value is
    F of the ratios whose sums are those of probabilities over the population times `power`, plus
    labels minus `power` times probabilities over labelled rows (Angelopoulos et al. 2023, 2024,
    applied to ratios and what arithmetic makes of them). Cost O(n N) for the repair at most.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust import tasks
    >>> few, many = it.simulate.survey(6_000, rng=0).sample.split([0.2, 0.8], rng=0)
    >>> town = it.Population(many.p, {c.name: c.values for c in many.columns if c.name == "age"})
    >>> few = few.with_columns(tuple(c for c in few.columns if c.name == "age"))
    >>> found = tasks.mean("age").estimate(town, labelled=few)
    >>> found.rectified.lower < found.rectified.value < found.rectified.upper
    True
    """
    checked_sample(labelled)
    if not isinstance(population, Population):
        raise InputError(
            f"population must be a Population(p, x), not a {type(population).__name__}"
        )
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 0.5:
        raise InputError(f"level must lie between 0 and 0.5, not {level!r}")
    own = {column.name: column for column in population.columns}
    lacking = [name for name in labelled.names if name not in own]
    if lacking:
        raise InputError(f"the population lacks {listed(lacking)}, which the labelled rows have")
    points = Points(population.p, tuple(own[name] for name in labelled.names))
    w = np.ones(population.n) if population.weights is None else population.weights
    w = w / w.mean()
    (with_p,), (with_y,), _ = checked_tasks(labelled, [task])
    out = Rows(points, w, population.p)
    wide = float(ndtri(1 - level / 2))
    plugin = task.linear(out)
    if not math.isfinite(plugin.value):
        raise InputError(f"{task} divides by 0 on the population")
    sampling = _spread(plugin.influence)
    if math.isnan(with_y.value):
        raise InputError(f"no positive label counts for {task}: labelled rows say nothing about it")
    power = _power(with_y, with_p, labelled, sampling)
    value, left = _rectified(task, labelled, out, power)
    stderr = math.hypot(spread_of(left, labelled), power * sampling)
    repaired, repair_error = _repaired(task, labelled, out)
    label_error = spread_of(with_y.influence, labelled)

    def ways(value: float, error: float, assumes: str) -> Estimate:
        return Estimate(value, error, value - wide * error, value + wide * error, assumes)

    random = "labelled rows are a random sample" + (
        ", by their weights" if labelled.weights is not None else ""
    )
    return TaskEstimate(
        task=task,
        plugin=ways(plugin.value, sampling, "the probabilities are right"),
        repaired=ways(repaired, repair_error, "the bias is smooth, in the same way in both"),
        rectified=ways(value, stderr, random),
        labelled=ways(with_y.value, label_error, random),
        power=power,
        n=labelled.n,
        size=population.n,
        level=float(level),
        notes=(*population.dropped, *labelled.notes),
    )


def _spread(influence: FloatArray) -> float:
    n = influence.size
    return math.sqrt(n / max(n - 1, 1) * float(np.square(influence).sum()))


def _power(labels: Linear, predicted: Linear, sample: Sample, sampling: float) -> float:
    """The share of the probabilities that makes the interval shortest, within [0, 1]."""
    own = spread_of(predicted.influence, sample) ** 2
    both = spread_of(labels.influence + predicted.influence, sample) ** 2
    covariance = (both - own - spread_of(labels.influence, sample) ** 2) / 2
    below = own + sampling**2
    return float(np.clip(covariance / below, 0.0, 1.0)) if below > 0 else 0.0


def _rectified(task: Task, labelled: Sample, out: Rows, power: float) -> tuple[float, FloatArray]:
    """Value, and the shares of labelled rows in it.

    One step from the labels' own estimate along its linearisation: labels, plus `power` times
    what probabilities say about the population less what they say about the labelled rows.
    """
    w = labelled.weights_or_ones
    with_y = task.linear(Rows(labelled.points, w, labelled.y))
    with_p = task.linear(Rows(labelled.points, w, labelled.p))
    population = task.linear(out)
    value = with_y.value + power * (population.value - with_p.value)
    return value, with_y.influence - power * with_p.influence


def _repaired(task: Task, labelled: Sample, out: Rows) -> tuple[float, float]:
    """Plug-in of p plus local bias, and its standard error."""
    kernel = neighbour_kernel(labelled.points).widened(NARROWER)
    n, many = labelled.n, len(out.points)
    mass, lean, squares = np.zeros(many), np.zeros(many), np.zeros(many)
    for at in range(0, many, PLACES_AT_ONCE):
        some = slice(at, min(at + PLACES_AT_ONCE, many))
        weights = Neighbours(out.points.take(some), kernel)
        for rows, places, block in _blocks(labelled, weights):
            w = labelled.weights_or_ones[rows]
            mass[some][places] += block @ w
            lean[some][places] += block @ (w * labelled.residuals[rows])
            squares[some][places] += block**2 @ w**2
    enough = np.divide(mass**2, squares, out=np.zeros(many), where=squares > 0) >= FEWEST
    bias = np.divide(lean, mass, out=np.zeros(many), where=enough)
    repaired = Rows(out.points, out.weights, np.clip(out.stand_in + bias, 0.0, 1.0))
    leaning = task.leaning(repaired)
    slope = np.divide(leaning.influence, mass, out=np.zeros(many), where=enough)
    share = np.zeros(n)  # of every labelled row's residual in the estimate
    for at in range(0, many, PLACES_AT_ONCE):
        some = slice(at, min(at + PLACES_AT_ONCE, many))
        weights = Neighbours(out.points.take(some), kernel)
        for rows, places, block in _blocks(labelled, weights):
            share[rows] += labelled.weights_or_ones[rows] * (slope[some][places] @ block)
    spread = spread_of(share * labelled.residuals, labelled)
    return leaning.value, math.hypot(spread, _spread(task.linear(repaired).influence))


def _blocks(labelled: Sample, weights: Weights) -> Any:
    for first in range(0, labelled.n, CHUNK_ROWS):
        chunk = slice(first, first + CHUNK_ROWS)
        for places, rows, block in weights.tiles(labelled.points.take(chunk), whole=False):
            yield rows + first, places, block
