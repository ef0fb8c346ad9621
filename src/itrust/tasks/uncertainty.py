"""How uncertain a number is: one variance for biases, estimates and differences of models.

The variance that rows show of themselves is worth little where few labels carry the number: five
positives may be alike by chance, and none have no variance at all. So it is joined with the one
that labels drawn from a smoothed law would have, which uses all rows. Where rows come from a design
(clusters, strata, replicate weights), the design gives the variance, and the law is only a floor
under it while labels are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.calibration import student_quantile, student_tail
from itrust.data import Design, Points, Rows, Sample, design_variance, variance_units
from itrust.tasks.arithmetic import Bounds, Linearised, Quantity
from itrust.tasks.expressions import Leaf, Named, Ratio, Task, TaskRows, leaves_of, reestimated
from itrust.tasks.outcomes import classes_of, outcome_of
from itrust.terms import LINKS, RegressionRows, fit_glm

FEW_LABELS = 10  # below which an interval is rough
FEW_NOTE = "few labels carry this estimate: the interval is rough"
ADDED = 2.0  # rows of either kind that smooth a rate (Agresti and Coull 1998)
# What the smoothed law is worth beside the rows' own variance: five units like them where they
# vary more than it says; more where they vary less, for few alike labels are the usual accident.
WORTH, WORTH_ABOVE = 5.0, 75.0
REFUTED = 3.0  # times the law's variance: where rows show more than that, the law is left out
PENALTY = 2.0  # of a tilt, in labels of rows one normal score away
CLOSE, EDGE = 1e-12, 1e-9  # of a law: what a last step may promise, and probabilities to ends
MIN_RANKED = 50  # rows at hand that tell how a quantity is spread in a group
# The law has a say in a design's variance while fewer than so many independent labels carry the
# number, the less the more there are; from then on the variance is the design's and nothing else.
ENOUGH_LABELS = 30.0
LARGEST_QUANTILE, BISECTIONS = 1e6, 70  # nothing is further out than these


@dataclass(frozen=True)
class Uncertainty:
    """How far a number may be off."""

    stderr: float
    freedom: float
    units: float

    def plus(self, stderr: float) -> Uncertainty:
        """Add an independent error that many rows carry."""
        return replace(self, stderr=math.hypot(self.stderr, stderr))

    def interval(self, value: float, alpha: float) -> tuple[float, float]:
        """Give the symmetric interval around a value."""
        reach = float(student_quantile(alpha / 2, self.freedom)) * self.stderr
        return value - reach, value + reach

    def pvalue(self, value: float, others: int = 1) -> float:
        """Two-sided p-value of "the truth is 0", the smallest alpha whose interval excludes it."""
        if value == 0 or not self.stderr > 0:
            return math.nan if math.isnan(value) else float(value == 0)
        return min(1.0, others * 2 * float(student_tail(abs(value) / self.stderr, self.freedom)))


def law_sums(
    shares: FloatArray, expected: FloatArray, leaning: FloatArray, q: FloatArray
) -> FloatArray:
    """Sums over independent rows that tell how uncertain a number is, (6,).

    Labels follow `q` and move the number by `leaning`, (n, C). Sums are those of squares of the
    shares and of their squares; the law's variance, and how many rows have some; and the second and
    the fourth moments of what a row adds.
    """
    own, lean = np.square(shares), leaning * q
    # Each class alone, less what classes of one row take from each other.
    others = lean.sum(axis=1, keepdims=True) - lean
    moved = np.square(leaning) * q * (1 - q) - lean * others
    law = np.square(expected) + np.maximum(moved.sum(axis=1), 0.0)
    # What the row adds if it has a class, or none of these.
    one = np.square(expected[:, None] + (leaning * (1 - q) - others))
    none = np.square(expected - lean.sum(axis=1))
    rest = np.maximum(1 - q.sum(axis=1), 0.0)
    second = (q * one).sum() + rest @ none
    fourth = (q * np.square(one)).sum() + rest @ np.square(none)
    squares = own.sum(), np.square(own).sum()
    return np.array([*squares, law.sum(), np.count_nonzero(law), second, fourth])


def joined_uncertainty(sums: FloatArray) -> Uncertainty:
    """Join what rows show of themselves with what the law says, as `law_sums` has it."""
    own, own2, floor, units, second, fourth = sums.tolist()
    if not math.isfinite(own):
        return Uncertainty(math.nan, 1.0, 1.0)
    if not floor > 0:
        return Uncertainty(0.0, 1.0, 1.0)
    seen = own * units / max(units - 1, 1.0)
    carried = _carriers(own, own2)
    if seen > REFUTED * floor:  # labels that the law calls next to impossible: it says nothing
        return Uncertainty(math.sqrt(seen), max(carried - 1, 1.0), units)
    # Rows that look alike may hide that few events carry the number: what the law says counts.
    carried = min(carried, _carriers(second, fourth))
    freedom = max(2 / max(1 / carried - 1 / units, 2 / units) - 1, 0.0)
    worth = WORTH_ABOVE if floor > seen else WORTH
    joined = (freedom * seen + worth * floor) / (freedom + worth)
    enough = min(freedom + WORTH, max(units - 1, 1.0))
    return Uncertainty(math.sqrt(joined), enough, units)


@dataclass(frozen=True, eq=False)
class LabelLaw:
    """What labels could have been: smoothed probabilities, and how alike those of a cluster are.

    Of several classes a row has one: columns of `q` exclude each other.
    """

    q: FloatArray
    design: Design
    unit: IntArray | None = None
    alike: float = 0.0
    labels: float = math.inf
    carried: FloatArray | None = None
    classes: tuple[Any, ...] = (None,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", self.q.reshape(self.design.n, len(self.classes)))

    @classmethod
    def of(cls, sample: Rows, leaves: Sequence[Leaf] = (), p: FloatArray | None = None) -> LabelLaw:
        """Smooth labels of every class that leaves name, (n, C), by probabilities or by `p`."""
        classes = classes_of(leaves, sample)
        columns = [None] * len(classes) if p is None else p.reshape(sample.n, len(classes)).T
        laws = [
            cls._of_class(
                outcome_of(sample, name), [leaf.bare for leaf in leaves if leaf.label == name], own
            )
            for name, own in zip(classes, columns, strict=True)
        ]
        if len(laws) == 1:
            return replace(laws[0], classes=classes)
        q = np.column_stack([law.q for law in laws])
        total = q.sum(axis=1, keepdims=True)
        return replace(
            laws[0],
            q=q / (total if len(classes) == len(sample.classes) else np.maximum(total, 1.0)),
            alike=max(law.alike for law in laws),
            labels=min(law.labels for law in laws),
            classes=classes,
        )

    @classmethod
    def _of_class(cls, sample: Sample, leaves: Sequence[Leaf], p: FloatArray | None) -> LabelLaw:
        """Smooth labels of one outcome within the groups of rows that its leaves tell apart."""
        p = sample.p if p is None else p
        inside = [leaf.where.rows(sample.points) for leaf in leaves]
        group = _groups(inside, sample.n)
        with_p = TaskRows(sample.points, sample.weights_or_ones, p)
        tilts = [leaf.tilts(with_p) for leaf in leaves]
        q = np.empty(sample.n)
        for k in range(int(group.max()) + 1):
            rows = np.flatnonzero(group == k)
            here = [j for j, held in enumerate(inside) if held[rows[0]]]
            read = followed([leaves[j] for j in here], [tilts[j] for j in here])
            y, w = sample.y[rows], sample.weights_or_ones[rows]
            points = replace(sample.points.take(rows), p=p[rows])
            totals = np.array([w.sum(), w @ w, w @ y, w.size])
            q[rows] = group_law(read, totals, points, y, points, w)(points)
        unit = variance_units(sample.design)
        alike = _alike(sample.y - q, np.sqrt(q * (1 - q)), unit)
        law = cls(q, sample.design, unit, alike)
        parts: Sequence[Leaf | None] = list(leaves) or [None]
        return replace(law, labels=min(law._labels(sample, leaf) for leaf in parts))

    def carried_by(self, amounts: FloatArray) -> LabelLaw:
        """The same law where rows carry the number by other amounts than their weights."""
        base = np.ones(self.design.n) if self.design.weights is None else self.design.weights
        counted = np.flatnonzero(amounts)
        size = kish(base[counted])
        less = min(kish(amounts) / size, 1.0) if size > 0 else 1.0
        return replace(self, carried=amounts, labels=self.labels * less)

    def _labels(self, sample: Sample, leaf: Leaf | None) -> float:
        """How many independent labels carry a leaf; without one, a rate over all rows.

        As many as the rows have, divided by how much larger the variance of the rate is
        because labels of a unit are alike.
        """
        inside = _inside(leaf, sample)
        alone = float(np.square(inside) @ np.square(self._spread))
        kinds = _kinds(leaf, inside, sample.y)
        return min(kish(held) for held in kinds) * _share(alone, self.label_variance(inside))

    def label_variance(self, leaning: FloatArray) -> float:
        """Variance of the sum of `leaning (onehot(y) - q)` if labels are drawn from the law."""
        leaning, q = leaning.reshape(self.q.shape), self.q
        noise = leaning * np.sqrt(q * (1 - q))
        if len(self.classes) > 1:  # one direction for each class, and one for all others
            chance = np.column_stack([q, np.maximum(1 - q.sum(axis=1), 0.0)])
            mean = np.einsum("nc,nc->n", q, leaning)
            moved = np.column_stack([leaning, np.zeros(len(leaning))]) - mean[:, None]
            noise = np.sqrt(chance) * moved
        alone = float(np.square(noise).sum())
        if self.unit is None:
            return alone
        together = sum(float(np.square(np.bincount(self.unit, own)).sum()) for own in noise.T)
        return (1 - self.alike) * alone + self.alike * together

    def uncertainty(
        self,
        shares: FloatArray,
        expected: FloatArray,
        leaning: FloatArray,
        moves: FloatArray | None = None,
    ) -> Uncertainty:
        """Join what rows show of themselves, or the design says, with what the law says."""
        leaning = leaning.reshape(self.q.shape)
        if not self.design.is_simple:
            return self._by_design(shares, expected, leaning, moves)
        return joined_uncertainty(law_sums(shares, expected, leaning, self.q))

    @property
    def _spread(self) -> FloatArray:
        """Standard deviations of labels by the law, (n,)."""
        return np.asarray(np.sqrt((self.q * (1 - self.q)).sum(axis=1)))

    def _by_design(
        self,
        shares: FloatArray,
        expected: FloatArray,
        leaning: FloatArray,
        moves: FloatArray | None,
    ) -> Uncertainty:
        """Take the design's variance and degrees of freedom, with a floor while labels are few."""
        if not np.isfinite(shares).all():
            return Uncertainty(math.nan, 1.0, 1.0)
        seen = design_variance(self.design, shares, moves)
        floor = design_variance(self.design, expected) + self.label_variance(leaning)
        if not floor > 0:
            return Uncertainty(0.0, 1.0, 1.0)
        freedom = self._freedom((shares != 0) | (leaning != 0).any(axis=1))
        lack = max(0.0, 1 - self.labels / ENOUGH_LABELS)
        if lack > 0 and leaning.any():
            # Few labels tell little about how alike they are: the law is a floor and no more.
            worth = lack * WORTH_ABOVE
            seen = max(seen, (self.labels * seen + worth * floor) / (self.labels + worth))
            freedom = min(freedom, self.labels + WORTH)
        return Uncertainty(math.sqrt(seen), freedom, freedom + 1)

    def _freedom(self, counted: BoolArray) -> float:
        """Clusters less strata; where less than half of that carries the number, what does.

        Few clusters of a domain, or one that is larger than all others, give a variance that
        is less certain than their number says (Satterthwaite). What a cluster has to carry is
        told by the weights of its rows that count and by the law, not by what was seen.
        """
        whole = self.design.freedom
        base = np.ones(self.design.n) if self.design.weights is None else self.design.weights
        if self.carried is not None:
            base = self.carried
        noise = base * counted * self._spread
        unit = np.arange(self.design.n) if self.unit is None else self.unit
        apart, together = np.bincount(unit, noise**2), np.square(np.bincount(unit, noise))
        carried = (1 - self.alike) * apart + self.alike * together
        stratum = np.zeros(carried.size, dtype=np.int64)
        if self.design.strata is not None:
            pooled = self.design.stratum_of_unit[self.design.units]
            stratum[unit] = self.design.strata if self.design.known_by_replicates else pooled
        effective = satterthwaite(carried, stratum)
        return effective if effective < whole / 2 else whole


def satterthwaite(variances: FloatArray, stratum: IntArray) -> float:
    """Degrees of freedom of a variance between clusters within strata, at least 1.

    Twice the square of its mean over its variance, if totals of clusters are normal with these
    variances; strata of one cluster count nothing.

    Examples
    --------
    >>> import numpy as np
    >>> round(satterthwaite(np.ones(6), np.array([0, 0, 0, 1, 1, 1])), 6)
    4.0
    """
    size = np.bincount(stratum).astype(float)
    first, second = np.bincount(stratum, variances), np.bincount(stratum, variances**2)
    several = size > 1
    n, first, second = size[several], first[several], second[several]
    spread = (n / (n - 1)) ** 2 * ((1 - 2 / n) * second + (first / n) ** 2)
    below = float(spread.sum())
    return max(1.0, float(first.sum()) ** 2 / below) if below > 0 else 1.0


def _carriers(second: float, fourth: float) -> float:
    """How many equal shares would have these sums of squares and of fourth powers."""
    return float(second**2 / fourth) if fourth > 0 else 1.0


def _groups(inside: Sequence[BoolArray], n: int) -> IntArray:
    """Rows with the same pattern get the same number, (n,)."""
    group = np.zeros(n, dtype=np.int64)
    for held in inside:
        group = np.unique(2 * group + held, return_inverse=True)[1]
    return group


GroupLaw = Callable[[Points], FloatArray]  # probabilities of some rows, (n,)


def group_law(
    quantities: tuple[Quantity, ...],
    totals: FloatArray,
    ranked: Points,
    y: FloatArray,
    points: Points,
    w: FloatArray,
) -> GroupLaw:
    """The smoothed law of labels among rows that the same leaves count.

    Log odds are shifted to the mean of labels with two rows of either kind added; or, where
    quantities are followed, by a constant and by normal scores of these, with a small penalty.
    Probabilities that know nothing of a quantity would understate how much it varies among
    positives. The law is fitted to rows at hand; totals of all are weights, their squares,
    positives and rows, and normal scores are those of the rows that are `ranked`.
    """
    mass, mass2, mass_y, count = totals.tolist()
    quantities = quantities if 0 < mass_y < mass else ()
    ranks = tuple(_normal_scores(quantity.of(ranked)) for quantity in quantities)
    penalty = np.array([0.0, *(PENALTY for _ in quantities)])
    beta = np.zeros(penalty.size)
    if mass > 0 and y.size:
        if not quantities:
            size = mass**2 / mass2
            y = np.full(y.size, (size * (mass_y / mass) + ADDED) / (size + 2 * ADDED))
        design = _scores_of(quantities, ranks, points)
        rows = RegressionRows(design, y, w / (mass / count), _log_odds(points))
        beta, _ = fit_glm(LINKS["logit"], lambda: (rows,), penalty, done=CLOSE)
    return partial(_by_law, quantities, ranks, beta)


# Of each quantity its values and their normal scores.
Ranks = tuple[tuple[FloatArray, FloatArray], ...]


def _scores_of(quantities: tuple[Quantity, ...], ranks: Ranks, points: Points) -> FloatArray:
    """A constant and the normal scores of some rows, (n, 1 + quantities)."""
    pairs = zip(quantities, ranks, strict=True)
    scores = [np.interp(quantity.of(points), *known) for quantity, known in pairs]
    return np.column_stack([np.ones(len(points)), *scores])


def _by_law(
    quantities: tuple[Quantity, ...], ranks: Ranks, beta: FloatArray, points: Points
) -> FloatArray:
    return np.asarray(expit(_log_odds(points) + _scores_of(quantities, ranks, points) @ beta))


def _log_odds(points: Points) -> FloatArray:
    return np.asarray(logit(np.clip(points.p, EDGE, 1 - EDGE)))


def _normal_scores(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct values and their ranks on the normal scale, ties in the middle; 0 for one alone."""
    values = values[np.isfinite(values)]
    distinct, counts = np.unique(values if values.size else np.zeros(1), return_counts=True)
    scores = ndtri((np.cumsum(counts) - counts / 2) / counts.sum())
    return distinct, scores - np.average(scores, weights=counts)


def _alike(residuals: FloatArray, spread: FloatArray, unit: IntArray | None) -> float:
    """Correlation of labels within clusters, from all pairs of rows; within [0, 1]."""
    if unit is None:
        return 0.0

    def pairs(part: FloatArray) -> float:
        whole, own = np.bincount(unit, part), np.bincount(unit, np.square(part))
        return float((np.square(whole) - own).sum())

    possible = pairs(spread)
    return min(max(pairs(residuals) / possible, 0.0), 1.0) if possible > 0 else 0.0


@dataclass(frozen=True, eq=False)
class LabelledTask:
    """A task on labelled rows, ready for the uncertainty of whatever is made of it."""

    labels: Linearised
    predicted: Linearised
    expected: Linearised
    leaning: FloatArray
    law: LabelLaw
    rows: TaskRows
    moves: FloatArray | None
    smoothed_rate: float | None

    @classmethod
    def of(cls, task: Task, sample: Rows) -> LabelledTask:
        """Estimate a task from labels, from probabilities and from the smoothed law."""
        law = LabelLaw.of(sample, leaves_of([task]))
        rows, with_p = TaskRows.labelled(sample), TaskRows.predicted(sample)
        smooth = replace(rows, stand_in=law.q, classes=law.classes)
        labels, predicted, fit = task.linear(rows), task.linear(with_p), task.fitted(smooth)
        expected, leaning = fit.linear(smooth), fit.lean(smooth)
        if len(law.classes) > 1 and not predicted.slope.any():  # whatever the labels are
            labels, expected, leaning = predicted, predicted, np.zeros_like(leaning)
        moves, sets = None, sample.design.replicate_weights
        if sets is not None:
            pairs = ((rows, labels), (with_p, predicted))
            moves = np.stack([reestimated(task, own, sets) - at.value for own, at in pairs])
        rate = expected.value if is_rate(task) else None
        return cls(labels, predicted, expected, leaning, law, rows, moves, rate)

    def less(self, lam: float = 0.0) -> Uncertainty:
        """How uncertain the estimate from labels is, less some of the plug-in on the same rows."""
        other = lam * self.predicted.slope
        moves = None if self.moves is None else self.moves[0] - lam * self.moves[1]
        shares, expected = self.labels.slope - other, self.expected.slope - other
        return self.law.uncertainty(shares, expected, self.leaning, moves)


def is_rate(task: Task) -> bool:
    """Whether a task is a plain prevalence or share, under whatever name."""
    while isinstance(task, Named):
        task = task.task
    return isinstance(task, Ratio) and task.is_rate


def few_labels(task: Task, sample: Rows) -> bool:
    """Whether so few labels carry a task that its interval is rough.

    A mean or a share is carried by the positives that count, a rate by the positives or by the
    other rows, whichever are fewer, and a task by the fewest of its parts. A coefficient is carried
    by the labels that move it, and five of the rarer kind are needed for every term. Of rows with
    unequal weights, and of clusters, as many count as equal ones would say the same.
    """
    parts = ((leaf.bare, outcome_of(sample, leaf.label)) for leaf in leaves_of([task]))
    return any(_carrying(leaf, own) < FEW_LABELS for leaf, own in parts)


def _carrying(leaf: Leaf, sample: Sample) -> float:
    """How many labels carry a leaf; of clusters, how many that hold some."""
    unit = variance_units(sample.design)

    def carried(inside: FloatArray) -> float:
        kinds = _kinds(leaf, inside, sample.y)
        if unit is not None:
            kinds = [np.asarray(np.bincount(unit, held), dtype=float) for held in kinds]
        return min(kish(held) for held in kinds)

    found = carried(_inside(leaf, sample))
    if leaf.labels_each > 1:
        w = sample.weights_or_ones * leaf.where.rows(sample.points)
        found = min(found, carried(w) / leaf.labels_each)
    return found


def followed(
    leaves: Sequence[Leaf], tilts: Sequence[tuple[Quantity, ...] | None]
) -> tuple[Quantity, ...]:
    """What the law of labels follows among rows that some leaves count."""
    is_smoothed = any(tilt is None for tilt in tilts)
    if is_smoothed and all(isinstance(leaf, Ratio) for leaf in leaves):
        return ()
    return tuple(dict.fromkeys(one for tilt in tilts for one in tilt or ()))


def _inside(leaf: Leaf | None, sample: Sample) -> FloatArray:
    """How much each row's label carries, (n,); without a leaf, its weight."""
    if leaf is None:
        return sample.weights_or_ones
    return leaf.carrying(TaskRows.predicted(sample))


def _kinds(leaf: Leaf | None, inside: FloatArray, y: FloatArray) -> list[FloatArray]:
    """What positives carry; for a rate or a coefficient that of the other rows, too."""
    positives = inside * y
    if leaf is not None and leaf.among_positives:
        return [positives]
    return [positives, inside - positives]


def kish(held: FloatArray) -> float:
    """How many equal weights would say as much as these."""
    return kish_of(float(held.sum()), float(held @ held))


def kish_of(whole: float, squares: float) -> float:
    """How many equal weights would have this sum and this sum of squares."""
    return _share(float(whole**2), float(squares))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


@dataclass(frozen=True)
class Located:
    """A number, how far it may be off, and what it can be."""

    value: float
    error: Uncertainty
    bounds: Bounds
    smoothed_rate: float | None = None

    @property
    def _is_rate(self) -> bool:
        return self.smoothed_rate is not None and self.error.stderr > 0

    @property
    def _rate_freedom(self) -> float:
        return max(self.error.units - 1, 1)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Give the interval within the range: of the score type for rates, else symmetric."""
        if self._is_rate:
            return self._rate_ends(float(student_quantile(alpha / 2, self._rate_freedom)))
        return self.bounds.clipped(*self.error.interval(self.value, alpha))

    def _rate_ends(self, quantile: float) -> tuple[float, float]:
        """The score-type interval of a rate, within [0, 1].

        The standard error at the smoothed rate says how many independent rows the estimate is
        worth; the interval is Agresti and Coull's for so many: around Wilson's centre, with the
        variance there. It contains Wilson's.
        """
        smoothed, square = self.smoothed_rate or 0.0, quantile**2
        size = smoothed * (1 - smoothed) / self.error.stderr**2
        if not size + square > 0:
            return 0.0, 1.0
        centre = (size * min(max(self.value, 0.0), 1.0) + square / 2) / (size + square)
        reach = math.sqrt(square * centre * (1 - centre) / (size + square))
        return max(centre - reach, 0.0), min(centre + reach, 1.0)

    def pvalue(self, point: float, others: int = 1) -> float:
        """P-value of "the truth is this point", the smallest alpha whose interval excludes it."""
        if not self._is_rate:
            return self.error.pvalue(self.value - point, others)
        too_small, enough = 0.0, LARGEST_QUANTILE  # whose interval excludes and holds the point
        for _ in range(BISECTIONS):
            middle = (too_small + enough) / 2
            lower, upper = self._rate_ends(middle)
            if lower <= point <= upper:
                enough = middle
            else:
                too_small = middle
        return min(1.0, others * 2 * float(student_tail(too_small, self._rate_freedom)))
