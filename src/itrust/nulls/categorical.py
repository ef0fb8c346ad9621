"""Classes redrawn from their probabilities: one draw of a row gives exactly one class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from itrust._core import (
    AnyArray,
    BoolArray,
    FloatArray,
    keyed_blocks,
    keyed_fractions,
)
from itrust.data import Chunk
from itrust.nulls.base import RowwiseNull

DIGITS = 2**16


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

    def draw(self, chunk: Chunk, draws: range, seed: int) -> BoolArray:
        return np.asarray(self.categories.codes(chunk.rows, draws, seed) == self.code)

    def to_dict(self) -> dict[str, Any]:
        """Name and whether it is exact."""
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
    scaled = edges * DIGITS
    digits = np.minimum(scaled, DIGITS - 1).astype(np.uint16)
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
