"""Regressions on very many rows: Newton's steps are passes, which all regressions share.

A first pass counts levels. Steps begin at what the rows at hand say, so that two or three suffice.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.bias import Redraws
from itrust.data import Points, Rows
from itrust.engines import Additive, RowwiseWork
from itrust.tasks.expressions import Leaf, Task
from itrust.tasks.fits import LeafFit
from itrust.tasks.links import NewtonStep, is_flat, solved
from itrust.tasks.quantities import Quantity
from itrust.tasks.refusals import (
    refuse_collinear,
    refuse_few,
    refuse_outcome,
    without_solution,
)
from itrust.tasks.regressions import Coefficient, CoefficientFit
from itrust.tasks.terms import (
    Frame,
    Regression,
    column_values,
    columns_of,
    first_levels,
    levels_of,
    scaled_frame,
)

STEPS = 40
SETTLED = 1e-7  # steps converge quadratically: after such a one, nothing is left to do
ENOUGH = 1e-4  # for what only says how uncertain a number is
MIN_AT_HAND = 50  # rows that tell how columns are spread


def summed(redraws: Redraws, function: Any) -> Any:
    """What a function of chunks gives for all rows, in one pass without draws."""
    survey = redraws.survey
    return redraws.engine.run(survey, [], None, [RowwiseWork(function, survey.unit)]).works[0]


class Law(Protocol):
    """What labels could have been."""

    def q(self, points: Points, w: FloatArray) -> FloatArray:
        """Probabilities of some rows, (n,)."""


@dataclass(frozen=True, eq=False)
class _Counts(Additive):
    """Rows that count for every regression: by level of its categories, and by label."""

    levels: tuple[Mapping[str, IntArray], ...]
    kinds: tuple[IntArray, ...]

    def __add__(self, other: Self) -> Self:
        levels = tuple(
            {name: one[name] + two[name] for name in one}
            for one, two in zip(self.levels, other.levels, strict=True)
        )
        kinds = tuple(one + two for one, two in zip(self.kinds, other.kinds, strict=True))
        return type(self)(levels, kinds)


@dataclass(frozen=True, eq=False)
class _Counting:
    """The pass that counts them."""

    regressions: tuple[Regression, ...]

    def __call__(self, chunk: Rows, w: FloatArray) -> _Counts:
        inside = [own.where.rows(chunk.points) & (w > 0) for own in self.regressions]
        pairs = list(zip(self.regressions, inside, strict=True))
        return _Counts(
            tuple(levels_of(regression, chunk.points, rows) for regression, rows in pairs),
            tuple(np.bincount((chunk.y[rows] > 0).astype(int), minlength=2) for rows in inside),
        )


@dataclass(frozen=True, eq=False)
class _Steps(Additive):
    """Newton's steps of several equations, and sums of z z' of several regressions."""

    steps: Mapping[Any, NewtonStep]  # by regression and kind
    grams: Mapping[Regression, FloatArray]

    def __add__(self, other: Self) -> Self:
        return type(self)(
            {key: one + other.steps[key] for key, one in self.steps.items()},
            {key: one + other.grams[key] for key, one in self.grams.items()},
        )


@dataclass(frozen=True, eq=False)
class _NewtonPass:
    """A pass that improves coefficients, by regression and by what stands for labels."""

    frames: Mapping[Regression, Frame]
    betas: Mapping[Any, FloatArray]  # by regression and kind: "y", "p", or the number of a law
    laws: Mapping[int, Law] = field(default_factory=dict)

    def __call__(self, chunk: Rows, w: FloatArray) -> _Steps:
        stand_ins: dict[Any, FloatArray] = {"y": chunk.y, "p": chunk.p}
        for number, law in self.laws.items():
            stand_ins[number] = law.q(chunk.points, w)
        steps, grams = {}, {}
        for regression in dict.fromkeys(regression for regression, _ in self.betas):
            frame = self.frames[regression]
            rows = np.flatnonzero(regression.where.rows(chunk.points) & (w > 0))
            design = frame.design(chunk.points, rows, chunk.first)
            own = w[rows]
            grams[regression] = (design * own[:, None]).T @ design
            for key, beta in self.betas.items():
                if key[0] == regression:
                    s = stand_ins[key[1]][rows]
                    steps[key] = NewtonStep.at(frame.link, beta, design, own, s)
        return _Steps(steps, grams)


@dataclass(frozen=True, eq=False)
class Solutions:
    """Regressions, solved on all rows."""

    frames: Mapping[Regression, Frame]
    betas: Mapping[Any, FloatArray]
    curves: Mapping[Any, FloatArray]
    points: Points
    chosen: Mapping[Regression, Mapping[str, Any]]

    def fit(self, leaf: Coefficient, kind: Hashable) -> LeafFit:
        """Take a coefficient; by a law that it has none of, that of labels."""
        frame = self.frames[leaf.regression]
        key = (leaf.regression, kind)
        if key not in self.betas:
            key = (leaf.regression, "y")
        position = leaf.position(frame.columns, self.points)
        return CoefficientFit.at(frame, self.betas[key], self.curves[key], position)

    def tilts(self, leaf: Leaf) -> tuple[Quantity, ...] | None:
        """What the law of labels follows for a leaf; None for rates."""
        if isinstance(leaf, Coefficient):
            columns = self.frames[leaf.regression].columns
            return tuple(column.quantity for column in columns)
        quantity = getattr(leaf, "quantity", None)
        return (quantity,) if leaf.among_positives and quantity is not None else None

    def references(self, task: Task) -> dict[str, Any]:
        """Levels that categories of a task are compared with, where none was chosen."""
        found: dict[str, Any] = {}
        for leaf in task.leaves():
            if isinstance(leaf, Coefficient):
                found |= self.chosen[leaf.regression]
        return found


def solve_regressions(redraws: Redraws, leaves: Sequence[Leaf]) -> Solutions:
    """Solve all regressions of some tasks, with labels and with probabilities."""
    coefficients = {leaf.regression: leaf for leaf in leaves if isinstance(leaf, Coefficient)}
    points = redraws.sample.points
    if not coefficients:
        return Solutions({}, {}, {}, points, {})
    regressions = tuple(coefficients)
    counts: _Counts = summed(redraws, _Counting(regressions))
    frames, chosen = {}, {}
    for regression, levels, kinds in zip(regressions, counts.levels, counts.kinds, strict=True):
        columns = columns_of(regression, points, levels)
        for leaf in leaves:
            if isinstance(leaf, Coefficient) and leaf.regression == regression:
                leaf.position(columns, points)
        refuse_few(coefficients[regression], len(columns), int(kinds[1]), int(kinds[0]))
        frames[regression] = _frame(redraws, regression, columns)
        chosen[regression] = first_levels(regression, points, levels)
    betas = {
        (regression, kind): _start(redraws, frames[regression], kind)
        for regression in regressions
        for kind in ("y", "p")
    }
    begun = Solutions(frames, betas, {}, points, chosen)
    return _solved(redraws, begun, coefficients, betas, {}, SETTLED)


def solve_expected(
    redraws: Redraws, tasks: Sequence[Task], laws: Sequence[Law], solutions: Solutions
) -> Solutions:
    """Solve the regressions of every task by its law, too, beginning at those of labels."""
    wanted = {
        (leaf.regression, number): leaf
        for number, task in enumerate(tasks)
        for leaf in task.leaves()
        if isinstance(leaf, Coefficient)
    }
    if not wanted:
        return solutions
    betas = {key: solutions.betas[key[0], "y"] for key in wanted}
    coefficients = {regression: leaf for (regression, _), leaf in wanted.items()}
    own = {number: laws[number] for _, number in wanted}
    return _solved(redraws, solutions, coefficients, betas, own, ENOUGH)


def _solved(
    redraws: Redraws,
    solutions: Solutions,
    coefficients: Mapping[Regression, Coefficient],
    betas: Mapping[Any, FloatArray],
    laws: Mapping[int, Law],
    enough: float,
) -> Solutions:
    """Make passes until all steps are short."""
    frames, left = solutions.frames, dict(betas)
    found, curves = {**solutions.betas}, {**solutions.curves}
    for number in range(STEPS):
        sums: _Steps = summed(redraws, _NewtonPass(frames, left, laws))
        if number == 0:
            for regression, gram in sums.grams.items():
                refuse_collinear(frames[regression], gram)
        for key, own in sums.steps.items():
            step = own.step()
            longest = float(np.abs(step).max())
            if not np.isfinite(longest):
                raise _unsolved(redraws, coefficients[key[0]], frames[key[0]], key[1])
            found[key] = left[key] + step / max(1.0, longest)
            curves[key] = own.curve
            left[key] = found[key]
            if longest < enough:
                if is_flat(own.curve, sums.grams[key[0]]):
                    raise _unsolved(redraws, coefficients[key[0]], frames[key[0]], key[1])
                del left[key]
        if not left:
            return replace(solutions, betas=found, curves=curves)
    key = next(iter(left))
    raise _unsolved(redraws, coefficients[key[0]], frames[key[0]], key[1])


def _unsolved(redraws: Redraws, leaf: Coefficient, frame: Frame, kind: Hashable) -> Exception:
    """The error about a regression without finite coefficients, told by the rows at hand."""
    sample = redraws.sample
    rows = np.flatnonzero(leaf.inside_of(sample.points, np.ones(sample.n)))
    s = sample.p if kind == "p" else sample.y
    return without_solution(leaf, frame, frame.values(sample.points, rows), s[rows])


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
    sample, extract = redraws.sample, redraws.extract
    weights = None if extract is None else extract.weights
    w = np.ones(sample.n) if weights is None else weights / redraws.survey.unit
    rows, design = frame.rows_of(sample.points, w)
    s = (sample.y if kind == "y" else sample.p)[rows]
    found = solved(frame.link, design, w[rows], design.T @ (w[rows] * s)) if rows.size else None
    if found is None:
        found = np.zeros(1 + len(frame.columns))
        found[0] = frame.link.start(float(s.mean()) if rows.size else 0.5)
    return found
