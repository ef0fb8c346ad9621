"""A smooth calibration curve: logistic regression on a restricted cubic spline of logit p.

Knots are at fixed quantiles of the prediction (Harrell 2015, section 2.4.6), so the curve costs as
much for a million rows as for a thousand, stays between 0 and 1, and is a line in the logit beyond
its last knots. How many knots there are depends on the events that the model expects, never on
labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from itrust._core import FloatArray
from itrust.calibration.validation.logistic import fitted
from itrust.calibration.validation.sums import PredictionCells

KNOTS = {5: (0.05, 0.275, 0.5, 0.725, 0.95), 4: (0.05, 0.35, 0.65, 0.95), 3: (0.1, 0.5, 0.9)}
EVENTS = {5: 100.0, 4: 50.0, 3: 20.0}  # expected of the rarer label, for as many knots
SAME = 1e-9  # knots closer than this share of their range are one
ROOM = 1e-7  # of the smallest singular value in the largest


@dataclass(frozen=True, eq=False)
class Spline:
    """A basis of the logit of the prediction."""

    knots: FloatArray
    features: FloatArray


def spline_of(cells: PredictionCells) -> Spline:
    """Choose knots and make the basis, from predictions alone."""
    expected = float(cells.sums.rows @ cells.p)
    rarer = min(expected, float(cells.sums.rows.sum()) - expected)
    for number, least in EVENTS.items():
        if rarer >= least:
            knots = _quantiles(cells, KNOTS[number])
            spline = Spline(knots, restricted_cubic(cells.logit, knots))
            if knots.size >= 3 and _has_room(spline.features, cells.sums.weights):
                return spline
    line = np.column_stack([np.ones(cells.p.size), cells.logit])
    if cells.p.size > 1 and _has_room(line, cells.sums.weights):
        return Spline(np.zeros(0), line)
    return Spline(np.zeros(0), np.ones((cells.p.size, 1)))


def _quantiles(cells: PredictionCells, levels: tuple[float, ...]) -> FloatArray:
    share = np.cumsum(cells.sums.weights)
    share = share / share[-1]
    found = cells.logit[
        np.minimum(np.searchsorted(share, np.array(levels) - 1e-12), share.size - 1)
    ]
    apart = np.diff(found, prepend=-np.inf) > SAME * max(float(np.ptp(found)), 1e-300)
    return np.asarray(found[apart])


def _has_room(features: FloatArray, weights: FloatArray) -> bool:
    """Whether the columns are told apart by rows of some weight."""
    held = features * np.sqrt(weights / weights.sum())[:, None]
    size = np.sqrt(np.square(held).sum(axis=0))
    if len(features) < features.shape[1] or not (size > 0).all():
        return False
    singular = np.linalg.svd(held / size, compute_uv=False)
    return bool(singular[-1] > ROOM * singular[0])


def restricted_cubic(x: FloatArray, knots: FloatArray) -> FloatArray:
    """Make Harrell's basis: a constant, x, and cubic terms that are linear beyond the last knots.

    Examples
    --------
    >>> restricted_cubic(np.array([-1.0, 0.0, 2.0]), np.array([-1.0, 0.0, 1.0]))[:, 2]
    array([0. , 0.25, 3. ])
    """
    if knots.size < 3:
        return np.column_stack([np.ones(x.size), x])
    first, last, before = knots[0], knots[-1], knots[-2]
    size = (last - first) ** 2

    def above(knot: float) -> FloatArray:
        return np.maximum(x - knot, 0.0) ** 3

    cubics = [
        (
            above(knot)
            - above(before) * (last - knot) / (last - before)
            + above(last) * (before - knot) / (last - before)
        )
        / size
        for knot in knots[:-2]
    ]
    return np.column_stack([np.ones(x.size), x, *cubics])


@dataclass(frozen=True, eq=False)
class SmoothCurves:
    """Smooth calibration curves of one or several sets of labels on the same cells."""

    errors: FloatArray
    knots: int


def smooth_curves(cells: PredictionCells, ones: FloatArray) -> SmoothCurves:
    """Fit a curve to each set of labels; predictions of 0 and 1 have their own observed rate.

    Where labels are separated, coefficients grow without end, but the curve has a limit, which
    forty steps reach to the last digit that counts.
    """
    weights = cells.sums.weights
    curve = ones / weights
    inside = ~cells.is_certain
    knots = 0
    if inside.any():
        own = cells.some(inside)
        spline = spline_of(own)
        knots = int(spline.knots.size)
        columns = spline.features.shape[1]
        start = np.zeros(columns)
        start[1:2] = 1.0  # of the logit, where there is more than a constant
        fit = fitted(
            spline.features, start, np.zeros(own.p.size), own.sums.weights, ones[:, inside]
        )
        curve[:, inside] = expit(fit.coefficients @ spline.features.T)
    return SmoothCurves(np.abs(curve - cells.p), knots)


def quantile_of(values: FloatArray, cells: PredictionCells, level: float) -> float:
    """Quantile of a value of the rows: interpolated between rows that count alike."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    if cells.are_weighted:
        share = np.cumsum(cells.sums.weights[order])
        at = np.searchsorted(share, level * share[-1] * (1 - 1e-12))
        return float(ranked[min(int(at), ranked.size - 1)])
    ends = np.cumsum(cells.sums.rows[order])
    position = level * (ends[-1] - 1)
    below, above = np.searchsorted(ends, [np.floor(position), np.ceil(position)], side="right")
    return float(ranked[below] + (position - np.floor(position)) * (ranked[above] - ranked[below]))
