"""Statistics in closed form: Hosmer-Lemeshow, Spiegelhalter, CORP, AUC, net benefit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc

from itrust._core import FloatArray
from itrust.calibration.tails import student_quantile, student_tail
from itrust.calibration.validation.results import DecisionPoint, Reason, ValidationStatistic
from itrust.calibration.validation.sums import PredictionCells, Sums
from itrust.calibration.validation.tally import Tallied


def hosmer_lemeshow(tallied: Tallied) -> ValidationStatistic:
    """Sum over groups of (events - expected)^2 / variance (Hosmer and Lemeshow 1980).

    The rows are new to the model, so the law has as many degrees of freedom as groups, and not two
    fewer, which is for rows that a logistic model was fitted to.
    """
    name = "hosmer_lemeshow"
    variance = group_variance(tallied.groups)
    residual = tallied.groups.weights1 - tallied.groups.weights * tallied.groups.predicted
    freedom = int(np.count_nonzero(variance > 0))
    if not freedom:
        return ValidationStatistic(name, reason=Reason.NO_VARIANCE)
    value = float(hosmer_lemeshow_of(residual, variance))
    if np.isinf(value):
        return ValidationStatistic(name, freedom=freedom, reason=Reason.CONTRARY)
    if tallied.is_clustered:
        return ValidationStatistic(name, value, freedom=freedom, reason=Reason.CLUSTERED_GROUPS)
    chance = float(gammaincc(freedom / 2, value / 2))
    return ValidationStatistic(name, value, pvalue=chance, freedom=freedom)


def group_variance(groups: Sums) -> FloatArray:
    """Variance of the weight of label 1 in each group, at its mean prediction, (g,)."""
    return groups.squares * groups.predicted * (1 - groups.predicted)


def hosmer_lemeshow_of(residual: FloatArray, variance: FloatArray) -> FloatArray:
    """The statistic; infinite where a group that cannot vary is off."""
    varies = variance > 0
    found = (np.square(residual[..., varies]) / variance[varies]).sum(axis=-1)
    off = (np.abs(residual[..., ~varies]) > 1e-9).any(axis=-1)
    return np.where(off, np.inf, found)


def spiegelhalter(tallied: Tallied) -> ValidationStatistic:
    """Spiegelhalter's z (1986): the Brier score less its mean under calibration, standardised."""
    name, cells = "spiegelhalter", tallied.cells
    tilt = 1 - 2 * cells.p
    total = float((cells.sums.weights1 - cells.sums.weights * cells.p) @ tilt)
    if tallied.rows is None:
        variance = float((cells.sums.squares * cells.p * (1 - cells.p)) @ np.square(tilt))
    else:
        variance = tallied.variance(-cells.p * tilt, (1 - cells.p) * tilt)
    if variance <= 0:
        if cells.contrary:
            return ValidationStatistic(name, reason=Reason.CONTRARY)
        certain = bool(cells.is_certain.all())
        return ValidationStatistic(name, reason=Reason.NO_VARIANCE if certain else Reason.TOSSED)
    z = total / float(np.sqrt(variance))
    # Shown with the sign of the Brier score: positive is worse than a calibrated model.
    return ValidationStatistic(
        name, z, pvalue=min(2 * float(student_tail(abs(z), tallied.freedom)), 1.0)
    )


@dataclass(frozen=True)
class Decomposition:
    """A mean score in three parts: score = miscalibration - discrimination + uncertainty."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def isotonic(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Give the rising values nearest to these in squares.

    Examples
    --------
    >>> isotonic(np.array([[3.0, 1.0, 2.0, 5.0]]), np.ones(4))
    array([[2., 2., 2., 5.]])
    """
    from scipy.optimize import isotonic_regression  # a quarter of a second, so not before

    return np.array([isotonic_regression(own, weights=weights).x for own in values])


def decompose(cells: PredictionCells) -> tuple[Decomposition, Decomposition]:
    """Split the Brier score and the log loss by isotonic recalibration (CORP).

    Dimitriadis, Gneiting and Jordan (2021).
    """
    sums, total = cells.sums, float(cells.sums.weights.sum())
    recalibrated = isotonic(sums.observed[None], sums.weights)[0]
    rate = np.full(cells.p.size, float(sums.weights1.sum()) / total)

    def brier(p: FloatArray) -> float:
        return float(sums.weights0 @ np.square(p) + sums.weights1 @ np.square(1 - p)) / total

    def surprise(p: FloatArray) -> float:
        with np.errstate(divide="ignore"):
            zero, one = -np.log1p(-p), -np.log(p)
        held0, held1 = sums.weights0 > 0, sums.weights1 > 0
        return float(sums.weights0[held0] @ zero[held0] + sums.weights1[held1] @ one[held1]) / total

    found = []
    for score in (brier, surprise):
        own, best, least = score(cells.p), score(recalibrated), score(rate)
        found.append(Decomposition(own, own - best, least - best, least))
    return found[0], found[1]


def discrimination(tallied: Tallied, confidence: float) -> list[ValidationStatistic]:
    """Area under the ROC curve with DeLong's interval (1988), and Gini's coefficient."""
    sums = tallied.cells.sums
    zeros, ones = sums.weights0, sums.weights1
    if not (zeros.any() and ones.any()):
        return [ValidationStatistic(name, reason=Reason.ONE_LABEL) for name in ("auc", "gini")]
    below = (np.cumsum(zeros) - zeros / 2) / zeros.sum()  # of each positive: negatives below it
    above = 1 - (np.cumsum(ones) - ones / 2) / ones.sum()
    area = float(ones @ below) / float(ones.sum())
    zero, one = (above - area) / zeros.sum(), (below - area) / ones.sum()
    if tallied.rows is None:
        variance = 0.0
        for squares, counts, share in (
            (sums.squares0, sums.zeros, zero),
            (sums.squares1, sums.ones, one),
        ):
            rows = float(counts.sum())
            spread = float(squares @ np.square(share))
            variance += spread * rows / (rows - 1) if rows > 1 else np.nan
    else:
        variance = tallied.variance(zero, one)
    half = float(student_quantile((1 - confidence) / 2, tallied.freedom)) * float(np.sqrt(variance))
    if np.isnan(half):
        return [
            ValidationStatistic("auc", area, reason=Reason.ONE_ROW),
            ValidationStatistic("gini", 2 * area - 1, reason=Reason.ONE_ROW),
        ]
    lower, upper = max(area - half, 0.0), min(area + half, 1.0)
    return [
        ValidationStatistic("auc", area, lower, upper),
        ValidationStatistic("gini", 2 * area - 1, 2 * lower - 1, 2 * upper - 1),
    ]


def decision_curve(tallied: Tallied) -> tuple[DecisionPoint, ...]:
    """Net benefit at every threshold (Vickers and Elkin 2006)."""
    between = tallied.between
    total = float(between.weights.sum())
    rate = float(between.weights1.sum()) / total
    return tuple(
        DecisionPoint(
            threshold=float(threshold),
            true_positives=float(between.weights1[k + 1 :].sum()) / total,
            false_positives=float(between.weights0[k + 1 :].sum()) / total,
            rate=rate,
            rows=int(between.rows[k + 1 :].sum()),
        )
        for k, threshold in enumerate(tallied.partition.thresholds)
    )
