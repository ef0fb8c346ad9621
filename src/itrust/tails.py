"""Upper tails of skewed laws on the log scale, far beyond where probabilities underflow."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincc, gammaln, log_ndtr

from itrust.typing import FloatArray

NEARLY_NORMAL = 1e-3  # skewness below which the gamma law is taken as normal
UNDERFLOW = 1e-280
FRACTIONS = 60  # of the continued fraction, which converges fast where it is needed


def pearson3_log_sf(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """Log of P(Z >= z) for a shifted gamma law with mean 0, variance 1 and this skewness.

    Equal to the chi-square law with k degrees of freedom, standardised, at skewness
    sqrt(8 / k), and to the normal law at 0. Arguments are broadcast; skewness is not negative.

    >>> import numpy as np
    >>> from scipy.stats import chi2
    >>> float(np.round(pearson3_log_sf(np.array((20.0 - 4) / np.sqrt(8)), np.sqrt(2.0)), 6))
    -7.602105
    >>> float(np.round(chi2.logsf(20.0, 4), 6))
    -7.602105
    """
    z, skewness = np.broadcast_arrays(np.asarray(z, dtype=float), np.asarray(skewness, dtype=float))
    shape = 4 / np.square(np.maximum(skewness, NEARLY_NORMAL))
    log_sf = np.asarray(_log_gammaincc(shape, np.maximum(shape + z * np.sqrt(shape), 0.0)))
    normal = skewness < NEARLY_NORMAL
    log_sf[normal] = log_ndtr(-z[normal])
    return log_sf


def _log_gammaincc(shape: FloatArray, x: FloatArray) -> FloatArray:
    upper = np.asarray(gammaincc(shape, x))
    deep = upper < UNDERFLOW
    log_upper: FloatArray = np.log(np.where(deep, 1.0, upper))
    if deep.any():
        log_upper[deep] = _log_continued_fraction(shape[deep], x[deep])
    return log_upper


def _log_continued_fraction(shape: FloatArray, x: FloatArray) -> FloatArray:
    """Legendre's fraction for the upper incomplete gamma function, for x well above shape."""
    below = x + 2 * FRACTIONS + 1 - shape
    for k in range(FRACTIONS, 0, -1):
        below = x + 2 * k - 1 - shape - k * (k - shape) / below
    return np.asarray(shape * np.log(x) - x - gammaln(shape) - np.log(below))
