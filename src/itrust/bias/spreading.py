"""How far sums of residuals at many places spread in a design: by clusters or replicates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import ndtri

from itrust._core import AnyArray, FloatArray, IntArray, keyed_fractions
from itrust.data import Design
from itrust.nulls import worst_moments

NORMALS = ndtri((np.arange(2**16) + 0.5) / 2**16)

UNITS_AT_ONCE = 8_192


@dataclass(frozen=True, eq=False)
class Spreading(ABC):
    """How sums over rows vary, as the design says."""

    design: Design
    draws: int
    seed: int
    dtype: DTypeLike

    @staticmethod
    def of(design: Design, draws: int, seed: int, dtype: DTypeLike) -> Spreading:
        """The one that fits a design; independent rows need none."""
        if design.known_by_replicates:
            return _ByReplicates(design, draws, seed, dtype)
        return _ByClusters(design, draws, seed, dtype)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """What a place keeps of the units: kinds of sums, and how many of each."""

    @abstractmethod
    def multipliers(self, rows: slice) -> AnyArray:
        """Normal numbers of some rows, (rows, draws); sums of them vary as the design says."""

    @abstractmethod
    def totals(self, a: FloatArray, e: FloatArray, rows: IntArray) -> FloatArray:
        """What some rows add to the sums over units, (kinds, places, units).

        `a` (places, rows) are the rows' weights at the places, e (rows,) their residuals, and
        `rows` their numbers; clusters are whole.
        """

    @abstractmethod
    def carried(self, a: FloatArray, p: FloatArray, rows: IntArray) -> FloatArray:
        """What they add to `Moments.carried`, (4, places)."""

    @abstractmethod
    def variance(self, totals: FloatArray, mass: FloatArray) -> FloatArray:
        """Coefficients in b of the variance of the sum of a (e - b), (3, places)."""

    @abstractmethod
    def multiplied_variance(self, totals: FloatArray) -> FloatArray:
        """Variance of the sums with multipliers, (places,)."""

    def settled(
        self,
        carried: FloatArray,
        mass: FloatArray,  # noqa: ARG002
        predicted: FloatArray,  # noqa: ARG002
    ) -> FloatArray:
        """What clusters carry, once all rows have been seen, (4, places)."""
        return carried

    def _normals(self, numbers: AnyArray) -> AnyArray:
        return NORMALS.astype(self.dtype)[numbers]


class _ByClusters(Spreading):
    """Clusters, drawn within strata: sums over clusters around the mean of their stratum."""

    @property
    def shape(self) -> tuple[int, int]:
        return 5, self.design.stratum_count

    def multipliers(self, rows: slice) -> AnyArray:
        unit = self.design.units[rows]
        if self.design.stratum_count > 1:
            return self._within_strata(unit)
        numbers, where = np.unique(unit, return_inverse=True)
        return self._of_units(numbers)[where]

    def _of_units(self, units: IntArray) -> AnyArray:
        draws = np.arange(self.draws, dtype=np.int64)
        fractions = keyed_fractions(self.seed, units[:, None], draws)
        return self._normals((fractions * 2**16).astype(np.int64))

    def _within_strata(self, unit: IntArray) -> AnyArray:
        """Normal numbers of clusters less the mean of their stratum, scaled, (rows, draws)."""
        numbers, where = np.unique(unit, return_inverse=True)
        stratum, sizes = self.design.stratum_of_unit[numbers], self.design.stratum_sizes
        factor = np.sqrt(sizes / np.maximum(sizes - 1, 1)).astype(self.dtype)
        centred = self._of_units(numbers) - self._means[stratum]
        return np.asarray((centred * factor[stratum][:, None])[where])

    @cached_property
    def _means(self) -> AnyArray:
        """Means of the normal numbers of every stratum, (strata, draws)."""
        stratum, sizes = self.design.stratum_of_unit, self.design.stratum_sizes
        order = np.argsort(stratum, kind="stable")
        found = np.zeros((sizes.size, self.draws))
        for at in range(0, order.size, UNITS_AT_ONCE):
            some = order[at : at + UNITS_AT_ONCE]
            first = np.flatnonzero(np.diff(stratum[some], prepend=-1))
            found[stratum[some[first]]] += np.add.reduceat(self._of_units(some), first, axis=0)
        return (found / sizes[:, None]).astype(self.dtype)

    def totals(self, a: FloatArray, e: FloatArray, rows: IntArray) -> FloatArray:
        unit = self.design.units[rows]
        errors, masses, first = _sums(a * e, a, unit)
        stratum = self.design.stratum_of_unit[unit[first]]
        found = np.zeros((5, len(a), self.design.stratum_count))
        parts = errors**2, errors * masses, masses**2, errors, masses
        for kind, part in enumerate(parts):
            if self.design.stratum_count == 1:
                found[kind, :, 0] = part.sum(axis=1)
            else:
                np.add.at(found[kind].T, stratum, part.T)
        return found

    def carried(self, a: FloatArray, p: FloatArray, rows: IntArray) -> FloatArray:
        predicted, masses, _ = _sums(a * p, a, self.design.units[rows])
        variance, third = worst_moments(masses, predicted)
        parts = masses**2, variance, third, variance**2
        return np.stack([part.sum(axis=1) for part in parts])

    def variance(self, totals: FloatArray, mass: FloatArray) -> FloatArray:  # noqa: ARG002
        sizes = self.design.stratum_sizes
        factor = sizes / np.maximum(sizes - 1, 1)
        ee, em, mm, e, m = totals
        parts = ee - e * e / sizes, -2 * (em - e * m / sizes), mm - m * m / sizes
        return np.stack([(part * factor).sum(axis=1) for part in parts])

    def multiplied_variance(self, totals: FloatArray) -> FloatArray:
        if self.design.stratum_count == 1:
            return np.asarray(totals[0, :, 0])
        sizes = self.design.stratum_sizes
        factor = sizes / np.maximum(sizes - 1, 1)
        return np.asarray(((totals[0] - totals[3] ** 2 / sizes) * factor).sum(axis=1))


class _ByReplicates(Spreading):
    """Replicate weights: the sum with each of them."""

    @property
    def shape(self) -> tuple[int, int]:
        return 2, self.design.replicate_deviations.shape[1]

    def multipliers(self, rows: slice) -> AnyArray:
        deviations = self.design.replicate_deviations[rows]
        sets = np.arange(deviations.shape[1], dtype=np.int64)[:, None]
        fractions = keyed_fractions(self.seed, sets, np.arange(self.draws, dtype=np.int64))
        normals = NORMALS[(fractions * 2**16).astype(np.int64)]
        return (deviations @ normals).astype(self.dtype)

    def totals(self, a: FloatArray, e: FloatArray, rows: IntArray) -> FloatArray:
        deviations = self.design.replicate_deviations[rows]
        return np.stack([(a * e) @ deviations, a @ deviations])

    def carried(self, a: FloatArray, p: FloatArray, rows: IntArray) -> FloatArray:  # noqa: ARG002
        found = np.zeros((4, len(a)))
        found[0] = np.einsum("ij,ij->i", a, a)
        return found

    def variance(self, totals: FloatArray, mass: FloatArray) -> FloatArray:
        errors, masses = totals
        # A replicate of the mean is (sum + change) / (mass + change), without linearisation.
        assert self.design.replication is not None
        scale = np.sqrt(self.design.replication.scale(errors.shape[1]))
        whole = mass[:, None] + masses / scale
        factor = np.divide(mass[:, None], whole, out=np.ones_like(whole), where=whole > 0) ** 2
        parts = errors**2, -2 * errors * masses, masses**2
        return np.stack([(part * factor).sum(axis=1) for part in parts])

    def multiplied_variance(self, totals: FloatArray) -> FloatArray:
        return np.asarray(np.square(totals[0]).sum(axis=1))

    def settled(self, carried: FloatArray, mass: FloatArray, predicted: FloatArray) -> FloatArray:
        """As many equal clusters as replicates have degrees of freedom, and one."""
        count = self.design.freedom + 1
        variance, third = worst_moments(mass / count, predicted / count)
        return np.stack([carried[0], count * variance, count * third, count * variance**2])


def _sums(
    above: FloatArray, below: FloatArray, unit: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Sums over units of two (places, rows) arrays, and the first row of each unit."""
    order = np.argsort(unit, kind="stable")
    first = np.flatnonzero(np.diff(unit[order], prepend=-1))
    return (
        np.add.reduceat(above[:, order], first, axis=1),
        np.add.reduceat(below[:, order], first, axis=1),
        order[first],
    )
