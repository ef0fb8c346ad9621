"""Draws of some rows, and the matrix products that all work on these rows shares.

Labels are 0 or 1, so sums of residuals and of their squares are linear in them: one product of all
features with all labels serves every kernel and every check.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from threading import local
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import AnyArray, FloatArray, IntArray

Rows = slice | IntArray
ALL = slice(None)


class Scratch(local):
    """Arrays that are used again for every chunk, some for each thread.

    New ones would cost as much time as what is written into them.
    """

    def __init__(self) -> None:
        self._kept: dict[str, AnyArray] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> AnyArray:
        """Give an array with any content, the same one whenever the name is the same."""
        size, kept = prod(shape), self._kept.get(name)
        if kept is None or kept.size < size or kept.dtype != dtype:
            kept = self._kept[name] = np.empty(size, dtype=dtype)
        return kept[:size].reshape(shape)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some columns of the matrix whose column 0 is the data and whose others are draws.

    A null redraws labels, flips the signs of residuals, or makes other residuals. The numbers are
    good until the next ones are drawn: whoever wants them for longer has to copy them.
    """

    columns: slice
    numbers: AnyArray
    is_label: bool
    flipped: FloatArray | None = None

    @cached_property
    def single(self) -> AnyArray:
        """Labels or residuals in single precision, converted once for all who want them."""
        return self._converted(np.float32)

    @cached_property
    def double(self) -> AnyArray:
        """The same in double precision."""
        return self._converted(np.float64)

    def as_type(self, dtype: DTypeLike) -> AnyArray:
        """Give labels or residuals as numbers."""
        return self.single if np.dtype(dtype) == np.float32 else self.double

    def _converted(self, dtype: DTypeLike) -> AnyArray:
        if self.flipped is None:
            return self.numbers.astype(dtype, copy=False)
        signs = self.numbers.astype(dtype, copy=False)
        return np.asarray(signs * self.flipped.astype(dtype)[:, None])


@dataclass(frozen=True, eq=False)
class _Factors:
    """Features (n, r), squares (n, q) and probabilities (n,) of some rows of a chunk."""

    features: AnyArray
    squares: AnyArray
    p: AnyArray
    rows: Rows

    @property
    def rank(self) -> int:
        return int(self.features.shape[1])

    @property
    def width(self) -> int:
        return self.rank + int(self.squares.shape[1])


class Products:
    """F'e and Q'e^2 of some rows for many columns."""

    def __init__(
        self, features: AnyArray, squares: AnyArray, p: FloatArray, rows: Rows = ALL
    ) -> None:
        self.factors = _Factors(features, squares, p.astype(features.dtype), rows)
        self.stack, self.first = _Stack([self.factors]), 0

    def of(self, drawn: Drawn) -> tuple[AnyArray, AnyArray]:
        """Multiply features and squares with some columns."""
        own = self.stack.of(drawn)[self.first : self.first + self.factors.width]
        return own[: self.factors.rank], own[self.factors.rank :]


def join(products: Iterable[Products], scratch: Scratch) -> None:
    """Let all products of the same rows be made at once, as one large product."""
    alike: dict[tuple[Any, ...], list[Products]] = {}
    for one in products:
        rows, dtype = one.factors.rows, one.factors.p.dtype
        same = (rows.start, rows.stop) if isinstance(rows, slice) else rows.tobytes()
        alike.setdefault((dtype, same), []).append(one)
    for number, members in enumerate(alike.values()):
        stack, first = _Stack([one.factors for one in members], scratch, f"stack {number}"), 0
        for one in members:
            one.stack, one.first = stack, first
            first += one.factors.width


class _Stack:
    """Features and squares of the same rows, one below the other, for one product."""

    def __init__(
        self, parts: list[_Factors], scratch: Scratch | None = None, name: str = "stack"
    ) -> None:
        self.parts, self.scratch, self.name = parts, scratch or Scratch(), name
        self.rows, self.dtype = parts[0].rows, parts[0].p.dtype
        self.last: tuple[Drawn, AnyArray] | None = None
        self.linear: tuple[AnyArray, AnyArray] | None = None

    def of(self, drawn: Drawn) -> AnyArray:
        """F'e and Q'e^2 of all parts for some columns, made once for all who ask."""
        if self.last is None or self.last[0] is not drawn:
            self.last = drawn, self._made(drawn)
        return self.last[1]

    def _made(self, drawn: Drawn) -> AnyArray:
        if not drawn.is_label and drawn.flipped is None:
            values = drawn.as_type(self.dtype)[self.rows]
            squares = np.square(values)
            made = [(q.features.T @ values, q.squares.T @ squares) for q in self.parts]
            return np.concatenate([sums for pair in made for sums in pair])
        # All draws of a pass are of one kind, so that this is done once.
        self.linear = self.linear or self._in_labels_or_signs(drawn.flipped)
        matrix, constant = self.linear
        sums: AnyArray = matrix @ drawn.numbers[self.rows].astype(self.dtype, copy=False)
        sums += constant
        return sums

    def _in_labels_or_signs(self, flipped: FloatArray | None) -> tuple[AnyArray, AnyArray]:
        """What labels or signs are multiplied with, (r + q, n), and what is added, (r + q, 1)."""
        shape = sum(part.width for part in self.parts), self.parts[0].p.size
        matrix = self.scratch.array(self.name, shape, self.dtype)
        constant, first = np.zeros((shape[0], 1), dtype=self.dtype), 0
        for part in self.parts:
            forms = slice(first, first + part.rank)
            squares = slice(first + part.rank, first + part.width)
            first += part.width
            if flipped is None:  # e = y - p, and e^2 = p^2 + y (1 - 2p) is linear in y, too
                matrix[forms] = part.features.T
                np.multiply(part.squares.T, 1 - 2 * part.p, out=matrix[squares])
                constant[forms, 0] = -(part.features.T @ part.p)
                constant[squares, 0] = part.squares.T @ np.square(part.p)
            else:  # e times a sign, whose square is e^2
                e = flipped[self.rows].astype(self.dtype)
                np.multiply(part.features.T, e, out=matrix[forms])
                matrix[squares] = 0.0
                constant[squares, 0] = part.squares.T @ np.square(e)
        return matrix, constant
