"""Which checks add up clusters' sums that are nearly symmetric: known without labels.

Signs of clusters are flipped, and each check is measured by how far its flips spread. Where no
event may happen by chance, as in a small group with rare events, flips spread next to nothing,
and the check would be the most striking one: there the spread that the probabilities expect counts
where it is larger.
"""

from __future__ import annotations

import numpy as np

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.calibration.prepared import Prepared
from itrust.data import Sample
from itrust.nulls import MAX_SKEWNESS2, MIN_CLUSTERS

ROWS_AT_ONCE = 65_536


def symmetric_checks(prepared: Prepared) -> BoolArray:
    """Mark the checks whose features all have nearly symmetric sums over clusters, (E,).

    Whether labels of a cluster are independent or all one, the squared skewness of a feature's sum
    must be small and many clusters must carry it. Kernels, which look at small places, are not
    marked, and neither are checks of rows in files.

    Parameters
    ----------
    prepared : Prepared
        Survey and features.

    Returns
    -------
    (E,) array of bool
        In the order of the checks.
    """
    found = np.zeros(prepared.weights.size, dtype=bool)
    sample = prepared.survey.source.in_memory
    bank = prepared.bank
    if sample is None or not bank.entries:
        return found
    features = _symmetric_features(prepared, sample)
    for k in range(len(bank.entries)):
        found[k] = features[bank.features_of(k)[0]].all()
    return found


def _symmetric_features(prepared: Prepared, sample: Sample) -> BoolArray:
    """The same for every feature and mixture of features, (R + Q,)."""
    width = prepared.bank.selector.shape[1]
    design, clusters = sample.design, sample.design.clusters
    alone, together = np.zeros((2, 3, width)), np.zeros((3, width, clusters))
    spread = np.zeros((width, clusters))
    for chunk in sample.chunks(min(prepared.bank.max_rows, ROWS_AT_ONCE)):
        rows = slice(chunk.rows.start, chunk.rows.stop)
        w = np.ones(chunk.p.size) if chunk.weights is None else chunk.weights
        f = prepared.bank.matrix(chunk.points) * w
        v = chunk.p * (1 - chunk.p)
        alone[0, 0] += np.square(f) @ v
        alone[0, 1] += f**3 @ (v * (1 - 2 * chunk.p))
        unit = design.units[rows]
        parts = f, np.abs(f), np.abs(f) * chunk.p
        for kind, part in enumerate(parts):
            _add(together[kind], part, unit)
        _add(spread, np.square(f) * v, unit)
    alone[0, 2] = np.square(spread).sum(axis=1)
    mass, size, predicted = together
    mean = np.divide(predicted, size, out=np.zeros_like(size), where=size > 0)
    variance = mass**2 * mean * (1 - mean)
    third = variance * mass * (1 - 2 * mean)
    alone[1] = variance.sum(axis=1), third.sum(axis=1), np.square(variance).sum(axis=1)
    return np.asarray(_is_symmetric(alone[0]) & _is_symmetric(alone[1]))


def _add(totals: FloatArray, part: FloatArray, unit: IntArray) -> None:
    """Add a (features, rows) array to sums over units, (features, units)."""
    order = np.argsort(unit, kind="stable")
    first = np.flatnonzero(np.diff(unit[order], prepend=-1))
    totals[:, unit[order[first]]] += np.add.reduceat(part[:, order], first, axis=1)


def _is_symmetric(moments: FloatArray) -> BoolArray:
    """Whether variance, third moment and squared variances, (3, m), are of a symmetric sum."""
    variance, third, squares = moments
    safe = np.where(variance > 0, variance, 1.0)
    few = variance**2 < MIN_CLUSTERS * squares
    return np.asarray((variance > 0) & (third**2 <= MAX_SKEWNESS2 * safe**3) & ~few)
