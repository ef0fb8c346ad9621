"""What a run has found: the forms of every kernel, for the data and for all draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError
from itrust.data import Sample, Source
from itrust.engines.certificate import Certificate
from itrust.engines.moments import NullMoments
from itrust.engines.passes import Drawing, Tally
from itrust.nulls import SimulatedNull


@dataclass(frozen=True, eq=False)
class Columns:
    """Weighted residuals of all rows: those of the data, then those of every draw."""

    sample: Sample
    weights: FloatArray
    residuals: FloatArray

    @classmethod
    def of(cls, sample: Sample, drawing: Drawing, unit: float) -> Columns:
        """Make the draws."""
        # The data are a column of the same product as the draws, so that ties stay ties.
        residuals = np.empty((sample.n, drawing.columns))
        residuals[:, 0] = sample.residuals
        if isinstance(drawing.null, SimulatedNull):
            drawing.null.fill(residuals[:, 1:], sample, drawing.draws, drawing.seed)
        weights = sample.weights_or_ones / unit
        if sample.weights is not None:
            residuals *= weights[:, None]
        return cls(sample, weights, residuals)

    @property
    def variances(self) -> FloatArray:
        """Null variances of the weighted residuals, (n,)."""
        p = self.sample.p
        return np.asarray(np.square(self.weights) * p * (1 - p))

    @cached_property
    def squares(self) -> FloatArray:
        """Squared residuals, (n, 1 + draws), for all who want them."""
        return np.square(self.residuals)


class KernelOutcome(ABC):
    """What a run has found for one kernel."""

    over_pairs: FloatArray
    diagonal: FloatArray
    expected: float

    @abstractmethod
    def variance(self) -> float:
        """Variance of the form under the null, from all rows."""

    @abstractmethod
    def refined(self, moments: NullMoments) -> NullMoments:
        """Put moments that all rows have told in the place of those from pilot rows.

        A plan that has seen all rows before has nothing to put in their place.
        """

    @abstractmethod
    def spectrum(self) -> FloatArray:
        """Weights l_j of the limit law, that of sum l_j z_j^2 - offset."""

    @abstractmethod
    def offset(self) -> float:
        """What the limit law is shifted by."""

    @abstractmethod
    def certificate(self, pair_weight: float) -> Certificate | None:
        """Tell how far the kernel is from the true one."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run has found."""

    tally: Tally
    pair_weight: float
    works: tuple[Any, ...]
    kernels: tuple[KernelOutcome, ...]


def pair_weight_of(source: Source, tally: Tally, unit: float) -> float:
    """Sum over i != j of w_i w_j, without cancellation where all weights are at hand."""
    whole = source.in_memory
    if whole is None:
        return tally.pair_weight
    return whole.pair_weight / (unit**2 if whole.weights is not None else 1.0)


def finite(sums: FloatArray) -> FloatArray:
    """Pass sums on; refuse what overflowed."""
    if not np.isfinite(sums).all():
        raise InputError("the statistic is not finite; rescale the columns that the kernel sees")
    return sums
