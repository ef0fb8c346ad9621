"""Biases of tasks in their own standard errors, for the data and for redrawn labels.

For independent rows only: where rows come from a design, its variance gives the p-value. Labels of
a row are one draw, so residuals of classes go together: a leaf of class c moves by lean_c e_c, with
e = onehot(y) - p and the covariance diag(p) - p p'. A gap between two classes varies more than two
independent rates would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import FloatArray, IntArray
from itrust.bias import BEYOND_DOUBT
from itrust.calibration import normal_score
from itrust.data import Rows
from itrust.engines import Additive, Drawn, Work
from itrust.tasks.arithmetic import Linearised
from itrust.tasks.expressions import Leaf, LeafFit, Task, TaskRows, leaves_of

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
    def joined(cls, batches: Sequence[DrawnSums]) -> DrawnSums:
        """Put batches of draws side by side."""
        sums, squares, masses = (
            np.concatenate([getattr(batch, name) for batch in batches], axis=1)
            for name in ("sums", "squares", "masses")
        )
        return cls(sums, squares, masses, batches[0].expected, batches[0].third)


@dataclass(frozen=True, eq=False)
class TaskConstants:
    """Tasks with their plug-in estimates, which say what is summed over redrawn labels."""

    MAX_IN_DOUBLE: ClassVar[float] = 2e7  # rows x draws; more are summed in single precision

    tasks: tuple[Task, ...]
    leaves: tuple[Leaf, ...]
    fits: tuple[LeafFit, ...]
    classes: tuple[Any, ...] = (None,)  # of the rows' outcomes
    unit: float = 1.0  # of weights in sums over redrawn labels, in that of the fits

    @classmethod
    def of(cls, tasks: Sequence[Task], sample: Rows, unit: float) -> TaskConstants:
        """Estimate the leaves on rows in memory."""
        leaves, rows = leaves_of(tasks), TaskRows.predicted(sample)
        fits = tuple(leaf.fit(rows) for leaf in leaves)
        return cls(tuple(tasks), leaves, fits, rows.classes, unit)

    @cached_property
    def plug_ins(self) -> FloatArray:
        """The leaves with probabilities in place of labels, (k,)."""
        return np.array([fit.value for fit in self.fits])

    @cached_property
    def below(self) -> FloatArray:
        """What they are divided by, (k,)."""
        return np.array([fit.mass for fit in self.fits]) / self.unit

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw."""
        k = len(self.leaves)
        return 2 * k + k * (k + 1) // 2

    @cached_property
    def starts(self) -> list[Linearised]:
        """Value and slopes of every task at the plug-in estimates."""
        return [task.at(self.leaves, self.plug_ins) for task in self.tasks]

    @cached_property
    def at_null(self) -> FloatArray:
        """Weights of the leaves in the linearised bias of every task, (tasks, k)."""
        return np.array([start.slope for start in self.starts]) / self.below

    def work(self, unit: float, cells: float) -> TaskWork:
        """Say what a pass over the rows adds up, for so many rows times draws."""
        outcome = np.array([self.classes.index(leaf.label) for leaf in self.leaves])
        dtype = np.float32 if cells > self.MAX_IN_DOUBLE else np.float64
        return TaskWork(self.fits, outcome, self.at_null, unit, dtype)

    def scores(self, drawn: DrawnSums) -> FloatArray:
        """Bias of every task in its own standard errors, data first, (tasks, 1 + draws).

        The bias itself is taken, F of the leaves with labels less F of those with probabilities,
        and divided by its standard error at those labels, or by that of labels drawn from the
        probabilities where it is larger; then brought to the normal scale by its skewness under
        the null, so that tasks compare. Coefficients with labels are one of Newton's steps away
        from those with probabilities.
        """
        k, columns = drawn.sums.shape
        labelled = np.array([leaf.among_positives for leaf in self.leaves])[:, None]
        mass = np.where(labelled & (drawn.masses > 0), drawn.masses, self.below[:, None])
        squares = np.empty((k, k, columns))
        squares[np.triu_indices(k)] = drawn.squares
        squares = np.where(np.tri(k, dtype=bool)[:, :, None], squares.transpose(1, 0, 2), squares)
        leaves = self.plug_ins[:, None] + drawn.sums / mass
        scores = np.zeros((len(self.tasks), columns))
        for number, task in enumerate(self.tasks):
            moved, start = task.at(self.leaves, leaves), self.starts[number]
            slope, own = moved.slope / mass, self.at_null[number]
            seen = np.einsum("jb,jlb,lb->b", slope, squares, slope)
            null_variance = np.einsum("jb,jl,lb->b", slope, drawn.expected, slope)
            second = float(own @ drawn.expected @ own)
            cubed = second**1.5 if second > 0 else 0.0
            skewness = float(drawn.third[number]) / cubed if cubed > TINIEST else 0.0
            scale = np.maximum(seen, null_variance)
            bias = np.nan_to_num(moved.value - start.value)
            known = scale > 0
            z = np.where(known, bias / np.sqrt(np.where(known, scale, 1.0)), 0.0)
            scores[number] = normal_score(np.nan_to_num(z), np.array(skewness))
            if second <= 0 and abs(bias[0]) > 0:  # labels that were called impossible
                scores[number] = 0.0
                scores[number, 0] = BEYOND_DOUBT
        return scores


@dataclass(frozen=True, eq=False)
class TaskWork(Work):
    """What is summed over the data and all redraws, of all outcomes."""

    fits: tuple[LeafFit, ...]
    at: IntArray  # the outcome of each
    at_null: FloatArray
    unit: float
    dtype: DTypeLike
    outcome = None

    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> _TaskPartial:
        """Start on a chunk."""
        return _TaskPartial(self, chunk, weights, columns)


class _TaskPartial:
    """What one chunk contributes, being made: labels of each outcome add in turn."""

    def __init__(self, work: TaskWork, chunk: Rows, w: FloatArray, columns: int) -> None:
        at, k = work.at, len(work.fits)
        read = [fit.read(chunk.points, w, chunk.first) for fit in work.fits]
        pairs = list(zip(work.fits, read, strict=True))
        self.work, self.at = work, at
        self.lean = lean = np.array([fit.lean(own, w) for fit, own in pairs])
        self.below = np.array([fit.below(own, w) for fit, own in pairs])
        p = self.p = chunk.predictions.T[at]  # (k, n): of the outcome of every leaf
        self.one, self.other = one, other = np.triu_indices(k)
        self.products = lean[one] * lean[other]
        alone, together = (lean * (p * (1 - p))) @ lean.T, (lean * p) @ (lean * p).T
        self.expected = np.where(at[:, None] == at, alone, -together)
        used, q = np.unique(at), chunk.predictions
        moved = {c: work.at_null @ (lean * (at == c)[:, None]) for c in used}
        mean = np.asarray(sum(q[:, c] * moved[c] for c in used))
        rest = np.maximum(1 - q[:, used].sum(axis=1), 0.0)
        third = np.asarray(sum((moved[c] - mean) ** 3 @ q[:, c] for c in used))
        self.third = third - mean**3 @ rest
        common = [-(lean * p).sum(axis=1), together[one, other], np.zeros(k)]
        self.found = np.repeat(np.concatenate(common)[:, None], columns, axis=1)

    def of(self, outcome: int, rows: Rows) -> _OutcomePartial:  # noqa: ARG002
        """What labels of one outcome are multiplied by.

        e = y - p, and e_c e_d for two classes or one, are linear in the labels, as a row has one
        class only; so one product does.
        """
        own, one, other = self.at == outcome, self.one, self.other
        squares = np.zeros_like(self.products)
        both, here, there = own[one] & own[other], own[one] & ~own[other], own[other] & ~own[one]
        squares[both] = self.products[both] * (1 - 2 * self.p[one[both]])
        squares[here] = -self.products[here] * self.p[other[here]]
        squares[there] = -self.products[there] * self.p[one[there]]
        lean, below = (np.where(own[:, None], part, 0.0) for part in (self.lean, self.below))
        stacked = np.concatenate([lean, squares, below])
        return _OutcomePartial(self, stacked.astype(self.work.dtype))

    def finished(self) -> DrawnSums:
        """The sums of the chunk."""
        k = len(self.work.fits)
        sums, squares, masses = np.split(self.found, (k, len(self.found) - k))
        return DrawnSums(sums, squares, masses, self.expected, self.third)


@dataclass(frozen=True, eq=False)
class _OutcomePartial:
    """What labels of one outcome add to a chunk."""

    partial: _TaskPartial
    stacked: FloatArray

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""
        labels = drawn.as_type(self.partial.work.dtype)
        self.partial.found[:, drawn.columns] += self.stacked @ labels
