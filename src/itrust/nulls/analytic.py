"""Nulls whose tail is a formula: the weighted chi-square limit and Hoeffding's bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from itrust._core import FloatArray, InputError
from itrust.nulls.base import AnalyticNull, Facts

NEGLIGIBLE = 1e-13  # weights below this share of the largest one change no digit
BEYOND_DOUBLES = 1e6  # exp(-value / 2) is 0 long before
BEND = 0.1
GRID = np.arange(0.0, 45.0, 0.25)
LOST = -41.0  # log of a share below double precision

ComplexArray = NDArray[np.complex128]


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
            problem = "Hoeffding's bound is for unweighted rows; use Bernoulli()"
            raise InputError(problem, argument="null", value=self)
        if not math.isfinite(facts.supremum):
            problem = "Hoeffding's bound needs a bounded kernel; this one has no supremum"
            raise InputError(problem, argument="null", value=self)
        if facts.supremum == 0:
            return 1.0
        t = max(facts.statistic, 0.0) / facts.supremum
        return math.exp(-self.blocks(facts.n) * t**2 / 2)


def weighted_chi2_sf(value: float, weights: FloatArray) -> float:
    """P(sum_j weights_j z_j^2 >= value) for independent standard normal z_j.

    The inversion integral of the moment generating function is taken along a curve through
    its saddle point, bent towards the side where the integrand dies off but never so far that
    it grows on the way, by the trapezoidal rule in a sinh variable. Nothing cancels, so the
    error is relative (Rice 1980 uses the same idea). Weights may have either sign.
    """
    weights = _without_negligible(np.asarray(weights, dtype=float))
    if weights.size == 0:
        return float(value <= 0)
    if value <= 0 and weights.min() > 0:
        return 1.0
    if value < 0:
        return 1.0 - weighted_chi2_sf(-value, -weights)
    if weights.max() <= 0:
        return 0.0
    scale = float(weights.max())
    if value / scale > BEYOND_DOUBLES:
        return 0.0
    return float(np.clip(_contour_integral(value / scale, weights / scale), 0.0, 1.0))


def _without_negligible(weights: FloatArray) -> FloatArray:
    """Drop weights that are tiny beside the largest of their own sign."""
    top = np.where(weights > 0, weights.max(initial=0.0), -weights.min(initial=0.0))
    kept: FloatArray = weights[np.abs(weights) > NEGLIGIBLE * top]
    return kept


@dataclass(frozen=True)
class _Contour:
    """exp(K(s) - s value) / s along s = saddle + i h + bend h^2 with h = width sinh(u)."""

    value: float
    weights: FloatArray
    saddle: float
    width: float
    bend: float

    def points(self, u: FloatArray) -> ComplexArray:
        height = self.width * np.sinh(u)
        return np.asarray(self.saddle + 1j * height + self.bend * height**2, dtype=np.complex128)

    def exponent(self, s: ComplexArray) -> ComplexArray:
        logs: ComplexArray = np.array([np.log(1 - 2 * point * self.weights).sum() for point in s])
        return np.asarray(-0.5 * logs - s * self.value - np.log(s), dtype=np.complex128)

    @cached_property
    def peak(self) -> float:
        return float(self.exponent(np.array([complex(self.saddle)]))[0].real)

    def integrand(self, u: FloatArray) -> FloatArray:
        height = self.width * np.sinh(u)
        direction = (1j + 2 * self.bend * height) * self.width * np.cosh(u)
        values: FloatArray = (np.exp(self.exponent(self.points(u)) - self.peak) * direction).imag
        return values

    @cached_property
    def heights(self) -> FloatArray:
        """Log of the integrand's modulus on a coarse grid, relative to the start."""
        exponents = self.exponent(self.points(GRID)).real - self.peak
        return np.asarray(exponents, dtype=np.float64)

    @property
    def only_falls(self) -> bool:
        return bool((np.diff(self.heights) <= 1e-9).all())

    @property
    def reach(self) -> float:
        """Where the integrand has fallen below all digits for good; cosh(u) is its measure."""
        alive = np.flatnonzero(self.heights + GRID > LOST)
        return float(GRID[alive[-1]]) + 0.25


def _contour_integral(value: float, weights: FloatArray) -> float:
    """(1 / 2 pi i) times the integral of exp(K(s) - s value) / s; largest weight 1, value >= 0."""
    from scipy.optimize import brentq  # slow to load, and needed by few

    def slope(s: float) -> float:
        return float(np.sum(weights / (1 - 2 * s * weights))) - value - 1 / s

    saddle = float(brentq(slope, 1e-300, 0.5 * (1 - 1e-15), xtol=1e-300, rtol=1e-12))
    ratio = weights / (1 - 2 * saddle * weights)
    curvature = 2 * float(np.sum(ratio**2)) + saddle**-2
    third = 8 * float(np.sum(ratio**3)) - 2 * saddle**-3
    width = curvature**-0.5
    steepest = max(third / (6 * curvature), min(BEND / width, 0.5 - saddle))
    for bend in (*(steepest * 0.25**k for k in range(12)), 0.0):
        contour = _Contour(value, weights, saddle, width, bend)
        if contour.only_falls:
            break
    return float(np.exp(contour.peak) / np.pi * _half_line(contour))


def _half_line(contour: _Contour) -> float:
    """Integral over u > 0 of an even function that dies off exponentially, by halving the step."""
    step, estimate = 0.25, np.inf
    for _ in range(8):
        values = contour.integrand(np.arange(0.0, contour.reach + step, step))
        previous, estimate = estimate, step * float(values.sum() - values[0] / 2)
        if abs(estimate - previous) <= 1e-10 * abs(estimate):
            return estimate
        step /= 2
    raise ArithmeticError(f"the chi-square tail did not converge at {contour.value!r}")
