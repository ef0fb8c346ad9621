"""Kernel matrices that are never held whole: each hands out one block at a time.

A kernel bound to two sets of points is a `Gram`. Products are fused: all Gaussian factors
become one exponential of one squared distance, all exact matches one comparison.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import AnyArray, FloatArray, IntArray
from itrust.data import Column, share_codes

# Above this squared norm the expansion |a|^2 + |b|^2 - 2ab loses more than 1e-11.
LARGEST_EXPANDED_NORM = 1e4
VANISHING = 1e-20  # numbers too small for their format slow a product down
IN_TWOS = math.log2(math.e)  # exp(x) = 2^(x times this)

Rows = slice | IntArray


class Gram(ABC):
    """A kernel matrix between n left and m right points, handed out in blocks."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers n and m of left and right points."""

    @abstractmethod
    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        """Evaluate some rows and columns."""

    def block_as(self, rows: Rows, cols: Rows, dtype: DTypeLike) -> AnyArray:
        """Evaluate some rows and columns in single or double precision, ready for a product."""
        values = self.block(rows, cols)
        values[np.abs(values) < VANISHING] = 0.0
        return values.astype(dtype, copy=False)

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Evaluate each point with itself; left and right must be the same points."""

    def take(self, points: IntArray) -> Gram:
        """Keep some points; left and right must be the same."""
        return TakenGram(self, points)


@dataclass(frozen=True, eq=False)
class TakenGram(Gram):
    """Some points of another matrix, left and right alike."""

    base: Gram
    points: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        return self.points.size, self.points.size

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        return self.base.block(self.points[rows], self.points[cols])

    def diagonal(self) -> FloatArray:
        return self.base.diagonal()[self.points]


@dataclass(frozen=True, eq=False)
class _SidedGram(Gram):
    """A matrix from what is kept of each point, one row of `left` or `right` for each."""

    left: AnyArray
    right: AnyArray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    def take(self, points: IntArray) -> Gram:
        return replace(self, left=self.left[points], right=self.right[points])


@dataclass(frozen=True, eq=False)
class GaussianGram(_SidedGram):
    """exp(-|a - b|^2 / 2) on features already divided by their widths; cost O(d) an entry."""

    @cached_property
    def _augmented(self) -> tuple[FloatArray, FloatArray] | None:
        """Both sides with two columns more; None where the expanded square would lose digits."""
        centre = self.right.mean(axis=0) if len(self.right) else 0.0
        # Powers of 2 take half the time of powers of e.
        left, right = ((side - centre) * math.sqrt(IN_TWOS) for side in (self.left, self.right))
        norms = [np.einsum("ij,ij->i", side, side) for side in (left, right)]
        if not max(norm.max(initial=0.0) for norm in norms) < LARGEST_EXPANDED_NORM * IN_TWOS:
            return None
        # One product gives -|a - b|^2 / 2 = ab - |a|^2/2 - |b|^2/2 with two extra columns.
        halves = [-0.5 * norm[:, None] for norm in norms]
        ones = [np.ones_like(half) for half in halves]
        return np.hstack([left, halves[0], ones[0]]), np.hstack([right, ones[1], halves[1]])

    def _exponents(self, rows: Rows, cols: Rows) -> FloatArray:
        augmented = self._augmented
        if augmented is None:
            exponents = _distances(self.left[rows], self.right[cols], "sqeuclidean")
            exponents *= -0.5 * IN_TWOS
            return exponents
        return np.asarray(augmented[0][rows] @ augmented[1][cols].T)

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        exponents = self._exponents(rows, cols)
        return np.exp2(exponents, out=exponents)

    def block_as(self, rows: Rows, cols: Rows, dtype: DTypeLike) -> AnyArray:
        # Rounding exponents costs no more digits than rounding the values, and is faster.
        values = self._exponents(rows, cols).astype(dtype, copy=False)
        np.exp2(values, out=values)
        values += VANISHING
        return values

    def diagonal(self) -> FloatArray:
        return np.ones(len(self.left))


def _distances(left: FloatArray, right: FloatArray, metric: Any) -> FloatArray:
    """Distances between features, taken directly."""
    from scipy.spatial.distance import cdist  # slow to load, and needed by few

    return np.asarray(cdist(left, right, metric))


@dataclass(frozen=True, eq=False)
class DistanceGram(_SidedGram):
    """A profile of the distance between features already divided by their widths."""

    metric: Literal["cityblock", "euclidean"]
    profile: Callable[[FloatArray], FloatArray]

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        return self.profile(_distances(self.left[rows], self.right[cols], self.metric))

    def diagonal(self) -> FloatArray:
        return self.profile(np.zeros(len(self.left)))


@dataclass(frozen=True, eq=False)
class MatchGram(_SidedGram):
    """1 where codes are equal, `otherwise` where they differ."""

    otherwise: float

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        same = self.left[rows][:, None] == self.right[cols]
        return np.where(same, 1.0, self.otherwise)

    def multiply_into(self, block: FloatArray, rows: Rows, cols: Rows) -> None:
        """Multiply a block of another kernel in place."""
        same = self.left[rows][:, None] == self.right[cols]
        np.multiply(
            block, same if self.otherwise == 0 else np.where(same, 1.0, self.otherwise), block
        )

    def diagonal(self) -> FloatArray:
        return np.ones(self.left.size)


@dataclass(frozen=True, eq=False)
class LinearGram(_SidedGram):
    """Inner products of features already divided by their widths."""

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        products: FloatArray = self.left[rows] @ self.right[cols].T
        return products

    def diagonal(self) -> FloatArray:
        norms: FloatArray = np.square(self.left).sum(axis=1)
        return norms


@dataclass(frozen=True, eq=False)
class ConstantGram(Gram):
    """The same value everywhere."""

    value: float
    size: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int]:
        return self.size

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        left, right = (
            np.arange(size)[chosen].size
            for size, chosen in zip(self.size, (rows, cols), strict=True)
        )
        return np.full((left, right), self.value)

    def diagonal(self) -> FloatArray:
        return np.full(self.size[0], self.value)


@dataclass(frozen=True, eq=False)
class DenseGram(Gram):
    """A matrix that somebody else computed."""

    matrix: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.matrix.shape
        return n, m

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        return self.matrix[rows][:, cols].copy()

    def diagonal(self) -> FloatArray:
        return np.diagonal(self.matrix).copy()


@dataclass(frozen=True, eq=False)
class _EntrywiseGram(Gram):
    """Matrices of the same shape, combined entry by entry."""

    parts: tuple[Gram, ...]

    combined: ClassVar[np.ufunc]

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts[0].shape

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        first, *rest = self.parts
        result = first.block(rows, cols)
        for part in rest:
            self._take_in(result, part, rows, cols)
        return result

    def _take_in(self, result: FloatArray, part: Gram, rows: Rows, cols: Rows) -> None:
        self.combined(result, part.block(rows, cols), out=result)

    def diagonal(self) -> FloatArray:
        return reduce(self.combined, (part.diagonal() for part in self.parts))


class SumGram(_EntrywiseGram):
    """Entrywise sum."""

    combined = np.add


class ProductGram(_EntrywiseGram):
    """Entrywise product; build it with `product`, which fuses what it can."""

    combined = np.multiply

    def _take_in(self, result: FloatArray, part: Gram, rows: Rows, cols: Rows) -> None:
        if isinstance(part, MatchGram):
            part.multiply_into(result, rows, cols)
        else:
            super()._take_in(result, part, rows, cols)


@dataclass(frozen=True, eq=False)
class PowerGram(Gram):
    """Entrywise power of 2 or 3, which the moments under the null are made of."""

    base: Gram
    power: Literal[2, 3]

    @property
    def shape(self) -> tuple[int, int]:
        return self.base.shape

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        result = self.base.block(rows, cols)
        return self._raised(result)

    def diagonal(self) -> FloatArray:
        return self._raised(self.base.diagonal())

    def _raised(self, values: FloatArray) -> FloatArray:
        return values * values if self.power == 2 else values * values * values


def power_of(gram: Gram, power: Literal[2, 3]) -> Gram:
    """Raise the entries of a matrix to a power; what is Gaussian stays so, and so do matches."""
    if isinstance(gram, GaussianGram):
        return GaussianGram(gram.left * math.sqrt(power), gram.right * math.sqrt(power))
    if isinstance(gram, MatchGram) and gram.otherwise == 0:
        return gram
    if isinstance(gram, ProductGram):
        return product([power_of(part, power) for part in gram.parts])
    return PowerGram(gram, power)


def split_match(gram: Gram) -> tuple[Gram, MatchGram | None]:
    """Divide a matrix into a part that is nowhere exactly zero and an exact match."""
    factors = gram.parts if isinstance(gram, ProductGram) else (gram,)
    exact = [f for f in factors if isinstance(f, MatchGram) and f.otherwise == 0]
    others = tuple(factor for factor in factors if factor not in exact)
    if not exact:
        return gram, None
    smooth = product(others) if others else ConstantGram(1.0, gram.shape)
    return smooth, reduce(_both_match, exact)


def product(grams: Sequence[Gram]) -> Gram:
    """Multiply matrices entry by entry, fusing Gaussian factors and exact matches."""
    flat = [
        factor
        for gram in grams
        for factor in (gram.parts if isinstance(gram, ProductGram) else (gram,))
        if not (isinstance(factor, ConstantGram) and factor.value == 1)
    ]
    if not flat:
        return grams[0]
    gaussian = [gram for gram in flat if isinstance(gram, GaussianGram)]
    exact = [gram for gram in flat if isinstance(gram, MatchGram) and gram.otherwise == 0]
    others = [gram for gram in flat if gram not in gaussian and gram not in exact]
    fused: list[Gram] = []
    if gaussian:
        fused.append(
            GaussianGram(
                np.hstack([gram.left for gram in gaussian]),
                np.hstack([gram.right for gram in gaussian]),
            )
        )
    fused.extend(others)
    if exact:
        fused.append(reduce(_both_match, exact))
    # A match is cheapest as a mask on something else, so it never leads when it can follow.
    fused.sort(key=lambda gram: isinstance(gram, MatchGram))
    return fused[0] if len(fused) == 1 else ProductGram(tuple(fused))


def _both_match(a: MatchGram, b: MatchGram) -> MatchGram:
    """Two exact matches are one match of the crossed codes."""
    columns = [
        [Column("code", "category", codes) for codes in side]
        for side in ((a.left, b.left), (a.right, b.right))
    ]
    return MatchGram(*share_codes(*columns), 0.0)
