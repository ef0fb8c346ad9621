"""Tasks that are made of several classes: labels of a row are one draw, so residuals go together.

The residual of a row is the vector e = onehot(y) - p. A leaf of class c moves by lean_c e_c, so a
task moves by the sum over classes of lean_c e_c, with the covariance diag(p) - p p' of a draw from
the row's probabilities: a gap between two classes varies more than two independent rates would, and
the sum of all rates not at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itrust._core import BoolArray, FloatArray, IntArray, keyed_fractions
from itrust.nulls import class_edges
from itrust.tasks.bounds import Bounds
from itrust.tasks.classes import ClassSamples
from itrust.tasks.differentials import Dual, Linearised
from itrust.tasks.expressions import Leaf, Task, TaskRows
from itrust.tasks.scores import DrawnSums, TaskConstants
from itrust.tasks.uncertainty import LabelLaw, LabelledTask, LawSums, few_labels

CHUNK_ROWS, DRAWS_AT_ONCE = 8_192, 250
# Shares that cancel to so little of what they are made of are rounding, or rows that sum to 1
# within the tolerance of the door: whatever the labels are, the number is the same.
CANCELLED = 2e-6


@dataclass(frozen=True, eq=False)
class JointLaw(LabelLaw):
    """What labels of several classes could have been; a row has one of them."""

    @classmethod
    def joined(cls, laws: Sequence[LabelLaw], *, is_all: bool) -> JointLaw:
        """Join the laws of single classes."""
        q = np.column_stack([law.q for law in laws])
        total = q.sum(axis=1, keepdims=True)
        q = q / (total if is_all else np.maximum(total, 1.0))
        first = laws[0]
        return cls(
            q,
            first.design,
            first.unit,
            max(law.alike for law in laws),
            min(law.labels for law in laws),
        )

    def _outcomes(self, leaning: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities of every class and of any other, and how far each moves, (n, C + 1)."""
        rest = np.maximum(1 - self.q.sum(axis=1), 0.0)
        mean = np.einsum("nc,nc->n", self.q, leaning)
        moved = np.column_stack([leaning, np.zeros(len(leaning))]) - mean[:, None]
        return np.column_stack([self.q, rest]), moved

    def label_variance(self, leaning: FloatArray) -> float:
        """Variance of the sum of `leaning (onehot(y) - q)` if labels are drawn from the law."""
        chance, moved = self._outcomes(leaning)
        noise = np.sqrt(chance) * moved
        alone = float(np.square(noise).sum())
        if self.unit is None:
            return alone
        together = sum(float(np.square(np.bincount(self.unit, own)).sum()) for own in noise.T)
        return (1 - self.alike) * alone + self.alike * together

    def _sums(self, shares: FloatArray, expected: FloatArray, leaning: FloatArray) -> LawSums:
        chance, moved = self._outcomes(leaning)
        own = np.square(shares)
        law = np.square(expected) + np.einsum("nc,nc->n", chance, np.square(moved))
        could_be = expected[:, None] + moved
        return LawSums(
            own=float(own.sum()),
            own2=float(np.square(own).sum()),
            law=float(law.sum()),
            units=float(np.count_nonzero(law)),
            second=float((chance * could_be**2).sum()),
            fourth=float((chance * could_be**4).sum()),
        )

    def _counted(self, shares: FloatArray, leaning: FloatArray) -> BoolArray:
        return np.asarray((shares != 0) | (leaning != 0).any(axis=1))

    @property
    def _spread(self) -> FloatArray:
        return np.asarray(np.sqrt((self.q * (1 - self.q)).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows of several classes with one kind of stand-in for labels."""

    by_class: Mapping[Any, TaskRows]

    @classmethod
    def predicted(cls, samples: ClassSamples, names: Sequence[Any]) -> ClassRows:
        """With probabilities in place of labels."""
        return cls({name: TaskRows.predicted(samples.one(name)) for name in names})

    @classmethod
    def labelled(cls, samples: ClassSamples, names: Sequence[Any]) -> ClassRows:
        """With labels."""
        return cls({name: TaskRows.labelled(samples.one(name)) for name in names})

    def of(self, leaf: Leaf) -> TaskRows:
        """The rows with what stands for the class of a leaf."""
        return self.by_class[leaf.label]

    def with_law(self, q: FloatArray) -> ClassRows:
        """With the probabilities of a law, (n, C)."""
        pairs = zip(self.by_class.items(), q.T, strict=True)
        return ClassRows({name: replace(rows, stand_in=own) for (name, rows), own in pairs})


@dataclass(frozen=True, eq=False)
class JointFit:
    """A task on rows of several classes."""

    value: float
    slopes: FloatArray
    shares: FloatArray

    @classmethod
    def of(cls, task: Task, leaves: Sequence[Leaf], rows: ClassRows) -> JointFit:
        """Estimate every leaf by its own class, and join them."""
        parts = [leaf.bare.linear(rows.of(leaf)) for leaf in leaves]
        value, slopes = joined(task, leaves, [part.value for part in parts])
        return cls(value, slopes, np.array([part.influence for part in parts]))

    @property
    def linear(self) -> Linearised:
        """The estimate and the share of every row; exactly none where labels cancel."""
        n = self.shares.shape[1]
        if math.isnan(self.value):
            return Linearised(self.value, np.full(n, math.nan))
        shares = np.zeros(n) if self.is_cancelled else self.slopes @ self.shares
        return Linearised(self.value, shares)

    @property
    def is_cancelled(self) -> bool:
        """Whether labels of one class make up for those of another in every row."""
        size = np.abs(self.slopes) @ np.abs(self.shares)
        return bool(np.abs(self.slopes @ self.shares).max() <= CANCELLED * size.max())


def joined(task: Task, leaves: Sequence[Leaf], values: Sequence[float]) -> tuple[float, FloatArray]:
    """Value and slopes, (k,), of a task from those of its leaves; NaN if one divides by 0."""
    units = np.eye(len(leaves))
    parts = [Dual(np.array([v]), units[:, [k]]) for k, v in enumerate(values)]
    found = task.dual(parts, {leaf: k for k, leaf in enumerate(leaves)})
    value = float(found.value[0])
    return value if math.isfinite(value) else math.nan, found.slope[:, 0]


def leaves_of(*tasks: Task) -> list[Leaf]:
    """What tasks are made of, each once."""
    return list(dict.fromkeys(leaf for task in tasks for leaf in task.leaves()))


def bare(task: Task) -> Task:
    """The task without names of classes."""
    return task.mapped(lambda leaf: leaf.bare)


def class_bounds(task: Task, *rows: TaskRows) -> Bounds:
    """Say what a task can be, whatever the labels of rows are."""
    return task.bounds_of({leaf: leaf.bare.own_bounds(*rows) for leaf in leaves_of(task)})


def estimated_twice(
    tasks: Sequence[Task], samples: ClassSamples
) -> tuple[list[Linearised], list[Linearised]]:
    """Estimate tasks with probabilities, and with labels."""
    names = samples.used(tasks)
    both = ClassRows.predicted(samples, names), ClassRows.labelled(samples, names)
    with_p, with_y = (
        [JointFit.of(task, leaves_of(task), rows).linear for task in tasks] for rows in both
    )
    return with_p, with_y


def joint_task(task: Task, samples: ClassSamples) -> LabelledTask:
    """Estimate a task of some classes from labels, probabilities and the smoothed law."""
    names, leaves = samples.used([task]), leaves_of(task)
    if len(names) == 1:
        return LabelledTask.of(bare(task), samples.one(names[0]))
    own = {name: [leaf.bare for leaf in leaves if leaf.label == name] for name in names}
    law = JointLaw.joined(
        [LabelLaw.of(samples.one(name), own[name]) for name in names],
        is_all=len(names) == len(samples.classes),
    )
    with_y, with_p = ClassRows.labelled(samples, names), ClassRows.predicted(samples, names)
    smooth = with_p.with_law(law.q)
    labels, predicted, expected = (
        JointFit.of(task, leaves, rows) for rows in (with_y, with_p, smooth)
    )
    if predicted.is_cancelled:
        labels = replace(labels, value=predicted.value, slopes=0 * predicted.slopes)
        expected = replace(expected, slopes=0 * expected.slopes)
    leaning = np.zeros(law.q.shape)
    for leaf, slope in zip(leaves, expected.slopes, strict=True):
        moved = leaf.bare.leaning(smooth.of(leaf)).influence
        leaning[:, names.index(leaf.label)] += slope * moved
    moves, sets = None, samples.rows.design.replicate_weights
    if sets is not None:
        moves = np.stack(
            [
                _reestimated(task, leaves, rows, sets) - found.value
                for rows, found in ((with_y, labels), (with_p, predicted))
            ]
        )
    return LabelledTask(
        labels.linear,
        law,
        expected.linear,
        leaning,
        with_y.by_class[names[0]],
        predicted.linear,
        moves,
        None,
    )


def _reestimated(
    task: Task, leaves: Sequence[Leaf], rows: ClassRows, weights: FloatArray
) -> FloatArray:
    """A task with other sets of weights, (n, R) -> (R,)."""
    nothing = np.zeros((0, weights.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [Dual(leaf.bare.reestimated(rows.of(leaf), weights), nothing) for leaf in leaves]
        found = task.dual(values, {leaf: k for k, leaf in enumerate(leaves)})
    return np.asarray(found.value, dtype=float)


def few_class_labels(task: Task, samples: ClassSamples) -> bool:
    """Whether few labels carry one of the parts of a task."""
    return any(few_labels(leaf.bare, samples.one(leaf.label)) for leaf in leaves_of(task))


def joint_scores(tasks: Sequence[Task], samples: ClassSamples, draws: int, seed: int) -> FloatArray:
    """Biases in their own standard errors, of the data and of redrawn classes.

    Every row is redrawn from its probabilities of all classes, once for all tasks.
    """
    names, leaves = samples.used(tasks), leaves_of(*tasks)
    rows = ClassRows.predicted(samples, names)
    fits = tuple(leaf.bare.fit(rows.of(leaf)) for leaf in leaves)
    constants = TaskConstants(
        tuple(tasks), tuple(leaves), fits, np.array([fit.mass for fit in fits])
    )
    found = _drawn_sums(constants, samples, names, draws, seed)
    scores = constants.scores(found)
    for k, task in enumerate(tasks):
        if JointFit.of(task, leaves_of(task), rows).is_cancelled:
            scores[k] = 0.0
    return scores


def _drawn_sums(
    constants: TaskConstants,
    samples: ClassSamples,
    names: Sequence[Any],
    draws: int,
    seed: int,
) -> DrawnSums:
    """Sums over all rows, some rows and some draws at a time."""
    codes, places = samples.codes_of(names), [leaf.label for leaf in constants.leaves]
    own = np.array([names.index(label) for label in places])
    whole, w = samples.rows, samples.rows.weights_or_ones
    is_large = whole.n * draws > TaskConstants.MAX_IN_DOUBLE
    dtype = np.float32 if is_large else np.float64
    found: DrawnSums | None = None
    for first in range(0, whole.n, CHUNK_ROWS):
        cut = slice(first, min(first + CHUNK_ROWS, whole.n))
        part = _ClassPart(constants, whole.points.take(cut), w[cut], first, own)
        p = samples.source.p[cut]
        sums = part.sums(p[:, codes], dtype)
        held = np.zeros((sums.width, 1 + draws))
        held[:, [0]] = sums.of(samples.source.codes[cut][:, None], codes)
        edges = class_edges(p)
        for start in range(0, draws, DRAWS_AT_ONCE):
            block = range(start, min(start + DRAWS_AT_ONCE, draws))
            drawn = drawn_classes(edges, cut, block, seed)
            held[:, 1 + block.start : 1 + block.stop] = sums.of(drawn, codes)
        here = sums.finished(held)
        found = here if found is None else found + here
    assert found is not None
    return found


def drawn_classes(edges: FloatArray, rows: slice, draws: range, seed: int) -> IntArray:
    """Classes of some rows drawn from their probabilities, one number a row and draw."""
    numbers = np.arange(rows.start, rows.stop)[:, None]
    uniform = keyed_fractions(seed, numbers, np.arange(draws.start, draws.stop))
    drawn = np.zeros(uniform.shape, dtype=np.int64)
    for edge in edges.T:
        drawn += uniform >= edge[:, None]
    return drawn


class _ClassPart:
    """Some rows: what labels of each leaf's class move, and add below."""

    def __init__(
        self, constants: TaskConstants, points: Any, w: FloatArray, first: int, own: IntArray
    ) -> None:
        read = [fit.read(points, w, first) for fit in constants.fits]
        pairs = list(zip(constants.fits, read, strict=True))
        self.lean = np.array([fit.lean(one, w) for fit, one in pairs])
        self.below = np.array([fit.below(one, w) for fit, one in pairs])
        self.at_null, self.own = constants.at_null, own

    def sums(self, p: FloatArray, dtype: Any) -> _ClassSums:
        """What is summed over the rows, from probabilities of the classes, (n, C)."""
        lean, own, k = self.lean, self.own, len(self.lean)
        one, other = np.triu_indices(k)
        mine = p.T[own]  # (k, n): of every leaf's own class
        products = lean[one] * lean[other]
        same = (own[one] == own[other])[:, None]
        # e_c e_d is linear in the labels, too: only one class of a row is drawn.
        by_class = []
        for c in range(p.shape[1]):
            is_one, is_other = (own[one] == c)[:, None], (own[other] == c)[:, None]
            squares = np.where(same & is_one, 1 - 2 * mine[one], 0.0)
            squares -= np.where(~same & is_one, mine[other], 0.0)
            squares -= np.where(~same & is_other, mine[one], 0.0)
            is_own = (own == c)[:, None]
            parts = [lean * is_own, products * squares, self.below * is_own]
            by_class.append(np.concatenate(parts).astype(dtype))
        cross = mine[one] * mine[other]
        expected = np.zeros((k, k))
        expected[one, other] = (products * (np.where(same, mine[one], 0.0) - cross)).sum(axis=1)
        expected = np.triu(expected) + np.triu(expected, 1).T
        moved = np.stack([self.at_null @ (lean * (own == c)[:, None]) for c in range(p.shape[1])])
        mean = np.einsum("ctn,nc->tn", moved, p)
        third = np.einsum("ctn,nc->t", (moved - mean) ** 3, p)
        third -= (mean**3) @ np.maximum(1 - p.sum(axis=1), 0.0)
        common = np.concatenate(
            [-(lean * mine).sum(axis=1), (products * cross).sum(axis=1), np.zeros(k)]
        )
        return _ClassSums(tuple(by_class), common[:, None], expected, third, k)


@dataclass(frozen=True, eq=False)
class _ClassSums:
    """What labels of some rows are multiplied by, class by class."""

    by_class: tuple[FloatArray, ...]
    common: FloatArray
    expected: FloatArray
    third: FloatArray
    k: int

    @property
    def width(self) -> int:
        return len(self.common)

    def of(self, drawn: IntArray, codes: Sequence[int]) -> FloatArray:
        """Sums for some sets of classes, (n, B) -> (width, B)."""
        total = np.repeat(self.common, drawn.shape[1], axis=1)
        for code, stacked in zip(codes, self.by_class, strict=True):
            total += stacked @ (drawn == code).astype(stacked.dtype)
        return total

    def finished(self, held: FloatArray) -> DrawnSums:
        sums, squares, masses = np.split(held, (self.k, self.width - self.k))
        return DrawnSums(sums, squares, masses, self.expected, self.third)
