"""Prediction-powered estimates: labels, and what probabilities say about rows without any.

Means, shares and rates are those of labels plus `lam` times the plug-in on the population less the
plug-in on the labelled rows. Coefficients solve the estimating equation that is so corrected, with
its derivative from all rows (Angelopoulos, Duchi and Zrnic 2024).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.data import Design, Rows, design_variance
from itrust.tasks.expressions import Leaf, Task, TaskRows, leaves_of
from itrust.tasks.regressions import (
    Coefficient,
    CoefficientFit,
    curve_at,
    fitted_to,
    has_regression,
)
from itrust.tasks.uncertainty import LabelledTask, Uncertainty

ROUNDS = 2  # of choosing `lam` and solving with it


def prediction_powered(
    task: Task,
    told: LabelledTask,
    labelled: Rows,
    out: TaskRows,
    plugin: float,
    sampling: float,
    share: float = 0.0,
) -> tuple[float, Uncertainty, float]:
    """Estimate a task on a population by labels and probabilities, whose weight is told, too.

    `share` of the rows of the population are the labelled rows themselves.
    """
    law = told.law
    labels, predicted = told.labels.influence, told.predicted.influence
    lam = best_weight(labels, predicted, law.design, sampling)
    if not has_regression(task):
        # Labels, plus what probabilities say about the population less about the labelled rows.
        value = told.labels.value + lam * (plugin - told.predicted.value)
        error = told.less(lam).plus(lam * sampling)
        return value, error.plus(_shared(labels, predicted, lam, share)), lam
    for _ in range(ROUNDS):
        _, (labels, predicted, _), _, there = _of_leaves(task, told, labelled, out, lam)
        lam = best_weight(labels, predicted, law.design, spread(there))
    value, rows, lean, there = _of_leaves(task, told, labelled, out, lam)
    labels, predicted, expected = rows
    moves = None if told.moves is None else told.moves[0] - lam * told.moves[1]
    error = law.uncertainty(labels - lam * predicted, expected - lam * predicted, lean, moves)
    error = error.plus(lam * spread(there))
    return value, error.plus(_shared(labels, predicted, lam, share)), lam


def _shared(labels: FloatArray, predicted: FloatArray, lam: float, share: float) -> float:
    """What rows on both sides add, as a standard error: twice the covariance of the two parts.

    Parts are the plug-in on the population, of which labelled rows are a share, and labels less
    probabilities; 0 where rows are apart.
    """
    both = float((lam * predicted) @ (labels - lam * predicted))
    return math.sqrt(max(2 * share * both, 0.0))


# A number; shares of the labelled rows in it with labels, with probabilities and by the smoothed
# law, (3, n); what their labels move; and the shares of rows without labels.
Shares = tuple[float, FloatArray, FloatArray, FloatArray]


def _of_leaves(task: Task, told: LabelledTask, labelled: Rows, out: TaskRows, lam: float) -> Shares:
    """A task whose leaves are prediction-powered one by one."""
    law, leaves = told.law, leaves_of([task])
    by_law = replace(told.rows, stand_in=law.q, classes=law.classes)
    here = told.rows, TaskRows.predicted(labelled), by_law
    parts = [
        (_coefficient if isinstance(leaf, Coefficient) else _ratio)(leaf, here, out, lam)
        for leaf in leaves
    ]
    joined = task.at(leaves, [value for value, *_ in parts])
    rows, there = np.zeros((3, labelled.n)), np.zeros(len(out.points))
    lean = np.zeros(law.q.shape)
    for slope, leaf, (_, own, moved, own_there) in zip(joined.slope, leaves, parts, strict=True):
        rows += slope * own
        lean[:, law.classes.index(leaf.label)] += slope * moved
        there += slope * own_there
    value = float(joined.value)
    return (value if math.isfinite(value) else math.nan), rows, lean, there


def _ratio(leaf: Leaf, here: tuple[TaskRows, ...], out: TaskRows, lam: float) -> Shares:
    labels, predicted, _ = parts = [leaf.linear(rows) for rows in here]
    there = leaf.linear(out)
    value = labels.value + lam * (there.value - predicted.value)
    lean = leaf.fitted(here[2]).lean_on(here[2])[:, here[2].classes.index(leaf.label)]
    return value, np.array([part.influence for part in parts]), lean, there.influence


def _coefficient(leaf: Any, here: tuple[TaskRows, ...], out: TaskRows, lam: float) -> Shares:
    """Solve the corrected equation; what all rows say of its derivative gives the shares."""
    rows, n, m = here[0], here[0].weights.size, len(out.points)
    frame = leaf.frame(rows)
    at, z = frame.rows_of(rows.points, rows.weights)
    there, z_out = frame.rows_of(out.points, out.weights)
    w, w_out = rows.weights[at], out.weights[there]
    w, w_out = w / float(w.sum()), w_out / float(w_out.sum())
    y, p, q = (own.of(leaf)[at] for own in here)
    p_out, both = out.of(leaf)[there], np.concatenate([z, z_out])
    moment = z.T @ (w * (y - lam * p)) + lam * (z_out.T @ (w_out * p_out))
    size = at.size / (at.size + there.size)
    everyone = np.concatenate([size * w, (1 - size) * w_out])
    weights = np.concatenate([(1 - lam) * w, lam * w_out])
    fit = fitted_to(leaf, frame, rows.points, (both, weights, moment), everyone)
    if fit is None:  # a correction that leaves the range of means: labels alone have a solution
        beta = leaf.fit(rows).beta
        curve = curve_at(frame.link, beta, both, everyone)
        fit = CoefficientFit.at(frame, beta, curve, leaf.position(frame.columns, rows.points))
    lean, mean = w * (z @ fit.direction), frame.link.mean(z @ fit.beta)

    def among(size: int, rows: IntArray, own: FloatArray, weights: FloatArray) -> FloatArray:
        shares = np.zeros(size)
        shares[rows] = own - weights * own.sum()
        return shares

    left_out = w_out * (z_out @ fit.direction) * (p_out - frame.link.mean(z_out @ fit.beta))
    moved = np.zeros(n)
    moved[at] = lean
    return (
        fit.value,
        np.array([among(n, at, lean * (s - mean), w) for s in (y, p, q)]),
        moved,
        among(m, there, left_out, w_out),
    )


def spread(influence: FloatArray) -> float:
    """Standard error of an estimate from independent rows with these shares."""
    n = influence.size
    return math.sqrt(n / max(n - 1, 1) * float(np.square(influence).sum()))


def best_weight(
    labels: FloatArray, predicted: FloatArray, design: Design, sampling: float
) -> float:
    """Give the share of the probabilities that makes the interval shortest, within [0, 1]."""
    own, both, alone = (
        spread(shares) ** 2 if design.is_simple else design_variance(design, shares)
        for shares in (predicted, labels + predicted, labels)
    )
    covariance = (both - own - alone) / 2
    below = own + sampling**2
    return float(np.clip(covariance / below, 0.0, 1.0)) if below > 0 else 0.0
