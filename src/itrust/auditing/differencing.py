"""What numbers of rows tell together: parts of few rows that follow from those that are shown.

Every number that is shown about some rows is a sum over them, so whoever reads a page can add and
subtract the parts that it shows. A part of few rows is given away if its indicator is a linear
combination of the indicators of parts that are shown, such as a total less all groups but one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.data import Points

SHUFFLED_ROWS = 2_000
SURE = 1e-4  # chance that few rows of all look like many at hand
NEAR = 1e-7  # what rounding leaves of a whole number
MAX_NODES = 2_000  # of one search: not seconds, for the same page comes out on every machine
INFEASIBLE = 2  # the status of a programme without a solution


@dataclass(frozen=True, eq=False)
class Universe:
    """The rows at hand, and rows that could be there.

    The others are the rows at hand with every column shuffled by itself: whoever reads a page does
    not know which combinations of values occur, and cannot use that one of them does not.

    Attributes
    ----------
    points : Points
        The rows at hand, then the shuffled ones.
    real : int
        How many are at hand.
    least : int
        Rows at hand from which on there are, almost surely, at least `min_cell` of all.
    """

    points: Points
    real: int
    least: int

    @classmethod
    def of(cls, points: Points, n: int, min_cell: int) -> Universe:
        """Take the rows at hand, which may be random ones of n."""
        rng = np.random.default_rng(0)
        some = min(len(points), SHUFFLED_ROWS)
        everyone = np.arange(len(points))

        def order() -> IntArray:
            return np.concatenate([everyone, rng.permutation(len(points))[:some]])

        columns = tuple(column.take(order()) for column in points.columns)
        both = Points(points.p[order()], columns)
        return cls(both, len(points), least_at_hand(min_cell, len(points) / n))

    def is_few(self, marks: BoolArray) -> bool:
        """Whether a part of the rows is neither empty nor large enough to be shown."""
        return 0 < int(marks[: self.real].sum()) < self.least


def least_at_hand(min_cell: int, share: float) -> int:
    """How many of a random share of the rows show that there are `min_cell` of them in all.

    >>> least_at_hand(10, 1.0), least_at_hand(10, 0.5), least_at_hand(10, 0.005)
    (10, 10, 3)
    """
    if share >= 1:
        return min_cell
    seen = (k for k in range(min_cell) if bdtr(k, min_cell - 1, share) >= 1 - SURE)
    return 1 + next(seen, min_cell - 1)


@dataclass(frozen=True, eq=False)
class Told:
    """What is shown about some parts of the rows.

    Attributes
    ----------
    owner : hashable
        What is left out if the parts give something away.
    parts : sequence of (u,) arrays of bool
        The parts, as rows of the universe.
    """

    owner: Hashable
    parts: Sequence[BoolArray]


def first_to_go(told: Sequence[Told], universe: Universe) -> Hashable:
    """Find what must not be shown, because a part of few rows follows from it and from others.

    Parameters
    ----------
    told : sequence of Told
        What is to be shown, the most important first. The number of all rows is known, too.
    universe : Universe
        The rows.

    Returns
    -------
    hashable or None
        The owner of the least important part in a combination that tells of few rows; None where
        there is no such combination.
    """
    owners: list[Hashable] = [None]
    marks = [np.ones(len(universe.points), dtype=bool)]
    for one in told:
        owners += [one.owner] * len(one.parts)
        marks += one.parts
    used = [owners[k] for k in np.flatnonzero(telling(np.array(marks), universe))]
    return used[-1] if used else None


def telling(marks: BoolArray, universe: Universe) -> BoolArray:
    """Mark the parts, of k that are shown, that tell of few rows; none if they do not.

    Parameters
    ----------
    marks : (k, u) array of bool
        The parts.
    universe : Universe
        The rows.

    Returns
    -------
    (k,) array of bool
        The parts in one combination that is the indicator of few rows.
    """
    _, first, cell = np.unique(
        np.packbits(marks, axis=0), axis=1, return_index=True, return_inverse=True
    )
    rows = np.bincount(cell.ravel()[: universe.real], minlength=first.size)
    cells = marks[:, first].astype(float)
    kept = _independent(cells)
    used = np.zeros(marks.shape[0], dtype=bool)
    found = _small_combination(cells[kept], rows, universe.least)
    if found is not None:
        used[kept] = np.abs(found) > NEAR
    return used


def _small_combination(cells: FloatArray, rows: IntArray, least: int) -> FloatArray | None:
    """Coefficients (k,) of a sum of rows of (k, m) cells that indicates few rows, if there is one.

    Such a sum is 0 on every cell that holds enough rows by itself. In the reduced basis of all sums
    that are, the coefficients of an indicator are 0 and 1, for that is what it is at the pivots: so
    an integer programme finds it, or shows that there is none.
    """
    vanishing = _left_null(cells[:, rows >= least])
    if not vanishing.size:
        return None
    from scipy.optimize import Bounds, LinearConstraint, milp  # not loaded where nothing is small

    small = np.flatnonzero(rows < least)
    basis, coefficients = _reduced(vanishing @ cells[:, small], vanishing)
    within = LinearConstraint(np.unique(basis, axis=1).T, -NEAR, 1 + NEAR)
    few = LinearConstraint((basis @ rows[small])[None, :], 1 - NEAR, least - 1 + NEAR)
    size = len(basis)
    found = milp(
        np.zeros(size),
        constraints=[within, few],
        integrality=np.ones(size, dtype=int),
        bounds=Bounds(0, 1),
        options={"node_limit": MAX_NODES},
    )
    if found.status == INFEASIBLE:
        return None
    if found.x is None:  # not settled, so nothing that could be told is
        return np.ones(len(cells))
    return np.asarray(np.round(found.x) @ coefficients)


def _independent(rows: FloatArray) -> IntArray:
    """Numbers of the rows that the ones before them do not make up, the first ones first."""
    left, kept = rows.copy(), []
    for k in range(len(left)):
        pivot = int(np.argmax(np.abs(left[k])))
        if abs(left[k, pivot]) < NEAR:
            continue
        kept.append(k)
        below = left[k + 1 :, pivot] / left[k, pivot]
        changed = np.flatnonzero(below)
        left[k + 1 + changed] -= below[changed, None] * left[k]
    return np.array(kept, dtype=int)


def _left_null(rows: FloatArray) -> FloatArray:
    """An orthonormal basis of the combinations of k rows that vanish, (d, k)."""
    if not rows.shape[1]:
        return np.eye(rows.shape[0])
    left, sizes, _ = np.linalg.svd(rows, full_matrices=True)
    rank = int((sizes > NEAR * max(sizes.max(initial=0.0), 1.0)).sum())
    return np.asarray(left[:, rank:].T)


def _reduced(basis: FloatArray, beside: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The reduced row echelon form of a basis, and the same operations on another matrix."""
    left, other = basis.copy(), beside.copy()
    done = 0
    for column in range(left.shape[1]):
        if done == len(left):
            break
        pivot = done + int(np.argmax(np.abs(left[done:, column])))
        if abs(left[pivot, column]) < NEAR:
            continue
        for matrix in (left, other):
            matrix[[done, pivot]] = matrix[[pivot, done]]
        scale = left[done, column]
        left[done] /= scale
        other[done] /= scale
        factors = left[:, column].copy()
        factors[done] = 0.0
        changed = np.flatnonzero(np.abs(factors) > NEAR)
        left[changed] -= factors[changed, None] * left[done]
        other[changed] -= factors[changed, None] * other[done]
        done += 1
    return left[:done], other[:done]
