"""Classes redrawn from their probabilities: one draw of a row gives exactly one class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from itrust._core import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    as_seed,
    keyed_blocks,
    keyed_fractions,
)
from itrust.data import Chunk
from itrust.nulls.base import RowwiseNull
from itrust.nulls.copula import GRID, SURPRISING

DIGITS = 2**16
SET_DRAWS = 199
MAX_SET_NUMBERS = 20_000  # rows times classes that judge the correlation
DRAWS_AT_ONCE = 64
SMALLEST = 2.0**-54


@dataclass(frozen=True, eq=False)
class Categorical:
    """Redraw the class of every row from its probabilities.

    A row's classes divide [0, 1) among them, in the order of the columns, and a uniform number
    that belongs to (seed, row, draw) falls into one of them. With clusters, that number is the
    normal probability of sqrt(rho) z + sqrt(1 - rho) w with one standard normal z a cluster and one
    w a row, so that every row keeps its probabilities exactly.

    Attributes
    ----------
    p : (n, K) array
        Probabilities of all rows.
    units : (n,) array of int or None
        The cluster of each row; None where rows are independent.
    rho : float
        Correlation within clusters of the normal numbers behind the labels.
    """

    p: FloatArray = field(repr=False)
    units: IntArray | None = field(default=None, repr=False)
    rho: float = 0.0
    meaning: ClassVar[str] = "classes redrawn from their probabilities"

    @property
    def exact(self) -> bool:
        """Whether p-values are valid at every sample size."""
        return self.units is None

    def codes(self, rows: range, draws: range, seed: int) -> AnyArray:
        """Draw classes of some rows.

        Parameters
        ----------
        rows, draws : range
            Numbers of consecutive rows and draws.
        seed : int
            A code depends on the seed, its row (and cluster) and its draw alone.

        Returns
        -------
        (len(rows), len(draws)) array of int
            Positions of the classes.
        """
        edges = inner_edges(self.p[rows.start : rows.stop])
        if self.units is None or self.rho == 0:
            return _independent(edges, rows, draws, seed)
        units, unit = np.unique(self.units[rows.start : rows.stop], return_inverse=True)
        numbers = np.arange(draws.start, draws.stop)
        shared_seed = as_seed(np.random.default_rng([seed, 2]))
        shared = _normal(keyed_fractions(shared_seed, units[:, None], numbers))[unit]
        own = _normal(keyed_fractions(seed, np.arange(rows.start, rows.stop)[:, None], numbers))
        return _fallen(np.sqrt(self.rho) * shared + np.sqrt(1 - self.rho) * own, ndtri(edges))

    def of_class(self, code: int) -> OneCategory:
        """Give the null of one class against the rest, with the same draws.

        Parameters
        ----------
        code : int
            Position of the class.

        Returns
        -------
        OneCategory
            Draws whether a row has this class.
        """
        return OneCategory(self, code)

    def laws(self, codes: IntArray, seed: int) -> tuple[Categorical, ...]:
        """Give the laws that the labels do not contradict: itself, for independent rows.

        Parameters
        ----------
        codes : (n,) array of int
            The labels.
        seed : int
            What the randomness comes from.

        Returns
        -------
        tuple of Categorical
            With ascending values of rho.
        """
        if self.units is None:
            return (self,)
        return tuple(replace(self, rho=rho) for rho in _compatible(self, codes, seed))


@dataclass(frozen=True, eq=False)
class OneCategory(RowwiseNull):
    """Whether a redrawn class is a given one.

    Attributes
    ----------
    categories : Categorical
        Who draws.
    code : int
        Position of the class.
    """

    categories: Categorical = field(repr=False)
    code: int
    exact: ClassVar[bool] = True
    meaning: ClassVar[str] = Categorical.meaning

    def draw(self, chunk: Chunk, draws: range, seed: int) -> BoolArray:
        return np.asarray(self.categories.codes(chunk.rows, draws, seed) == self.code)

    def to_dict(self) -> dict[str, Any]:
        """Name and whether it is exact."""
        return {"null": "Categorical", "exact": self.exact}


def inner_edges(p: FloatArray) -> FloatArray:
    """Where one class ends and the next begins on [0, 1), (n, K - 1).

    A last class of probability 0 must not catch what rounding leaves below 1.
    """
    edges = np.cumsum(p, axis=1) / p.sum(axis=1, keepdims=True)
    left = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]
    return np.where(left[:, 1:] == 0, 1.0, np.minimum(edges[:, :-1], 1.0))


def _independent(edges: FloatArray, rows: range, draws: range, seed: int) -> AnyArray:
    """Classes by 16 bits, and where these equal those of an edge, by 53 more."""
    scaled = edges * DIGITS
    digits = np.minimum(scaled, DIGITS - 1).astype(np.uint16)
    rest = scaled - digits
    codes = np.zeros((len(rows), len(draws)), dtype=_code_type(edges))
    for some, drawn in keyed_blocks(seed, rows, draws, np.uint16):
        part = codes[:, some.start - draws.start : some.stop - draws.start]
        for digit, more in zip(digits.T, rest.T, strict=True):
            limit = digit[:, None]
            part += drawn > limit
            at, draw = np.divmod(np.flatnonzero(drawn == limit), len(some))
            fraction = keyed_fractions(seed, at + rows.start, draw + some.start)
            part[at, draw] += fraction >= more[at]
    return codes


def _fallen(numbers: FloatArray, limits: FloatArray) -> AnyArray:
    """How many limits of its row each number reaches, (n, draws)."""
    codes = np.zeros(numbers.shape, dtype=_code_type(limits))
    for limit in limits.T:
        codes += numbers >= limit[:, None]
    return codes


def _code_type(edges: FloatArray) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if edges.shape[1] < 256 else np.uint16


def _normal(fractions: FloatArray) -> FloatArray:
    return np.asarray(ndtri(np.maximum(fractions, SMALLEST)))


def _compatible(null: Categorical, codes: IntArray, seed: int) -> tuple[float, ...]:
    """The values of rho whose own draws are as much alike within clusters as the labels are."""
    assert null.units is not None
    rows = _some_clusters(null.units, MAX_SET_NUMBERS // null.p.shape[1])
    p, units = null.p[rows], null.units[rows]
    first = np.flatnonzero(np.diff(units, prepend=-1))
    observed = float(_alikeness(codes[rows][:, None], p, first)[0])
    drawn = np.empty((len(GRID), SET_DRAWS))
    own_seed = as_seed(np.random.default_rng([seed, 3]))
    for at in range(0, SET_DRAWS, DRAWS_AT_ONCE):
        draws = range(at, min(at + DRAWS_AT_ONCE, SET_DRAWS))
        for k, found in enumerate(_on_grid(p, units, draws, own_seed)):
            drawn[k, draws.start : draws.stop] = _alikeness(found, p, first)
    above = (1 + np.count_nonzero(drawn >= observed - 1e-9, axis=1)) / (1 + SET_DRAWS)
    below = (1 + np.count_nonzero(drawn <= observed + 1e-9, axis=1)) / (1 + SET_DRAWS)
    nearness = np.minimum(above, below)
    kept = (nearness > SURPRISING) | (nearness == nearness.max())
    return tuple(rho for rho, own in zip(GRID, kept, strict=True) if own)


def _on_grid(p: FloatArray, units: IntArray, draws: range, seed: int) -> Iterator[AnyArray]:
    """Classes by every correlation of the grid, from the same normal numbers."""
    numbers = np.arange(draws.start, draws.stop)
    names, unit = np.unique(units, return_inverse=True)
    shared_seed = as_seed(np.random.default_rng([seed, 2]))
    shared = _normal(keyed_fractions(shared_seed, names[:, None], numbers))[unit]
    own = _normal(keyed_fractions(seed, np.arange(len(p))[:, None], numbers))
    limits = ndtri(inner_edges(p))
    for rho in GRID:
        yield _fallen(np.sqrt(rho) * shared + np.sqrt(1 - rho) * own, limits)


def _some_clusters(units: IntArray, most: int) -> IntArray:
    """Rows in the order of their clusters: all of them, or those of some random clusters."""
    rows = np.argsort(units, kind="stable")
    if rows.size <= most:
        return rows
    names, unit, sizes = np.unique(units, return_inverse=True, return_counts=True)
    chance = keyed_fractions(1, names, np.zeros(1, dtype=np.int64))
    order = np.argsort(chance, kind="stable")
    kept = np.zeros(names.size, dtype=bool)
    kept[order[: max(int(np.searchsorted(np.cumsum(sizes[order]), most)), 1)]] = True
    return rows[kept[unit[rows]]]


def _alikeness(codes: AnyArray, p: FloatArray, first: IntArray) -> FloatArray:
    """How much residuals of a cluster go together, from rows in the order of clusters, (columns,).

    The sum over clusters and classes of (sum e)^2 - sum e^2, divided by the most it can be given
    the squares.
    """
    others = np.diff(np.append(first, len(p)))[:, None] - 1
    together, possible = np.zeros(codes.shape[1]), np.zeros(codes.shape[1])
    for k in range(p.shape[1]):
        residuals = (codes == k) - p[:, k, None]
        sums = np.add.reduceat(residuals, first, axis=0)
        squares = np.add.reduceat(np.square(residuals), first, axis=0)
        together += (np.square(sums) - squares).sum(axis=0)
        possible += (others * squares).sum(axis=0)
    return np.asarray(
        np.divide(together, possible, out=np.zeros_like(together), where=possible > 0)
    )
