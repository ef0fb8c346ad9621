"""What a number can be: ranges that follow interval arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
