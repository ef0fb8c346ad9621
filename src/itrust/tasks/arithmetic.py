"""What formulas are made of: parts with signs between them, and values that follow arithmetic."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError

MAX_DEPTH = 100  # texts, hashes and copies of formulas go down part by part, within Python's stack
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 3}  # how strongly a sign binds


class Node(ABC):
    """A part of a formula; its text is read back to the same part."""

    @cached_property
    def depth(self) -> int:
        """How many parts lie within each other, this one among them."""
        return 1 + max((part.depth for part in self.parts), default=0)

    def _refuse_depth(self) -> None:
        """Refuse a part that others are nested in too deeply."""
        if self.depth > MAX_DEPTH:
            problem = (
                "a formula of more than {most} parts within each other, such as a sum of so many "
                "terms, is not taken; take fewer, or a mean of a function of covariates"
            )
            raise InputError(problem, argument="task", most=MAX_DEPTH)

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    def parts(self) -> tuple[Any, ...]:
        """What it is made of, predicates among others; nothing for the smallest parts."""
        return ()

    @property
    def names(self) -> frozenset[str]:
        """Covariates that it reads."""
        return frozenset[str]().union(*(part.names for part in self.parts))


@dataclass(frozen=True, eq=False)
class Linearised:
    """A value, or one for the data and each draw, and its derivatives; they follow calculus.

    Of an estimate these are shares of rows: estimate - truth ~ their sum.

    Whether a value is finite is asked at the end, where a task is refused in a sentence.
    """

    value: Any
    slope: FloatArray

    def __add__(self, other: Linearised) -> Linearised:
        return Linearised(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Linearised) -> Linearised:
        return Linearised(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Linearised) -> Linearised:
        slope = self.slope * other.value + self.value * other.slope
        return Linearised(self.value * other.value, slope)

    def __truediv__(self, other: Linearised) -> Linearised:
        below = np.where(np.equal(other.value, 0), np.nan, other.value)
        value = self.value / below
        return Linearised(value, (self.slope - value * other.slope) / below)


@dataclass(frozen=True)
class Bounds:
    """All numbers from one to another; either may be infinite."""

    lower: float
    upper: float

    def __add__(self, other: Bounds) -> Bounds:
        return _known(self.lower + other.lower, self.upper + other.upper)

    def __sub__(self, other: Bounds) -> Bounds:
        return _known(self.lower - other.upper, self.upper - other.lower)

    def __mul__(self, other: Bounds) -> Bounds:
        ends = [
            a * b if a and b else 0.0  # 0 times infinity is 0: the ends are limits of numbers
            for a in (self.lower, self.upper)
            for b in (other.lower, other.upper)
        ]
        return Bounds(min(ends), max(ends))

    def __truediv__(self, other: Bounds) -> Bounds:
        if other.lower < 0 < other.upper or other.lower == other.upper == 0:
            return Bounds(-math.inf, math.inf)
        # A divisor may come as near to 0 as one likes, from its own side.
        lower = 1 / other.upper if other.upper else -math.inf
        upper = 1 / other.lower if other.lower else math.inf
        return self * Bounds(lower, upper)

    def hull(self, other: Bounds) -> Bounds:
        """The smallest range that holds both."""
        return Bounds(min(self.lower, other.lower), max(self.upper, other.upper))

    def nearest(self, value: float) -> float:
        """The number of the range that is nearest to a value; NaN if that is."""
        return value if math.isnan(value) else min(max(value, self.lower), self.upper)

    def clipped(self, lower: float, upper: float) -> tuple[float, float]:
        """Cut an interval off at both ends, unless nothing would be left of it."""
        inside = self.nearest(lower), self.nearest(upper)
        return inside if inside[0] < inside[1] else (lower, upper)


def _known(lower: float, upper: float) -> Bounds:
    """Bounds whose ends are numbers; the sum of both infinities says nothing."""
    return Bounds(
        -math.inf if math.isnan(lower) else lower, math.inf if math.isnan(upper) else upper
    )


RATES = Bounds(0.0, 1.0)
