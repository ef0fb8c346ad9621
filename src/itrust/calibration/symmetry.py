"""Which checks add up clusters' sums that are nearly symmetric: known without labels.

Signs of clusters are flipped, and each check is measured by how far its flips spread. Where no
event may happen by chance, as in a small group with rare events, flips spread next to nothing,
and the check would be the most striking one: there the spread that the probabilities expect counts
where it is larger.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from itrust._core import BoolArray, IntArray
from itrust.calibration.prepared import Prepared
from itrust.data import Sample
from itrust.nulls import is_symmetric

ROWS_AT_ONCE = 65_536


def symmetric_checks(prepared: Prepared) -> BoolArray:
    """Mark the checks whose features all have nearly symmetric sums over clusters, (E,).

    Whether labels of a cluster are independent or all one, the squared skewness of a feature's sum
    must be small and many clusters must carry it. Kernels, which look at small places, are not
    marked, and neither are checks of rows in files or of rows whose clusters are not named.
    """
    found = np.zeros(prepared.weights.size, dtype=bool)
    sample = prepared.survey.source.in_memory
    bank = prepared.bank
    if sample is None or not bank.entries or sample.design.known_by_replicates:
        return found
    features = _symmetric_features(prepared, sample)
    for k in range(len(bank.entries)):
        found[k] = features[bank.features_of(k)[0]].all()
    return found


def _symmetric_features(prepared: Prepared, sample: Sample) -> BoolArray:
    """The same for every feature and mixture of features, (R + Q,)."""
    width, units = prepared.bank.selector.shape[1], sample.design.units
    order = np.argsort(units, kind="stable")
    alone, together = np.zeros((3, width)), np.zeros((3, width))
    for rows in _whole_clusters(units[order], min(prepared.bank.max_rows, ROWS_AT_ONCE)):
        chosen = order[rows]
        p, w = sample.p[chosen], sample.weights_or_ones[chosen]
        f = prepared.bank.matrix(sample.points.take(chosen)) * w
        v = p * (1 - p)
        first = np.flatnonzero(np.diff(units[chosen], prepend=-1))
        parts = np.square(f) * v, f, np.abs(f), np.abs(f) * p
        spread, mass, size, predicted = (np.add.reduceat(part, first, axis=1) for part in parts)
        third = f**3 @ (v * (1 - 2 * p))
        alone += np.stack([spread.sum(axis=1), third, np.square(spread).sum(axis=1)])
        # If a cluster had one label, its probability being the mean over the feature's size.
        mean = np.divide(predicted, size, out=np.zeros_like(size), where=size > 0)
        variance = mass**2 * mean * (1 - mean)
        skew = variance * mass * (1 - 2 * mean)
        sums = variance.sum(axis=1), skew.sum(axis=1), np.square(variance).sum(axis=1)
        together += np.stack(sums)
    return np.asarray(is_symmetric(*alone) & is_symmetric(*together))


def _whole_clusters(units: IntArray, size: int) -> Iterator[slice]:
    """Some rows at a time, of units in ascending order, that are never torn apart."""
    ends = np.append(np.flatnonzero(np.diff(units)) + 1, units.size)
    at = 0
    while at < units.size:
        last = int(np.searchsorted(ends, at + size, side="right")) - 1
        stop = int(ends[last]) if last >= 0 and ends[last] > at else int(ends[ends > at][0])
        yield slice(at, stop)
        at = stop
