"""A task on a population without labels: plug-in, repaired, rectified, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from itrust._core import FloatArray, InputError, IntArray, listed
from itrust.bias import Neighbours, Weights, neighbour_kernel
from itrust.data import Points, Population, Sample, checked_sample
from itrust.kernels import LocalKernel
from itrust.tasks.bias import checked_tasks, covariates_of, spread_of
from itrust.tasks.expressions import Linear, Rows, Task

CHUNK_ROWS, PLACES_AT_ONCE = 8_192, 4_096
# A mean over many points wants little smoothing: noise averages out, smoothing bias does not.
WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of the usual ones; wider where too few rows are near
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
        return dict(vars(self))


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
    alpha: float
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
            "alpha": self.alpha,
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
    task: Task, population: Population, labelled: Sample, *, alpha: float = 0.05
) -> TaskEstimate:
    """Estimate a task on a population whose labels are not known.

    Parameters
    ----------
    task : Task
    population : Population
        With every covariate that the task reads; those it shares with `labelled` serve the repair.
    labelled : Sample
        Other rows with labels. For `rectified` and `labelled` they are a random sample from where
        the population comes from, or carry weights that make them one.
    alpha : float

    Notes
    -----
    Rectified: the estimate from labels, plus `power` times the plug-in on the population less the
    plug-in on the labelled rows (Angelopoulos et al. 2023, 2024, for ratios and what arithmetic
    makes of them); it may leave the range of the number. All intervals are for where the
    population comes from, not for its own rows alone, and are approximate. Labelled rows are not
    among the population's. Covariates that only one side has are left out of the repair. Cost
    O(n N) for the repair at most.

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
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 0.5:
        raise InputError(f"alpha must lie between 0 and 0.5, not {alpha!r}")
    own = {column.name: column for column in population.columns}
    needed = covariates_of(task, labelled.points)
    lacking = [name for name in needed if name not in own]
    if lacking:
        raise InputError(f"the population lacks {listed(lacking)}, which {task} reads")
    shared = tuple(column for column in labelled.columns if column.name in own)
    labelled = labelled.with_columns(shared)
    points = Points(population.p, tuple(own[column.name] for column in shared))
    w = np.ones(population.n) if population.weights is None else population.weights
    w = w / w.mean()
    (with_p,), (with_y,), _ = checked_tasks(labelled, [task])
    out = Rows(points, w, population.p)
    wide = float(ndtri(1 - alpha / 2))
    plugin = task.linear(out)
    if not math.isfinite(plugin.value):
        raise InputError(f"{task} divides by 0 on the population")
    sampling = _spread(plugin.influence)
    if math.isnan(with_y.value):
        raise InputError(f"no positive label counts for {task}: labelled rows say nothing about it")
    power = _power(with_y, with_p, labelled, sampling)
    # Labels, plus what probabilities say about the population less about the labelled rows.
    value = with_y.value + power * (plugin.value - with_p.value)
    left = with_y.influence - power * with_p.influence
    stderr = math.hypot(spread_of(left, labelled), power * sampling)
    repaired, repair_error, alone = _repaired(task, labelled, out)
    notes = [*population.dropped, *labelled.notes]
    if alone > 0.01:
        notes.append(
            f"{100 * alone:.0f} % of the population has no labelled neighbours: repaired leaves "
            f"its probabilities as they are"
        )
    label_error = spread_of(with_y.influence, labelled)

    def ways(value: float, error: float, assumes: str) -> Estimate:
        return Estimate(value, error, value - wide * error, value + wide * error, assumes)

    random = "if labelled rows are a random sample" + (
        ", by their weights" if labelled.weights is not None else ""
    )
    return TaskEstimate(
        task=task,
        plugin=ways(plugin.value, sampling, "if the probabilities are right"),
        repaired=ways(repaired, repair_error, "if the bias is smooth and the same in both samples"),
        rectified=ways(value, stderr, random),
        labelled=ways(with_y.value, label_error, random),
        power=power,
        n=labelled.n,
        size=population.n,
        alpha=float(alpha),
        notes=tuple(notes),
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


def _repaired(task: Task, labelled: Sample, out: Rows) -> tuple[float, float, float]:
    """Plug-in of p plus local bias, its standard error, and the share of rows left as they are.

    Widths begin at half of the usual ones, and grow where nobody is near.
    """
    base = neighbour_kernel(labelled.points)
    many = len(out.points)
    bias, mass, widths = np.zeros(many), np.zeros(many), np.zeros(many)
    open_places = np.arange(many)
    for factor in WIDTHS:
        found = _local(labelled, out.points, open_places, base.widened(factor))
        enough = found.size >= FEWEST
        places = open_places[enough]
        bias[places], mass[places] = found.value[enough], found.mass[enough]
        widths[places] = factor
        open_places = open_places[~enough]
        if not open_places.size:
            break
    repaired = Rows(out.points, out.weights, np.clip(out.stand_in + bias, 0.0, 1.0))
    leaning = task.leaning(repaired)
    slope = np.divide(leaning.influence, mass, out=np.zeros(many), where=mass > 0)
    share = np.zeros(labelled.n)  # of every labelled row's residual in the estimate
    for factor in WIDTHS:
        chosen = np.flatnonzero(widths == factor)
        for some, weights in _neighbours(out.points, chosen, base.widened(factor)):
            for rows, places, block in _blocks(labelled, weights):
                share[rows] += labelled.weights_or_ones[rows] * (slope[some[places]] @ block)
    spread = spread_of(share * _left_over(labelled, base.widened(WIDTHS[0])), labelled)
    error = math.hypot(spread, _spread(task.linear(repaired).influence))
    return leaning.value, error, open_places.size / many


def _left_over(labelled: Sample, kernel: LocalKernel) -> FloatArray:
    """Residuals less the local bias of the other rows: noise, without the bias that is repaired."""
    found = _local(labelled, labelled.points, np.arange(labelled.n), kernel)
    own = np.divide(
        labelled.weights_or_ones, found.mass, out=np.ones(labelled.n), where=found.mass > 0
    )
    fitted = np.divide(
        labelled.residuals - found.value, 1 - own, out=labelled.residuals.copy(), where=own < 0.5
    )
    return np.asarray(fitted)


@dataclass(frozen=True, eq=False)
class _Local:
    """Local bias at some places."""

    value: FloatArray
    mass: FloatArray
    size: FloatArray


def _local(labelled: Sample, points: Points, places: IntArray, kernel: LocalKernel) -> _Local:
    mass, lean, squares = (np.zeros(places.size) for _ in range(3))
    at = 0
    for some, weights in _neighbours(points, places, kernel):
        here = slice(at, at + some.size)
        for rows, near, block in _blocks(labelled, weights):
            w = labelled.weights_or_ones[rows]
            mass[here][near] += block @ w
            lean[here][near] += block @ (w * labelled.residuals[rows])
            squares[here][near] += block**2 @ w**2
        at += some.size
    value = np.divide(lean, mass, out=np.zeros(places.size), where=mass > 0)
    size = np.divide(mass**2, squares, out=np.zeros(places.size), where=squares > 0)
    return _Local(value, mass, size)


def _neighbours(
    points: Points, places: IntArray, kernel: LocalKernel
) -> Iterator[tuple[IntArray, Neighbours]]:
    """Some places at a time."""
    for at in range(0, places.size, PLACES_AT_ONCE):
        some = places[at : at + PLACES_AT_ONCE]
        yield some, Neighbours(points.take(some), kernel)


def _blocks(labelled: Sample, weights: Weights) -> Any:
    for first in range(0, labelled.n, CHUNK_ROWS):
        chunk = slice(first, first + CHUNK_ROWS)
        for places, rows, block in weights.tiles(labelled.points.take(chunk), whole=False):
            yield rows + first, places, block
