"""What the data would look like if the model were calibrated: the two kinds of null.

And those whose tail is a formula: the weighted chi-square limit and Hoeffding's bound.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from itrust._core import (
    AnyArray,
    BoolArray,
    FloatArray,
    InputError,
    keyed_bits,
    keyed_blocks,
    keyed_flips,
    keyed_fractions,
)
from itrust.data import Design, Rows, Sample, Source

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
            Labels if it is boolean, residuals if it is float; numbers of classes if it is of
            integers, where rows have several.
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
        Gives the eigenvalues l_j of the limit law, that of sum l_j (z_j^2 - 1).
    """

    statistic: float
    over_pairs: float
    n: int
    weighted: bool
    supremum: float
    spectrum: Callable[[], FloatArray]


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
        weights = facts.spectrum()
        return weighted_chi2_sf(facts.over_pairs + float(weights.sum()), weights)


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


BITS = 32
DIGITS = 256  # that one byte tells apart
CLASS_DIGITS = 2**16


@dataclass(frozen=True)
class Bernoulli(RowwiseNull):
    """Redraw every label from its own probability: exact at every n and for every kernel.

    The null says that the labels are independent Bernoulli(f), so redrawing them simulates it
    without approximation. Rows must be independent given (x, f).
    """

    exact: ClassVar[bool] = True
    meaning: ClassVar[str] = "labels redrawn from the probabilities"

    def draw(self, chunk: Rows, draws: range, seed: int) -> AnyArray:
        if chunk.predictions.shape[1] > 1:
            return redrawn_classes(chunk.predictions, chunk.rows, draws, seed)
        return redrawn_labels(chunk.p, chunk.rows, draws, seed)


@dataclass(frozen=True)
class ResidualBootstrap(SimulatedNull):
    """The paper's Algorithm 1: draw n residuals with replacement, keep predictions and x.

    Kept to reproduce the paper; it is not the null of local calibration. A residual moved to
    another row need not be possible there, and a shift of all residuals stays in every draw,
    so it has no power against one.
    """

    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "residuals resampled with replacement (the paper's Algorithm 1)"
    is_local_calibration: ClassVar[bool] = False

    def fill(self, out: FloatArray, sample: Sample, draws: range, seed: int) -> None:
        residuals = sample.residuals
        for block, part in column_blocks(out, draws):
            bits = keyed_bits(seed, range(sample.n), block).astype(np.uint64)
            part[...] = residuals[(bits * np.uint64(sample.n)) >> np.uint64(BITS)]


@dataclass(frozen=True)
class Permutation(SimulatedNull):
    """What the published code does: permute the residuals over the rows.

    Parameters
    ----------
    centred : bool
        Whether to subtract the mean of the residuals in every draw, as the package behind the
        paper's Figure 4 and tables does; the statistic of the data stays as it is. By default not.
    """

    centred: bool = False
    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "residuals permuted (the published code)"
    is_local_calibration: ClassVar[bool] = False

    def fill(self, out: FloatArray, sample: Sample, draws: range, seed: int) -> None:
        residuals = sample.residuals - (sample.residuals.mean() if self.centred else 0.0)
        for block, part in column_blocks(out, draws):
            bits = keyed_bits(seed, range(sample.n), block)
            part[...] = residuals[np.argsort(bits, axis=0, kind="stable")]


@dataclass(frozen=True)
class Rademacher(RowwiseNull):
    """Flip the signs of residuals at random, one sign a cluster if the sample has clusters.

    Asymptotically valid, as the rows or clusters become many: it keeps the variances and, within a
    cluster, the dependence. Pairs within a cluster are the same in every draw and cancel in
    the comparison.
    """

    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "signs of the residuals flipped"
    keeps_clusters: ClassVar[bool] = True
    keeps_residuals: ClassVar[bool] = True

    def draw(self, chunk: Rows, draws: range, seed: int) -> FloatArray:
        return (chunk.y - chunk.p)[:, None] * (1.0 - 2.0 * self.flips(chunk, draws, seed))

    def flips(self, chunk: Rows, draws: range, seed: int) -> BoolArray:
        """Tell whose signs are flipped.

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
        (n, len(draws)) array of bool
            True where a residual changes its sign.
        """
        if chunk.cluster is None:
            return keyed_flips(seed, chunk.rows, draws)
        units, unit = np.unique(chunk.cluster, return_inverse=True)
        flips: BoolArray = keyed_fractions(seed, units[:, None], np.array(draws)) < 0.5
        return flips[unit]


@dataclass(frozen=True, eq=False)
class Replicates(RowwiseNull):
    """Multiply residuals by random mixtures of the replicate weights' deviations.

    The sum of residuals along any direction then varies as its replicates do, for all directions
    together; one chi-square number a draw gives Student's law with as many degrees of freedom as
    replicates have. Asymptotically valid. For rows whose clusters are known by replicate weights
    alone.

    Parameters
    ----------
    deviations : (n, R) array
        Replicate weights over the weights, less 1, times the root of the method's scale.
    freedom : float
        Degrees of freedom.
    """

    deviations: FloatArray = field(repr=False)
    freedom: float
    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "residuals times mixtures of the replicate weights"
    keeps_clusters: ClassVar[bool] = True
    keeps_residuals: ClassVar[bool] = True

    @classmethod
    def of(cls, design: Design) -> Replicates:
        """Take the replicate weights of a design.

        Parameters
        ----------
        design : Design
            With replicate weights.

        Returns
        -------
        Replicates
            For its rows, in their order.
        """
        return cls(design.replicate_deviations, design.freedom)

    def draw(self, chunk: Rows, draws: range, seed: int) -> FloatArray:
        mixtures = np.empty((self.deviations.shape[1], len(draws)))
        for at, draw in enumerate(draws):
            rng = np.random.default_rng([seed, draw])
            student = np.sqrt(self.freedom / rng.chisquare(self.freedom))
            mixtures[:, at] = student * rng.normal(size=len(mixtures))
        rows = slice(chunk.rows.start, chunk.rows.stop)
        return np.asarray((chunk.y - chunk.p)[:, None] * (self.deviations[rows] @ mixtures))

    def to_dict(self) -> dict[str, Any]:
        return {"null": "Replicates", "exact": self.exact, "freedom": self.freedom}


def redrawn_labels(p: FloatArray, rows: range, draws: range, seed: int) -> BoolArray:
    """Draw Bernoulli(p) labels that depend on (seed, row, draw) alone.

    The first 8 bits of a uniform number decide; where they equal those of p, 53 more.
    """
    labels = np.empty((len(rows), len(draws)), dtype=bool)
    for some, drawn in keyed_blocks(seed, rows, draws, np.uint8):
        part = labels[:, some.start - draws.start : some.stop - draws.start]
        part[...] = labels_below(drawn, p, rows, some, seed)
    return labels


def label_bits(rows: range, draws: range, seed: int) -> AnyArray:
    """The first 8 bits of the uniform numbers behind redrawn labels."""
    return keyed_bits(seed, rows, draws, np.uint8).astype(np.uint8, copy=False)


def labels_below(drawn: AnyArray, p: FloatArray, rows: range, draws: range, seed: int) -> BoolArray:
    """Labels that are 1 where uniform numbers lie below p: those of larger p include the others."""
    scaled = p * DIGITS
    digit = np.minimum(scaled, DIGITS - 1).astype(np.uint8)
    limit, rest = digit[:, None], scaled - digit
    labels: BoolArray = drawn < limit
    # A flat search for ties is several times faster than a two-way one.
    at, draw = np.divmod(np.flatnonzero(drawn == limit), len(draws))
    fraction = keyed_fractions(seed, at + rows.start, draw + draws.start)
    labels[at, draw] = fraction < rest[at]
    return labels


def class_edges(p: FloatArray) -> FloatArray:
    """Where one class ends and the next begins on [0, 1), (n, K - 1).

    A last class of probability 0 must not catch what rounding leaves below 1.
    """
    edges = np.cumsum(p, axis=1) / p.sum(axis=1, keepdims=True)
    left = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]
    return np.where(left[:, 1:] == 0, 1.0, np.minimum(edges[:, :-1], 1.0))


def redrawn_classes(p: FloatArray, rows: range, draws: range, seed: int) -> AnyArray:
    """Draw classes that depend on (seed, row, draw) alone.

    A row's classes divide [0, 1) among them, in the order of the columns, and a uniform number
    falls into one of them: by 16 bits, and where these equal those of an edge, by 53 more.
    """
    edges = class_edges(p)
    scaled = edges * CLASS_DIGITS
    digits = np.minimum(scaled, CLASS_DIGITS - 1).astype(np.uint16)
    rest = scaled - digits
    few = edges.shape[1] < 256
    codes = np.zeros((len(rows), len(draws)), dtype=np.uint8 if few else np.uint16)
    for some, drawn in keyed_blocks(seed, rows, draws, np.uint16):
        part = codes[:, some.start - draws.start : some.stop - draws.start]
        for digit, more in zip(digits.T, rest.T, strict=True):
            limit = digit[:, None]
            part += drawn > limit
            at, draw = np.divmod(np.flatnonzero(drawn == limit), len(some))
            fraction = keyed_fractions(seed, at + rows.start, draw + some.start)
            part[at, draw] += fraction >= more[at]
    return codes
