"""Residuals of one time that go with those of the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, Subject, checked_count, counted
from itrust.data import Sample, read_times

MIN_PAIRS = 2


@dataclass(frozen=True)
class Autocorrelation:
    """How residuals of one time go with those of a later one."""

    lag: int
    correlation: float
    stderr: float
    pairs: int


def residual_autocorrelation(sample: Sample, order: object, lag: int = 1) -> Autocorrelation:
    """Correlate the mean residuals of times that follow each other.

    Residuals (y - p) / sqrt(p (1 - p)), less their mean over all rows, are averaged over the n_t
    rows of every time and multiplied by sqrt(n_t), which gives z_t of about the same variance.
    With m pairs of T times, the correlation is (sum of z_t z_(t + lag) / m) / (sum of z_t^2 / T),
    and its standard error sqrt(sum of z_t^2 z_(t + lag)^2) / m over the same: products of
    independent times have the mean 0, whatever their variances are. Costs O(n log n).

    Examples
    --------
    >>> import itrust as it
    >>> flips = it.Sample([0, 1, 0, 1], [0.5] * 4)
    >>> residual_autocorrelation(flips, [1, 2, 3, 4]).correlation
    -1.0
    """
    what = Subject("order")
    checked_count(lag, "lag")
    times = read_times(order, what, sample.n)
    variances = sample.p * (1 - sample.p)
    kept = variances > 0
    codes = np.asarray(np.unique(times[kept], return_inverse=True)[1], dtype=np.int64)
    z = _by_time(sample.residuals[kept] / np.sqrt(variances[kept]), codes)
    pairs = max(z.size - lag, 0)
    if pairs < MIN_PAIRS:
        raise InputError(
            f"{{argument}} has {counted(z.size, 'time')} with p between 0 and 1, too few for lag "
            f"{lag}; at least {lag + MIN_PAIRS} are needed",
            count=int(z.size),
            **what.fields,
        )
    products, variance = z[lag:] * z[:-lag], float(np.square(z).mean())
    scale = pairs * variance or 1.0
    error = float(np.sqrt(np.square(products).sum())) / scale
    return Autocorrelation(lag, float(products.sum()) / scale, error, pairs)


def _by_time(residuals: FloatArray, codes: IntArray) -> FloatArray:
    """Means of centred residuals times the roots of their numbers, (T,)."""
    if not residuals.size:
        return residuals
    sums = np.bincount(codes, residuals - residuals.mean())
    return np.asarray(sums / np.sqrt(np.bincount(codes)))
