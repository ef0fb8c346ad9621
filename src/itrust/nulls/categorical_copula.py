"""Classes redrawn with dependence within clusters: every row keeps its probabilities exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from itrust._core import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    as_seed,
    keyed_bits,
    keyed_fractions,
)
from itrust.nulls.categorical import CategoryDraws
from itrust.nulls.copula import (
    DRAWS_AT_ONCE,
    GRID,
    MAX_SET_ROWS,
    SURPRISING,
    alikeness_of,
    nearness_of,
    normal_of,
    rows_by_cluster,
)

SET_DRAWS = 199
MAX_LAWS = 5  # from the least to the largest correlations that labels do not contradict
BELOW_1 = 1 - 2.0**-53
BITS = 2.0**32
NUMBERS_AT_ONCE = 2**17  # of rows and draws, so that they stay near the processor


@dataclass(frozen=True, eq=False)
class CategoricalCopula(CategoryDraws):
    """Redraw classes from their probabilities, alike within clusters.

    Every class k has a waiting time with the exponential law of rate p_k, all of them independent,
    and the row falls on the class that comes first: P(y = k) = p_k exactly, whatever the order of
    the classes. What ties the rows of a cluster together is the time of each class: it is
    -log(1 - Phi(g)) / p_k, where g = sqrt(rho_k) z + sqrt(1 - rho_k) w has one standard normal z
    for every cluster and class and one w for every row and class. rho = 0 is `Categorical`, and
    with rho = 1 a cluster whose probabilities are equal has one label. One class against the rest
    is about as much alike as in the binary null, `Copula`, with the same rho.
    """

    p: FloatArray = field(repr=False)
    units: IntArray = field(repr=False)
    rho: FloatArray
    exact: ClassVar[bool] = False
    meaning: ClassVar[str] = "classes redrawn from their probabilities, alike within clusters"
    keeps_clusters: ClassVar[bool] = True

    @classmethod
    def alike(cls, p: FloatArray, units: IntArray, rho: float) -> CategoricalCopula:
        """Make one whose classes have the same correlation."""
        return cls(p, units, np.full(p.shape[1], float(rho)))

    def codes(self, rows: range, draws: range, seed: int, p: FloatArray | None = None) -> AnyArray:
        some = slice(rows.start, rows.stop)
        p = self.p[some] if p is None else p
        units, unit = np.unique(self.units[some], return_inverse=True)
        codes = np.zeros((len(rows), len(draws)), dtype=np.int16)
        seeds = [_seeds(seed, k) for k in range(self.p.shape[1])]
        size = max(DRAWS_AT_ONCE, NUMBERS_AT_ONCE // len(rows))
        for at in range(0, len(draws), size):
            block = draws[at : at + size]
            first = np.full((len(rows), len(block)), np.inf)
            found = codes[:, at : at + len(block)]
            for k, (rho, (shared_seed, own_seed)) in enumerate(zip(self.rho, seeds, strict=True)):
                g: FloatArray = np.zeros((len(rows), len(block)))
                if rho > 0:
                    shared = normal_of(
                        keyed_fractions(shared_seed, units[:, None], np.array(block))
                    )
                    g += (np.sqrt(rho) * shared)[unit]
                if rho < 1:
                    g += np.sqrt(1 - rho) * _own(own_seed, rows, block)
                _overtake(found, first, g, p[:, k], k)
        return codes

    def laws(
        self, codes: IntArray, weights: FloatArray | None, seed: int
    ) -> tuple[CategoricalCopula, ...]:
        """Give correlations that the labels do not contradict, from the smallest to the largest."""
        sets = compatible_class_correlations(self.p, self.units, codes, weights, seed)
        count = min(max(len(own) for own in sets), MAX_LAWS)
        at = np.linspace(0, 1, count) if count > 1 else np.zeros(1)
        profiles = {
            tuple(own[round(share * (len(own) - 1))] for own in sets): None for share in at.tolist()
        }
        return tuple(replace(self, rho=np.array(profile)) for profile in profiles)


def _seeds(seed: int, code: int) -> tuple[int, int]:
    """Of the numbers that clusters share, and of those of the rows."""
    made = np.random.SeedSequence([seed, 4, code]).generate_state(2, np.uint64)
    return int(made[0] >> 16), int(made[1] >> 16)


def _own(seed: int, rows: range, draws: range) -> FloatArray:
    """Standard normal numbers of rows and draws, to 32 bits."""
    return np.asarray(ndtri((keyed_bits(seed, rows, draws) + 0.5) / BITS))


def _overtake(codes: AnyArray, first: FloatArray, g: FloatArray, p: FloatArray, k: int) -> None:
    """Let class k take the rows where it comes before those that were there."""
    with np.errstate(divide="ignore", over="ignore"):  # a class of probability 0 never comes
        waited = -np.log1p(-np.minimum(ndtr(g), BELOW_1)) / p[:, None]
    earlier: BoolArray = waited < first
    np.copyto(codes, k, where=earlier)
    np.copyto(first, waited, where=earlier)


def compatible_class_correlations(
    p: FloatArray, units: IntArray, codes: IntArray, weights: FloatArray | None, seed: int
) -> list[tuple[float, ...]]:
    """For every class, the correlations whose own draws are as much alike as its labels are.

    What is compared is the same as in the binary null, for the residuals of one class at a time, so
    that a rare class that comes in clusters is not taken for one that does not because frequent
    ones do not. Draws have the same correlation for every class. The value whose draws are nearest
    is always kept. With weights, values that agree with weighted residuals are kept as well.
    """
    classes = p.shape[1]
    rows = rows_by_cluster(units, max(MAX_SET_ROWS // classes, 2_000))
    p, units, codes = p[rows], units[rows], codes[rows]
    first = np.flatnonzero(np.diff(units, prepend=-1))
    by_weight = [np.ones((rows.size, 1))]
    if weights is not None:  # heavy rows may be more alike than others
        by_weight.append(weights[rows][:, None])

    def alike(drawn: AnyArray, k: int) -> list[FloatArray]:
        residuals = (drawn == k) - p[:, k, None]
        return [alikeness_of(w * residuals, first) for w in by_weight]

    observed = np.array([alike(codes[:, None], k) for k in range(classes)])[..., 0]
    drawn = np.empty((classes, len(by_weight), len(GRID), SET_DRAWS))
    own_seed = as_seed(np.random.default_rng([seed, 3]))
    for at in range(0, SET_DRAWS, DRAWS_AT_ONCE):
        draws = range(at, min(at + DRAWS_AT_ONCE, SET_DRAWS))
        for number, labels in enumerate(_on_grid(p, units, draws, own_seed)):
            for k in range(classes):
                drawn[k, :, number, draws.start : draws.stop] = alike(labels, k)
    return [
        _kept(drawn[k], observed[k]) if np.any((p[:, k] > 0) & (p[:, k] < 1)) else (0.0,)
        for k in range(classes)
    ]


def _kept(drawn: FloatArray, observed: FloatArray) -> tuple[float, ...]:
    """Values of the grid from draws (weightings, grid, draws) and what was observed."""
    nearness = np.array(
        [
            [nearness_of(of_rho, float(seen)) for of_rho in of_weights]
            for of_weights, seen in zip(drawn, observed, strict=True)
        ]
    )
    nearest = nearness == nearness.max(axis=1, keepdims=True)
    kept = ((nearness > SURPRISING) | nearest).any(axis=0)
    return tuple(rho for rho, own in zip(GRID, kept, strict=True) if own)


def _on_grid(p: FloatArray, units: IntArray, draws: range, seed: int) -> Iterator[AnyArray]:
    """Classes by every correlation of the grid, from the same normal numbers, (n, draws) each."""
    names, unit = np.unique(units, return_inverse=True)
    rows, numbers = range(len(p)), np.array(draws)
    normals = []
    for k in range(p.shape[1]):
        shared_seed, own_seed = _seeds(seed, k)
        shared = normal_of(keyed_fractions(shared_seed, names[:, None], numbers))[unit]
        normals.append((shared, _own(own_seed, rows, draws)))
    for rho in GRID:
        codes = np.zeros((len(p), len(draws)), dtype=np.int16)
        first = np.full(codes.shape, np.inf)
        for k, (shared, own) in enumerate(normals):
            _overtake(codes, first, np.sqrt(rho) * shared + np.sqrt(1 - rho) * own, p[:, k], k)
        yield codes
