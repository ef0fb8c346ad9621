"""Labels of rows that stand next to each other in the file and go together."""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.calibration.assumptions.rows import MAX_ROWS, Rows
from itrust.data import Column

MIN_ROWS = 100
BLOCK = range(25, 51)  # rows among which the order is permuted
LAG_WEIGHTS = (1.0, 0.35, 0.1)
PERMUTATIONS, MAX_PVALUE, MIN_CORRELATION = 999, 0.008, 0.10
SORTED_BY_LABEL = 0.1  # changes of the label for each row with the rarer one
ROWS_PER_CELL = 5
MOSTLY_THE_SAME = 0.5  # of the changes from row to row that a category would have in random order
FEW_VALUES = 20
SMALL_STEP = 0.02  # of all ranks: the usual step from row to row where a file is sorted by a number


def neighbour_correlation(whole: Rows) -> float | None:
    """How much more rows next to each other agree than rows of one stretch do; None: not clearly.

    Stretches of 25 to 50 rows are put below each other and their columns permuted. If rows are
    independent, and what (p, x) does not explain of the bias changes slowly along the file, the
    order within a stretch means nothing: a permutation test, of size .008. In a file that is sorted
    by p or a covariate, neighbours agree where the model is biased, too: nothing is said then.
    """
    n = whole.sample.n
    if n < MIN_ROWS or _is_sorted_by_label(whole.sample.y):
        return None
    block = min(BLOCK, key=lambda size: (n % size, -size))
    rows, chosen = _stretches(whole, block)
    if _is_sorted(rows):
        return None
    order = chosen[_ties_shuffled(rows, chosen)]
    lined = _unexplained(rows)[order].reshape(-1, block)
    products = lined.T @ lined
    in_place = np.arange(block)
    drawn = np.random.default_rng(0).permuted(np.tile(in_place, (PERMUTATIONS, 1)), axis=1)
    at_least = np.count_nonzero(_lagged(products, drawn) >= _lagged(products, in_place[None]))
    variance = np.trace(products) / block
    usual = (products.sum() - np.trace(products)) / (block * (block - 1))
    correlation = float((np.diagonal(products, 1).mean() - usual) / (variance or 1.0))
    is_clear = (1 + at_least) / (1 + PERMUTATIONS) <= MAX_PVALUE
    return correlation if is_clear and correlation >= MIN_CORRELATION else None


def _is_sorted_by_label(y: FloatArray) -> bool:
    changes = np.count_nonzero(np.diff(y))
    return bool(changes < SORTED_BY_LABEL * min(y.sum(), y.size - y.sum()))


def _is_sorted(rows: Rows) -> bool:
    """Whether rows next to each other nearly share a category, the prediction or another number."""
    return any(_runs(column) for column in rows.columns)


def _runs(column: Column) -> bool:
    codes = np.unique(column.values, return_inverse=True)[1]
    changes = np.count_nonzero(np.diff(codes)) / (codes.size - 1)
    usual = 1 - float(np.square(np.bincount(codes) / codes.size).sum())
    if column.is_category or codes.max() < FEW_VALUES:
        return bool(changes < MOSTLY_THE_SAME * usual)
    steps = np.abs(np.diff(np.argsort(np.argsort(column.values, kind="stable"))))
    return bool(np.median(steps) < SMALL_STEP * codes.size)


def _stretches(whole: Rows, block: int) -> tuple[Rows, IntArray]:
    """Rows that hold all stretches, or as many as there is room for, and where they stand there."""
    count = whole.sample.n // block
    if whole.numbers.size == whole.sample.n:
        return whole, np.arange(count * block)
    some = np.unique(np.linspace(0, count - 1, MAX_ROWS // block).astype(np.int64))
    numbers = (some[:, None] * block + np.arange(block)).ravel()
    return Rows(whole.sample, numbers), np.arange(numbers.size)


def _ties_shuffled(rows: Rows, chosen: IntArray) -> IntArray:
    """The order of the rows; if labels are sorted among rows with the same (p, x), these shuffled.

    A table that was sorted by all its columns says nothing by the order of its labels.
    """
    ties = np.cumsum(np.r_[0, np.diff(rows.cells[chosen]) != 0])
    steps = np.diff(rows.sample.y[rows.numbers[chosen]])[np.diff(ties) == 0]
    if not steps.any() or ((steps < 0).any() and (steps > 0).any()):
        return np.arange(chosen.size)
    return np.lexsort((np.random.default_rng(0).random(ties.size), ties))


def _unexplained(rows: Rows) -> FloatArray:
    """Residuals less smooth functions of (p, x); if most rows share theirs with others, less means.

    The means of rows with the same (p, x) explain all that (p, x) can.
    """
    large = np.bincount(rows.cells)[rows.cells] >= ROWS_PER_CELL
    if large.mean() < 0.5:
        return rows.unexplained()
    cells = np.where(large, rows.cells, rows.cells.max() + 1)
    means = np.bincount(cells, rows.residuals) / np.maximum(np.bincount(cells), 1)
    left: FloatArray = rows.residuals - means[cells]
    return left


def _lagged(products: FloatArray, orders: IntArray) -> FloatArray:
    """Sums of products of rows that are one, two or three apart, for every order (B, m)."""
    total = np.zeros(len(orders))
    for lag, weight in enumerate(LAG_WEIGHTS, start=1):
        total += weight * products[orders[:, :-lag], orders[:, lag:]].sum(axis=1)
    return total
