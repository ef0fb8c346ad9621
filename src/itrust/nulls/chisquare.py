"""The upper tail of a weighted sum of chi-square variables, accurate in relative terms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from itrust.typing import FloatArray

NEGLIGIBLE = 1e-13  # weights below this share of the largest one change no digit
BEND = 0.1

ComplexArray = NDArray[np.complex128]
Integrand = Callable[[FloatArray], FloatArray]


def weighted_chi2_sf(value: float, weights: FloatArray) -> float:
    """P(sum_j weights_j z_j^2 >= value) for independent standard normal z_j.

    The inversion integral of the moment generating function is taken along a curve through
    its saddle point, bent towards the side where the integrand dies off, by the trapezoidal
    rule in a sinh variable. Nothing cancels, so the error is relative: about 1e-9 at any
    depth (Rice 1980 uses the same idea). Weights may have either sign.

    >>> import numpy as np
    >>> from scipy.stats import chi2
    >>> round(weighted_chi2_sf(60.0, np.full(3, 0.5)) / chi2.sf(120.0, 3), 9)
    np.float64(1.0)
    """
    weights = np.asarray(weights, dtype=float)
    weights = weights[np.abs(weights) > NEGLIGIBLE * np.abs(weights).max(initial=0.0)]
    if weights.size == 0:
        return float(value <= 0)
    if value < 0 or (value == 0 and weights.max() <= 0):
        return 1.0 if weights.min() > 0 else 1.0 - weighted_chi2_sf(-value, -weights)
    if weights.max() <= 0:
        return 0.0
    scale = float(weights.max())
    return float(np.clip(_contour_integral(value / scale, weights / scale), 0.0, 1.0))


def _contour_integral(value: float, weights: FloatArray) -> float:
    """(1 / 2 pi i) times the integral of exp(K(s) - s value) / s; largest weight 1, value >= 0."""

    def slope(s: float) -> float:
        return float(np.sum(weights / (1 - 2 * s * weights))) - value - 1 / s

    saddle = float(brentq(slope, 1e-300, 0.5 * (1 - 1e-15), xtol=1e-300, rtol=1e-12))
    ratio = weights / (1 - 2 * saddle * weights)
    curvature = 2 * float(np.sum(ratio**2)) + saddle**-2
    third = 8 * float(np.sum(ratio**3)) - 2 * saddle**-3
    width = curvature**-0.5
    # Steepest descent where that bends right; else as little as keeps clear of the cut at 1/2.
    bend = max(third / (6 * curvature), min(BEND / width, 0.5 - saddle))

    def exponent(s: ComplexArray) -> ComplexArray:
        logs: ComplexArray = np.array([np.log(1 - 2 * point * weights).sum() for point in s])
        return -0.5 * logs - s * value - np.log(s)

    peak = exponent(np.array([complex(saddle)]))[0].real

    def integrand(u: FloatArray) -> FloatArray:
        height = width * np.sinh(u)
        s = saddle + 1j * height + bend * height**2
        direction = (1j + 2 * bend * height) * width * np.cosh(u)
        values: FloatArray = (np.exp(exponent(s) - peak) * direction).imag
        return values

    return float(np.exp(peak) / np.pi * _half_line(integrand))


def _half_line(integrand: Integrand) -> float:
    """Integral over u > 0 of an even function that dies off exponentially, by halving the step."""
    step, estimate = 0.25, np.inf
    reach = _reach(integrand)
    for _ in range(7):
        u = np.arange(0.0, reach + step, step)
        values = integrand(u)
        previous, estimate = estimate, step * (values.sum() - values[0] / 2)
        if abs(estimate - previous) <= 1e-10 * abs(estimate):
            break
        step /= 2
    return float(estimate)


def _reach(integrand: Integrand) -> float:
    """Where the integrand has fallen below 1e-17 of its start for good."""
    u = np.arange(0.0, 40.0, 0.25)
    values = np.abs(integrand(u))
    alive = np.flatnonzero(values > 1e-17 * values.max())
    return float(u[alive[-1]]) + 0.25
