"""Biases of tasks in their own standard errors, for the data and for redrawn labels.

For independent rows only: where rows come from a design, its variance gives the p-value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from itrust._core import FloatArray
from itrust.bias import BEYOND_DOUBT, Redraws
from itrust.calibration import normal_score
from itrust.data import Chunk
from itrust.tasks.differentials import Dual
from itrust.tasks.expressions import Ratio, Task, TaskRows

ROWS_AT_ONCE, DRAWS_AT_ONCE = 65_536, 128


def task_scores(redraws: Redraws, tasks: Sequence[Task]) -> FloatArray:
    """Bias of every task in its own standard errors, data first, (k, 1 + draws).

    The bias itself is taken, F of the ratios with labels less F of those with probabilities, and
    divided by its standard error at those labels, or by that of labels drawn from the
    probabilities where it is larger; then brought to the normal scale by its skewness under the
    null, so that tasks compare.
    """
    sample, draws = redraws.sample, redraws.draws
    ratios = list(dict.fromkeys(ratio for task in tasks for ratio in task.ratios()))
    rows = TaskRows.predicted(sample)
    plug_ins = [ratio.linear(rows).value for ratio in ratios]
    lean = np.zeros((len(ratios), sample.n))
    below = np.zeros((len(ratios), sample.n))
    for k, ratio in enumerate(ratios):
        lean[k], below[k] = ratio.parts_of_bias(rows, plug_ins[k])
    sums, squares, masses = along(redraws, lean, below)
    scores = np.zeros((len(tasks), 1 + draws))
    v = sample.p * (1 - sample.p)
    expected = (lean * v) @ lean.T
    for k, task in enumerate(tasks):
        labelled = np.array([ratio.among_positives for ratio in ratios])[:, None]
        mass = np.where(labelled & (masses > 0), masses, _denominators(ratios, rows)[:, None])
        leaves = {ratio: j for j, ratio in enumerate(ratios)}
        moved = task.dual(
            [
                Dual(plug_ins[j] + sums[j] / mass[j], _unit(len(ratios), j, 1 + draws))
                for j in range(len(ratios))
            ],
            leaves,
        )
        start = task.dual(
            [Dual(np.array([plug_ins[j]]), _unit(len(ratios), j, 1)) for j in range(len(ratios))],
            leaves,
        )
        slope = moved.slope / mass
        drawn = np.einsum("jb,jlb,lb->b", slope, squares, slope)
        null_variance = np.einsum("jb,jl,lb->b", slope, expected, slope)
        at_null = (start.slope[:, 0] / _denominators(ratios, rows)) @ lean
        third = float(at_null**3 @ (v * (1 - 2 * sample.p)))
        second = float(at_null**2 @ v)
        skewness = third / second**1.5 if second > 0 else 0.0
        scale = np.maximum(drawn, null_variance)
        bias = np.nan_to_num(moved.value - start.value[0])
        known = scale > 0
        z = np.where(known, bias / np.sqrt(np.where(known, scale, 1.0)), 0.0)
        scores[k] = normal_score(np.nan_to_num(z), np.array(skewness))
        if second <= 0 and abs(bias[0]) > 0:  # labels that were called impossible
            scores[k] = 0.0
            scores[k, 0] = BEYOND_DOUBT
    return scores


def _unit(size: int, position: int, columns: int) -> FloatArray:
    slope = np.zeros((size, columns))
    slope[position] = 1.0
    return slope


def _denominators(ratios: Sequence[Ratio], rows: TaskRows) -> FloatArray:
    return np.array([ratio.denominator(rows) for ratio in ratios])


def along(
    redraws: Redraws, lean: FloatArray, below: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums over rows for the data and all draws, data first.

    Of c e (k, 1 + draws); of c c' e^2 (k, k, 1 + draws); of h y (k, 1 + draws). Cost
    O(k^2 n draws); memory O(rows at once x draws at once).
    """
    sample, draws, count = redraws.sample, redraws.draws, len(lean)
    sums, masses = np.zeros((count, 1 + draws)), np.zeros((count, 1 + draws))
    squares = np.zeros((count, count, 1 + draws))
    pairs = [(j, k) for j in range(count) for k in range(j, count)]
    for chunk in sample.chunks(ROWS_AT_ONCE):
        here = slice(chunk.first, chunk.first + chunk.y.size)
        c, h = lean[:, here], below[:, here]
        products = np.array([c[j] * c[k] for j, k in pairs])
        for columns, e in _residuals(chunk, redraws):
            sums[:, columns] += c @ e
            masses[:, columns] += h @ (e + chunk.p[:, None])
            for (j, k), part in zip(pairs, products @ e**2, strict=True):
                squares[j, k, columns] += part
                if j != k:
                    squares[k, j, columns] += part
    return sums, squares, masses


def _residuals(chunk: Chunk, redraws: Redraws) -> Iterator[tuple[slice, FloatArray]]:
    """Of the data, then of some draws at a time, with the columns they belong to."""
    yield slice(0, 1), (chunk.y - chunk.p)[:, None]
    for at in range(0, redraws.draws, DRAWS_AT_ONCE):
        block = range(at, min(at + DRAWS_AT_ONCE, redraws.draws))
        drawn = redraws.null.draw(chunk, block, redraws.seed)
        e = drawn - chunk.p[:, None] if drawn.dtype == bool else drawn
        yield slice(1 + at, 1 + block.stop), np.asarray(e)
