"""Nulls that redraw labels or classes row by row, or resample, permute or flip residuals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from itrust._core import (
    AnyArray,
    BoolArray,
    FloatArray,
    keyed_bits,
    keyed_blocks,
    keyed_flips,
    keyed_fractions,
)
from itrust.data import Design, Rows, Sample
from itrust.nulls.base import RowwiseNull, SimulatedNull, column_blocks

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

    def draw(self, chunk: Rows, draws: range, seed: int) -> BoolArray:
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


class CategoryDraws(ABC):
    """Who redraws the classes of all rows; every row keeps its probabilities."""

    exact: ClassVar[bool]
    meaning: ClassVar[str]
    keeps_clusters: ClassVar[bool] = False

    @abstractmethod
    def codes(self, rows: range, draws: range, seed: int, p: FloatArray | None = None) -> AnyArray:
        """Draw classes of some rows."""

    def of_class(self, code: int) -> OneCategory:
        """Give the null of one class against the rest, with the same draws."""
        return OneCategory(self, code)


@dataclass(frozen=True, eq=False)
class Categorical(CategoryDraws):
    """Redraw the class of every row from its probabilities.

    A row's classes divide [0, 1) among them, in the order of the columns, and a uniform number
    that belongs to (seed, row, draw) falls into one of them.
    """

    p: FloatArray | None = field(default=None, repr=False)
    exact: ClassVar[bool] = True
    meaning: ClassVar[str] = "classes redrawn from their probabilities"

    def codes(self, rows: range, draws: range, seed: int, p: FloatArray | None = None) -> AnyArray:
        if p is None:
            assert self.p is not None
            p = self.p[rows.start : rows.stop]
        return _fallen(class_edges(p), rows, draws, seed)


@dataclass(frozen=True, eq=False)
class OneCategory(RowwiseNull):
    """Whether a redrawn class is a given one."""

    categories: CategoryDraws = field(repr=False)
    code: int
    meaning: ClassVar[str] = Categorical.meaning

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether the p-value is valid at every sample size."""
        return self.categories.exact

    def draw(self, chunk: Rows, draws: range, seed: int) -> BoolArray:
        return np.asarray(self.categories.codes(chunk.rows, draws, seed) == self.code)

    def to_dict(self) -> dict[str, Any]:
        return {"null": type(self.categories).__name__, "exact": self.exact}


def class_edges(p: FloatArray) -> FloatArray:
    """Where one class ends and the next begins on [0, 1), (n, K - 1).

    A last class of probability 0 must not catch what rounding leaves below 1.
    """
    edges = np.cumsum(p, axis=1) / p.sum(axis=1, keepdims=True)
    left = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]
    return np.where(left[:, 1:] == 0, 1.0, np.minimum(edges[:, :-1], 1.0))


def _fallen(edges: FloatArray, rows: range, draws: range, seed: int) -> AnyArray:
    """Classes by 16 bits, and where these equal those of an edge, by 53 more."""
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
