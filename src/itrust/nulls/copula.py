"""Labels redrawn with dependence within clusters: every row keeps its probability exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import ndtri

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    as_seed,
    keyed_bits,
    keyed_fractions,
)
from itrust.data import Chunk, Sample, Source
from itrust.nulls.base import RowwiseNull

DIGITS = 2**16
EDGES = ndtri(np.arange(DIGITS + 1) / DIGITS)  # of the normal numbers that share a digit
LOWER, UPPER = EDGES[:-1], EDGES[1:]
GRID = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0)
SET_DRAWS = 399
SURPRISING = 0.05  # on either side: a correlation whose draws are this far from the labels is out
MAX_SET_ROWS = 20_000  # so many rows at most judge the correlation
DRAWS_AT_ONCE = 64

# What several parts of an audit ask of the same rows; forgotten with them.
_FOUND: WeakKeyDictionary[Sample, dict[int, tuple[float, ...]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Copula(RowwiseNull):
    """Redraw labels from their probabilities, alike within clusters.

    A label is 1 where sqrt(rho) z + sqrt(1 - rho) w is below the normal quantile of its
    probability, with one standard normal z a cluster and one w a row. So every row keeps its
    probability exactly, however near to 0 or 1 it is; rho = 0 is `Bernoulli`, and with rho = 1
    a cluster whose probabilities are equal has one label.

    Without a value, rho is one of several that the labels do not contradict (`laws`), and a
    p-value is the largest of theirs. Exact if the labels follow such a law and rho is among
    those; approximate else.

    Parameters
    ----------
    rho : float, optional
        Correlation within clusters of the normal numbers behind the labels, from 0 to 1. Default:
        not known.
    """

    rho: float | None = None
    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "labels redrawn from the probabilities, alike within clusters"
    keeps_clusters: ClassVar[bool] = True
    has_known_moments: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.rho is not None and not 0 <= self.rho <= 1:
            raise InputError(
                "{argument} is a correlation from 0 to 1, not {value}",
                argument="rho",
                value=self.rho,
            )

    def laws(self, source: Source, seed: int) -> tuple[RowwiseNull, ...]:
        """Give the correlations that the labels do not contradict.

        Parameters
        ----------
        source : Source
            Rows in memory, with clusters.
        seed : int
            What the randomness comes from.

        Returns
        -------
        tuple of Copula
            With ascending values of rho; itself if rho is known.
        """
        if self.rho is not None:
            return (self,)
        sample = source.in_memory
        if sample is None or sample.cluster is None:
            raise InputError(
                "Copula() needs rows in memory that have clusters; use Bernoulli()",
                argument="null",
                value=self,
            )
        return tuple(Copula(rho) for rho in compatible_correlations(sample, seed))

    def draw(self, chunk: Chunk, draws: range, seed: int) -> BoolArray:
        if self.rho is None or chunk.cluster is None:
            raise InputError(
                "Copula() draws for rows with clusters, by one of its laws",
                argument="null",
                value=self,
            )
        units, unit = np.unique(chunk.cluster, return_inverse=True)
        shared_seed = as_seed(np.random.default_rng([seed, 2]))
        fractions = keyed_fractions(shared_seed, units[:, None], np.array(draws))
        shared = np.sqrt(self.rho) * normal_of(fractions)
        return _alike(chunk.p, shared[unit], np.sqrt(1 - self.rho), chunk.rows, draws, seed)


def _alike(
    p: FloatArray, shared: FloatArray, own: float, rows: range, draws: range, seed: int
) -> BoolArray:
    """Labels that are 1 where shared + own w < quantile of p, (n, draws); w by 16 bits, then 53."""
    quantile = ndtri(p)[:, None]
    if own == 0:
        return np.asarray(shared < quantile)
    limit = (quantile - shared) / own
    digit = keyed_bits(seed, rows, draws, np.uint16)
    labels: BoolArray = UPPER[digit] <= limit
    at, draw = np.nonzero((LOWER[digit] < limit) & ~labels)
    fraction = keyed_fractions(seed, at + rows.start, draw + draws.start)
    labels[at, draw] = ndtri((digit[at, draw] + fraction) / DIGITS) < limit[at, draw]
    return labels


def compatible_correlations(sample: Sample, seed: int) -> tuple[float, ...]:
    """The values of rho whose own draws are as much alike within clusters as the labels are.

    What is compared is the sum over clusters of ((sum e)^2 - sum e^2), divided by its largest
    possible value given the squares, sum over clusters of (m - 1) sum e^2: the share of a
    positive's cluster that is positive, too, which few events tell well. The value whose draws are
    nearest is always among them. With weights, values that agree with weighted residuals are kept
    as well.
    """
    known = _FOUND.setdefault(sample, {})
    if seed not in known:
        known[seed] = _compatible(_some_clusters(sample), seed)
    return known[seed]


def _compatible(part: Sample, seed: int) -> tuple[float, ...]:
    """The same from rows in the order of their clusters."""
    assert part.cluster is not None
    first = np.flatnonzero(np.diff(part.cluster, prepend=-1))
    weights = [np.ones((part.n, 1))]
    if part.weights is not None:  # heavy rows may be more alike than others
        weights.append(part.weights[:, None])
    observed = [float(alikeness_of(w * (part.y - part.p)[:, None], first)[0]) for w in weights]
    drawn = np.empty((len(weights), len(GRID), SET_DRAWS))
    own_seed = as_seed(np.random.default_rng([seed, 3]))
    for at in range(0, SET_DRAWS, DRAWS_AT_ONCE):
        draws = range(at, min(at + DRAWS_AT_ONCE, SET_DRAWS))
        for k, labels in enumerate(_on_grid(part, draws, own_seed)):
            residuals = labels - part.p[:, None]
            for row, w in enumerate(weights):
                own = residuals if row == 0 else w * residuals
                drawn[row, k, draws.start : draws.stop] = alikeness_of(own, first)
    nearness = np.array(
        [
            [nearness_of(of_rho, seen) for of_rho in of_weights]
            for of_weights, seen in zip(drawn, observed, strict=True)
        ]
    )
    nearest = nearness == nearness.max(axis=1, keepdims=True)
    kept = ((nearness > SURPRISING) | nearest).any(axis=0)
    return tuple(rho for rho, own in zip(GRID, kept, strict=True) if own)


def _on_grid(part: Sample, draws: range, seed: int) -> Iterator[BoolArray]:
    """Labels by every correlation of the grid, from the same normal numbers, (n, draws) each."""
    assert part.cluster is not None
    units, unit = np.unique(part.cluster, return_inverse=True)
    numbers = np.array(draws)
    shared_seed = as_seed(np.random.default_rng([seed, 2]))
    shared = normal_of(keyed_fractions(shared_seed, units[:, None], numbers))[unit]
    own = normal_of(keyed_fractions(seed, np.arange(part.n)[:, None], numbers))
    quantile = ndtri(part.p)[:, None]
    for rho in GRID:
        yield np.sqrt(rho) * shared + np.sqrt(1 - rho) * own < quantile


def normal_of(fractions: FloatArray) -> FloatArray:
    """Standard normal numbers from uniform ones of [0, 1)."""
    return np.asarray(ndtri(np.maximum(fractions, 2.0**-54)))


def nearness_of(drawn: FloatArray, observed: float) -> float:
    """The smaller of the shares of draws that are at least, and at most, as large as the data."""
    above = (1 + np.count_nonzero(drawn >= observed - 1e-9)) / (1 + drawn.size)
    below = (1 + np.count_nonzero(drawn <= observed + 1e-9)) / (1 + drawn.size)
    return min(above, below)


def _some_clusters(sample: Sample) -> Sample:
    """Rows in the order of their clusters: all of them, or some random ones of each."""
    assert sample.cluster is not None
    return sample.take(rows_by_cluster(sample.design.units, MAX_SET_ROWS))


def rows_by_cluster(units: IntArray, size: int) -> IntArray:
    """Give rows in the order of their clusters."""
    n, clusters = units.size, int(units.max()) + 1
    tickets = keyed_fractions(0, np.arange(n), np.zeros(1, dtype=np.int64))
    rows = np.lexsort((tickets, units))
    if n > size:
        some = size // 2  # clusters at most, and so many rows of each that they fit
        most = max(size // min(clusters, some), 2)
        chance = keyed_fractions(1, np.arange(clusters), np.zeros(1, dtype=np.int64))
        chosen = np.argsort(np.argsort(chance, kind="stable")) < some
        sizes = np.bincount(units)
        within = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = rows[(within < most) & chosen[units[rows]]]
    return rows


def alikeness_of(residuals: FloatArray, first: IntArray) -> FloatArray:
    """How much residuals of a cluster go together, from rows in the order of clusters, (columns,).

    `first` has the first row of every cluster.
    """
    sums = np.add.reduceat(residuals, first, axis=0)
    squares = np.add.reduceat(np.square(residuals), first, axis=0)
    others = np.diff(np.append(first, len(residuals)))[:, None] - 1
    possible = (others * squares).sum(axis=0)
    together = (np.square(sums) - squares).sum(axis=0)
    return np.asarray(
        np.divide(together, possible, out=np.zeros_like(together), where=possible > 0)
    )
