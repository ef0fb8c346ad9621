"""Tasks on very many rows: everything they need is a sum over rows, so passes suffice.

A first pass sums numerators and denominators with labels and with probabilities. The smoothed law
of labels is then fitted to the rows at hand, or by passes where these hold too few of the labels
that matter. One more pass gives the estimate by that law; and the main pass, shared with the test,
sums squares of the rows' shares and what redrawn labels make of every task.
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
from itrust.data import Chunk, Missing, Points
from itrust.engines import Additive, Outcome, Plan, RowwiseWork
from itrust.tasks.differentials import Dual
from itrust.tasks.expressions import Ratio, Task
from itrust.tasks.scores import DrawnSums, TaskConstants
from itrust.tasks.uncertainty import (
    EDGE,
    ENOUGH,
    PENALTY,
    STEPS,
    LawSums,
    is_rate,
    smoothed_target,
)

MIN_LABELS = 200  # of either kind among the rows at hand, for their law to be that of all rows
MAX_RATIOS = 60  # of a task, which are bits of a number
MIN_RANKED = 50  # rows at hand that tell how a quantity is spread in a group


def slopes_at(task: Task, ratios: Sequence[Ratio], values: FloatArray) -> FloatArray:
    """Derivatives of a task in its ratios where these have some values, (k,)."""
    units = np.eye(len(ratios))
    parts = [Dual(np.array([v]), units[:, [k]]) for k, v in enumerate(values)]
    return task.dual(parts, {ratio: k for k, ratio in enumerate(ratios)}).slope[:, 0]


def value_at(task: Task, ratios: Sequence[Ratio], values: FloatArray) -> float:
    """A task where its ratios have some values."""
    parts = [Dual(np.array([v]), np.zeros((len(ratios), 1))) for v in values]
    found = task.dual(parts, {ratio: k for k, ratio in enumerate(ratios)}).value[0]
    return float(found) if np.isfinite(found) else math.nan


def _both(one: Mapping[int, FloatArray], other: Mapping[int, FloatArray]) -> dict[int, FloatArray]:
    """Sums by key; a key that one of them lacks counts nothing there."""
    found = dict(one)
    for key, own in other.items():
        found[key] = found[key] + own if key in found else own
    return found


@dataclass(frozen=True, eq=False)
class RatioTotals(Additive):
    """Sums over rows for k ratios, with labels and with probabilities.

    Attributes
    ----------
    above_y, above_p : (k,) arrays
        Of w g y and w g p.
    mass, mass_y, mass_p : (k,) arrays
        Of w h, w h y and w h p.
    ones2, zeros2 : (k,) arrays
        Of (w h y)^2 and (w h (1 - y))^2.
    low, high : (k,) arrays
        Smallest and largest g of rows that count.
    groups : tuple of mappings of int to array
        For every task, by those of its ratios that count a row, as bits: sums of w, w^2, w y, and
        rows with y of 1 and 0.
    missing : (m,) array
        Rows without a value of each covariate.
    """

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

    def values(self, ratios: Sequence[Ratio], with_labels: bool) -> FloatArray:
        """The ratios with labels, or with probabilities, (k,); NaN over nothing."""
        above = self.above_y if with_labels else self.above_p
        below = self.below(ratios, with_labels)
        unknown = np.full(above.size, np.nan)
        return np.asarray(np.divide(above, below, out=unknown, where=below > 0))

    def below(self, ratios: Sequence[Ratio], with_labels: bool) -> FloatArray:
        """What is divided by, (k,)."""
        labelled = np.array([ratio.among_positives for ratio in ratios], dtype=bool)
        return np.where(labelled, self.mass_y if with_labels else self.mass_p, self.mass)


@dataclass(frozen=True, eq=False)
class _Totalling:
    """The first pass: numerators and denominators."""

    ratios: tuple[Ratio, ...]
    names: tuple[str, ...]
    tasks: tuple[list[int], ...]  # which of the ratios each task is made of

    def __call__(self, chunk: Chunk, w: FloatArray) -> RatioTotals:
        y, p = chunk.y, chunk.p
        terms = [ratio.terms_of(chunk.points, w, chunk.first) for ratio in self.ratios]
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
    """Totals of some rows by which of a task's ratios count them, as `RatioTotals.groups`."""
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
    """The smoothed law of labels among rows that the same ratios count.

    Attributes
    ----------
    target : float or None
        The mean that labels are smoothed to; None where probabilities are tilted along quantities.
    quantities : tuple
        What they are tilted along.
    tables : tuple of RankTable
        Normal scores of these.
    beta : (1 + quantities,) array
        What is added to log odds: a constant, and multiples of the scores.
    mean_weight : float
        Of the rows of the group.
    is_settled : bool
        Whether the rows at hand were enough to fit it.
    """

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

    ratios: tuple[Ratio, ...]
    laws: Mapping[int, GroupLaw]

    def __call__(self, chunk: Chunk, w: FloatArray) -> NewtonSums:
        code = pattern([ratio.terms_of(chunk.points, w)[1] > 0 for ratio in self.ratios])
        slopes, curves = {}, {}
        for key, law in self.laws.items():
            rows = np.flatnonzero(code == key)
            if rows.size:
                found = law.newton(chunk.y[rows], chunk.points.take(rows), w[rows])
                slopes[key], curves[key] = found.slopes[0], found.curves[0]
        return NewtonSums(slopes, curves)


@dataclass(frozen=True, eq=False)
class StreamedLaw:
    """What labels could have been, for every group of rows that some ratios tell apart.

    Attributes
    ----------
    ratios : tuple of Ratio
        Which rows count together.
    laws : mapping of int to GroupLaw
        By the ratios that count a row, as bits.
    """

    ratios: tuple[Ratio, ...]
    laws: Mapping[int, GroupLaw]

    def q(self, points: Points, w: FloatArray) -> FloatArray:
        """Probabilities of some rows, (n,)."""
        code = pattern([ratio.terms_of(points, w)[1] > 0 for ratio in self.ratios])
        found = np.array(points.p)
        for key in np.unique(code).tolist():
            law = self.laws.get(key)
            if law is not None:
                rows = np.flatnonzero(code == key)
                found[rows] = law.q(points.take(rows))
        return found


@dataclass(frozen=True, eq=False)
class ExpectedTotals(Additive):
    """Sums of w g q and w h q for the ratios of every task, (tasks, k) each."""

    above: FloatArray
    below: FloatArray


@dataclass(frozen=True, eq=False)
class _Expecting:
    """The pass that estimates every task by its law."""

    ratios: tuple[Ratio, ...]
    laws: tuple[StreamedLaw, ...]

    def __call__(self, chunk: Chunk, w: FloatArray) -> ExpectedTotals:
        terms = [ratio.terms_of(chunk.points, w) for ratio in self.ratios]
        g, h = (np.array([pair[side] for pair in terms]) for side in (0, 1))
        q = np.array([law.q(chunk.points, w) for law in self.laws])
        return ExpectedTotals((w * q) @ g.T, (w * q) @ h.T)


@dataclass(frozen=True, eq=False)
class TaskPass:
    """Tasks as a part of the main pass; made by `task_pass`, which makes the first passes.

    Attributes
    ----------
    redraws : Redraws
        All rows, and how their labels are redrawn.
    tasks : tuple of Task
        The numbers.
    ratios : tuple of Ratio
        What they are made of, each once.
    totals : RatioTotals
        Of all rows.
    laws : tuple of StreamedLaw
        What labels could have been, for every task.
    expected : ExpectedTotals
        The estimates by these laws.
    names : tuple of str
        Covariates whose missing values were counted.
    """

    redraws: Redraws
    tasks: tuple[Task, ...]
    ratios: tuple[Ratio, ...]
    totals: RatioTotals
    laws: tuple[StreamedLaw, ...]
    expected: ExpectedTotals
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
        return TaskConstants(
            self.tasks,
            self.ratios,
            self.totals.values(self.ratios, False),
            self.totals.below(self.ratios, False),
        )

    def works(self, block: range) -> list[Any]:
        """Sums over redrawn labels, and of powers of the rows' shares.

        Parameters
        ----------
        block : range
            Numbers of the draws.

        Returns
        -------
        list of Work
            Two.
        """
        unit = self.redraws.survey.unit
        large = self.redraws.n * len(block) > TaskConstants.MAX_IN_DOUBLE
        return [self.constants.work(unit, large), RowwiseWork(self._sharing, unit)]

    @cached_property
    def _sharing(self) -> _Sharing:
        k = len(self.ratios)
        values = {
            "y": self.totals.values(self.ratios, True),
            "p": self.totals.values(self.ratios, False),
        }
        below = {
            "y": self.totals.below(self.ratios, True),
            "p": self.totals.below(self.ratios, False),
        }
        labelled = np.array([ratio.among_positives for ratio in self.ratios], dtype=bool)
        found = []
        for number, task in enumerate(self.tasks):
            at_q = np.where(labelled, self.expected.below[number], self.totals.mass)
            of_q = np.divide(
                self.expected.above[number], at_q, out=np.full(k, np.nan), where=at_q > 0
            )
            found.append(
                _TaskShares(
                    labels=_coefficients(task, self.ratios, values["y"], below["y"]),
                    predicted=_coefficients(task, self.ratios, values["p"], below["p"]),
                    expected=_coefficients(task, self.ratios, of_q, at_q),
                )
            )
        return _Sharing(self.ratios, tuple(found), self.laws)

    def reduced(self, outcome: Outcome, block: range) -> tuple[DrawnSums, LawSumsOfTasks]:
        """Keep the sums; those of the data once.

        Parameters
        ----------
        outcome : Outcome
            Of the pass.
        block : range
            Numbers of the draws.

        Returns
        -------
        tuple
            Both sums.
        """
        drawn, shares = outcome.works
        return (drawn if block.start == 0 else drawn.without_data()), shares

    def finished(
        self, found: Sequence[tuple[DrawnSums, LawSumsOfTasks]]
    ) -> tuple[DrawnSums, LawSumsOfTasks]:
        """Put batches of draws side by side.

        Parameters
        ----------
        found : sequence
            From `reduced`.

        Returns
        -------
        tuple
            Sums over draws, and sums of powers of the rows' shares.
        """
        return DrawnSums.joined([drawn for drawn, _ in found]), found[0][1]

    def law_value(self, number: int) -> float | None:
        """What a plain rate or share would be by the law; None for other tasks."""
        task = self.tasks[number]
        if not is_rate(task):
            return None
        (ratio,) = {*task.ratios()}
        k = self.ratios.index(ratio)
        below = self.expected.below[number, k] if ratio.among_positives else self.totals.mass[k]
        return float(self.expected.above[number, k] / below)


@dataclass(frozen=True, eq=False)
class _Coefficients:
    """What a row's share in a task is made of, by ratio, (k,) each."""

    slope: FloatArray  # of the task in the ratio, over its denominator
    value: FloatArray  # of the ratio

    def shares(self, w: FloatArray, g: FloatArray, h: FloatArray, s: FloatArray) -> FloatArray:
        """Of the rows, (n,); h is that of the denominators, made of stand-ins where these count."""
        return np.asarray(w * (self.slope @ (g * s - self.value[:, None] * h)))


def _coefficients(
    task: Task, ratios: Sequence[Ratio], values: FloatArray, below: FloatArray
) -> _Coefficients:
    own = {*task.ratios()}
    used = np.array([ratio in own for ratio in ratios])
    slopes = slopes_at(task, ratios, values)
    safe = np.where(used & (below > 0), below, 1.0)
    slope = np.where(used, np.where(below > 0, slopes / safe, np.nan), 0.0)
    return _Coefficients(slope, np.where(used, values, 0.0))


@dataclass(frozen=True, eq=False)
class _TaskShares:
    """Coefficients of one task with labels, with probabilities and by its law."""

    labels: _Coefficients
    predicted: _Coefficients
    expected: _Coefficients


@dataclass(frozen=True, eq=False)
class LawSumsOfTasks(Additive):
    """Sums of powers of the rows' shares, one for each task."""

    tasks: tuple[LawSums, ...]


@dataclass(frozen=True, eq=False)
class _Sharing:
    """What the main pass sums of the rows' shares in every task."""

    ratios: tuple[Ratio, ...]
    tasks: tuple[_TaskShares, ...]
    laws: tuple[StreamedLaw, ...]

    def __call__(self, chunk: Chunk, w: FloatArray) -> LawSumsOfTasks:
        terms = [ratio.terms_of(chunk.points, w) for ratio in self.ratios]
        g, h = (np.array([pair[side] for pair in terms]) for side in (0, 1))
        labelled = np.array([r.among_positives for r in self.ratios], dtype=bool)[:, None]
        y, p = chunk.y, chunk.p
        found = []
        for own, law in zip(self.tasks, self.laws, strict=True):
            q = law.q(chunk.points, w)
            seen = own.labels.shares(w, g, np.where(labelled, h * y, h), y)
            plug_in = own.predicted.shares(w, g, np.where(labelled, h * p, h), p)
            by_law = own.expected.shares(w, g, np.where(labelled, h * q, h), q)
            lean = np.where(labelled, g - own.expected.value[:, None] * h, g)
            leaning = w * (own.expected.slope @ lean)
            found.append(LawSums.of(seen - plug_in, by_law - plug_in, leaning, q))
        return LawSumsOfTasks(tuple(found))


def task_pass(redraws: Redraws, tasks: Sequence[Task]) -> TaskPass:
    """Make the first passes over the rows: totals, laws, and the estimates by these.

    Parameters
    ----------
    redraws : Redraws
        All rows, and some of them at hand.
    tasks : sequence of Task
        The numbers, which have been checked on the rows at hand.

    Returns
    -------
    TaskPass
        Ready for the main pass.
    """
    ratios = tuple(dict.fromkeys(ratio for task in tasks for ratio in task.ratios()))
    names = tuple(sorted({name for task in tasks for name in task.names}))
    own = tuple(_places_of(task, ratios) for task in tasks)
    totals: RatioTotals = _summed(redraws, _Totalling(ratios, names, own))
    for ratio, mass in zip(ratios, totals.mass, strict=True):
        if not mass > 0:
            raise ratio.without_rows()
    laws = _laws(redraws, tasks, totals)
    expected: ExpectedTotals = _summed(redraws, _Expecting(ratios, laws))
    return TaskPass(redraws, tuple(tasks), ratios, totals, laws, expected, names)


def _places_of(task: Task, ratios: Sequence[Ratio]) -> list[int]:
    """Which ratios a task is made of, by number; too many are refused."""
    own = [ratios.index(ratio) for ratio in dict.fromkeys(task.ratios())]
    if len(own) > MAX_RATIOS:
        raise InputError(
            "{task} is made of {number} means, shares and rates; at most {most} can be read from "
            "very many rows",
            argument="tasks",
            value=task,
            details={"task": task, "number": len(own), "most": MAX_RATIOS},
        )
    return own


def _summed(redraws: Redraws, function: Any) -> Any:
    """What a function of chunks gives for all rows, in one pass without draws."""
    survey = redraws.survey
    return redraws.engine.run(survey, [], None, [RowwiseWork(function, survey.unit)]).works[0]


def _laws(redraws: Redraws, tasks: Sequence[Task], totals: RatioTotals) -> tuple[StreamedLaw, ...]:
    """The law of every task: fitted to the rows at hand, or by passes where these are too few."""
    found = []
    for task, groups in zip(tasks, totals.groups, strict=True):
        own = tuple(dict.fromkeys(task.ratios()))
        laws = _at_hand(redraws, own, groups)
        for _ in range(STEPS):
            open_ones = {key: law for key, law in laws.items() if not law.is_settled}
            if not open_ones:
                break
            sums: NewtonSums = _summed(redraws, _Stepping(own, open_ones))
            for key, law in open_ones.items():
                moved, length = law.stepped(sums.slopes[key], sums.curves[key])
                laws[key] = replace(moved, is_settled=length < ENOUGH)
        found.append(StreamedLaw(own, laws))
    return tuple(found)


def _at_hand(
    redraws: Redraws, ratios: tuple[Ratio, ...], groups: Mapping[int, FloatArray]
) -> dict[int, GroupLaw]:
    """Laws fitted to the rows at hand; those of few labels are not settled."""
    sample, extract = redraws.sample, redraws.extract
    assert extract is not None
    weights = extract.weights
    w = np.ones(sample.n) if weights is None else weights / redraws.survey.unit
    code = pattern([ratio.terms_of(sample.points, w)[1] > 0 for ratio in ratios])
    laws = {}
    for key, (mass, mass2, mass_y, ones, zeros) in groups.items():
        here = [ratio for k, ratio in enumerate(ratios) if (key >> k) & 1]
        rows = np.flatnonzero(code == key)
        mixed = 0 < mass_y < mass
        tilted = bool(here) and all(ratio.among_positives for ratio in here) and mixed
        quantities = tuple(dict.fromkeys(r.quantity for r in here)) if tilted else ()
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
