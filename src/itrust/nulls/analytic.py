"""Nulls whose tail is a formula: the weighted chi-square limit and Hoeffding's bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from itrust._core import InputError
from itrust.nulls.base import AnalyticNull, Facts
from itrust.nulls.chisquare import weighted_chi2_sf


@dataclass(frozen=True)
class Spectral(AnalyticNull):
    """The limit law of the statistic: a weighted sum of chi-squares, no draws needed.

    Under the null the sum over pairs behaves as g'Ag with normal g, where A has entries
    w_i w_j P_ij sqrt(v_i v_j) and, because i = j is left out, a zero diagonal; mean and variance
    agree with the exact ones. An approximation: with rare events the true tail is heavier
    (f = .02, n = 1,000: 2.5e-12 where the truth is 3e-9), so nothing below 1e-6 is reported
    as a number. With tiles the eigenvalues are those of A, cost O(n^3), up to 5,000 rows; with
    the factor engine those of its small matrix, scaled to the exact variance.
    """

    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "weighted chi-square limit"
    depth: ClassVar[float] = 1e-6

    def tail(self, facts: Facts) -> float:
        return weighted_chi2_sf(facts.over_pairs + facts.offset(), facts.spectrum())


@dataclass(frozen=True)
class Hoeffding(AnalyticNull):
    """The distribution-free bound: exp(-m t^2 / (2 B^2)) for a statistic t, B the supremum.

    Valid at every n and very conservative. Unweighted rows and bounded kernels only.

    Parameters
    ----------
    papers_constant : bool
        Whether to use m = n as the paper's corollary prints it. For a U-statistic of order two
        Hoeffding's inequality (1963, section 5) gives m = floor(n / 2), which is the default.
    """

    papers_constant: bool = False
    meaning: ClassVar[str] = "Hoeffding's distribution-free bound"
    depth: ClassVar[float] = 0.0

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether the constant is the one that makes a valid bound."""
        return not self.papers_constant

    def blocks(self, n: int) -> int:
        """Count the independent pairs of the bound, m in its formula.

        Parameters
        ----------
        n : int
            Number of rows of the sample.

        Returns
        -------
        int
            The number m.
        """
        return n if self.papers_constant else n // 2

    def threshold(self, alpha: float, n: int, supremum: float) -> float:
        """Compute the largest statistic that is not rejected.

        Parameters
        ----------
        alpha : float
            Size of the test.
        n : int
            Number of rows.
        supremum : float
            The largest value of the kernel.

        Returns
        -------
        float
            The threshold of KLCE^2.

        Examples
        --------
        >>> round(Hoeffding().threshold(0.05, 1000, 1.0), 4)
        0.1095
        """
        return supremum * math.sqrt(2 * math.log(1 / alpha) / self.blocks(n))

    def tail(self, facts: Facts) -> float:
        if facts.weighted:
            raise InputError(
                "Hoeffding's bound is for unweighted rows; use Bernoulli()",
                argument="null",
                value=self,
            )
        if not math.isfinite(facts.supremum):
            raise InputError(
                "Hoeffding's bound needs a bounded kernel; this one has no supremum",
                argument="null",
                value=self,
            )
        if facts.supremum == 0:
            return 1.0
        t = max(facts.statistic, 0.0) / facts.supremum
        return math.exp(-self.blocks(facts.n) * t**2 / 2)
