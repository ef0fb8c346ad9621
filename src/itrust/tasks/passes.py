"""Tasks on very many rows: everything they need is a sum over rows, so passes suffice.

A first pass sums numerators and denominators with labels and with probabilities. The smoothed law
of labels is fitted to the rows at hand, with the totals of all. One more pass gives the estimate by
that law; and the main pass, shared with the test, sums squares of the rows' shares and what redrawn
labels make of every task. Regressions are solved by Newton's steps, each of them a pass that all
share: a first pass counts levels, and steps begin at what the rows at hand say, so that two or
three suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from itrust._core import FloatArray, InputError, IntArray
from itrust.bias import Redraws
from itrust.data import Missing, Points, Rows
from itrust.engines import Additive, Work, rowwise_work
from itrust.tasks.arithmetic import Quantity
from itrust.tasks.expressions import (
    Leaf,
    LeafFit,
    Ratio,
    RatioFit,
    Task,
    TaskFit,
    TaskRows,
    leaves_of,
)
from itrust.tasks.regressions import (
    Coefficient,
    CoefficientFit,
    refuse_collinear,
    refuse_few,
    refuse_outcome,
    solved,
    without_solution,
)
from itrust.tasks.terms import (
    Frame,
    Regression,
    column_values,
    columns_of,
    first_levels,
    levels_of,
    scaled_frame,
)
from itrust.tasks.uncertainty import (
    FEW_LABELS,
    MIN_RANKED,
    GroupLaw,
    followed,
    group_law,
    is_rate,
    kish_of,
    law_sums,
)
from itrust.terms import RegressionRows, RegressionSums, is_flat

MIN_LABELS = 50  # of either kind among the rows at hand, for their law to follow quantities
MAX_RATIOS = 60  # and coefficients of a task, which are bits of a number
MIN_AT_HAND = 50  # rows that tell how columns are spread
STEPS = 50
SETTLED = 1e-7  # steps converge quadratically: after such a one, nothing is left to do


@dataclass(frozen=True, eq=False)
class SumsByKey(Additive):
    """Sums of many things; what a part of the rows lacks counts nothing there.

    Of some things the largest value counts (`most`).
    """

    of: Mapping[Any, Any]
    most: Any = -math.inf

    def __add__(self, other: Self) -> Self:
        total = dict(self.of)
        for key, own in other.of.items():
            total[key] = total[key] + own if key in total else own
        return type(self)(total, np.maximum(self.most, other.most))


def summed(redraws: Redraws, function: Callable[..., Any], *given: Any) -> Any:
    """What a function of chunks and weights gives for all rows, in one pass without draws."""
    work = rowwise_work(partial(function, *given), redraws.survey.unit)
    return redraws.engine.run(redraws.survey, [], None, [work]).works[0]


def weights_at_hand(redraws: Redraws) -> FloatArray:
    """Weights of the rows at hand, in the unit of all rows."""
    extract = redraws.extract
    weights = None if extract is None else extract.weights
    return np.ones(redraws.sample.n) if weights is None else weights / redraws.survey.unit


# --- regressions ----------------------------------------------------------------------------------


def _counted(regressions: Sequence[Regression], chunk: Rows, w: FloatArray) -> SumsByKey:
    """Rows that count for every regression: by level of its categories, and by label."""
    counts: dict[Any, IntArray] = {}
    for regression in regressions:
        inside = regression.where.rows(chunk.points) & (w > 0)
        for name, levels in levels_of(regression, chunk.points, inside).items():
            counts[regression, name] = levels
        ones = (chunk.y[inside] > 0).astype(int)
        counts[regression, None] = np.bincount(ones, minlength=2)
    return SumsByKey(counts)


def _stepped(
    frames: Mapping[Regression, Frame],
    betas: Mapping[tuple[Regression, str], FloatArray],
    chunk: Rows,
    w: FloatArray,
) -> SumsByKey:
    """Sums for a step of coefficients, by regression and by what stands for labels, "y" or "p".

    Sums of z z' of every regression come with it.
    """
    stand_ins = {"y": chunk.y, "p": chunk.p}
    sums: dict[Any, Any] = {}
    for regression in dict.fromkeys(regression for regression, _ in betas):
        frame = frames[regression]
        rows = np.flatnonzero(regression.where.rows(chunk.points) & (w > 0))
        design = frame.design(chunk.points, rows, chunk.first)
        own = w[rows]
        sums[regression] = (design * own[:, None]).T @ design
        for key, beta in betas.items():
            if key[0] == regression:
                some = RegressionRows(design, stand_ins[key[1]][rows], own)
                sums[key] = RegressionSums.at(frame.link, beta, some)
    return SumsByKey(sums)


@dataclass(frozen=True, eq=False)
class Solutions:
    """Regressions, solved on all rows, by what stands for labels."""

    leaves: Mapping[Regression, Coefficient]
    frames: Mapping[Regression, Frame]
    betas: Mapping[tuple[Regression, str], FloatArray]
    curves: Mapping[tuple[Regression, str], FloatArray]
    points: Points
    chosen: Mapping[Regression, Mapping[str, Any]]

    @classmethod
    def of(cls, redraws: Redraws, leaves: Sequence[Leaf]) -> Solutions:
        """Solve all regressions of some tasks, with labels and with probabilities."""
        coefficients = [leaf for leaf in leaves if isinstance(leaf, Coefficient)]
        points, by_regression = redraws.sample.points, {own.regression: own for own in coefficients}
        begun = cls(by_regression, {}, {}, {}, points, {})
        if not coefficients:
            return begun
        counts = summed(redraws, _counted, tuple(by_regression)).of
        frames, chosen = {}, {}
        for regression, leaf in by_regression.items():
            levels = {name: own for (of, name), own in counts.items() if of == regression and name}
            columns = columns_of(regression, points, levels)
            for own in coefficients:
                if own.regression == regression:
                    own.position(columns, points)
            zeros, ones = counts[regression, None]
            refuse_few(leaf, len(columns), int(ones), int(zeros))
            frames[regression] = _frame(redraws, regression, columns)
            chosen[regression] = first_levels(regression, points, levels)
        starts = {
            (regression, kind): _start(redraws, frame, kind)
            for regression, frame in frames.items()
            for kind in ("y", "p")
        }
        return replace(begun, frames=frames, chosen=chosen)._solved(redraws, starts)

    def _solved(
        self, redraws: Redraws, starts: Mapping[tuple[Regression, str], FloatArray]
    ) -> Solutions:
        """Make passes, which all equations share, until all steps are short."""
        left, betas = list(starts), dict(starts)
        grams, curves = dict[Regression, FloatArray](), dict[Any, FloatArray]()
        for _ in range(STEPS):
            sums = summed(redraws, _stepped, self.frames, {key: betas[key] for key in left}).of
            for key in tuple(left):
                regression, own = key[0], sums[key]
                if regression not in grams:
                    grams[regression] = sums[regression]
                    refuse_collinear(self.frames[regression], sums[regression])
                step, curves[key] = own.step(), own.curve
                longest = float(np.abs(step).max())
                is_last = longest < SETTLED
                flat = is_last and is_flat(own.curve, grams[regression])
                if flat or not math.isfinite(longest):
                    raise self._unsolved(redraws, *key)
                betas[key] = betas[key] + step / max(1.0, longest)
                if is_last:
                    left.remove(key)
            if not left:
                return replace(self, betas=betas, curves=curves)
        raise self._unsolved(redraws, *left[0])

    def _unsolved(self, redraws: Redraws, regression: Regression, kind: str) -> InputError:
        """The error about a regression without finite coefficients, told by the rows at hand."""
        sample, leaf, frame = redraws.sample, self.leaves[regression], self.frames[regression]
        rows = np.flatnonzero(leaf.inside_of(sample.points, np.ones(sample.n)))
        s = sample.p if kind == "p" else sample.y
        return without_solution(leaf, frame, frame.values(sample.points, rows), s[rows])

    def fit(self, leaf: Coefficient, kind: str) -> LeafFit:
        """Take a coefficient."""
        frame, key = self.frames[leaf.regression], (leaf.regression, kind)
        position = leaf.position(frame.columns, self.points)
        return CoefficientFit.at(frame, self.betas[key], self.curves[key], position)

    def tilts(self, leaf: Leaf) -> tuple[Quantity, ...] | None:
        """What the law of labels follows for a leaf; None for rates."""
        if isinstance(leaf, Coefficient):
            return tuple(column.quantity for column in self.frames[leaf.regression].columns)
        return leaf.tilts(None)

    def references(self, task: Task) -> dict[str, Any]:
        """Levels that categories of a task are compared with, where none was chosen."""
        chosen: dict[str, Any] = {}
        for leaf in task.leaves():
            if isinstance(leaf, Coefficient):
                chosen |= self.chosen[leaf.regression]
        return chosen


def _frame(redraws: Redraws, regression: Regression, columns: Any) -> Frame:
    """Columns scaled by the rows at hand; these also tell labels and predictions among them."""
    sample = redraws.sample
    rows = np.flatnonzero(regression.where.rows(sample.points))
    if rows.size < MIN_AT_HAND:
        points = sample.points
        values = np.column_stack([column.quantity.of(points) for column in columns])
        return scaled_frame(regression, columns, values[np.isfinite(values).all(axis=1)])
    values = column_values(regression, columns, sample.points, rows)
    for k, column in enumerate(columns):
        refuse_outcome(column, values[:, k], sample.y[rows], sample.p[rows])
    return scaled_frame(regression, columns, values)


def _start(redraws: Redraws, frame: Frame, kind: str) -> FloatArray:
    """Coefficients by the rows at hand; zeros with a mean where these do not suffice."""
    sample, w = redraws.sample, weights_at_hand(redraws)
    rows, design = frame.rows_of(sample.points, w)
    s = (sample.y if kind == "y" else sample.p)[rows]
    solution = solved(frame.link, design, w[rows], design.T @ (w[rows] * s)) if rows.size else None
    if solution is not None:
        return solution[0]
    beta = np.zeros(1 + len(frame.columns))
    beta[0] = frame.link.start(float(s.mean()) if rows.size else 0.5)
    return beta


# --- ratios and laws ------------------------------------------------------------------------------


def _totalled(
    leaves: Sequence[Leaf],
    names: Sequence[str],
    tasks: Sequence[list[int]],  # which of the leaves each task is made of
    chunk: Rows,
    w: FloatArray,
) -> SumsByKey:
    """The first pass: numerators and denominators of k leaves; g of coefficients is 0.

    By a task and by which of its leaves count them: weights, their squares, positives and rows.
    """
    terms = [leaf.terms_of(chunk.points, w, chunk.first) for leaf in leaves]
    g, h = (np.array([pair[side] for pair in terms]) for side in (0, 1))
    labels = np.array([chunk.y, chunk.p, np.ones(w.size)])
    mass, inside = w * h, h > 0
    sums: dict[Any, Any] = {
        "above": (w * labels[:2]) @ g.T,  # with labels and with probabilities
        "mass": labels @ mass.T,  # with these, and of all rows
        "squares": np.array([chunk.y, 1 - chunk.y]) @ np.square(mass).T,
    }
    for name in names:
        sums["missing", name] = int(Missing(name).rows(chunk.points).sum())
    for number, own in enumerate(tasks):
        keys, code = np.unique(pattern(inside[own]), return_inverse=True)
        totals = [np.bincount(code, one) for one in (w, w**2, w * chunk.y, np.ones(w.size))]
        for key, total in zip(keys.tolist(), np.transpose(totals), strict=True):
            sums[number, key] = total
    return SumsByKey(sums, np.array([np.where(inside, x, -np.inf).max(axis=1) for x in (-g, g)]))


def pattern(inside: Any) -> IntArray:
    """Which of k conditions a row meets, as bits, (n,)."""
    bits = 2 ** np.arange(len(inside), dtype=np.int64)
    return np.asarray(bits @ np.asarray(inside, dtype=np.int64))


# What labels could have been, for every group of rows that some leaves tell apart.
StreamedLaw = tuple[Sequence[Leaf], Mapping[int, GroupLaw]]


def _probabilities(law: StreamedLaw, points: Points, w: FloatArray) -> FloatArray:
    """Probabilities of some rows by a law, (n,)."""
    leaves, laws = law
    code, q = pattern([leaf.inside_of(points, w) for leaf in leaves]), np.array(points.p)
    for key in np.unique(code).tolist():
        if key in laws:
            rows = np.flatnonzero(code == key)
            q[rows] = laws[key](points.take(rows))
    return q


def _law(
    redraws: Redraws, task: Task, groups: Mapping[int, FloatArray], solutions: Solutions
) -> StreamedLaw:
    """The law of a task, which has the totals of all rows, fitted to the rows at hand."""
    sample, w, leaves = redraws.sample, weights_at_hand(redraws), leaves_of([task])
    code, laws = pattern([leaf.inside_of(sample.points, w) for leaf in leaves]), {}
    for key, totals in groups.items():
        here = [leaf for k, leaf in enumerate(leaves) if (key >> k) & 1]
        rows = np.flatnonzero(code == key)
        points, y = sample.points.take(rows), sample.y[rows]
        ranked = points if rows.size >= MIN_RANKED else sample.points
        quantities: tuple[Quantity, ...] = ()
        if min(y.sum(), rows.size - y.sum()) >= MIN_LABELS:
            quantities = followed(here, [solutions.tilts(leaf) for leaf in here])
        laws[key] = group_law(quantities, totals, ranked, y, points, w[rows])
    return leaves, laws


def _expected(
    leaves: Sequence[Leaf],
    laws: Sequence[StreamedLaw],
    predicted: Mapping[Leaf, LeafFit],
    chunk: Rows,
    w: FloatArray,
) -> SumsByKey:
    """Sums that give every task by its law; and what carries coefficients."""
    terms = [leaf.terms_of(chunk.points, w) for leaf in leaves]
    g, h = (np.array([pair[side] for pair in terms]) for side in (0, 1))
    q = np.array([_probabilities(law, chunk.points, w) for law in laws])
    moved = np.zeros((len(leaves), w.size))
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, Coefficient):
            moved[k] = np.abs(predicted[leaf].lean(chunk.points, w))
    powers = [own @ kind for kind in (chunk.y, 1 - chunk.y) for own in (moved, moved**2)]
    sums = {"above": (w * q) @ g.T, "below": (w * q) @ h.T, "carried": np.array(powers)}
    return SumsByKey(sums)


@dataclass(frozen=True, eq=False)
class TaskPass:
    """Tasks on rows that are not all at hand: what the first passes over them tell."""

    redraws: Redraws
    tasks: tuple[Task, ...]
    leaves: tuple[Leaf, ...]
    totals: SumsByKey
    solutions: Solutions
    laws: tuple[StreamedLaw, ...]

    @classmethod
    def of(cls, redraws: Redraws, tasks: Sequence[Task]) -> TaskPass:
        """Make the first passes over the rows: totals and laws."""
        leaves = leaves_of(tasks)
        names = tuple(sorted({name for task in tasks for name in task.names}))
        own = tuple(_places_of(task, leaves) for task in tasks)
        totals: SumsByKey = summed(redraws, _totalled, leaves, names, own)
        for leaf, mass in zip(leaves, totals.of["mass"][2], strict=True):
            if not mass > 0:
                raise leaf.without_rows()
        solutions = Solutions.of(redraws, leaves)
        laws = tuple(
            _law(
                redraws,
                task,
                {key[1]: own for key, own in totals.of.items() if key[0] == number},
                solutions,
            )
            for number, task in enumerate(tasks)
        )
        return cls(redraws, tuple(tasks), leaves, totals, solutions, laws)

    @cached_property
    def expected(self) -> Mapping[str, FloatArray]:
        """One more pass: sums that give every task by its law, and what carries coefficients."""
        function = _expected, self.leaves, self.laws, self.fits("p")
        sums: SumsByKey = summed(self.redraws, *function)
        return sums.of

    def fits(self, kind: str) -> dict[Leaf, LeafFit]:
        """The leaves with labels ("y") or with probabilities ("p")."""
        row = "yp".index(kind)
        return self._fits(self.totals.of["above"][row], self.totals.of["mass"][row], kind)

    def _fits(self, above: FloatArray, positive: FloatArray, kind: str) -> dict[Leaf, LeafFit]:
        """Ratios from their sums, (k,) each, NaN over nothing; and coefficients as solved."""
        fits: dict[Leaf, LeafFit] = {}
        everyone = self.totals.of["mass"][2]
        for leaf, up, ones, rows in zip(self.leaves, above, positive, everyone, strict=True):
            if isinstance(leaf, Coefficient):
                fits[leaf] = self.solutions.fit(leaf, kind)
            elif isinstance(leaf, Ratio):
                down = float(ones if leaf.among_positives else rows)
                fits[leaf] = RatioFit(leaf, float(up / down) if down > 0 else math.nan, down)
        return fits

    @cached_property
    def fitted(self) -> list[tuple[TaskFit, TaskFit, TaskFit]]:
        """Every task with labels, with probabilities and by its law.

        Coefficients by the law are those of labels, which it smooths.
        """
        sums = zip(self.expected["above"], self.expected["below"], strict=True)
        kinds = self.fits("y"), self.fits("p")
        return [
            (
                TaskFit.of(task, kinds[0]),
                TaskFit.of(task, kinds[1]),
                TaskFit.of(task, self._fits(*own, "y")),
            )
            for task, own in zip(self.tasks, sums, strict=True)
        ]

    @property
    def sharing(self) -> Work:
        """What the main pass sums of the rows' shares in every task: `law_sums` by number."""
        return rowwise_work(partial(_shares, self.fitted, self.laws), self.redraws.survey.unit)

    def few(self, task: Task) -> bool:
        """Whether so few labels carry a task that its interval is rough."""
        return any(self._carriers(self.leaves.index(leaf)) < FEW_LABELS for leaf in task.leaves())

    def _carriers(self, k: int) -> float:
        """How many equal labels would say as much as those that carry a leaf, of the rarer kind."""
        leaf, (ones, _, rows) = self.leaves[k], self.totals.of["mass"][:, k]
        squares = self.totals.of["squares"][:, k]
        kinds = [kish_of(ones, squares[0])]
        if not leaf.among_positives:
            kinds.append(kish_of(rows - ones, squares[1]))
        if isinstance(leaf, Coefficient):
            own = self.expected["carried"][:, k]
            kinds = [kind / leaf.labels_each for kind in kinds]
            kinds += [kish_of(own[0], own[1]), kish_of(own[2], own[3])]
        return min(kinds)

    def bounds(self, task: Task) -> Any:
        """What a task can be, whatever the labels are."""
        low, high = self.totals.most
        ends = zip(self.leaves, (-low).tolist(), high.tolist(), strict=True)
        return task.bounds_of({leaf: leaf.between(*own) for leaf, *own in ends})

    def smoothed_rate(self, number: int) -> float | None:
        """What a plain rate or share would be by the law; None for other tasks."""
        return self.fitted[number][2].value if is_rate(self.tasks[number]) else None


def _shares(
    tasks: Sequence[tuple[TaskFit, TaskFit, TaskFit]],
    laws: Sequence[StreamedLaw],
    chunk: Rows,
    w: FloatArray,
) -> SumsByKey:
    """Sums of powers of the rows' shares in every task."""
    sums = {}
    for number, (fitted, law) in enumerate(zip(tasks, laws, strict=True)):
        q = _probabilities(law, chunk.points, w)
        rows = [TaskRows(chunk.points, w, s) for s in (chunk.y, chunk.p, q)]
        labels, plug_in, expected = (fit.shares(own) for fit, own in zip(fitted, rows, strict=True))
        lean = fitted[2].lean(rows[2])
        sums[number] = law_sums(labels - plug_in, expected - plug_in, lean, q[:, None])
    return SumsByKey(sums)


def _places_of(task: Task, leaves: Sequence[Leaf]) -> list[int]:
    """Which leaves a task is made of, by number; too many are refused."""
    own = [leaves.index(leaf) for leaf in leaves_of([task])]
    if len(own) > MAX_RATIOS:
        problem = (
            "{task} is made of {number} means, shares, rates and coefficients; at most {most} can "
            "be read from very many rows"
        )
        told = {"task": task, "number": len(own), "most": MAX_RATIOS}
        raise InputError(problem, argument="tasks", value=task, details=told)
    return own
