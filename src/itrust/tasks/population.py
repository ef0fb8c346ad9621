"""A task on a population without labels, estimated in four ways, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy.special import ndtri

from itrust._core import FloatArray, InputError, IntArray, Result, checked_alpha, listed, rounded
from itrust.bias import Neighbours, Weights, neighbour_kernel
from itrust.data import Points, Population, Sample, checked_sample
from itrust.kernels import LocalKernel
from itrust.tasks.bias import checked_tasks, covariates_of, reference_notes
from itrust.tasks.bounds import Bounds
from itrust.tasks.expressions import Task, TaskRows
from itrust.tasks.powering import prediction_powered, spread
from itrust.tasks.regressions import references_of, refuse_other_levels
from itrust.tasks.uncertainty import (
    FEW_NOTE,
    LabelLaw,
    LabelledTask,
    Located,
    Uncertainty,
    few_labels,
    slopes_of,
)

CHUNK_ROWS, PLACES_AT_ONCE = 8_192, 4_096
# A mean over many points wants little smoothing: noise averages out, smoothing bias does not.
WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of the usual ones; wider where too few rows are near
MIN_NEIGHBOURS = 4  # effective ones, below which a prediction is left as it is
MANY_ALONE = 0.01  # share of the population without neighbours that is worth a note


class Assumption(StrEnum):
    """What the interval of an estimate rests on."""

    CALIBRATED = "the probabilities are calibrated"
    SMOOTH = "the bias is smooth and the same in both samples"
    RANDOM = "labelled rows are a random sample"
    WEIGHTED = "labelled rows are a random sample, by their weights"


@dataclass(frozen=True)
class Estimate(Result):
    """One way to estimate a number.

    Attributes
    ----------
    value : float
        What the number is estimated to be.
    stderr : float
        Its standard error.
    lower, upper : float
        The interval.
    assumes : Assumption
        What the interval rests on.
    """

    value: float
    stderr: float
    lower: float
    upper: float
    assumes: Assumption

    def __repr__(self) -> str:
        return f"<Estimate: {_with_ends(self)}>"

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.upper - self.lower

    def _facts(self) -> Mapping[str, Any]:
        return {**vars(self), "assumes": self.assumes.value}


@dataclass(frozen=True)
class TaskEstimate(Result):
    """A task on a population, estimated in four ways.

    Attributes
    ----------
    task : Task
        What is estimated, with its text.
    plugin : Estimate
        Probabilities in place of labels.
    recalibrated : Estimate
        Probabilities plus the local bias of the labelled rows.
    prediction_powered : Estimate
        Probabilities of the population, corrected by labelled rows.
    labelled : Estimate
        Labels of the labelled rows alone.
    lam : float
        How much weight the probabilities have in `prediction_powered`, between 0 and 1, chosen
        for a short interval.
    n : int
        Number of labelled rows.
    size : int
        Number of rows of the population.
    alpha : float
        Error that every interval is allowed.
    notes : tuple of str
        Data-quality notes.
    """

    task: Task
    plugin: Estimate
    recalibrated: Estimate
    prediction_powered: Estimate
    labelled: Estimate
    lam: float
    n: int
    size: int
    alpha: float
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        found = _with_ends(self.prediction_powered)
        return f"<TaskEstimate: {self.task}, {found} prediction-powered>"

    @property
    def ways(self) -> dict[str, Estimate]:
        """The four estimates by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Estimate)}

    def _facts(self) -> Mapping[str, Any]:
        return {
            "task": str(self.task),
            **{name: way.to_dict() for name, way in self.ways.items()},
            "lam": self.lam,
            "n": self.n,
            "population": self.size,
            "alpha": self.alpha,
            "notes": self.notes,
        }

    def _rows(self) -> list[Mapping[str, Any]]:
        return [{"way": name, **way.to_dict()} for name, way in self.ways.items()]


def _with_ends(way: Estimate) -> str:
    value, low, high = (
        rounded(number, way.lower, way.upper) for number in (way.value, way.lower, way.upper)
    )
    return f"{value} ({low} to {high})"


def estimate_task(
    task: Task, population: Population, labelled: Sample, *, alpha: float = 0.05
) -> TaskEstimate:
    """Estimate a task on a population whose labels are not known: see `Task.estimate`."""
    checked_sample(labelled)
    if not isinstance(population, Population):
        raise InputError(
            "{argument} must be a Population(p, x), not a {kind}",
            argument="population",
            value=population,
            details={"kind": type(population).__name__},
        )
    checked_alpha(alpha)
    labelled, out = _alike(task, population, labelled)
    checked_tasks(labelled, [task])
    refuse_other_levels(task, TaskRows.labelled(labelled), out)
    told = LabelledTask.of(task, labelled)
    with_y = told.labels
    plugin = task.linear(out)
    if not math.isfinite(plugin.value):
        raise InputError(
            "{task} divides by 0 on the population", argument="population", details={"task": task}
        )
    if math.isnan(with_y.value):
        raise InputError(
            "no positive label counts for {task}: labelled rows say nothing about it",
            argument="labelled",
            details={"task": task},
        )
    sampling = spread(plugin.influence)
    powered = prediction_powered(task, told, labelled, out, plugin)
    labels_alone = told.less()
    recalibrated, recalibrated_error, alone = _recalibrated(task, labelled, out, told.law)
    notes = [*population.dropped, *labelled.notes]
    notes += reference_notes(references_of(task, labelled))
    if few_labels(task, labelled):
        notes.append(FEW_NOTE)
    if alone > MANY_ALONE:
        notes.append(
            f"{100 * alone:.0f} % of the population has no labelled neighbours: recalibration "
            f"leaves its probabilities as they are"
        )

    bounds = task.bounds(told.rows, out)

    def way(value: float, error: Uncertainty, assumes: Assumption) -> Estimate:
        value = bounds.nearest(value)
        lower, upper = Located(value, error, bounds, told.smoothed_rate).interval(alpha)
        return Estimate(value, error.stderr, lower, upper, assumes)

    random = Assumption.RANDOM if labelled.weights is None else Assumption.WEIGHTED
    return TaskEstimate(
        task=task,
        plugin=_plain(plugin.value, sampling, bounds, alpha),
        recalibrated=way(recalibrated, recalibrated_error, Assumption.SMOOTH),
        prediction_powered=way(powered.value, powered.error, random),
        labelled=way(with_y.value, labels_alone, random),
        lam=powered.lam,
        n=labelled.n,
        size=population.n,
        alpha=float(alpha),
        notes=tuple(notes),
    )


def _alike(task: Task, population: Population, labelled: Sample) -> tuple[Sample, TaskRows]:
    """Both sides with the covariates that they share, which have to be all that the task reads."""
    own = {column.name: column for column in population.columns}
    lacking = [name for name in covariates_of(task, labelled.points) if name not in own]
    if lacking:
        raise InputError(
            "the population lacks {lacking}, which {task} reads",
            argument="population",
            value=lacking,
            details={"lacking": listed(lacking), "task": task},
        )
    shared = tuple(column for column in labelled.columns if column.name in own)
    points = Points(population.p, tuple(own[column.name] for column in shared))
    w = np.ones(population.n) if population.weights is None else population.weights
    return labelled.with_columns(shared), TaskRows(points, w / w.mean(), population.p)


def _plain(value: float, stderr: float, bounds: Bounds, alpha: float) -> Estimate:
    reach = float(ndtri(1 - alpha / 2)) * stderr
    lower, upper = bounds.clipped(value - reach, value + reach)
    return Estimate(value, stderr, lower, upper, Assumption.CALIBRATED)


def _recalibrated(
    task: Task, labelled: Sample, out: TaskRows, law: LabelLaw
) -> tuple[float, Uncertainty, float]:
    """Plug-in of p plus local bias, its uncertainty, and the share of rows left as they are.

    Smoothing leaves some of the bias; what it leaves at the labelled rows is taken away, too
    (twicing: Stuetzle and Mittal 1979).
    """
    kernel = neighbour_kernel(labelled.points)
    there = _Smooth.of(labelled, out.points, kernel)
    value, leaning, sampling = _linearised(task, _corrected(task, out, there.bias), labelled)
    here = _Smooth.of(labelled, labelled.points, kernel)
    share = there.shares(leaning)  # of every labelled row's residual in the number
    remainder = float(share @ (labelled.residuals - here.bias))
    share = 2 * share - here.shares(share)
    noise = law.uncertainty(share * here.left_over(), np.zeros(labelled.n), share)
    # As much may be left again as was left once.
    error = noise.plus(spread(sampling)).plus(remainder)
    return value + remainder, error, float(np.mean(there.widths == 0))


def _corrected(task: Task, out: TaskRows, bias: FloatArray) -> TaskRows:
    """Probabilities plus bias; only sums count, so rows may leave [0, 1] if sums are positive."""
    moved = TaskRows(out.points, out.weights, out.stand_in + bias)
    if all(leaf.takes(moved) for leaf in task.leaves()):
        return moved
    return TaskRows(out.points, out.weights, np.clip(moved.stand_in, 0.0, 1.0))


def _linearised(
    task: Task, moved: TaskRows, labelled: Sample
) -> tuple[float, FloatArray, FloatArray]:
    """Value on the population, what its probabilities move, and the shares of its rows.

    Where noise has left next to no positives to divide by, shares are those of half as many as
    the labelled rows let expect.
    """
    leaves = list(dict.fromkeys(task.leaves()))
    labels = TaskRows.labelled(labelled)
    leaning, shares = np.zeros(len(moved.points)), np.zeros(len(moved.points))
    for leaf, slope in zip(leaves, slopes_of(task, leaves, moved), strict=True):
        held = slope * leaf.held(moved, labels)
        leaning += held * leaf.leaning(moved).influence
        shares += held * leaf.linear(moved).influence
    return task.linear(moved).value, leaning, shares


@dataclass(frozen=True, eq=False)
class _Smooth:
    """Local bias of the labelled rows at some places.

    Widths begin at half of the usual ones, and grow where nobody is near.
    """

    labelled: Sample
    points: Points
    kernel: LocalKernel
    bias: FloatArray
    mass: FloatArray
    widths: FloatArray  # 0 where nobody is near at any

    @classmethod
    def of(cls, labelled: Sample, points: Points, kernel: LocalKernel) -> _Smooth:
        bias, mass, widths = (np.zeros(len(points)) for _ in range(3))
        still_open = np.arange(len(points))
        for factor in WIDTHS:
            found = _local(labelled, points, still_open, kernel.widened(factor))
            enough = found.size >= MIN_NEIGHBOURS
            places = still_open[enough]
            bias[places], mass[places] = found.value[enough], found.mass[enough]
            widths[places] = factor
            still_open = still_open[~enough]
            if not still_open.size:
                break
        return cls(labelled, points, kernel, bias, mass, widths)

    def shares(self, slope: FloatArray) -> FloatArray:
        """Shares of the labelled rows' residuals in the sum of `slope` times local bias, (n,)."""
        slope = np.divide(slope, self.mass, out=np.zeros(slope.size), where=self.mass > 0)
        w, share = self.labelled.weights_or_ones, np.zeros(self.labelled.n)
        for factor in WIDTHS:
            chosen = np.flatnonzero(self.widths == factor)
            for some, weights in _neighbours(self.points, chosen, self.kernel.widened(factor)):
                for rows, places, block in _blocks(self.labelled, weights):
                    share[rows] += w[rows] * (slope[some[places]] @ block)
        return share

    def left_over(self) -> FloatArray:
        """Residuals less the local bias of the other rows: noise, without what is removed."""
        w, e = self.labelled.weights_or_ones, self.labelled.residuals
        own = np.divide(w, self.mass, out=np.ones(w.size), where=self.mass > 0)
        left = np.divide(e - self.bias, 1 - own, out=e.copy(), where=own < 0.5)
        return np.asarray(left)


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
