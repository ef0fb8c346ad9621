"""Nulls whose tail is a formula: the weighted chi-square limit and Hoeffding's bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from itrust.errors import InputError
from itrust.kernels.grams import Gram
from itrust.nulls.base import AnalyticNull
from itrust.nulls.chisquare import weighted_chi2_sf
from itrust.sample import Sample
from itrust.typing import FloatArray

MOST_DENSE_ROWS = 5_000


@dataclass(frozen=True)
class Spectral(AnalyticNull):
    """The limit law of the statistic: a weighted sum of chi-squares, no draws needed.

    Under the null the sum over pairs behaves as g'Ag with normal g, where A has entries
    w_i w_j P_ij sqrt(v_i v_j) and, because i = j is left out, a zero diagonal; mean and variance
    agree with the exact ones. An approximation: with rare events the true tail is heavier
    (f = .02, n = 1,000: 2.5e-12 where the truth is 3e-9), so nothing below 1e-6 is reported
    as a number. Cost O(n^3), up to 5,000 rows.
    """

    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "weighted chi-square limit"
    depth: ClassVar[float] = 1e-6

    def tail(self, statistic: float, sample: Sample, gram: Gram, supremum: float) -> float:  # noqa: ARG002
        """Upper tail of the limit law at the statistic."""
        if sample.n > MOST_DENSE_ROWS:
            raise InputError(
                f"Spectral takes up to {MOST_DENSE_ROWS:,} rows, this sample has {sample.n:,}; "
                f"use Bernoulli(), which is exact"
            )
        return weighted_chi2_sf(statistic * sample.pair_weight, _eigenvalues(sample, gram))


def _eigenvalues(sample: Sample, gram: Gram) -> FloatArray:
    everything = slice(None)
    root = sample.weights_or_ones * np.sqrt(sample.p * (1 - sample.p))
    matrix = gram.block(everything, everything)
    matrix *= root[:, None]
    matrix *= root
    np.fill_diagonal(matrix, 0.0)
    return np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)


@dataclass(frozen=True)
class Hoeffding(AnalyticNull):
    """The distribution-free bound: exp(-m t^2 / (2 B^2)) for a statistic t, B the supremum.

    Valid at every n and very conservative. Unweighted rows and bounded kernels only.

    Parameters
    ----------
    papers_constant : bool
        Use m = n as the paper's corollary prints it. For a U-statistic of order two
        Hoeffding's inequality (1963, section 5) gives m = floor(n / 2), the default.
    """

    papers_constant: bool = False
    meaning: ClassVar[str] = "Hoeffding's distribution-free bound"
    depth: ClassVar[float] = 0.0

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether the constant is the one that makes a valid bound."""
        return not self.papers_constant

    def blocks(self, n: int) -> int:
        """Number m of independent pairs the bound counts."""
        return n if self.papers_constant else n // 2

    def threshold(self, level: float, n: int, supremum: float) -> float:
        """Largest statistic in the acceptance region at this level.

        >>> round(Hoeffding().threshold(0.05, 1000, 1.0), 4)
        0.1095
        """
        return supremum * math.sqrt(2 * math.log(1 / level) / self.blocks(n))

    def tail(self, statistic: float, sample: Sample, gram: Gram, supremum: float) -> float:  # noqa: ARG002
        """Bound on the probability of a statistic at least as large."""
        if sample.weights is not None:
            raise InputError("Hoeffding's bound is for unweighted rows; use Bernoulli()")
        if not math.isfinite(supremum):
            raise InputError("Hoeffding's bound needs a bounded kernel; this one has no supremum")
        if supremum == 0:
            return 1.0
        return math.exp(-self.blocks(sample.n) * (max(statistic, 0.0) / supremum) ** 2 / 2)
