"""From sums of residuals to intervals: which biases are compatible with what was seen.

A bias b at a place is compatible when the observed mean is not too far out in the law that labels
with probability p + b would give it: variance and skewness are those at b, not at the estimate, so
the interval holds its level with rare events, too. Residuals that vary more than that (biases that
differ between the rows of a place) widen it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm, t

from itrust._core import FloatArray, IntArray
from itrust.bias.smoothing import Averages, Moments, polynomial
from itrust.calibration import from_normal_score, upper_score

HALVINGS = 40
MIN_FREEDOM = 0.5  # effective clusters less one, below which nothing can be said


@dataclass(frozen=True, eq=False)
class Band:
    """A lower and an upper end for every place.

    Attributes
    ----------
    lower, upper : (m,) array
        Ends of the interval at each place; NaN where nothing is known.
    """

    lower: FloatArray
    upper: FloatArray

    def take(self, places: IntArray) -> Band:
        """Keep some places.

        Parameters
        ----------
        places : (k,) array of int
            Which places, by number.

        Returns
        -------
        Band
            With k intervals.
        """
        return Band(self.lower[places], self.upper[places])


def critical_value(maxima: FloatArray, alpha: float) -> float:
    """The value that a new maximum exceeds with probability at most `alpha`, (draws,).

    The draws and the data are alike, so the k-th largest of B draws is exceeded with probability
    at most k / (B + 1). Infinite where the draws are too few.

    >>> import numpy as np
    >>> critical_value(np.arange(1.0, 20.0), 0.1)
    18.0
    """
    allowed = math.floor(alpha * (1 + maxima.size) + 1e-9)
    return float(np.sort(maxima)[-allowed]) if allowed >= 1 else math.inf


def null_band(averages: Averages, critical: float) -> Band:
    """Mean residuals whose normal score stays within +- critical if no row has a bias."""
    moments = averages.moments
    variance, skewness = averages.null_scale()
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    mass = np.where(moments.mass > 0, moments.mass, np.nan)
    ends = [
        from_normal_score(np.full(mass.size, sign * critical), skewness) * scale / mass
        for sign in (-1, 1)
    ]
    still = variance <= 0
    ends = [np.where(still & np.isfinite(mass), 0.0, end) for end in ends]
    # Between "every label is 0" and "every label is 1" lies all that can happen.
    predicted = moments.mean_prediction
    return Band(np.fmax(ends[0], -predicted), np.fmin(ends[1], 1 - predicted))


def confidence_band(averages: Averages, critical: float) -> Band:
    """Biases b whose law puts the observed mean within +- critical, by bisection.

    With clusters, Student's law with as many degrees of freedom as effective clusters less one
    takes the place of the normal one.
    """
    predicted = averages.moments.mean_prediction
    law = _Law.of(averages)
    known = np.isfinite(averages.values)
    reach = np.full(known.size, critical)
    if averages.has_clusters:
        freedom = np.nan_to_num(averages.moments.size) - 1
        some = freedom > MIN_FREEDOM
        reach = np.where(some, t.isf(norm.sf(critical), np.where(some, freedom, 1.0)), np.inf)
    lower = _farthest(law, averages.values, -predicted, reach)
    upper = _farthest(law, averages.values, 1 - predicted, reach)
    return Band(np.where(known, lower, np.nan), np.where(known, upper, np.nan))


def mean_intervals(averages: Averages, alpha: float, *, simultaneous: bool) -> Band:
    """Intervals of the bias at all places: together by a multiplier bootstrap, or each alone."""
    if not simultaneous:
        return confidence_band(averages, float(ndtri(1 - alpha / 2)))
    maxima: FloatArray = np.abs(averages.multiplier_scores()).max(axis=0, initial=0.0)
    return confidence_band(averages, critical_value(maxima, alpha))


@dataclass(frozen=True, eq=False)
class _Law:
    """How the weighted mean of y - p varies, given the bias at each place."""

    moments: Moments
    inflation: FloatArray
    excess: FloatArray  # variance of the residuals beyond that of labels from p + b

    @classmethod
    def of(cls, averages: Averages) -> _Law:
        moments, b = averages.moments, np.nan_to_num(averages.values)
        excess = np.maximum(polynomial(moments.squares, b) - moments.central(b)[0], 0.0)
        return cls(moments, averages.inflation, excess)

    def distance(self, values: FloatArray, bias: FloatArray) -> FloatArray:
        """Normal score of the observed mean if this were the bias, without its sign."""
        moments = self.moments
        plain, third = moments.central(bias)
        variance = (plain + self.excess) * self.inflation
        scale = np.where(variance > 0, variance, 1.0)
        # Labels come in steps: where few events are expected, half a step counts as equal.
        step = moments.second[0] / np.where(moments.mass > 0, moments.mass, 1.0)
        slack = 0.5 * step / (1 + plain / np.where(step > 0, step, 1.0) ** 2)
        away = np.maximum(np.abs(values - bias) * moments.mass - slack, 0.0)
        # No room for any variation: nothing but the bias itself is compatible.
        z = np.where(variance > 0, away / np.sqrt(scale), np.where(away > 0, np.inf, 0.0))
        return upper_score(z, np.sign(values - bias) * third / scale**1.5)


def _farthest(law: _Law, values: FloatArray, end: FloatArray, reach: FloatArray) -> FloatArray:
    """The compatible bias farthest from the estimate, towards `end`."""
    inside, outside = values.copy(), end.copy()
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        near = law.distance(values, middle) <= reach
        inside, outside = np.where(near, middle, inside), np.where(near, outside, middle)
    return inside
