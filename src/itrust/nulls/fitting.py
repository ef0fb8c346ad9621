"""Which null fits some rows: the one that every test and every interval takes by default.

The choice looks at probabilities, weights and clusters, never at labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from itrust._core import BoolArray, FloatArray
from itrust.data import Sample, Source
from itrust.nulls.base import RowwiseNull
from itrust.nulls.copula import Copula
from itrust.nulls.simulated import Bernoulli, Rademacher, Replicates

MAX_SKEWNESS2 = 0.05  # squared skewness up to which a sum over clusters is nearly symmetric
MAX_SKEWNESS2_OF_THIRDS = 0.5  # the same of the thirds with the lowest and highest probabilities
MIN_CLUSTERS = 10.0  # effective ones, below which nothing holds the level
MIN_SYMMETRIC = 7.0  # the same where signs may be flipped: six can give no p-value below .03


@dataclass(frozen=True)
class Carriers:
    """What carries a sum of residuals, if every cluster had one label: the worst case."""

    clusters: int
    effective: float
    skewness2: float
    skewness2_of_thirds: float = 0.0

    @property
    def symmetric(self) -> bool:
        """Whether the sum is so nearly symmetric that signs of clusters may be flipped."""
        thirds = self.skewness2_of_thirds <= MAX_SKEWNESS2_OF_THIRDS
        return self.skewness2 <= MAX_SKEWNESS2 and thirds

    @property
    def needed(self) -> float:
        """Effective clusters that a p-value needs."""
        return MIN_SYMMETRIC if self.symmetric else MIN_CLUSTERS

    @property
    def enough(self) -> bool:
        """Whether there are clusters enough for any p-value."""
        return self.effective >= self.needed


def carriers_of(sample: Sample) -> Carriers:
    """Count what carries the sum of all residuals, from probabilities, weights and clusters."""
    design, w = sample.design, sample.weights_or_ones
    mass, predicted = design.totals(w), design.totals(w * sample.p)
    if design.known_by_replicates:
        count = int(design.freedom) + 1
        mean = float(predicted.sum() / mass.sum())
        mass, predicted = np.ones(count), np.full(count, mean)
    spread, third = worst_moments(mass, predicted)
    squares = float(np.square(spread).sum())
    total = float(spread.sum())
    return Carriers(
        clusters=int(mass.size),
        effective=total**2 / squares if squares > 0 else 0.0,
        skewness2=_skewness2(spread, third),
        skewness2_of_thirds=_of_thirds(mass, predicted, spread, third),
    )


def _skewness2(variance: FloatArray, third: FloatArray) -> float:
    """Squared skewness of a sum, from second and third moments of its parts."""
    total = float(variance.sum())
    return float(third.sum()) ** 2 / total**3 if total > 0 else float(np.inf)


def _of_thirds(
    mass: FloatArray, predicted: FloatArray, variance: FloatArray, third: FloatArray
) -> float:
    """The larger squared skewness of the clusters with low and with high probabilities."""
    mean = np.divide(predicted, mass, out=np.zeros_like(predicted), where=mass > 0)
    order = np.argsort(mean, kind="stable")
    size = max(mass.size // 3, 1)
    return max(_skewness2(variance[own], third[own]) for own in (order[:size], order[-size:]))


def worst_moments(mass: FloatArray, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance and third moment of clusters' sums of residuals if each had a single label."""
    mean = np.divide(predicted, mass, out=np.zeros_like(predicted), where=mass > 0)
    variance = mean * (1 - mean) * mass**2
    return variance, variance * (1 - 2 * mean) * mass


def fitting_null(source: Source) -> RowwiseNull:
    """Give the null that keeps what is known about the dependence of rows."""
    sample = source.in_memory
    if sample is None or sample.design.rows_are_independent:
        return Bernoulli()
    if sample.design.known_by_replicates:
        return Replicates.of(sample.design)
    return Rademacher() if carriers_of(sample).symmetric else Copula()


def places_null(sample: Sample) -> RowwiseNull:
    """Give the null for groups, slices and points, some of which may hold few events."""
    if sample.design.known_by_replicates:
        return Replicates.of(sample.design)
    return Bernoulli() if sample.cluster is None else Copula()


def is_symmetric(variance: FloatArray, third: FloatArray, squares: FloatArray) -> BoolArray:
    """Mark sums over clusters that are nearly symmetric and that many clusters carry."""
    safe = np.where(variance > 0, variance, 1.0)
    many = variance**2 >= MIN_CLUSTERS * squares
    return np.asarray((variance > 0) & (third**2 <= MAX_SKEWNESS2 * safe**3) & many)
