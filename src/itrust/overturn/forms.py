"""Numbers as functions of what stands for labels: ranges over laws, and what a label moves.

Rates, shares, means, gaps between rates and quotients of rates are one affine function of the
labels divided by another. Whether such a fraction can be above a value is a question about one sum,
for laws and for flipped labels. What is made of several fractions is put together from these.

Where labels follow a violated law, the law without the violation lies between two functions of the
violated one in every row, the lower one convex and the upper one concave. By Jensen's inequality a
weighted sum of it over some rows lies between these functions of the weighted mean, which the
labels tell, whatever the single rows are (`end`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np

from itrust._core import BoolArray, FloatArray
from itrust.tasks import (
    ARITHMETIC,
    Bounds,
    Coefficient,
    Combined,
    Linearised,
    Named,
    Ratio,
    Task,
    TaskRows,
)

Value = TypeVar("Value", Linearised, Bounds)
# From probabilities with a violation to the smallest and the largest without it.
Origins = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
MOST_STEPS = 1e9  # times the value, beyond which a number has no end


class RangePrecision(StrEnum):
    """How well is known what a number may be without a violation.

    Attributes
    ----------
    EXACT
        Some law that has the weighted means of the labels gives each end.
    BOUND
        No law goes beyond the ends; the number may keep its finding longer than is said.
    FIRST_ORDER
        The number is replaced by its tangent, as coefficients of regressions are.
    """

    EXACT = "exact"
    BOUND = "bound"
    FIRST_ORDER = "first order"


End = Callable[[Origins], float]  # the smallest, or the largest, that a number may be


@dataclass(frozen=True, eq=False)
class Fraction:
    """(top0 + sum of top s) / (bottom0 + sum of bottom s), with a bottom that is not negative.

    Examples
    --------
    A rate of 0.5, if the odds of labels may be off by a factor of 1.5:

    >>> import itrust as it
    >>> import numpy as np
    >>> rate = Fraction(np.ones(4), 0.0, np.zeros(4), 4.0)
    >>> y, origins = np.array([0.0, 1.0, 1.0, 0.0]), it.nulls.Selection(1.5).origins
    >>> [round(rate.end(y, upper=upper)(origins), 2) for upper in (False, True)]
    [0.4, 0.6]
    """

    top: FloatArray
    top0: float
    bottom: FloatArray
    bottom0: float
    precision: RangePrecision = RangePrecision.EXACT

    @property
    def is_number(self) -> bool:
        """Whether no label counts."""
        return not (self.top.any() or self.bottom.any())

    @property
    def scaled(self) -> Fraction:
        """The same over 1, where the denominator is a number."""
        if self.bottom.any() or self.bottom0 == 0:
            return self
        return replace(self, top=self.top / self.bottom0, top0=self.top0 / self.bottom0, bottom0=1)

    def leaning(self, stand_in: FloatArray) -> Linearised:
        """Divide, and take the derivatives."""
        below = self.bottom0 + float(self.bottom @ stand_in)
        if not below > 0:
            return Linearised(math.nan, np.full(self.top.size, math.nan))
        value = (self.top0 + float(self.top @ stand_in)) / below
        return Linearised(value, (self.top - value * self.bottom) / below)

    def end(self, y: FloatArray, *, upper: bool) -> End:
        """Say what it may be at most, or at least, without a violation, from labels with it."""
        if upper:
            return _farthest(self, y)
        farthest = _farthest(replace(self, top=-self.top, top0=-self.top0), y)
        return lambda origins: -farthest(origins)

    @property
    def moved_by(self) -> BoolArray:
        """Rows that add something above or below."""
        return np.asarray((self.top != 0) | (self.bottom != 0))

    def undefined_after(self, y: FloatArray) -> float:
        """All positives that the denominator is made of."""
        if self.bottom0 > 0 or not self.bottom.any():
            return math.inf
        return float(np.count_nonzero(self.bottom * y))


def _farthest(form: Fraction, y: FloatArray) -> End:
    """How large a fraction can be without a violation, from labels with it.

    The value less `start` is sought: tops are taken less `start` times the bottoms, so that sums of
    large numbers do not cancel. Rows raise the numerator less a value times the denominator where
    the quotient of what they add is above the value, so rows are sorted by it and summed from both
    ends.
    """
    counts, start = form.moved_by, float(form.leaning(y).value)
    bottom, y = form.bottom[counts], y[counts]
    top = form.top[counts] - start * bottom
    top0, bottom0 = form.top0 - start * form.bottom0, form.bottom0
    quotients = np.where(top > 0, np.inf, -np.inf)
    with np.errstate(over="ignore"):
        np.divide(top, bottom, out=quotients, where=bottom > 0)
    order = np.argsort(quotients, kind="stable")
    quotients = quotients[order]
    rows = np.column_stack([top, bottom, top * y, bottom * y])[order]
    fallen, risen = np.zeros((len(rows) + 1, 4)), np.zeros((len(rows) + 1, 4))
    np.cumsum(rows, axis=0, out=fallen[1:])
    np.cumsum(rows[::-1], axis=0, out=risen[-2::-1])
    most = float(quotients[-1]) if quotients.size else -math.inf
    if bottom0 > 0:
        most = max(most, top0 / bottom0)
    elif top0 > 0:
        most = math.inf

    def excess(value: float, origins: Origins) -> float:
        """Most that top0 + top s - value (bottom0 + bottom s) can be without the violation."""
        at = int(quotients.searchsorted(value, side="right"))
        top, bottom, seen_top, seen_bottom = risen[at].tolist()
        up, seen_up = top - value * bottom, seen_top - value * seen_bottom
        top, bottom, seen_top, seen_bottom = fallen[at].tolist()
        down, seen_down = value * bottom - top, value * seen_bottom - seen_top
        shares = np.array([_share(seen_up, up), _share(seen_down, down)])
        low, high = origins(shares)
        moved = max(up, 0.0) * abs(high[0] - shares[0]) + max(down, 0.0) * abs(low[1] - shares[1])
        return float(top0 - value * bottom0 + seen_up - seen_down + moved)

    def farthest(origins: Origins) -> float:
        """The value at which that most is 0; it falls as the value rises, from 0 or above."""
        if math.isnan(start):
            return math.inf
        at_start = excess(0.0, origins)
        if not fallen[-1, 1]:  # no label is in the denominator
            return start + at_start / bottom0
        if at_start <= 0 or most <= 0:
            return start
        scale = max(abs(start), 1e-3)
        step = min(scale, most)
        while step < most and excess(step, origins) > 0:
            step *= 2
            if step > MOST_STEPS * max(scale, 1.0):
                return math.inf
        step = min(step, most)
        precision = 1e-12 * max(abs(start), step)
        if excess(step, origins) > 0:
            return start + step + precision
        # With the precision added it is never short of the crossing.
        found = crossing(lambda value: excess(value, origins), 0.0, step, precision)
        return start + found + precision

    return farthest


def _share(seen: float, mass: float) -> float:
    """A weighted mean of labels, whatever rounding makes of its parts."""
    return min(max(seen / mass, 0.0), 1.0) if mass > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Joined:
    """Two numbers and an arithmetic sign."""

    left: Form
    sign: str
    right: Form

    @property
    def apart(self) -> bool:
        """Whether no label counts on both sides."""
        return not (self.left.moved_by & self.right.moved_by).any()

    @property
    def precision(self) -> RangePrecision:
        """Exact where both sides are and no label counts twice."""
        sides = {self.left.precision, self.right.precision}
        return (
            RangePrecision.EXACT
            if self.apart and sides == {RangePrecision.EXACT}
            else RangePrecision.BOUND
        )

    def leaning(self, stand_in: FloatArray) -> Linearised:
        """Join values and derivatives."""
        return _joined(self.sign, self.left.leaning(stand_in), self.right.leaning(stand_in))

    def end(self, y: FloatArray, *, upper: bool) -> End:
        """Join what both sides may be by the arithmetic of intervals."""
        sides = [
            [side.end(y, upper=own) for own in (False, True)] for side in (self.left, self.right)
        ]

        def joined(origins: Origins) -> float:
            left, right = (Bounds(*(end(origins) for end in ends)) for ends in sides)
            both = _joined(self.sign, left, right)
            return both.upper if upper else both.lower

        return joined

    @property
    def moved_by(self) -> BoolArray:
        """Rows that move either side."""
        return np.asarray(self.left.moved_by | self.right.moved_by)

    def undefined_after(self, y: FloatArray) -> float:
        """As many as make one side undefined."""
        return min(self.left.undefined_after(y), self.right.undefined_after(y))


Form = Fraction | Joined  # a number as a function of what stands for the labels of some rows


def form_of(task: Task, rows: TaskRows) -> Form:
    """Write a task as a function of what stands for labels."""
    if any(isinstance(leaf, Coefficient) for leaf in task.leaves()):
        fit = task.fitted(rows)
        slope = fit.lean(rows)[:, 0]
        offset = fit.value - float(slope @ rows.stand_in[:, 0])
        return Fraction(slope, offset, np.zeros(slope.size), 1.0, RangePrecision.FIRST_ORDER)
    while isinstance(task, Named):
        task = task.task
    if isinstance(task, Ratio):
        return _of_ratio(task, rows)
    if not isinstance(task, Combined):  # a number
        none = np.zeros(rows.weights.size)
        return Fraction(none, task.linear(rows).value, none, 1.0)
    left, right = form_of(task.left, rows), form_of(task.right, rows)
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        one = _one_fraction(left.scaled, task.sign, right.scaled)
        if one is not None:
            return one
    return Joined(left, task.sign, right)


def _of_ratio(task: Ratio, rows: TaskRows) -> Fraction:
    g, h = task.terms_of(rows.points, rows.weights)
    top, below = rows.weights * g, rows.weights * h
    if task.among_positives:
        return Fraction(top, 0.0, below, 0.0)
    return Fraction(top, 0.0, np.zeros(top.size), float(below.sum()))


def _one_fraction(left: Fraction, sign: str, right: Fraction) -> Fraction | None:
    """Two fractions joined to one, where arithmetic lets them be one."""
    if sign in ("+", "-"):
        turn = 1.0 if sign == "+" else -1.0
        if right.is_number:
            added = turn * right.top0
            return replace(
                left, top=left.top + added * left.bottom, top0=left.top0 + added * left.bottom0
            )
        if left.is_number:
            turned = replace(right, top=turn * right.top, top0=turn * right.top0)
            return _one_fraction(turned, "+", left)
        if not _same_below(left, right):
            return None
        return replace(left, top=left.top + turn * right.top, top0=left.top0 + turn * right.top0)
    if sign == "*":
        if left.is_number:
            left, right = right, left
        if not right.is_number:
            return None
        return replace(left, top=left.top * right.top0, top0=left.top0 * right.top0)
    return _quotient(left, right)


def _quotient(left: Fraction, right: Fraction) -> Fraction | None:
    if right.is_number:
        if right.top0 == 0:
            return None
        return replace(left, top=left.top / right.top0, top0=left.top0 / right.top0)
    if left.is_number:
        left = replace(right, top=left.top0 * right.bottom, top0=left.top0 * right.bottom0)
    elif not _same_below(left, right):
        return None
    if min(float(right.top.min()), right.top0) < 0:
        return None  # the denominator may change its sign
    return replace(left, bottom=right.top, bottom0=right.top0)


def _same_below(left: Fraction, right: Fraction) -> bool:
    return left.bottom0 == right.bottom0 and bool(np.array_equal(left.bottom, right.bottom))


def _joined(sign: str, left: Value, right: Value) -> Value:
    with np.errstate(over="ignore", invalid="ignore"):
        both: Value = ARITHMETIC[sign](left, right)
    return both


def crossing(
    function: Callable[[float], float], low: float, high: float, precision: float
) -> float:
    """Find where a function crosses 0, up to the precision.

    Examples
    --------
    >>> round(crossing(lambda x: 2 - x * x, 0.0, 2.0, 1e-9), 6)
    1.414214
    """
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=precision, rtol=1e-14))
