r"""Confidence sequences for the numbers that are reported: they hold at all times, under drift.

Labels have unknown probabilities pi_i, which may differ from row to row. A sum of a_i (y_i - pi_i)
is a martingale, so what labels say of N = sum a_i (pi_i - p_i) is sum a_i (y_i - p_i) up to an
error that is bounded for all times at once. With |a_i| <= c and 0 < l < 1,

    exp(l (a_i / c)(y_i - pi_i) - (-log(1 - l) - l) (a_i / c)^2 (y_i - p_i)^2)

has mean at most 1 (empirical Bernstein, with p_i as the forecast of y_i); rows beyond c take
Hoeffding's factor exp(l a (y - pi) / c - l^2 a^2 / (8 c^2)), which needs no bound. Their products
are mixed over a grid of l and inverted. Nothing assumes that the bias stays the same.

Among rows, the number is (sum w g p + N) / sum w h. Among positives it is theta_0 plus
(sum w (g - theta_0 h) pi) / (sum w h pi), theta_0 being the number as the reference's
probabilities give it: one sequence for the numerator, one for the denominator. Arithmetic of
several is that of intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, IntArray
from itrust.data import Rows
from itrust.tasks import Bounds, Leaf, Ratio, Task
from itrust.watch.results import NumberSoFar

GRID = 0.6 * 1.7 ** -np.arange(22.0)  # l, from large biases to 1e-5
WEIGHTS = 1 / (np.arange(22.0) + 4) ** 0.5
LOG_WEIGHTS = np.log(WEIGHTS / WEIGHTS.sum())
PENALTY = -np.log1p(-GRID) - GRID
MAX_STEPS, CLOSE = 60, 1e-12  # of Newton, and when they stop


def given_weights(rows: Rows) -> FloatArray:
    """Weights as they were given: batches are added up, so their scale counts."""
    return np.ones(rows.n) if rows.weights is None else rows.weights


def radius(squares: float, hoeffding: float, alpha: float) -> float:
    """How far a sum may be off at any time, one side, in units of c.

    Examples
    --------
    >>> round(radius(100.0, 0.0, 0.025), 2)
    39.03
    """
    penalty = PENALTY * squares + np.square(GRID) / 2 * hoeffding - LOG_WEIGHTS
    level = -math.log(alpha)
    # One bet alone is enough here; from there Newton's steps go down, for the sum is convex.
    x = float(np.min((level + penalty) / GRID))
    for _ in range(MAX_STEPS):
        logs = GRID * x - penalty
        top = float(logs.max())
        shares = np.exp(logs - top)
        total = float(shares.sum())
        step = (top + math.log(total) - level) / (float(GRID @ shares) / total)
        x -= step
        if step <= CLOSE * x:
            break
    return x + CLOSE * x


def by_cluster(cluster: IntArray, values: FloatArray) -> FloatArray:
    """Sums of values by clusters, (n,) -> (C,)."""
    return np.asarray(np.bincount(cluster, values), dtype=np.float64)


@dataclass(frozen=True)
class SumSequence:
    """A sum of a (y - p), and how far it may be from that of a (pi - p)."""

    bound: float
    total: float = 0.0
    squares: float = 0.0
    hoeffding: float = 0.0

    def after(self, a: FloatArray, e: FloatArray, cluster: IntArray | None) -> SumSequence:
        """Add rows; those of a cluster are one term."""
        size, moved = np.abs(a), a * e
        if cluster is not None:
            size, moved = by_cluster(cluster, size), by_cluster(cluster, moved)
        within = size <= self.bound
        return replace(
            self,
            total=self.total + float(moved.sum()),
            squares=self.squares + float(np.square(moved[within]).sum()),
            hoeffding=self.hoeffding + float(np.square(size[~within]).sum()) / 4,
        )

    def interval(self, alpha: float) -> tuple[float, float]:
        """Where the sum of a (pi - p) lies, at all times with probability 1 - alpha."""
        c = self.bound
        off = c * radius(self.squares / c**2, self.hoeffding / c**2, alpha / 2)
        return self.total - off, self.total + off


@dataclass(frozen=True)
class LeafSequence:
    """A mean, share or rate over all rows so far."""

    leaf: Leaf
    centre: float
    above: SumSequence
    below: SumSequence
    predicted: float = 0.0
    labelled: float = 0.0
    mass: float = 0.0
    predicted_mass: float = 0.0
    labelled_mass: float = 0.0
    smallest: float = math.inf
    largest: float = -math.inf
    inside: float = 0.0
    outside: float = 0.0
    positives: float = 0.0
    zeros: float = 0.0
    ones: float = 0.0

    @property
    def smallest_cell(self) -> int:
        """Fewest rows that the number would tell of, by itself or beside that of all rows."""
        cells = [self.inside, self.outside]
        if self.leaf.among_positives:
            cells.append(self.positives)
            if self.zeros + self.ones == self.inside:  # a share of those with a property
                cells += [self.zeros, self.ones]
        return int(min((cell for cell in cells if cell > 0), default=0))

    def after(self, rows: Rows) -> LeafSequence:
        """Add the rows of a batch."""
        w, e = given_weights(rows), rows.y - rows.p
        g, h = self.leaf.bare.terms_of(rows.points, w)
        counts = h > 0
        among, counted = self.leaf.among_positives, counts & (w > 0)
        return replace(
            self,
            above=self.above.after(w * (g - self.centre * h), e, rows.cluster),
            below=self.below.after(w * h, e, rows.cluster) if among else self.below,
            predicted=self.predicted + float(w @ (g * rows.p)),
            labelled=self.labelled + float(w @ (g * rows.y)),
            mass=self.mass + float(w @ h),
            predicted_mass=self.predicted_mass + float(w @ (h * rows.p)),
            labelled_mass=self.labelled_mass + float(w @ (h * rows.y)),
            smallest=min(self.smallest, float(g[counts].min())) if counts.any() else self.smallest,
            largest=max(self.largest, float(g[counts].max())) if counts.any() else self.largest,
            inside=self.inside + np.count_nonzero(counted),
            outside=self.outside + np.count_nonzero((w > 0) & ~counts),
            positives=self.positives + np.count_nonzero(counted & (rows.y > 0)),
            zeros=self.zeros + np.count_nonzero(counted & (g == 0)),
            ones=self.ones + np.count_nonzero(counted & (g == 1)),
        )

    def values(self) -> tuple[float, float]:
        """The number with probabilities and with labels; NaN where there is nothing to divide."""
        if not self.leaf.among_positives:
            masses = self.mass, self.mass
        else:
            masses = self.predicted_mass, self.labelled_mass
        sums = self.predicted, self.labelled
        found = [s / m if m > 0 else math.nan for s, m in zip(sums, masses, strict=True)]
        return found[0], found[1]

    def interval(self, alpha: float) -> Bounds:
        """Where the number with true probabilities lies, as bounds of the tasks' arithmetic."""
        natural = self.leaf.between(self.smallest, self.largest)
        if self.mass <= 0:
            return self.leaf.between(-math.inf, math.inf)
        if not self.leaf.among_positives:
            low, high = self.above.interval(alpha)
            found = Bounds((self.predicted + low) / self.mass, (self.predicted + high) / self.mass)
        else:
            low, high = self.above.interval(alpha / 2)
            predicted = self.predicted - self.centre * self.predicted_mass
            least, most = self.below.interval(alpha / 2)
            mass = Bounds(max(self.predicted_mass + least, 0.0), self.predicted_mass + most)
            beyond = Bounds(predicted + low, predicted + high) / mass
            found = Bounds(self.centre, self.centre) + beyond
        return Bounds(natural.nearest(found.lower), natural.nearest(found.upper))


@dataclass(frozen=True)
class TaskSequence:
    """A number that is reported, over all batches so far."""

    task: Task
    leaves: tuple[LeafSequence, ...]
    batches: int = 0
    rows: int = 0

    def after(self, outcomes: Mapping[Any, Rows]) -> TaskSequence:
        """Add a batch, given by its classes."""
        leaves = tuple(own.after(outcomes[own.leaf.label]) for own in self.leaves)
        rows = next(iter(outcomes.values())).y.size
        return replace(self, leaves=leaves, batches=self.batches + 1, rows=self.rows + rows)

    def values(self) -> tuple[float, float]:
        """The number with probabilities and with labels; NaN where there is nothing to divide."""
        known = {own.leaf: own.values() for own in self.leaves}
        return _value(self.task, known, 0), _value(self.task, known, 1)

    def so_far(self, alpha: float) -> NumberSoFar:
        """The number and its interval."""
        each = alpha / len(self.leaves)
        bounds = self.task.bounds_of({own.leaf: own.interval(each) for own in self.leaves})
        predicted, labelled = self.values()
        ends = bounds.lower - predicted, bounds.upper - predicted
        if math.isnan(predicted):
            ends = -math.inf, math.inf
        return NumberSoFar(
            self.task,
            self.batches,
            self.rows,
            labelled,
            predicted,
            *ends,
            alpha,
            min((own.smallest_cell for own in self.leaves if own.smallest_cell), default=0),
        )


def _value(task: Task, known: dict[Leaf, tuple[float, float]], k: int) -> float:
    """The task of single values: an interval without width."""
    if any(math.isnan(values[k]) for values in known.values()):
        return math.nan
    point = task.bounds_of({own: Bounds(value[k], value[k]) for own, value in known.items()})
    return point.lower


def begun_sequences(
    tasks: Sequence[Task], reference: Mapping[Any, Sequence[Rows]]
) -> tuple[TaskSequence, ...]:
    """Settle centres and bounds on the reference; no label is read."""
    found = []
    for task in tasks:
        leaves = tuple(dict.fromkeys(task.leaves()))
        if not leaves or not all(isinstance(leaf, Ratio) for leaf in leaves):
            raise InputError(
                "{task} cannot be watched: a confidence sequence is known for means, shares, rates "
                "and arithmetic of these, not for coefficients of regressions or plain numbers; "
                "evaluate it in an audit",
                argument="tasks",
                value=task,
                task=task,
            )
        found.append(TaskSequence(task, tuple(_begun(leaf, reference) for leaf in leaves)))
    return tuple(found)


def _begun(leaf: Leaf, reference: Mapping[Any, Sequence[Rows]]) -> LeafSequence:
    parts = reference[leaf.label]
    terms = [leaf.bare.terms_of(rows.points, given_weights(rows)) for rows in parts]
    pairs = list(zip(terms, parts, strict=True))
    mass = sum(float(given_weights(rows) @ (h * rows.p)) for (_, h), rows in pairs)
    above = sum(float(given_weights(rows) @ (g * rows.p)) for (g, _), rows in pairs)
    centre = above / mass if leaf.among_positives and mass > 0 else 0.0
    bounds = [(_largest(rows, g - centre * h), _largest(rows, h)) for (g, h), rows in pairs]
    if not any(low for _, low in bounds):
        raise leaf.without_rows()
    first, second = (_rounded_up(max(values) or 1.0) for values in zip(*bounds, strict=True))
    return LeafSequence(leaf, centre, SumSequence(first), SumSequence(second))


def _largest(rows: Rows, a: FloatArray) -> float:
    size = given_weights(rows) * np.abs(a)
    if rows.cluster is not None:
        size = by_cluster(rows.cluster, size)
    return float(size.max(initial=0.0))


def _rounded_up(size: float) -> float:
    """Two digits, so that the state does not hold the largest value of the reference."""
    step = 10.0 ** (math.floor(math.log10(size)) - 1)
    return max(math.ceil(size / step) * step, size)
