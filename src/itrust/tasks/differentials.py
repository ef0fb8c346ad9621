"""Values that carry their derivatives through arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from itrust._core import FloatArray


@dataclass(frozen=True, eq=False)
class Linearised:
    """An estimate and the share of every row in it: estimate - truth ~ sum of `influence`.

    Attributes
    ----------
    value : float
        The estimate.
    influence : (n,) array
        Shares of the rows.
    """

    value: float
    influence: FloatArray

    def __add__(self, other: Linearised) -> Linearised:
        return Linearised(self.value + other.value, self.influence + other.influence)

    def __sub__(self, other: Linearised) -> Linearised:
        return Linearised(self.value - other.value, self.influence - other.influence)

    def __mul__(self, other: Linearised) -> Linearised:
        influence = self.influence * other.value + self.value * other.influence
        return Linearised(self.value * other.value, influence)

    def __truediv__(self, other: Linearised) -> Linearised:
        if other.value == 0:
            return Linearised(math.nan, np.full_like(self.influence, math.nan))
        value = self.value / other.value
        return Linearised(value, (self.influence - value * other.influence) / other.value)


@dataclass(frozen=True, eq=False)
class Dual:
    """Values of a task for the data and all draws, and their slopes in its ratios.

    Attributes
    ----------
    value : (1 + draws,) array
        Data first.
    slope : (ratios, 1 + draws) array
        Derivatives in each ratio.
    """

    value: FloatArray
    slope: FloatArray

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Dual) -> Dual:
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Dual) -> Dual:
        slope = self.slope * other.value + self.value * other.slope
        return Dual(self.value * other.value, slope)

    def __truediv__(self, other: Dual) -> Dual:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.value / other.value
            return Dual(value, (self.slope - value * other.slope) / other.value)
