"""Biases of tasks in their own standard errors, for the data and for redrawn labels.

For independent rows only: where rows come from a design, its variance gives the p-value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import FloatArray
from itrust.bias import BEYOND_DOUBT
from itrust.calibration import normal_score
from itrust.data import Rows, Sample
from itrust.engines import Additive, Drawn, Work
from itrust.tasks.differentials import Dual
from itrust.tasks.expressions import Leaf, Task, TaskRows
from itrust.tasks.fits import LeafFit

TINIEST = 1e-250  # cubes of spreads below it have lost their digits, and tell no skewness


@dataclass(frozen=True, eq=False)
class DrawnSums(Additive):
    """Sums over rows for k leaves, the data first, then every redraw."""

    sums: FloatArray
    squares: FloatArray
    masses: FloatArray
    expected: FloatArray
    third: FloatArray

    def without_data(self) -> Self:
        """Leave the data out."""
        return type(self)(
            self.sums[:, 1:], self.squares[:, 1:], self.masses[:, 1:], self.expected, self.third
        )

    @classmethod
    def joined(cls, found: Sequence[DrawnSums]) -> DrawnSums:
        """Put batches of draws side by side."""
        sums, squares, masses = (
            np.concatenate([getattr(own, name) for own in found], axis=1)
            for name in ("sums", "squares", "masses")
        )
        return cls(sums, squares, masses, found[0].expected, found[0].third)


@dataclass(frozen=True, eq=False)
class TaskConstants:
    """Tasks with their plug-in estimates, which say what is summed over redrawn labels."""

    MAX_IN_DOUBLE: ClassVar[float] = 2e7  # rows x draws; more are summed in single precision

    tasks: tuple[Task, ...]
    leaves: tuple[Leaf, ...]
    fits: tuple[LeafFit, ...]
    below: FloatArray

    @classmethod
    def of(cls, tasks: Sequence[Task], sample: Sample, unit: float) -> TaskConstants:
        """Estimate the leaves on rows in memory."""
        leaves = tuple(dict.fromkeys(leaf for task in tasks for leaf in task.leaves()))
        rows = TaskRows.predicted(sample)
        fits = tuple(leaf.fit(rows) for leaf in leaves)
        return cls(tuple(tasks), leaves, fits, np.array([fit.mass for fit in fits]) / unit)

    @cached_property
    def plug_ins(self) -> FloatArray:
        """The leaves with probabilities in place of labels, (k,)."""
        return np.array([fit.value for fit in self.fits])

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw."""
        k = len(self.leaves)
        return 2 * k + k * (k + 1) // 2

    @cached_property
    def starts(self) -> list[Dual]:
        """Value and slopes of every task at the plug-in estimates."""
        k = len(self.leaves)
        parts = [Dual(self.plug_ins[[j]], _unit(k, j, 1)) for j in range(k)]
        return [task.dual(parts, self._places) for task in self.tasks]

    @property
    def _places(self) -> dict[Leaf, int]:
        return {leaf: j for j, leaf in enumerate(self.leaves)}

    @cached_property
    def at_null(self) -> FloatArray:
        """Weights of the leaves in the linearised bias of every task, (tasks, k)."""
        slopes = np.array([start.slope[:, 0] for start in self.starts])
        return np.asarray(slopes.reshape(len(self.tasks), -1) / self.below)

    def work(self, unit: float, large: bool) -> TaskWork:
        """Say what a pass over the rows adds up."""
        return TaskWork(self.fits, self.at_null, unit, np.float32 if large else np.float64)

    def scores(self, found: DrawnSums) -> FloatArray:
        """Bias of every task in its own standard errors, data first, (tasks, 1 + draws).

        The bias itself is taken, F of the leaves with labels less F of those with probabilities,
        and divided by its standard error at those labels, or by that of labels drawn from the
        probabilities where it is larger; then brought to the normal scale by its skewness under
        the null, so that tasks compare. Coefficients with labels are one of Newton's steps away
        from those with probabilities.
        """
        k, columns = found.sums.shape
        labelled = np.array([leaf.among_positives for leaf in self.leaves])[:, None]
        mass = np.where(labelled & (found.masses > 0), found.masses, self.below[:, None])
        squares = np.empty((k, k, columns))
        squares[np.triu_indices(k)] = found.squares
        squares = np.where(np.tri(k, dtype=bool)[:, :, None], squares.transpose(1, 0, 2), squares)
        moved_leaves = [
            Dual(self.plug_ins[j] + found.sums[j] / mass[j], _unit(k, j, columns)) for j in range(k)
        ]
        scores = np.zeros((len(self.tasks), columns))
        for number, task in enumerate(self.tasks):
            moved, start = task.dual(moved_leaves, self._places), self.starts[number]
            slope, own = moved.slope / mass, self.at_null[number]
            drawn = np.einsum("jb,jlb,lb->b", slope, squares, slope)
            null_variance = np.einsum("jb,jl,lb->b", slope, found.expected, slope)
            second = float(own @ found.expected @ own)
            cubed = second**1.5 if second > 0 else 0.0
            skewness = float(found.third[number]) / cubed if cubed > TINIEST else 0.0
            scale = np.maximum(drawn, null_variance)
            bias = np.nan_to_num(moved.value - start.value[0])
            known = scale > 0
            z = np.where(known, bias / np.sqrt(np.where(known, scale, 1.0)), 0.0)
            scores[number] = normal_score(np.nan_to_num(z), np.array(skewness))
            if second <= 0 and abs(bias[0]) > 0:  # labels that were called impossible
                scores[number] = 0.0
                scores[number, 0] = BEYOND_DOUBT
        return scores


def _unit(size: int, position: int, columns: int) -> FloatArray:
    slope = np.zeros((size, columns))
    slope[position] = 1.0
    return slope


@dataclass(frozen=True, eq=False)
class TaskWork(Work):
    """What is summed over the data and all redraws."""

    fits: tuple[LeafFit, ...]
    at_null: FloatArray
    unit: float
    dtype: DTypeLike

    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> _TaskPartial:
        """Start on a chunk."""
        return _TaskPartial(self, chunk, weights, columns)


class _TaskPartial:
    """What one chunk contributes, being made."""

    def __init__(self, work: TaskWork, chunk: Rows, w: FloatArray, columns: int) -> None:
        p, k = chunk.p, len(work.fits)
        lean, below = np.zeros((k, p.size)), np.zeros((k, p.size))
        for j, fit in enumerate(work.fits):
            read = fit.read(chunk.points, w, chunk.first)
            lean[j], below[j] = fit.lean(read, w), fit.below(read, w)
        one, other = np.triu_indices(k)
        products = lean[one] * lean[other]
        v = p * (1 - p)
        self.expected = (lean * v) @ lean.T
        self.third = (work.at_null @ lean) ** 3 @ (v * (1 - 2 * p))
        # e = y - p and e^2 = p^2 + y (1 - 2p) are linear in the label, so one product does.
        self.stacked = np.concatenate([lean, products * (1 - 2 * p), below]).astype(work.dtype)
        common = [-(lean @ p), products @ p**2, np.zeros(k)]
        self.common = np.concatenate(common)[:, None]
        self.found = np.zeros((len(self.stacked), columns))
        self.dtype, self.parts = work.dtype, (k, k + len(products))

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""
        sums = self.stacked @ drawn.as_type(self.dtype)
        self.found[:, drawn.columns] = sums + self.common

    def finished(self) -> DrawnSums:
        """The sums of the chunk."""
        sums, squares, masses = np.split(self.found, self.parts)
        return DrawnSums(sums, squares, masses, self.expected, self.third)
