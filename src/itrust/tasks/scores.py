"""Biases of tasks in their own standard errors, for the data and for redrawn labels.

For independent rows only: where rows come from a design, its variance gives the p-value. Labels of
a row are one draw, so residuals of classes go together: a leaf of class c moves by lean_c e_c, with
e = onehot(y) - p and the covariance diag(p) - p p'. A gap between two classes varies more than two
independent rates would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from itrust._core import FloatArray, IntArray
from itrust.bias import BEYOND_DOUBT
from itrust.calibration import normal_score
from itrust.data import Rows
from itrust.engines import Drawn, FunctionWork
from itrust.tasks.arithmetic import Linearised
from itrust.tasks.expressions import Leaf, LeafFit, Task, TaskRows, leaves_of

TINIEST = 1e-250  # cubes of spreads below it have lost their digits, and tell no skewness


# Sums over rows for k leaves, the data first, then every redraw: those of residuals, of products of
# pairs and of masses (2 k + k (k + 1) / 2, 1 + draws); products that redraws let expect (k, k); and
# third moments of the tasks.
DrawnSums = tuple[FloatArray, FloatArray, FloatArray]


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

    @cached_property
    def outcomes(self) -> IntArray:
        """The outcome of each leaf, (k,)."""
        return np.array([self.classes.index(leaf.label) for leaf in self.leaves])

    def work(self, unit: float, cells: float) -> FunctionWork:
        """Say what a pass over the rows adds up, for so many rows times draws."""
        dtype = np.float32 if cells > self.MAX_IN_DOUBLE else np.float64
        return FunctionWork(partial(_TaskPartial, self, dtype), unit, None)

    def scores(self, drawn: DrawnSums) -> FloatArray:
        """Bias of every task in its own standard errors, data first, (tasks, 1 + draws).

        The bias itself is taken, F of the leaves with labels less F of those with probabilities,
        and divided by its standard error at those labels, or by that of labels drawn from the
        probabilities where it is larger; then brought to the normal scale by its skewness under
        the null, so that tasks compare. Coefficients with labels are one of Newton's steps away
        from those with probabilities.
        """
        found, expected, third = drawn
        k, columns = len(self.leaves), found.shape[1]
        sums, pairs, masses = np.split(found, (k, len(found) - k))
        labelled = np.array([leaf.among_positives for leaf in self.leaves])[:, None]
        mass = np.where(labelled & (masses > 0), masses, self.below[:, None])
        squares = np.empty((k, k, columns))
        squares[np.triu_indices(k)] = pairs
        squares = np.where(np.tri(k, dtype=bool)[:, :, None], squares.transpose(1, 0, 2), squares)
        leaves = self.plug_ins[:, None] + sums / mass
        scores = np.zeros((len(self.tasks), columns))
        for number, task in enumerate(self.tasks):
            moved, start = task.at(self.leaves, leaves), self.starts[number]
            slope, own = moved.slope / mass, self.at_null[number]
            seen = np.einsum("jb,jlb,lb->b", slope, squares, slope)
            null_variance = np.einsum("jb,jl,lb->b", slope, expected, slope)
            second = float(own @ expected @ own)
            cubed = second**1.5 if second > 0 else 0.0
            skewness = float(third[number]) / cubed if cubed > TINIEST else 0.0
            scale = np.maximum(seen, null_variance)
            bias = np.nan_to_num(moved.value - start.value)
            known = scale > 0
            z = np.where(known, bias / np.sqrt(np.where(known, scale, 1.0)), 0.0)
            scores[number] = normal_score(np.nan_to_num(z), np.array(skewness))
            if second <= 0 and abs(bias[0]) > 0:  # labels that were called impossible
                scores[number] = 0.0
                scores[number, 0] = BEYOND_DOUBT
        return scores


class _TaskPartial:
    """What one chunk contributes, being made: labels of each outcome add in turn."""

    def __init__(
        self, tasks: TaskConstants, dtype: DTypeLike, chunk: Rows, w: FloatArray, columns: int
    ) -> None:
        at, k = tasks.outcomes, len(tasks.fits)
        self.at, self.dtype = at, dtype
        self.lean = lean = np.array([fit.lean(chunk.points, w, chunk.first) for fit in tasks.fits])
        # What labels add to what leaves are divided by: nothing but for those among positives.
        self.below = np.array(
            [w * leaf.terms_of(chunk.points, w)[1] * leaf.among_positives for leaf in tasks.leaves]
        )
        p = self.p = chunk.predictions.T[at]  # (k, n): of the outcome of every leaf
        self.one, self.other = one, other = np.triu_indices(k)
        self.pairs = lean[one] * lean[other]
        alone, together = (lean * (p * (1 - p))) @ lean.T, (lean * p) @ (lean * p).T
        self.expected = np.where(at[:, None] == at, alone, -together)
        used, q = np.unique(at), chunk.predictions
        moved = {c: tasks.at_null @ (lean * (at == c)[:, None]) for c in used}
        mean = np.asarray(sum(q[:, c] * moved[c] for c in used))
        rest = np.maximum(1 - q[:, used].sum(axis=1), 0.0)
        third = np.asarray(sum((moved[c] - mean) ** 3 @ q[:, c] for c in used))
        self.third = third - mean**3 @ rest
        common = [-(lean * p).sum(axis=1), together[one, other], np.zeros(k)]
        self.found = np.repeat(np.concatenate(common)[:, None], columns, axis=1)

    def of(self, outcome: int, rows: Rows) -> _TaskPartial:  # noqa: ARG002
        """Settle what labels of one outcome are multiplied by, until the next one.

        e = y - p, and e_c e_d for two classes or one, are linear in the labels, as a row has one
        class only; so one product does.
        """
        own, one, other = self.at == outcome, self.one, self.other
        squares = np.zeros_like(self.pairs)
        both, here, there = own[one] & own[other], own[one] & ~own[other], own[other] & ~own[one]
        squares[both] = self.pairs[both] * (1 - 2 * self.p[one[both]])
        squares[here] = -self.pairs[here] * self.p[other[here]]
        squares[there] = -self.pairs[there] * self.p[one[there]]
        lean, below = (np.where(own[:, None], part, 0.0) for part in (self.lean, self.below))
        self.stacked = np.concatenate([lean, squares, below]).astype(self.dtype)
        return self

    def add(self, drawn: Drawn) -> None:
        """Take in some columns."""
        self.found[:, drawn.columns] += self.stacked @ drawn.as_type(self.dtype)

    def finished(self) -> DrawnSums:
        """The sums of the chunk."""
        return self.found, self.expected, self.third
