"""What numbers of rows tell together: parts of few rows that follow from those that are shown.

Every number that is shown about some rows is a sum over them, so whoever reads a page can add and
subtract the parts that it shows. A part of few rows is given away if its indicator is a linear
combination of the indicators of parts that are shown, such as a total less all groups but one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack
from scipy.special import bdtr

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.data import Points

SHUFFLED_ROWS = 2_000
SURE = 1e-4  # chance that few rows of all look like many at hand
NEAR = 1e-7  # what rounding leaves of a whole number
MAX_NODES = 2_000  # of one search: not seconds, for the same page comes out on every machine
TRIALS = 24  # random parts of the rows; a tenth of them misses nine rows in four of ten tries
MAX_PART = 2_000  # rows of one
INFEASIBLE = 2  # the status of a programme without a solution


@dataclass(frozen=True, eq=False)
class Universe:
    """The rows at hand, and rows that could be there.

    The others are the rows at hand with columns shuffled: whoever reads a page does not know which
    combinations of values occur, and cannot use that one of them does not. Columns of which one
    tells the other, such as city and region, are shuffled together: that is known.
    """

    points: Points
    real: int
    least: int

    @classmethod
    def of(cls, points: Points, n: int, min_cell: int, cut: str | None = None) -> Universe:
        """Take the rows at hand, which may be random ones of n.

        The prediction is shuffled with the column `cut`, if that is made of intervals of it.
        """
        rng = np.random.default_rng(0)
        some = min(len(points), SHUFFLED_ROWS)
        everyone = np.arange(len(points))

        def order() -> IntArray:
            return np.concatenate([everyone, rng.permutation(len(points))[:some]])

        orders = {block: order() for block in sorted(set(block_of(points)))}
        columns = tuple(
            column.take(orders[block])
            for column, block in zip(points.columns, block_of(points), strict=True)
        )
        beside = [
            b for b, own in zip(block_of(points), points.columns, strict=True) if own.name == cut
        ]
        told = bool(beside) and is_cut(points, cut)
        both = Points(points.p[orders[beside[0]] if told else order()], columns)
        return cls(both, len(points), least_at_hand(min_cell, len(points) / n))

    def is_few(self, marks: BoolArray) -> bool:
        """Whether a part of the rows is neither empty nor large enough to be shown."""
        return 0 < int(marks[: self.real].sum()) < self.least


def is_cut(points: Points, name: str | None) -> bool:
    """Whether the values of a column are intervals of the prediction.

    >>> from itrust.data import Column
    >>> rating = Column("rating", "number", np.array([1.0, 2.0, 1.0, 3.0]))
    >>> is_cut(Points(np.array([0.1, 0.3, 0.2, 0.9]), (rating,)), "rating")
    True
    >>> is_cut(Points(np.array([0.1, 0.3, 0.4, 0.9]), (rating,)), "rating")
    False
    """
    for column in points.columns:
        if column.name == name:
            values, place = np.unique(column.values, return_inverse=True)
            ends = [
                (points.p[place == k].min(), points.p[place == k].max()) for k in range(values.size)
            ]
            ends.sort()
            return all(one[1] < other[0] for one, other in pairwise(ends))
    return False


def block_of(points: Points) -> list[int]:
    """Number the columns so that those have the same number of which one tells the other.

    >>> from itrust.data import Column
    >>> city, land = Column("city", "number", np.array([1.0, 2.0, 3.0, 3.0, 1.0, 2.0])), None
    >>> land = Column("land", "number", np.array([1.0, 1.0, 2.0, 2.0, 1.0, 1.0]))
    >>> other = Column("other", "number", np.array([1.0, 2.0, 1.0, 2.0, 2.0, 1.0]))
    >>> block_of(Points(np.zeros(6), (city, land, other)))
    [0, 0, 2]
    """
    codes = [np.unique(column.values, return_inverse=True)[1].ravel() for column in points.columns]
    sizes = [int(own.max(initial=-1)) + 1 for own in codes]
    block = list(range(len(codes)))
    for one, other in combinations(range(len(codes)), 2):
        fine, coarse = (one, other) if sizes[one] >= sizes[other] else (other, one)
        if sizes[coarse] < 2 or sizes[fine] > len(points) / 2:
            continue  # a constant tells nothing, and single rows tell everything
        pairs = np.unique(codes[fine].astype(np.int64) * sizes[coarse] + codes[coarse]).size
        if pairs == sizes[fine]:
            joined, kept = block[other], block[one]
            block = [kept if own == joined else own for own in block]
    return block


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
    """What is shown about some parts of the rows."""

    owner: Hashable
    parts: Sequence[BoolArray]


def first_to_go(told: Sequence[Told], universe: Universe) -> Hashable:
    """Find what must not be shown, because a part of few rows follows from it and from others."""
    owners: list[Hashable] = [None]
    marks = [np.ones(len(universe.points), dtype=bool)]
    for one in told:
        owners += [one.owner] * len(one.parts)
        marks += one.parts
    used = [owners[k] for k in np.flatnonzero(telling(np.array(marks), universe))]
    return used[-1] if used else None


def telling(marks: BoolArray, universe: Universe) -> BoolArray:
    """Mark the parts, of k that are shown, that tell of few rows; none if they do not."""
    if marks[1:].sum(axis=0).max(initial=0) <= 1:  # the simplest page: one partition of the rows
        left = np.asarray(~marks[1:].any(axis=0))
        few = universe.is_few(left) or any(map(universe.is_few, marks[1:]))
        return np.full(len(marks), few)
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
    """Coefficients (k,) of a sum of rows of (k, m) cells that is about few rows, if there is one.

    Such a sum is 0 on every cell that holds enough rows by itself, and on others 0, 1 or -1. In
    the reduced basis of all sums that vanish there, its coefficients are what it is at the pivots:
    so an integer programme finds it, or shows that there is none.
    """
    vanishing = _left_null(cells[:, rows >= least])
    if not vanishing.size:
        return None
    small = np.flatnonzero(rows < least)
    small = small[np.argsort(rows[small] == 0, kind="stable")]  # pivots where rows are
    basis, coefficients, pivots = _reduced(vanishing @ cells[:, small], vanishing)
    found = _programme(basis, rows[small].astype(float), rows[small][pivots] > 0, least)
    return None if found is None else np.asarray(found @ coefficients)


def _programme(
    basis: FloatArray, rows: FloatArray, on_rows: BoolArray, least: int
) -> FloatArray | None:
    """Find -1, 0 or 1 for each of d rows of a basis (d, m), so that their sum is about few rows.

    The variables are the positive ones, the negative ones, and the size of the sum in each cell.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # not loaded where nothing is small

    # Cells that no sum tells apart are one, and there may be thousands of others: sparse.
    basis, alike = np.unique(np.round(basis, 9), axis=1, return_inverse=True)
    summed = np.bincount(alike.ravel(), weights=rows, minlength=basis.shape[1])
    held = np.where(np.any(basis != 0, axis=0), summed, 0.0)
    d, m = basis.shape
    signed, size = hstack([csr_array(basis.T), csr_array(-basis.T)]), eye_array(m)
    within = vstack([hstack([signed, -size]), hstack([-signed, -size])])
    one_sign = hstack([eye_array(d), eye_array(d), csr_array((d, m))])
    few = np.concatenate([np.zeros(2 * d), held])
    some = np.concatenate([on_rows, on_rows, np.zeros(m)])
    found = milp(
        np.zeros(2 * d + m),
        constraints=[
            LinearConstraint(within, -np.inf, NEAR),
            LinearConstraint(one_sign, 0, 1),
            LinearConstraint(few[None, :], 0, least - 1 + NEAR),
            LinearConstraint(some[None, :], 1, np.inf),
        ],
        integrality=np.concatenate([np.ones(2 * d, dtype=int), np.zeros(m, dtype=int)]),
        bounds=Bounds(0, 1),
        options={"node_limit": MAX_NODES},
    )
    if found.status == INFEASIBLE:
        return None
    if found.x is None:  # not settled, so nothing that could be told is
        return np.ones(d)
    return np.asarray(np.round(found.x[:d]) - np.round(found.x[d : 2 * d]))


def telling_values(
    values: FloatArray, sums: FloatArray, least: int, trials: int = TRIALS
) -> BoolArray:
    """Mark the sums of values, of k that are shown, that together tell the values of few rows.

    A combination that is 0 on all but few rows is 0 on most random parts of the rows, too, and one
    that is 0 on such a part is 0 nearly everywhere: so combinations are looked for that vanish
    on one random part after the other.
    """
    both = np.vstack([values, sums])
    both = both / np.maximum(np.abs(both).max(axis=1, keepdims=True), np.finfo(float).tiny)
    k, (number, n) = len(values), both.shape
    size = min(max(n // 10, number + 5), max(n - least, 1), MAX_PART)
    rng = np.random.default_rng(0)
    for _ in range(trials):
        vanishing = _left_null(both[:, rng.choice(n, size, replace=False)])
        if not vanishing.size:
            continue
        total = vanishing @ both
        moved = np.flatnonzero(np.abs(total).max(axis=0) > NEAR)
        if not moved.size:
            continue
        basis, coefficients, _ = _reduced(total[:, moved], vanishing)
        for row, own in zip(basis, coefficients, strict=True):
            used = np.abs(own[:k]) > NEAR
            if used.any() and 0 < int((np.abs(row) > NEAR).sum()) < least:
                return np.asarray(used)
    return np.zeros(k, dtype=bool)


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


def _reduced(basis: FloatArray, beside: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """The reduced row echelon form, the same operations on another matrix, and the pivots."""
    left, other = basis.copy(), beside.copy()
    done, pivots = 0, list[int]()
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
        pivots.append(column)
    return left[:done], other[:done], np.array(pivots, dtype=int)
