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
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import AnyArray, FloatArray, IntArray
from itrust.data import Column, share_codes

# Above this squared norm the expansion |a|^2 + |b|^2 - 2ab loses more than 1e-11.
LARGEST_EXPANDED_NORM = 1e4
VANISHING = 1e-20  # numbers too small for their format slow a product down
IN_TWOS = math.log2(math.e)  # exp(x) = 2^(x times this)

Rows = slice | IntArray


@dataclass(frozen=True, eq=False)
class Gram(ABC):
    """A kernel matrix between n left and m right points, handed out in blocks.

    It has what is kept of each point, one row of `left` or `right`: features, a code, a position.
    """

    left: AnyArray
    right: AnyArray

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers n and m of left and right points."""
        return len(self.left), len(self.right)

    @abstractmethod
    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        """Evaluate some rows and columns."""

    def factor(self, rows: Rows, cols: Rows) -> AnyArray:
        """Evaluate them to be taken in by another block; truth values will do."""
        return self.block(rows, cols)

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
        return replace(self, left=self.left[points], right=self.right[points])


def positions(shape: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """What is kept of points that are known by their position alone."""
    return np.arange(shape[0]), np.arange(shape[1])


@dataclass(frozen=True, eq=False)
class GaussianGram(Gram):
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
            exponents = distances(self.left[rows], self.right[cols], "sqeuclidean")
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


def distances(left: FloatArray, right: FloatArray, metric: Any) -> FloatArray:
    """Distances between features, taken directly."""
    from scipy.spatial.distance import cdist  # slow to load, and needed by few

    return np.asarray(cdist(left, right, metric))


@dataclass(frozen=True, eq=False)
class MadeGram(Gram):
    """What one function makes of features of rows and columns, and another of the diagonal's."""

    entries: Callable[[AnyArray, AnyArray], FloatArray]
    own: Callable[[AnyArray], FloatArray]

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        return self.entries(self.left[rows], self.right[cols])

    def diagonal(self) -> FloatArray:
        return self.own(self.left)


@dataclass(frozen=True, eq=False)
class MatchGram(Gram):
    """1 where codes are equal, `otherwise` where they differ."""

    otherwise: float

    def factor(self, rows: Rows, cols: Rows) -> AnyArray:
        same = self.left[rows][:, None] == self.right[cols]
        return same if self.otherwise == 0 else np.where(same, 1.0, self.otherwise)

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        return self.factor(rows, cols).astype(float)

    def diagonal(self) -> FloatArray:
        return np.ones(len(self.left))


@dataclass(frozen=True, eq=False)
class CombinedGram(Gram):
    """Matrices of the same shape, combined entry by entry; 1 throughout where there are none."""

    combine: np.ufunc
    parts: tuple[Gram, ...]

    @classmethod
    def of(cls, combine: np.ufunc, parts: Sequence[Gram]) -> CombinedGram:
        """Combine matrices as they are; products are better built with `product`."""
        return cls(*positions(parts[0].shape), combine, tuple(parts))

    def block(self, rows: Rows, cols: Rows) -> FloatArray:
        rows, cols = self.left[rows], self.right[cols]
        if not self.parts:
            return np.ones((len(rows), len(cols)))
        first, *rest = self.parts
        block = first.block(rows, cols)
        for part in rest:
            self.combine(block, part.factor(rows, cols), out=block)
        return block

    def diagonal(self) -> FloatArray:
        diagonals = [part.diagonal()[self.left] for part in self.parts]
        return reduce(self.combine, diagonals) if diagonals else np.ones(len(self.left))


def ones(shape: tuple[int, ...]) -> CombinedGram:
    """1 for every pair: the product of nothing."""
    return CombinedGram(*positions(shape), np.multiply, ())


def _factors(gram: Gram) -> tuple[Gram, ...]:
    """The factors of a product; of anything else itself."""
    if isinstance(gram, CombinedGram) and gram.combine is np.multiply:
        return gram.parts
    return (gram,)


def power_of(gram: Gram, power: Literal[2, 3]) -> Gram:
    """Raise the entries of a matrix to a power; what is Gaussian stays so, and so do matches."""
    if isinstance(gram, GaussianGram):
        return GaussianGram(gram.left * math.sqrt(power), gram.right * math.sqrt(power))
    if isinstance(gram, MatchGram) and gram.otherwise == 0:
        return gram
    if len(factors := _factors(gram)) != 1:
        return product([power_of(part, power) for part in factors] or [gram])

    def raised(values: FloatArray) -> FloatArray:
        return values * values if power == 2 else values * values * values

    places = positions(gram.shape)
    return MadeGram(
        *places, lambda a, b: raised(gram.block(a, b)), lambda a: raised(gram.diagonal()[a])
    )


def split_match(gram: Gram) -> tuple[Gram, MatchGram | None]:
    """Divide a matrix into a part that is nowhere exactly zero and an exact match."""
    factors = _factors(gram)
    exact = [f for f in factors if isinstance(f, MatchGram) and f.otherwise == 0]
    others = tuple(factor for factor in factors if factor not in exact)
    if not exact:
        return gram, None
    return product(others) if others else ones(gram.shape), reduce(_both_match, exact)


def product(grams: Sequence[Gram]) -> Gram:
    """Multiply matrices entry by entry, fusing Gaussian factors and exact matches."""
    flat = [factor for gram in grams for factor in _factors(gram)]
    if not flat:
        return grams[0]
    gaussian = [gram for gram in flat if isinstance(gram, GaussianGram)]
    exact = [gram for gram in flat if isinstance(gram, MatchGram) and gram.otherwise == 0]
    others = [gram for gram in flat if gram not in gaussian and gram not in exact]
    # A match is cheapest as a mask on something else, so it never leads when it can follow.
    fused: list[Gram] = sorted(others, key=lambda gram: isinstance(gram, MatchGram))
    if gaussian:
        sides = ([gram.left for gram in gaussian], [gram.right for gram in gaussian])
        fused.insert(0, GaussianGram(*map(np.hstack, sides)))
    if exact:
        fused.append(reduce(_both_match, exact))
    return fused[0] if len(fused) == 1 else CombinedGram.of(np.multiply, fused)


def _both_match(a: MatchGram, b: MatchGram) -> MatchGram:
    """Two exact matches are one match of the crossed codes."""
    columns = [
        [Column("code", "category", codes) for codes in side]
        for side in ((a.left, b.left), (a.right, b.right))
    ]
    return MatchGram(*share_codes(*columns), 0.0)
