"""Calibration intercept and slope: logistic regression of the label on the logit of the prediction.

Cox (1958). The intercept is that of a model with the logit as an offset (calibration in the large):
0 if the mean is right. The slope is 1 if predictions are as spread as they should be, below 1 if
they are too extreme.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from itrust._core import FloatArray, IntArray
from itrust.calibration.tails import student_quantile, student_tail
from itrust.calibration.validation.logistic import fitted, information
from itrust.calibration.validation.results import Reason, ValidationStatistic
from itrust.calibration.validation.tally import Tallied


def intercept_and_slope(
    tallied: Tallied, confidence: float
) -> tuple[ValidationStatistic, ValidationStatistic]:
    """Fit both models, with Wald intervals and p-values.

    Rows whose prediction is exactly 0 or 1 and whose label agrees have a likelihood of 1 whatever
    the coefficients are, so the fit leaves them out; with the other label no finite
    coefficients fit.
    """
    found = _without_fit(tallied)
    names = ("intercept", "slope")
    if found is not None:
        return ValidationStatistic(names[0], reason=found), ValidationStatistic(
            names[1], reason=found
        )
    cells = tallied.cells
    inside: IntArray = np.flatnonzero(~cells.is_certain)
    own = cells.some(inside)
    ones, x = np.ones((inside.size, 1)), own.logit
    intercept = _fit(tallied, names[0], inside, ones, np.zeros(1), x, 0.0, confidence)
    if inside.size == 1:
        return intercept, ValidationStatistic(names[1], reason=Reason.ONE_PREDICTION)
    if _are_separated(own.sums.zeros, own.sums.ones):
        return intercept, ValidationStatistic(names[1], reason=Reason.SEPARATED)
    both = np.column_stack([ones, x])
    start = np.array([0.0, 1.0])
    slope = _fit(tallied, names[1], inside, both, start, np.zeros(x.size), 1.0, confidence)
    return intercept, slope


def _without_fit(tallied: Tallied) -> Reason | None:
    cells = tallied.cells
    if cells.contrary:
        return Reason.CONTRARY
    inside = ~cells.is_certain
    if not inside.any():
        return Reason.CERTAIN
    if not (cells.sums.ones[inside].any() and cells.sums.zeros[inside].any()):
        return Reason.ONE_LABEL
    return None


def _are_separated(zeros: FloatArray, ones: FloatArray) -> bool:
    """Whether no prediction of one label lies beyond some of the other, in one direction."""
    held0, held1 = np.flatnonzero(zeros), np.flatnonzero(ones)
    return bool(held0[-1] <= held1[0] or held1[-1] <= held0[0])


def _fit(
    tallied: Tallied,
    name: str,
    inside: IntArray,
    features: FloatArray,
    start: FloatArray,
    offset: FloatArray,
    null: float,
    confidence: float,
) -> ValidationStatistic:
    """The last coefficient, with its interval and the p-value for its value under calibration."""
    sums = tallied.cells.sums.at(inside)
    fit = fitted(features, start, offset, sums.weights, sums.weights1[None])
    if not fit.converged[0]:
        return ValidationStatistic(name, reason=Reason.SEPARATED)
    value = float(fit.coefficients[0, -1])
    mean = expit(np.asarray(fit.coefficients[0] @ features.T + offset))
    inverse = np.linalg.inv(information(features, sums.weights, mean))
    if tallied.by_model:
        variance = float(inverse[-1, -1])
    else:  # the sandwich, from independent rows or by the design
        share = features @ inverse[:, -1]
        zero, one = (np.zeros(tallied.cells.p.size) for _ in range(2))
        zero[inside], one[inside] = -mean * share, (1 - mean) * share
        variance = tallied.variance(zero, one)
    error = float(np.sqrt(variance))
    half = float(student_quantile((1 - confidence) / 2, tallied.freedom)) * error
    pvalue = None
    if error > 0:
        pvalue = min(2 * float(student_tail(abs(value - null) / error, tallied.freedom)), 1.0)
    return ValidationStatistic(name, value, value - half, value + half, pvalue)
