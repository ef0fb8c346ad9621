"""What the data would look like if the model were calibrated: the two kinds of null.

And those whose tail is a formula: the weighted chi-square limit and Hoeffding's bound.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from itrust._core import AnyArray, FloatArray, InputError
from itrust.data import Rows, Sample, Source

DRAWS_AT_ONCE = 128  # random bits held at once
NEGLIGIBLE = 1e-13  # weights below this share of the largest one change no digit
BEYOND_DOUBLES = 1e6  # exp(-value / 2) is 0 long before
BEND = 0.1
GRID = np.arange(0.0, 45.0, 0.25)
LOST = -41.0  # log of a share below double precision

ComplexArray = NDArray[np.complex128]


class Null(ABC):
    """A way to judge the statistic: how it behaves when the model is calibrated.

    Attributes
    ----------
    exact : bool
        Whether the p-value is valid at every sample size, not only in the limit.
    meaning : str
        What the null does, in a few words.
    is_local_calibration : bool
        Whether its hypothesis is local calibration; that of the paper's code is another one.
    keeps_clusters : bool
        Whether draws keep the dependence within clusters; others take rows as independent.
    keeps_residuals : bool
        Whether draws are the observed residuals times random numbers, so that they keep their size.
    """

    exact: ClassVar[bool]
    meaning: ClassVar[str]
    is_local_calibration: ClassVar[bool] = True
    keeps_clusters: ClassVar[bool] = False
    keeps_residuals: ClassVar[bool] = False

    def to_dict(self) -> dict[str, Any]:
        """Give the name, the settings and whether it is exact, ready for JSON.

        Returns
        -------
        dict
            The name under "null", then "exact", then the settings.
        """
        settings = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"null": type(self).__name__, "exact": self.exact, **settings}


class SimulatedNull(Null):
    """A null that makes residuals again; draw b of row i depends on (seed, i, b) alone."""

    @abstractmethod
    def fill(self, out: FloatArray, sample: Sample, draws: range, seed: int) -> None:
        """Write unweighted residuals under the null into an array.

        Parameters
        ----------
        out : (n, len(draws)) array of float
            Where to write: one row for each row of the sample, one column for each draw.
        sample : Sample
            The rows.
        draws : range
            Numbers of the draws.
        seed : int
            What the randomness comes from.
        """


class RowwiseNull(SimulatedNull):
    """A null that can draw rows apart from each other, so that a stream of chunks suffices."""

    def laws(self, source: Source, seed: int) -> tuple[RowwiseNull, ...]:  # noqa: ARG002
        """Give the laws that a calibrated model may follow; a p-value is the largest of theirs.

        Parameters
        ----------
        source : Source
            The rows, with their labels.
        seed : int
            What the randomness comes from.

        Returns
        -------
        tuple of RowwiseNull
            One, itself, unless the null leaves something open.
        """
        return (self,)

    @abstractmethod
    def draw(self, chunk: Rows, draws: range, seed: int) -> AnyArray:
        """Draw for the rows of one chunk.

        Parameters
        ----------
        chunk : Rows
            Consecutive rows, n of them.
        draws : range
            Numbers of the draws.
        seed : int
            What the randomness comes from.

        Returns
        -------
        (n, len(draws)) array
            Labels if it is boolean, residuals if it is float.
        """

    def fill(self, out: FloatArray, sample: Sample, draws: range, seed: int) -> None:
        (whole,) = sample.chunks(sample.n)
        for block, part in column_blocks(out, draws):
            drawn = self.draw(whole, block, seed)
            if drawn.dtype == bool:
                np.subtract(drawn, sample.p[:, None], out=part)
            else:
                part[...] = drawn


def column_blocks(out: FloatArray, draws: range) -> Iterator[tuple[range, FloatArray]]:
    """Some draws at a time, with the columns they belong to."""
    for at in range(0, len(draws), DRAWS_AT_ONCE):
        yield draws[at : at + DRAWS_AT_ONCE], out[:, at : at + DRAWS_AT_ONCE]


@dataclass(frozen=True, eq=False)
class Facts:
    """What a formula may ask about the sample and its statistic.

    Attributes
    ----------
    statistic : float
        KLCE^2 of the data.
    over_pairs : float
        The statistic times the sum of the weights of all pairs.
    n : int
        Number of rows.
    weighted : bool
        Whether the rows have weights.
    supremum : float
        The largest value of the kernel.
    spectrum : callable without arguments
        Gives the eigenvalues l_j of the limit law.
    offset : callable without arguments
        Gives what is subtracted: the limit law is that of sum l_j z_j^2 minus the offset.
    """

    statistic: float
    over_pairs: float
    n: int
    weighted: bool
    supremum: float
    spectrum: Callable[[], FloatArray]
    offset: Callable[[], float]


class AnalyticNull(Null):
    """A null whose tail is a formula.

    Attributes
    ----------
    depth : float
        P-values below this are reported as "below", not as a number.
    """

    depth: ClassVar[float]

    @abstractmethod
    def tail(self, facts: Facts) -> float:
        """Compute the probability, or a bound on it, of a KLCE^2 at least as large.

        Parameters
        ----------
        facts : Facts
            The statistic and what is known about the sample.

        Returns
        -------
        float
            The p-value.
        """


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
    weights = np.asarray(weights, dtype=float)
    largest = np.where(weights > 0, weights.max(initial=0.0), -weights.min(initial=0.0))
    weights = weights[np.abs(weights) > NEGLIGIBLE * largest]  # beside those of their sign
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


def _contour_integral(value: float, weights: FloatArray) -> float:
    """(1 / 2 pi i) times the integral of exp(K(s) - s value) / s; largest weight 1, value >= 0.

    Along s = saddle + i h + bend h^2 with h = width sinh(u).
    """
    from scipy.optimize import brentq  # slow to load, and needed by few

    def slope(s: float) -> float:
        return float(np.sum(weights / (1 - 2 * s * weights))) - value - 1 / s

    def exponent(s: ComplexArray) -> ComplexArray:
        logs = np.array([np.log(1 - 2 * point * weights).sum() for point in s])
        return np.asarray(-0.5 * logs - s * value - np.log(s), dtype=np.complex128)

    saddle = float(brentq(slope, 1e-300, 0.5 * (1 - 1e-15), xtol=1e-300, rtol=1e-12))
    peak = float(exponent(np.array([complex(saddle)]))[0].real)
    ratio = weights / (1 - 2 * saddle * weights)
    curvature = 2 * float(np.sum(ratio**2)) + saddle**-2
    third = 8 * float(np.sum(ratio**3)) - 2 * saddle**-3
    width = curvature**-0.5
    steepest = max(third / (6 * curvature), min(BEND / width, 0.5 - saddle))
    for bend in (*(steepest * 0.25**k for k in range(12)), 0.0):
        height = width * np.sinh(GRID)
        # Log of the integrand's modulus on a coarse grid, relative to the start.
        fallen = exponent(saddle + 1j * height + bend * height**2).real - peak
        if (np.diff(fallen) <= 1e-9).all():
            break
    # Where the integrand has fallen below all digits for good; cosh(u) is its measure.
    reach = float(GRID[np.flatnonzero(fallen + GRID > LOST)[-1]]) + 0.25
    step, estimate = 0.25, np.inf
    for _ in range(8):  # an even function that dies off exponentially, by halving the step
        u = np.arange(0.0, reach + step, step)
        height = width * np.sinh(u)
        direction = (1j + 2 * bend * height) * width * np.cosh(u)
        s = saddle + 1j * height + bend * height**2
        values = (np.exp(exponent(s) - peak) * direction).imag
        previous, estimate = estimate, step * float(values.sum() - values[0] / 2)
        if abs(estimate - previous) <= 1e-10 * abs(estimate):
            return float(np.exp(peak) / np.pi * estimate)
        step /= 2
    raise ArithmeticError(f"the chi-square tail did not converge at {value!r}")
