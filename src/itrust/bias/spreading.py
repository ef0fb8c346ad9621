"""How sums of residuals at many places spread: by rows, or by a design's clusters or replicates.

Normal numbers, one a row, that the residuals would be multiplied with are not drawn: their sums at
all places are normal with a covariance that is itself a sum over rows, so they are drawn from it
when all rows have been seen. In a design, numbers of clusters or replicates are drawn and used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import ndtri

from itrust._core import AnyArray, FloatArray, IntArray, as_seed, keyed_fractions
from itrust.bias.weights import Tile, Weights
from itrust.data import Design
from itrust.nulls import worst_moments

if TYPE_CHECKING:
    from itrust.bias.averages import Moments, PlacesPartial, PlaceSums

UNITS_AT_ONCE = 8_192
NORMALS = ndtri((np.arange(2**16) + 0.5) / 2**16)
# Of the variance, added so that a covariance has a root in spite of rounding; the first suffices.
JITTERS = (1e-4, 1e-3, 1e-2, 0.1)


@dataclass(frozen=True, eq=False)
class Spreading(ABC):
    """How sums over rows vary."""

    draws: int
    seed: int
    dtype: DTypeLike

    @property
    def freedom(self) -> float | None:
        """Degrees of freedom of a design."""
        return None

    @abstractmethod
    def empty(self, weights: Weights) -> tuple[AnyArray, ...]:
        """What is added up over chunks."""

    def multiplied_errors(self, partial: PlacesPartial) -> AnyArray | None:  # noqa: ARG002
        """Weighted residuals of a chunk times normal numbers, (rows, draws)."""
        return None

    @abstractmethod
    def add(self, partial: PlacesPartial, tile: Tile) -> None:
        """Take in some rows of a chunk at some places; clusters are whole."""

    @abstractmethod
    def multiplied(self, weights: Weights, sums: PlaceSums) -> FloatArray:
        """Sums of residuals times normal numbers, (m, draws)."""

    def settled(self, moments: Moments, sums: PlaceSums) -> Moments:  # noqa: ARG002
        """Moments as the design has them, given those of independent rows."""
        return moments


def spreading_of(design: Design | None, draws: int, seed: int, dtype: DTypeLike) -> Spreading:
    """The one that fits a design; None: independent rows."""
    if design is None:
        return _ByRows(draws, seed, dtype)
    of_design = _ByReplicates if design.known_by_replicates else _ByClusters
    return of_design(draws, as_seed(np.random.default_rng([seed, 1])), dtype, design)


class _ByRows(Spreading):
    """Independent rows: a covariance for every family of places."""

    def empty(self, weights: Weights) -> tuple[AnyArray, ...]:
        families = weights.families if self.draws else []
        return tuple(np.zeros((len(family),) * 2, self.dtype) for family in families)

    def add(self, partial: PlacesPartial, tile: Tile) -> None:
        if not self.draws:
            return
        places, rows, weights = tile
        shares = weights * partial.errors[rows]
        families = partial.work.places.weights.families
        for family, into in zip(families, partial.sums.spreading, strict=True):
            first, last = np.searchsorted(places, [family.start, family.stop])
            if first < last:
                some, at = shares[first:last], places[first:last] - family.start
                into[np.ix_(at, at)] += some @ some.T

    def multiplied(self, weights: Weights, sums: PlaceSums) -> FloatArray:
        variance = sums.second[3]
        drawn = np.empty((variance.size, self.draws))
        for part, (family, covariance) in enumerate(
            zip(weights.families if self.draws else [], sums.spreading, strict=True)
        ):
            some = slice(family.start, family.stop)
            rng = np.random.default_rng([self.seed, 1, part])
            drawn[some] = _normal_sums(covariance, variance[some], self.draws, rng)
        return drawn


def _normal_sums(
    covariance: AnyArray, variance: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Normal numbers with this covariance, (m, draws), whose diagonal is known more precisely.

    What rounding leaves without a root gets one by a little variance that places do not share; so
    it is where places are more than rows.
    """
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    correlation = covariance / scale / scale[:, None]
    root: AnyArray = np.eye(variance.size)  # uncorrelated, if nothing helps
    jitter = 0.0
    for tried in JITTERS:
        np.fill_diagonal(correlation, 1 + tried)
        try:
            root, jitter = np.linalg.cholesky(correlation), tried
            break
        except np.linalg.LinAlgError:
            continue
    normals = rng.standard_normal((draws, variance.size)).T
    return np.asarray(root @ normals * np.sqrt(variance / (1 + jitter))[:, None])


@dataclass(frozen=True, eq=False)
class _ByDesign(Spreading):
    """What a design's units add up to: sums with multipliers, and totals."""

    design: Design

    @property
    def freedom(self) -> float:
        return self.design.freedom

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """What a place keeps of the units: kinds of sums, and how many of each."""

    @abstractmethod
    def multipliers(self, rows: slice) -> AnyArray:
        """Normal numbers of some rows, (rows, draws); sums of them vary as the design says."""

    @abstractmethod
    def totals(self, a: FloatArray, e: FloatArray, p: FloatArray, rows: IntArray) -> FloatArray:
        """What rows with weights (places, rows) add to totals, (kinds, places, units)."""

    def empty(self, weights: Weights) -> tuple[AnyArray, ...]:
        (kinds, units), m = self.shape, weights.places
        return np.zeros((m, self.draws)), np.zeros((kinds, m, units))

    def multiplied_errors(self, partial: PlacesPartial) -> AnyArray:
        rows = partial.chunk.rows
        return np.asarray(self.multipliers(slice(rows.start, rows.stop)) * partial.errors[:, None])

    def add(self, partial: PlacesPartial, tile: Tile) -> None:
        places, rows, weights = tile
        multiplied, totals = partial.sums.spreading
        assert partial.multiplied is not None
        multiplied[places] += weights @ partial.multiplied[rows]
        a, numbers = weights * partial.w[rows], partial.chunk.first + rows
        totals[:, places] += self.totals(a, partial.e[rows], partial.chunk.p[rows], numbers)

    def multiplied(self, weights: Weights, sums: PlaceSums) -> FloatArray:  # noqa: ARG002
        return sums.spreading[0]

    def _normals(self, units: IntArray) -> AnyArray:
        draws = np.arange(self.draws, dtype=np.int64)
        fractions = keyed_fractions(self.seed, units[:, None], draws)
        return NORMALS.astype(self.dtype)[(fractions * 2**16).astype(np.int64)]


class _ByClusters(_ByDesign):
    """Clusters, drawn within strata: sums over clusters around the mean of their stratum."""

    @property
    def shape(self) -> tuple[int, int]:
        return 8, self.design.stratum_count

    @cached_property
    def _factor(self) -> FloatArray:
        sizes = self.design.stratum_sizes
        return np.asarray(sizes / np.maximum(sizes - 1, 1))

    def multipliers(self, rows: slice) -> AnyArray:
        units, where = np.unique(self.design.units[rows], return_inverse=True)
        normals = self._normals(units)
        if self.design.stratum_count > 1:
            stratum = self.design.stratum_of_unit[units]
            factor = np.sqrt(self._factor).astype(self.dtype)
            normals = (normals - self._means[stratum]) * factor[stratum][:, None]
        return np.asarray(normals[where])

    @cached_property
    def _means(self) -> AnyArray:
        """Means of the normal numbers of every stratum, (strata, draws)."""
        stratum, sizes = self.design.stratum_of_unit, self.design.stratum_sizes
        order = np.argsort(stratum, kind="stable")
        sums = np.zeros((sizes.size, self.draws))
        for at in range(0, order.size, UNITS_AT_ONCE):
            some = order[at : at + UNITS_AT_ONCE]
            first = np.flatnonzero(np.diff(stratum[some], prepend=-1))
            sums[stratum[some[first]]] += np.add.reduceat(self._normals(some), first, axis=0)
        return (sums / sizes[:, None]).astype(self.dtype)

    def totals(self, a: FloatArray, e: FloatArray, p: FloatArray, rows: IntArray) -> FloatArray:
        unit = self.design.units[rows]
        order = np.argsort(unit, kind="stable")
        first = np.flatnonzero(np.diff(unit[order], prepend=-1))
        parts = (a * e, a, a * p)
        errors, masses, predicted = (np.add.reduceat(x[:, order], first, axis=1) for x in parts)
        variance, third = worst_moments(masses, predicted)
        squares = errors**2, errors * masses, masses**2
        kinds = np.stack([*squares, errors, masses, variance, third, variance**2])
        if self.design.stratum_count == 1:
            return np.asarray(kinds.sum(axis=2, keepdims=True))
        totals = np.zeros((8, len(a), self.design.stratum_count))
        stratum = self.design.stratum_of_unit[unit[order[first]]]
        for into, kind in zip(totals, kinds, strict=True):
            np.add.at(into.T, stratum, kind.T)
        return totals

    def settled(self, moments: Moments, sums: PlaceSums) -> Moments:
        ee, em, mm, e, m, *worst = sums.spreading[1]
        sizes = self.design.stratum_sizes
        parts = ee - e * e / sizes, -2 * (em - e * m / sizes), mm - m * m / sizes
        variance = np.stack([(part * self._factor).sum(axis=1) for part in parts])
        one = self.design.stratum_count == 1  # then multipliers are not centred
        return replace(
            moments,
            by_design=variance,
            multiplied=ee[:, 0] if one else variance[0],
            carried=np.stack([kind.sum(axis=1) for kind in (mm, *worst)]),
        )


class _ByReplicates(_ByDesign):
    """Replicate weights: the sum with each of them."""

    @property
    def shape(self) -> tuple[int, int]:
        return 2, self.design.replicate_deviations.shape[1]

    def multipliers(self, rows: slice) -> AnyArray:
        deviations = self.design.replicate_deviations[rows]
        normals = self._normals(np.arange(deviations.shape[1], dtype=np.int64))
        return (deviations @ normals).astype(self.dtype)

    def totals(self, a: FloatArray, e: FloatArray, p: FloatArray, rows: IntArray) -> FloatArray:  # noqa: ARG002
        deviations = self.design.replicate_deviations[rows]
        return np.stack([(a * e) @ deviations, a @ deviations])

    def settled(self, moments: Moments, sums: PlaceSums) -> Moments:
        errors, masses = sums.spreading[1]
        # A replicate of the mean is (sum + change) / (mass + change), without linearisation.
        assert self.design.replication is not None
        scale = np.sqrt(self.design.replication.scale(errors.shape[1]))
        mass = moments.mass[:, None]
        whole = mass + masses / scale
        factor = np.divide(mass, whole, out=np.ones_like(whole), where=whole > 0) ** 2
        parts = errors**2, -2 * errors * masses, masses**2
        # As many equal clusters as replicates have degrees of freedom, and one.
        count = self.design.freedom + 1
        variance, third = worst_moments(moments.mass / count, moments.predicted / count)
        worst = count * variance, count * third, count * variance**2
        return replace(
            moments,
            by_design=np.stack([(part * factor).sum(axis=1) for part in parts]),
            multiplied=np.square(errors).sum(axis=1),
            carried=np.stack([moments.second[0], *worst]),
        )
