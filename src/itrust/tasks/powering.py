"""Prediction-powered estimates: labels, and what probabilities say about rows without any.

Means, shares and rates are those of labels plus `lam` times the plug-in on the population less the
plug-in on the labelled rows. Coefficients solve the estimating equation that is so corrected, with
its derivative from all rows (Angelopoulos, Duchi and Zrnic 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.data import Design, Sample, design_variance
from itrust.tasks.differentials import Linearised, joined_at
from itrust.tasks.expressions import Leaf, Task, TaskRows
from itrust.tasks.links import NewtonStep, solved
from itrust.tasks.regressions import Coefficient, has_regression
from itrust.tasks.uncertainty import LabelledTask, Uncertainty

ROUNDS = 2  # of choosing `lam` and solving with it


@dataclass(frozen=True, eq=False)
class Powered:
    """A prediction-powered estimate."""

    value: float
    error: Uncertainty
    lam: float


def prediction_powered(
    task: Task,
    told: LabelledTask,
    labelled: Sample,
    out: TaskRows,
    plugin: float,
    sampling: float,
    *,
    is_part: bool = False,
) -> Powered:
    """Estimate a task on a population by labels and probabilities."""
    here = OneOutcome(labelled, out, told.law.q, 0)
    share = labelled.n / len(out.points) if is_part else 0.0
    return powered_leaves(task, told, lambda _: here, plugin, sampling, share)


@dataclass(frozen=True, eq=False)
class OneOutcome:
    """What a leaf is read from: all of one outcome, such as "is it positive?"."""

    labelled: Sample
    out: TaskRows
    q: FloatArray
    column: int


def powered_leaves(
    task: Task,
    told: LabelledTask,
    outcome: Callable[[Leaf], OneOutcome],
    plugin: float,
    sampling: float,
    share: float = 0.0,
) -> Powered:
    """Estimate a task whose leaves may be of several classes."""
    leaves = list(dict.fromkeys(task.leaves()))
    design = told.law.design
    lam = best_weight(told.labels, told.predicted, design, sampling)
    if not has_regression(task):
        # Labels, plus what probabilities say about the population less about the labelled rows.
        value = told.labels.value + lam * (plugin - told.predicted.value)
        error = told.less(lam).plus(lam * sampling)
        shared = _shared(told.labels.influence, told.predicted.influence, lam, share)
        return Powered(value, error.plus(shared), lam)
    for _ in range(ROUNDS):
        found = _of_leaves(task, leaves, told, outcome, lam)
        lam = best_weight(
            Linearised(found.value, found.labels),
            Linearised(found.value, found.predicted),
            design,
            spread(found.population),
        )
    found = _of_leaves(task, leaves, told, outcome, lam)
    other = lam * found.predicted
    moves = None if told.moves is None else told.moves[0] - lam * told.moves[1]
    error = told.law.uncertainty(found.labels - other, found.expected - other, found.lean, moves)
    error = error.plus(lam * spread(found.population))
    return Powered(found.value, error.plus(_shared(found.labels, found.predicted, lam, share)), lam)


def _shared(labels: FloatArray, predicted: FloatArray, lam: float, share: float) -> float:
    """What rows on both sides add, as a standard error: twice the covariance of the two parts.

    Parts are the plug-in on the population, of which labelled rows are a share, and labels less
    probabilities; 0 where rows are apart.
    """
    both = float((lam * predicted) @ (labels - lam * predicted))
    return math.sqrt(max(2 * share * both, 0.0))


@dataclass(frozen=True, eq=False)
class _Shares:
    """A number and the shares of rows in it.

    `labels`, `predicted` and `expected` are of the labelled rows with labels, with probabilities
    and with those of the smoothed law; `lean` is what their labels move; `population` are the
    shares of rows without labels.
    """

    value: float
    labels: FloatArray
    predicted: FloatArray
    expected: FloatArray
    lean: FloatArray
    population: FloatArray


def _of_leaves(
    task: Task,
    leaves: Sequence[Leaf],
    told: LabelledTask,
    outcome: Callable[[Leaf], OneOutcome],
    lam: float,
) -> _Shares:
    """A task whose leaves are prediction-powered one by one."""
    places = [outcome(leaf) for leaf in leaves]
    parts = []
    for leaf, place in zip(leaves, places, strict=True):
        own = leaf.bare
        of = _coefficient if isinstance(own, Coefficient) else _ratio
        parts.append(of(own, place, lam))  # type: ignore[arg-type]
    value, slopes = joined_at(task, leaves, [part.value for part in parts])

    def summed(name: str) -> FloatArray:
        pairs = zip(slopes, parts, strict=True)
        return np.asarray(sum(slope * getattr(part, name) for slope, part in pairs))

    lean = summed("lean")
    if told.law.q.ndim == 2:
        lean = np.zeros(told.law.q.shape)
        for slope, part, place in zip(slopes, parts, places, strict=True):
            lean[:, place.column] += slope * part.lean
    return _Shares(
        value=value,
        labels=summed("labels"),
        predicted=summed("predicted"),
        expected=summed("expected"),
        lean=lean,
        population=summed("population"),
    )


def _ratio(leaf: Leaf, place: OneOutcome, lam: float) -> _Shares:
    labelled = place.labelled
    with_y, with_p = TaskRows.labelled(labelled), TaskRows.predicted(labelled)
    smooth = TaskRows(with_y.points, with_y.weights, place.q)
    labels, predicted, there = leaf.linear(with_y), leaf.linear(with_p), leaf.linear(place.out)
    return _Shares(
        labels.value + lam * (there.value - predicted.value),
        labels.influence,
        predicted.influence,
        leaf.linear(smooth).influence,
        leaf.leaning(smooth).influence,
        there.influence,
    )


def _coefficient(leaf: Coefficient, place: OneOutcome, lam: float) -> _Shares:
    """Solve the corrected equation; what all rows say of its derivative gives the shares."""
    labelled, out = place.labelled, place.out
    frame = leaf.frame(TaskRows.labelled(labelled))
    here, z = frame.rows_of(labelled.points, labelled.weights_or_ones)
    there, z_out = frame.rows_of(out.points, out.weights)
    w, w_out = labelled.weights_or_ones[here], out.weights[there]
    mass, mass_out = float(w.sum()), float(w_out.sum())
    w, w_out = w / mass, w_out / mass_out
    y, p, p_out = labelled.y[here], labelled.p[here], out.stand_in[there]
    both = np.concatenate([z, z_out])
    moment = z.T @ (w * (y - lam * p)) + lam * (z_out.T @ (w_out * p_out))
    beta = solved(frame.link, both, np.concatenate([(1 - lam) * w, lam * w_out]), moment)
    if beta is None:  # a correction that leaves the range of means: labels alone have a solution
        beta = leaf.fit(TaskRows.labelled(labelled)).beta
    size = here.size / (here.size + there.size)
    everyone = np.concatenate([size * w, (1 - size) * w_out])
    curve = NewtonStep.at(frame.link, beta, both, everyone, np.zeros(everyone.size)).curve
    contrast = frame.contrast(leaf.position(frame.columns, labelled.points))
    direction = np.linalg.solve(curve, contrast)
    lean, mean = w * (z @ direction), frame.link.mean(z @ beta)

    def among(n: int, rows: IntArray, own: FloatArray, weights: FloatArray) -> FloatArray:
        found = np.zeros(n)
        found[rows] = own - weights * own.sum()
        return found

    lean_out = w_out * (z_out @ direction)
    left_out = lean_out * (p_out - frame.link.mean(z_out @ beta))
    moved = np.zeros(labelled.n)
    moved[here] = lean
    q = place.q[here]
    return _Shares(
        value=float(contrast @ beta),
        labels=among(labelled.n, here, lean * (y - mean), w),
        predicted=among(labelled.n, here, lean * (p - mean), w),
        expected=among(labelled.n, here, lean * (q - mean), w),
        lean=moved,
        population=among(len(out.points), there, left_out, w_out),
    )


def spread(influence: FloatArray) -> float:
    """Standard error of an estimate from independent rows with these shares."""
    n = influence.size
    return math.sqrt(n / max(n - 1, 1) * float(np.square(influence).sum()))


def _variance(influence: FloatArray, design: Design) -> float:
    """Variance of an estimate from labelled rows, with these shares."""
    return spread(influence) ** 2 if design.is_simple else design_variance(design, influence)


def best_weight(
    labels: Linearised, predicted: Linearised, design: Design, sampling: float
) -> float:
    """Give the share of the probabilities that makes the interval shortest, within [0, 1]."""
    own, both, alone = (
        _variance(shares, design)
        for shares in (
            predicted.influence,
            labels.influence + predicted.influence,
            labels.influence,
        )
    )
    covariance = (both - own - alone) / 2
    below = own + sampling**2
    return float(np.clip(covariance / below, 0.0, 1.0)) if below > 0 else 0.0
