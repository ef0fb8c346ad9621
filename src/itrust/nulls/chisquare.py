"""The upper tail of a weighted sum of chi-square variables, accurate in relative terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from itrust._core import FloatArray

NEGLIGIBLE = 1e-13  # weights below this share of the largest one change no digit
BEYOND_DOUBLES = 1e6  # exp(-value / 2) is 0 long before
BEND = 0.1
GRID = np.arange(0.0, 45.0, 0.25)
LOST = -41.0  # log of a share below double precision

ComplexArray = NDArray[np.complex128]


def weighted_chi2_sf(value: float, weights: FloatArray) -> float:
    """P(sum_j weights_j z_j^2 >= value) for independent standard normal z_j.

    The inversion integral of the moment generating function is taken along a curve through
    its saddle point, bent towards the side where the integrand dies off but never so far that
    it grows on the way, by the trapezoidal rule in a sinh variable. Nothing cancels, so the
    error is relative (Rice 1980 uses the same idea). Weights may have either sign.

    >>> import numpy as np
    >>> from scipy.stats import chi2
    >>> round(weighted_chi2_sf(60.0, np.full(3, 0.5)) / chi2.sf(120.0, 3), 9)
    np.float64(1.0)
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
