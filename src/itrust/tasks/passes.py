"""Tasks on very many rows: everything they need is a sum over rows, so passes suffice.

A first pass sums numerators and denominators with labels and with probabilities. The smoothed law
of labels is then fitted to the rows at hand, or by passes where these hold too few of the labels
that matter. One more pass gives the estimate by that law; and the main pass, shared with the test,
sums squares of the rows' shares and what redrawn labels make of every task. Regressions are solved
by Newton's steps, each of them a pass that all share (`regression_passes.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit, ndtri

from itrust._core import BoolArray, FloatArray, InputError, IntArray
from itrust.bias import Redraws
from itrust.data import Missing, Points, Rows
from itrust.engines import Additive, Outcome, Plan, RowwiseWork
from itrust.tasks.differentials import slopes_at
from itrust.tasks.expressions import Leaf, Ratio, RatioFit, Task
from itrust.tasks.fits import LeafFit
from itrust.tasks.regression_passes import Solutions, solve_expected, solve_regressions, summed
from itrust.tasks.regressions import Coefficient
from itrust.tasks.scores import DrawnSums, TaskConstants
from itrust.tasks.uncertainty import (
    EDGE,
    ENOUGH,
    PENALTY,
    STEPS,
    LawSums,
    followed,
    is_rate,
    smoothed_target,
)

MIN_LABELS = 200  # of either kind among the rows at hand, for their law to be that of all rows
MAX_RATIOS = 60  # and coefficients of a task, which are bits of a number
MIN_RANKED = 50  # rows at hand that tell how a quantity is spread in a group


def _both(one: Mapping[int, FloatArray], other: Mapping[int, FloatArray]) -> dict[int, FloatArray]:
    """Sums by key; a key that one of them lacks counts nothing there."""
    found = dict(one)
    for key, own in other.items():
        found[key] = found[key] + own if key in found else own
    return found


@dataclass(frozen=True, eq=False)
class RatioTotals(Additive):
    """Sums over rows for k leaves, with labels and with probabilities; g of coefficients is 0."""

    above_y: FloatArray
    above_p: FloatArray
    mass: FloatArray
    mass_y: FloatArray
    mass_p: FloatArray
    ones2: FloatArray
    zeros2: FloatArray
    low: FloatArray
    high: FloatArray
    groups: tuple[Mapping[int, FloatArray], ...]
    missing: IntArray

    def __add__(self, other: Self) -> Self:
        mine, others = vars(self), vars(other)
        names = ("low", "high", "groups")
        found = {name: mine[name] + others[name] for name in mine if name not in names}
        return type(self)(
            **found,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            groups=tuple(map(_both, self.groups, other.groups)),
        )

    def fits(self, leaves: Sequence[Leaf], solutions: Solutions, kind: str) -> tuple[LeafFit, ...]:
        """The leaves with labels ("y"), or with probabilities ("p"); NaN over nothing."""
        above, mass = (self.above_y, self.mass_y) if kind == "y" else (self.above_p, self.mass_p)
        labelled = np.array([leaf.among_positives for leaf in leaves], dtype=bool)
        return fits_of(leaves, above, np.where(labelled, mass, self.mass), solutions, kind)


def fits_of(
    leaves: Sequence[Leaf],
    above: FloatArray,
    below: FloatArray,
    solutions: Solutions,
    kind: Any,
) -> tuple[LeafFit, ...]:
    """Ratios from their numerators and denominators, (k,) each, and coefficients as solved."""
    return tuple(
        solutions.fit(leaf, kind)
        if isinstance(leaf, Coefficient)
        else RatioFit(leaf, float(up / down) if down > 0 else math.nan, float(down))
        for leaf, up, down in zip(leaves, above, below, strict=True)
        if isinstance(leaf, Coefficient | Ratio)
    )


@dataclass(frozen=True, eq=False)
class _Totalling:
    """The first pass: numerators and denominators."""

    leaves: tuple[Leaf, ...]
    names: tuple[str, ...]
    tasks: tuple[list[int], ...]  # which of the leaves each task is made of

    def __call__(self, chunk: Rows, w: FloatArray) -> RatioTotals:
        y, p = chunk.y, chunk.p
        terms = [leaf.terms_of(chunk.points, w, chunk.first) for leaf in self.leaves]
        g, h = (np.array([pair[side] for pair in terms]) for side in (0, 1))
        ones, zeros = w * h * y, w * h * (1 - y)
        inside = h > 0
        return RatioTotals(
            above_y=(w * y * g).sum(axis=1),
            above_p=(w * p * g).sum(axis=1),
            mass=(w * h).sum(axis=1),
            mass_y=ones.sum(axis=1),
            mass_p=(w * h * p).sum(axis=1),
            ones2=np.square(ones).sum(axis=1),
            zeros2=np.square(zeros).sum(axis=1),
            low=np.where(inside, g, np.inf).min(axis=1),
            high=np.where(inside, g, -np.inf).max(axis=1),
            groups=tuple(_by_pattern(inside[own], w, y) for own in self.tasks),
            missing=np.array([int(Missing(name).rows(chunk.points).sum()) for name in self.names]),
        )


def _by_pattern(inside: BoolArray, w: FloatArray, y: FloatArray) -> dict[int, FloatArray]:
    """Totals of some rows by which of a task's leaves count them, as `RatioTotals.groups`."""
    found = {}
    keys, code = np.unique(pattern(inside), return_inverse=True)
    for number, key in enumerate(keys.tolist()):
        own = code == number
        kinds = float((y[own] == 1).sum()), float((y[own] != 1).sum())
        own_w = w[own]
        found[key] = np.array([own_w.sum(), own_w @ own_w, own_w @ y[own], *kinds])
    return found


def pattern(inside: Any) -> IntArray:
    """Which of k conditions a row meets, as bits, (n,)."""
    bits = 2 ** np.arange(len(inside), dtype=np.int64)
    return np.asarray(bits @ np.asarray(inside, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class RankTable:
    """Normal scores of a quantity, from rows that stand for all."""

    values: FloatArray
    scores: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> RankTable:
        """Ranks on the normal scale, ties in the middle."""
        distinct, counts = np.unique(values, return_counts=True)
        middle = (np.cumsum(counts) - counts / 2) / values.size
        scores = ndtri(middle)
        return cls(distinct, scores - np.average(scores, weights=counts))

    def __call__(self, values: FloatArray) -> FloatArray:
        """The scores of other rows."""
        if self.values.size < 2:
            return np.zeros(values.size)
        return np.interp(values, self.values, self.scores)


@dataclass(frozen=True, eq=False)
class GroupLaw:
    """The smoothed law of labels among rows that the same leaves count."""

    target: float | None
    quantities: tuple[Any, ...]
    tables: tuple[RankTable, ...]
    beta: FloatArray
    mean_weight: float
    is_settled: bool

    def design(self, points: Points) -> FloatArray:
        """A constant and the scores of some rows, (n, 1 + quantities)."""
        pairs = zip(self.quantities, self.tables, strict=True)
        scores = [table(quantity.of(points)) for quantity, table in pairs]
        return np.column_stack([np.ones(len(points)), *scores])

    def q(self, points: Points) -> FloatArray:
        """Probabilities of some rows, (n,)."""
        start = logit(np.clip(points.p, EDGE, 1 - EDGE))
        return np.asarray(expit(start + self.design(points) @ self.beta))

    def newton(self, y: FloatArray, points: Points, w: FloatArray) -> NewtonSums:
        """What some rows contribute to a step."""
        design, q = self.design(points), self.q(points)
        w = w / self.mean_weight
        target = y if self.target is None else np.full(y.size, self.target)
        slope = design.T @ (w * (target - q))
        curve = (design * (w * q * (1 - q) + EDGE)[:, None]).T @ design
        return NewtonSums({0: slope}, {0: curve})

    def stepped(self, slope: FloatArray, curve: FloatArray) -> tuple[GroupLaw, float]:
        """The law after a step, and how long that was."""
        penalty = np.diag([0.0, *(PENALTY for _ in self.quantities)])
        step = np.linalg.solve(curve + penalty, slope - penalty @ self.beta)
        largest = float(np.abs(step).max())
        return replace(self, beta=self.beta + step / max(1.0, largest)), largest


@dataclass(frozen=True, eq=False)
class NewtonSums(Additive):
    """First and second derivatives, by group."""

    slopes: Mapping[int, FloatArray]
    curves: Mapping[int, FloatArray]

    def __add__(self, other: Self) -> Self:
        return type(self)(_both(self.slopes, other.slopes), _both(self.curves, other.curves))


@dataclass(frozen=True, eq=False)
class _Stepping:
    """A pass that improves the laws of some groups."""

    leaves: tuple[Leaf, ...]
    laws: Mapping[int, GroupLaw]

    def __call__(self, chunk: Rows, w: FloatArray) -> NewtonSums:
        code = pattern([leaf.inside_of(chunk.points, w) for leaf in self.leaves])
        slopes, curves = {}, {}
        for key, law in self.laws.items():
            rows = np.flatnonzero(code == key)
            if rows.size:
                found = law.newton(chunk.y[rows], chunk.points.take(rows), w[rows])
                slopes[key], curves[key] = found.slopes[0], found.curves[0]
        return NewtonSums(slopes, curves)


@dataclass(frozen=True, eq=False)
class StreamedLaw:
    """What labels could have been, for every group of rows that some leaves tell apart."""

    leaves: tuple[Leaf, ...]
    laws: Mapping[int, GroupLaw]

    def q(self, points: Points, w: FloatArray) -> FloatArray:
        """Probabilities of some rows, (n,)."""
        code = pattern([leaf.inside_of(points, w) for leaf in self.leaves])
        found = np.array(points.p)
        for key in np.unique(code).tolist():
            law = self.laws.get(key)
            if law is not None:
                rows = np.flatnonzero(code == key)
                found[rows] = law.q(points.take(rows))
        return found


@dataclass(frozen=True, eq=False)
class ExpectedTotals(Additive):
    """Sums that need the laws and the coefficients of regressions."""

    above: FloatArray
    below: FloatArray
    carried: FloatArray


@dataclass(frozen=True, eq=False)
class _Expecting:
    """The pass that estimates every task by its law."""

    leaves: tuple[Leaf, ...]
    laws: tuple[StreamedLaw, ...]
    predicted: tuple[LeafFit, ...]

    def __call__(self, chunk: Rows, w: FloatArray) -> ExpectedTotals:
        terms = [leaf.terms_of(chunk.points, w) for leaf in self.leaves]
        g, h = (np.array([pair[side] for pair in terms]) for side in (0, 1))
        q = np.array([law.q(chunk.points, w) for law in self.laws])
        moved = np.zeros((len(self.leaves), w.size))
        for k, (leaf, fit) in enumerate(zip(self.leaves, self.predicted, strict=True)):
            if isinstance(leaf, Coefficient):
                moved[k] = np.abs(fit.lean(fit.read(chunk.points, w), w))
        powers = [own @ kind for kind in (chunk.y, 1 - chunk.y) for own in (moved, moved**2)]
        return ExpectedTotals((w * q) @ g.T, (w * q) @ h.T, np.array(powers))


@dataclass(frozen=True, eq=False)
class TaskPass:
    """Tasks as a part of the main pass; made by `task_pass`, which makes the first passes."""

    redraws: Redraws
    tasks: tuple[Task, ...]
    leaves: tuple[Leaf, ...]
    totals: RatioTotals
    laws: tuple[StreamedLaw, ...]
    expected: ExpectedTotals
    solutions: Solutions
    names: tuple[str, ...] = field(default=())

    @property
    def plans(self) -> tuple[Plan, ...]:
        """None: no kernels are tested."""
        return ()

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw."""
        return self.constants.width

    @cached_property
    def constants(self) -> TaskConstants:
        """What the sums over redrawn labels need to know."""
        fits = self.fits("p")
        return TaskConstants(self.tasks, self.leaves, fits, np.array([fit.mass for fit in fits]))

    def fits(self, kind: str) -> tuple[LeafFit, ...]:
        """The leaves with labels ("y") or with probabilities ("p")."""
        return self.totals.fits(self.leaves, self.solutions, kind)

    def values(self, kind: str) -> FloatArray:
        """Their values, (k,)."""
        return np.array([fit.value for fit in self.fits(kind)])

    def expected_fits(self, number: int) -> tuple[LeafFit, ...]:
        """The leaves by the law of a task; coefficients of other tasks are those of labels."""
        labelled = np.array([leaf.among_positives for leaf in self.leaves], dtype=bool)
        below = np.where(labelled, self.expected.below[number], self.totals.mass)
        above = self.expected.above[number]
        return fits_of(self.leaves, above, below, self.solutions, number)

    def works(self, block: range) -> list[Any]:
        """Sums over redrawn labels, and of powers of the rows' shares."""
        unit = self.redraws.survey.unit
        large = self.redraws.n * len(block) > TaskConstants.MAX_IN_DOUBLE
        return [self.constants.work(unit, large), RowwiseWork(self._sharing, unit)]

    @cached_property
    def _sharing(self) -> _Sharing:
        labels, predicted = self.fits("y"), self.fits("p")
        found = []
        for number, task in enumerate(self.tasks):
            own = {*task.leaves()}
            places = tuple(k for k, leaf in enumerate(self.leaves) if leaf in own)

            def shares(fits: Sequence[LeafFit], task: Task = task, at: Any = places) -> _Linear:
                values = np.array([fit.value for fit in fits])
                slopes = slopes_at(task, self.leaves, values)[list(at)]
                return _Linear(slopes, tuple(fits[k] for k in at))

            by_law = shares(self.expected_fits(number))
            found.append(_TaskShares(places, shares(labels), shares(predicted), by_law))
        return _Sharing(labels, tuple(found), self.laws)

    def reduced(self, outcome: Outcome, block: range) -> tuple[DrawnSums, LawSumsOfTasks]:
        """Keep the sums; those of the data once."""
        drawn, shares = outcome.works
        return (drawn if block.start == 0 else drawn.without_data()), shares

    def finished(
        self, found: Sequence[tuple[DrawnSums, LawSumsOfTasks]]
    ) -> tuple[DrawnSums, LawSumsOfTasks]:
        """Put batches of draws side by side."""
        return DrawnSums.joined([drawn for drawn, _ in found]), found[0][1]

    @property
    def carriers(self) -> dict[Leaf, tuple[float, ...]]:
        """How many equal labels would say as much as those that carry each leaf, by kind."""
        totals = self.totals
        zeros = totals.mass - totals.mass_y
        plain = np.array([totals.mass_y, totals.ones2, zeros, totals.zeros2])
        found = {}
        for k, leaf in enumerate(self.leaves):
            ones = [_kish(plain[0, k], plain[1, k])]
            if not leaf.among_positives:
                ones.append(_kish(plain[2, k], plain[3, k]))
            if isinstance(leaf, Coefficient):
                each = leaf.labels_each
                own = self.expected.carried[:, k]
                ones = [one / each for one in ones]
                ones += [_kish(own[0], own[1]), _kish(own[2], own[3])]
            found[leaf] = tuple(ones)
        return found

    def law_value(self, number: int) -> float | None:
        """What a plain rate or share would be by the law; None for other tasks."""
        task = self.tasks[number]
        if not is_rate(task):
            return None
        (ratio,) = {*task.leaves()}
        return self.expected_fits(number)[self.leaves.index(ratio)].value


def _kish(whole: float, squares: float) -> float:
    """How many equal weights would have this sum and this sum of squares."""
    return float(whole**2 / squares) if squares > 0 else 0.0


@dataclass(frozen=True, eq=False)
class _Linear:
    """What a row's share in a task is made of: slopes of the task in its leaves, and these."""

    slopes: FloatArray
    fits: tuple[LeafFit, ...]

    def shares(self, read: Sequence[Any], w: FloatArray, s: FloatArray) -> FloatArray:
        """Of the rows, with these stand-ins, (n,)."""
        pairs = zip(self.slopes, self.fits, read, strict=True)
        return np.asarray(sum(slope * fit.shares(own, w, s) for slope, fit, own in pairs))

    def lean(self, read: Sequence[Any], w: FloatArray) -> FloatArray:
        """What stand-ins of the rows move, (n,)."""
        pairs = zip(self.slopes, self.fits, read, strict=True)
        return np.asarray(
            sum(slope / (fit.mass or math.nan) * fit.lean(own, w) for slope, fit, own in pairs)
        )


@dataclass(frozen=True, eq=False)
class _TaskShares:
    """One task: which leaves it has, and these with labels, probabilities and by its law."""

    places: tuple[int, ...]
    labels: _Linear
    predicted: _Linear
    expected: _Linear


@dataclass(frozen=True, eq=False)
class LawSumsOfTasks(Additive):
    """Sums of powers of the rows' shares, one for each task."""

    tasks: tuple[LawSums, ...]


@dataclass(frozen=True, eq=False)
class _Sharing:
    """What the main pass sums of the rows' shares in every task."""

    fits: tuple[LeafFit, ...]  # of all leaves: they read the rows once
    tasks: tuple[_TaskShares, ...]
    laws: tuple[StreamedLaw, ...]

    def __call__(self, chunk: Rows, w: FloatArray) -> LawSumsOfTasks:
        everything = [fit.read(chunk.points, w) for fit in self.fits]
        found = []
        for own, law in zip(self.tasks, self.laws, strict=True):
            read = [everything[k] for k in own.places]
            q = law.q(chunk.points, w)
            seen = own.labels.shares(read, w, chunk.y)
            plug_in = own.predicted.shares(read, w, chunk.p)
            by_law = own.expected.shares(read, w, q)
            leaning = own.expected.lean(read, w)
            found.append(LawSums.of(seen - plug_in, by_law - plug_in, leaning, q))
        return LawSumsOfTasks(tuple(found))


def task_pass(redraws: Redraws, tasks: Sequence[Task]) -> TaskPass:
    """Make the first passes over the rows: totals, laws, and the estimates by these."""
    leaves = tuple(dict.fromkeys(leaf for task in tasks for leaf in task.leaves()))
    names = tuple(sorted({name for task in tasks for name in task.names}))
    own = tuple(_places_of(task, leaves) for task in tasks)
    totals: RatioTotals = summed(redraws, _Totalling(leaves, names, own))
    for leaf, mass in zip(leaves, totals.mass, strict=True):
        if not mass > 0:
            raise leaf.without_rows()
    solutions = solve_regressions(redraws, leaves)
    laws = _laws(redraws, tasks, totals, solutions)
    expecting = _Expecting(leaves, laws, totals.fits(leaves, solutions, "p"))
    expected: ExpectedTotals = summed(redraws, expecting)
    solutions = solve_expected(redraws, tasks, laws, solutions)
    return TaskPass(redraws, tuple(tasks), leaves, totals, laws, expected, solutions, names)


def _places_of(task: Task, leaves: Sequence[Leaf]) -> list[int]:
    """Which leaves a task is made of, by number; too many are refused."""
    own = [leaves.index(leaf) for leaf in dict.fromkeys(task.leaves())]
    if len(own) > MAX_RATIOS:
        raise InputError(
            "{task} is made of {number} means, shares, rates and coefficients; at most {most} can "
            "be read from very many rows",
            argument="tasks",
            value=task,
            details={"task": task, "number": len(own), "most": MAX_RATIOS},
        )
    return own


def _laws(
    redraws: Redraws, tasks: Sequence[Task], totals: RatioTotals, solutions: Solutions
) -> tuple[StreamedLaw, ...]:
    """The law of every task: fitted to the rows at hand, or by passes where these are too few."""
    found = []
    for task, groups in zip(tasks, totals.groups, strict=True):
        own = tuple(dict.fromkeys(task.leaves()))
        laws = _at_hand(redraws, own, groups, solutions)
        for _ in range(STEPS):
            open_ones = {key: law for key, law in laws.items() if not law.is_settled}
            if not open_ones:
                break
            sums: NewtonSums = summed(redraws, _Stepping(own, open_ones))
            for key, law in open_ones.items():
                moved, length = law.stepped(sums.slopes[key], sums.curves[key])
                laws[key] = replace(moved, is_settled=length < ENOUGH)
        found.append(StreamedLaw(own, laws))
    return tuple(found)


def _at_hand(
    redraws: Redraws,
    leaves: tuple[Leaf, ...],
    groups: Mapping[int, FloatArray],
    solutions: Solutions,
) -> dict[int, GroupLaw]:
    """Laws fitted to the rows at hand; those of few labels are not settled."""
    sample, extract = redraws.sample, redraws.extract
    assert extract is not None
    weights = extract.weights
    w = np.ones(sample.n) if weights is None else weights / redraws.survey.unit
    code = pattern([leaf.inside_of(sample.points, w) for leaf in leaves])
    laws = {}
    for key, (mass, mass2, mass_y, ones, zeros) in groups.items():
        here = [leaf for k, leaf in enumerate(leaves) if (key >> k) & 1]
        rows = np.flatnonzero(code == key)
        tilts = [solutions.tilts(leaf) for leaf in here]
        quantities = followed(here, tilts) if 0 < mass_y < mass else ()
        tilted = bool(quantities)
        ranked = rows if rows.size >= MIN_RANKED else np.arange(sample.n)
        points = sample.points.take(ranked)
        tables = tuple(RankTable.of(_finite(quantity.of(points))) for quantity in quantities)
        law = GroupLaw(
            target=None if tilted else smoothed_target(mass, mass2, mass_y),
            quantities=quantities,
            tables=tables,
            beta=np.zeros(1 + len(quantities)),
            mean_weight=mass / max(ones + zeros, 1.0),
            is_settled=mass <= 0,
        )
        y, own_points = sample.y[rows], sample.points.take(rows)
        kinds = min(int(y.sum()), int(rows.size - y.sum()))
        enough = kinds >= MIN_LABELS if tilted else rows.size >= MIN_LABELS
        if rows.size and not law.is_settled:
            law = _fitted(law, y, own_points, w[rows])
        laws[key] = replace(law, is_settled=law.is_settled or enough)
    return laws


def _finite(values: FloatArray) -> FloatArray:
    known = values[np.isfinite(values)]
    return known if known.size else np.zeros(1)


def _fitted(law: GroupLaw, y: FloatArray, points: Points, w: FloatArray) -> GroupLaw:
    """Newton's steps on rows at hand."""
    for _ in range(STEPS):
        sums = law.newton(y, points, w)
        law, length = law.stepped(sums.slopes[0], sums.curves[0])
        if length < ENOUGH:
            break
    return law
