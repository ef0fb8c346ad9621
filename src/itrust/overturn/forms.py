"""Numbers as functions of what stands for labels: ranges over laws, and what a label moves.

Rates, shares, means, gaps between rates and quotients of rates are one affine function of the
labels divided by another. Whether such a fraction can be above a value is a question about one sum,
for laws and for flipped labels. What is made of several fractions is put together from these.

Where labels follow a violated law, the law without the violation lies between two functions of the
violated one in every row, the lower one convex and the upper one concave. By Jensen's inequality a
weighted sum of it over some rows lies between these functions of the weighted mean, which the
labels tell, whatever the single rows are (`reach`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np

from itrust._core import BoolArray, FloatArray
from itrust.tasks import (
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


class Reach(NamedTuple):
    """What a number may be without a violation, from some labels with it."""

    lower: Callable[[Origins], float]
    upper: Callable[[Origins], float]

    def __call__(self, origins: Origins) -> Bounds:
        """Both ends."""
        return Bounds(self.lower(origins), self.upper(origins))


class Form(ABC):
    """A number as a function of what stands for the labels of some rows."""

    precision: RangePrecision

    @abstractmethod
    def leaning(self, stand_in: FloatArray) -> Linearised:
        """Give the number and its derivatives in the stand-ins."""

    @abstractmethod
    def reaching(self, y: FloatArray) -> Reach:
        """Prepare `reach` for some labels and many violations."""

    def reach(self, y: FloatArray, origins: Origins) -> Bounds:
        """Bound what the number may be without a violation, from labels with it."""
        return self.reaching(y)(origins)

    @property
    @abstractmethod
    def moved_by(self) -> BoolArray:
        """Mark the rows whose labels count, (n,)."""

    @abstractmethod
    def undefined_after(self, y: FloatArray) -> float:
        """Say how many positives must be flipped until there is nothing to divide by."""


@dataclass(frozen=True, eq=False)
class Fraction(Form):
    """(top0 + sum of top s) / (bottom0 + sum of bottom s), with a bottom that is not negative.

    Examples
    --------
    A rate of 0.5, if the odds of labels may be off by a factor of 1.5:

    >>> import itrust as it
    >>> import numpy as np
    >>> rate = Fraction(np.ones(4), 0.0, np.zeros(4), 4.0)
    >>> found = rate.reach(np.array([0.0, 1.0, 1.0, 0.0]), it.nulls.Selection(1.5).origins)
    >>> round(found.lower, 2), round(found.upper, 2)
    (0.4, 0.6)
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
    def is_affine(self) -> bool:
        """Whether the denominator is a number."""
        return not self.bottom.any()

    @property
    def scaled(self) -> Fraction:
        """The same over 1, where the denominator is a number."""
        if not self.is_affine or self.bottom0 == 0:
            return self
        return replace(self, top=self.top / self.bottom0, top0=self.top0 / self.bottom0, bottom0=1)

    def leaning(self, stand_in: FloatArray) -> Linearised:
        """Divide, and take the derivatives."""
        below = self.bottom0 + float(self.bottom @ stand_in)
        if not below > 0:
            return Linearised(math.nan, np.full(self.top.size, math.nan))
        value = (self.top0 + float(self.top @ stand_in)) / below
        return Linearised(value, (self.top - value * self.bottom) / below)

    def reaching(self, y: FloatArray) -> Reach:
        """Move the sum of the rows that raise it up and that of the others down."""
        mirrored = replace(self, top=-self.top, top0=-self.top0)
        below = cache(lambda: _Farthest.of(mirrored, y))
        above = cache(lambda: _Farthest.of(self, y))
        return Reach(lambda origins: -below()(origins), lambda origins: above()(origins))

    @property
    def moved_by(self) -> BoolArray:
        """Rows that add something above or below."""
        return np.asarray((self.top != 0) | (self.bottom != 0))

    def undefined_after(self, y: FloatArray) -> float:
        """All positives that the denominator is made of."""
        if self.bottom0 > 0 or self.is_affine:
            return math.inf
        return float(np.count_nonzero(self.bottom * y))


@dataclass(frozen=True, eq=False)
class _Farthest:
    """How large a fraction can be without a violation, from labels with it.

    The value less `start` is sought: tops are taken less `start` times the bottoms, so that sums of
    large numbers do not cancel. Rows raise the numerator less a value times the denominator where
    the quotient of what they add is above the value, so rows are sorted by it and summed from both
    ends.
    """

    start: float
    top0: float
    bottom0: float
    most: float
    quotients: FloatArray
    risen: FloatArray
    fallen: FloatArray

    @classmethod
    def of(cls, form: Fraction, y: FloatArray) -> _Farthest:
        """Sort the rows that count."""
        counts = form.moved_by
        start = float(form.leaning(y).value)
        bottom, y = form.bottom[counts], y[counts]
        top = form.top[counts] - start * bottom
        top0 = form.top0 - start * form.bottom0
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
        if form.bottom0 > 0:
            most = max(most, top0 / form.bottom0)
        elif top0 > 0:
            most = math.inf
        return cls(start, top0, form.bottom0, most, quotients, risen, fallen)

    def __call__(self, origins: Origins) -> float:
        """The value at which the most that the numerator less it times the denominator can be is 0.

        That most falls as the value rises, and is not negative at the value of the labels.
        """
        if math.isnan(self.start):
            return math.inf
        at_start = self._excess(0.0, origins)
        if not self.fallen[-1, 1]:  # no label is in the denominator
            return self.start + at_start / self.bottom0
        if at_start <= 0 or self.most <= 0:
            return self.start
        scale = max(abs(self.start), 1e-3)
        step = min(scale, self.most)
        while step < self.most and self._excess(step, origins) > 0:
            step *= 2
            if step > MOST_STEPS * max(scale, 1.0):
                return math.inf
        step = min(step, self.most)
        precision = 1e-12 * max(abs(self.start), step)
        if self._excess(step, origins) > 0:
            return self.start + step + precision
        # The outer end of the bracket is never short of the crossing.
        found = crossing(lambda value: self._excess(value, origins), 0.0, step, precision)
        return self.start + found + precision

    def _excess(self, value: float, origins: Origins) -> float:
        """Most that top0 + top s - value (bottom0 + bottom s) can be without the violation."""
        at = int(self.quotients.searchsorted(value, side="right"))
        top, bottom, seen_top, seen_bottom = self.risen[at].tolist()
        up, seen_up = top - value * bottom, seen_top - value * seen_bottom
        top, bottom, seen_top, seen_bottom = self.fallen[at].tolist()
        down, seen_down = value * bottom - top, value * seen_bottom - seen_top
        shares = np.array([_share(seen_up, up), _share(seen_down, down)])
        low, high = origins(shares)
        moved = max(up, 0.0) * abs(high[0] - shares[0]) + max(down, 0.0) * abs(low[1] - shares[1])
        return float(self.top0 - value * self.bottom0 + seen_up - seen_down + moved)


def _share(seen: float, mass: float) -> float:
    """A weighted mean of labels, whatever rounding makes of its parts."""
    return min(max(seen / mass, 0.0), 1.0) if mass > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Joined(Form):
    """Two numbers and an arithmetic sign."""

    left: Form
    sign: str
    right: Form

    @property
    def apart(self) -> bool:
        """Whether no label counts on both sides."""
        return not (self.left.moved_by & self.right.moved_by).any()

    @property
    def precision(self) -> RangePrecision:  # type: ignore[override]
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

    def reaching(self, y: FloatArray) -> Reach:
        """Join what both sides may be by the arithmetic of intervals."""
        left, right = self.left.reaching(y), self.right.reaching(y)

        def joined(origins: Origins) -> Bounds:
            return _joined(self.sign, left(origins), right(origins))

        return Reach(lambda origins: joined(origins).lower, lambda origins: joined(origins).upper)

    @property
    def moved_by(self) -> BoolArray:
        """Rows that move either side."""
        return np.asarray(self.left.moved_by | self.right.moved_by)

    def undefined_after(self, y: FloatArray) -> float:
        """As many as make one side undefined."""
        return min(self.left.undefined_after(y), self.right.undefined_after(y))


def form_of(task: Task, rows: TaskRows) -> Form:
    """Write a task as a function of what stands for labels."""
    if any(isinstance(leaf, Coefficient) for leaf in task.leaves()):
        tangent = task.leaning(rows)
        slope = tangent.influence
        offset = tangent.value - float(slope @ rows.stand_in[:, 0])
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
                left,
                top=left.top + added * left.bottom,
                top0=left.top0 + added * left.bottom0,
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
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    return left * right if sign == "*" else left / right


MAX_STEPS = 200


def crossing(
    function: Callable[[float], float], low: float, high: float, precision: float
) -> float:
    """Find where a function crosses 0, by the Illinois form of the false position.

    Examples
    --------
    >>> round(crossing(lambda x: 2 - x * x, 0.0, 2.0, 1e-9), 6)
    1.414214
    """
    above, below = function(low), function(high)
    if below == 0:
        return high
    side = 0
    for step in range(MAX_STEPS):
        if high - low <= precision or above == 0:
            break
        # Every third step halves, so that the bracket shrinks whatever the function is.
        middle = (low + high) / 2
        asked = middle if step % 3 == 2 else low + (high - low) * above / (above - below)
        asked = asked if low < asked < high else middle
        value = function(asked)
        if value >= 0:
            low, above = asked, value
            below = below / 2 if side == 1 else below
            side = 1
        else:
            high, below = asked, value
            above = above / 2 if side == -1 else above
            side = -1
    return low
