"""Values that carry their derivatives through arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from itrust._core import FloatArray

if TYPE_CHECKING:
    from itrust.tasks.expressions import Leaf, Task


@dataclass(frozen=True, eq=False)
class Differential:
    """A value and its derivatives, which follow the rules of calculus."""

    value: Any
    slope: FloatArray

    # Whether a value is finite is asked at the end, where a task is refused in a sentence.

    def __add__(self, other: Self) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            return type(self)(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Self) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            return type(self)(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Self) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            slope = self.slope * other.value + self.value * other.slope
            return type(self)(self.value * other.value, slope)

    def __truediv__(self, other: Self) -> Self:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            value = self.value / other.value
            return type(self)(value, (self.slope - value * other.slope) / other.value)


class Linearised(Differential):
    """An estimate and the share of every row in it: estimate - truth ~ sum of `influence`."""

    @property
    def influence(self) -> FloatArray:
        """Shares of the rows, (n,)."""
        return self.slope

    def __truediv__(self, other: Self) -> Self:
        if other.value == 0:
            return type(self)(math.nan, np.full_like(self.slope, math.nan))
        return super().__truediv__(other)


class Dual(Differential):
    """Values of a task for the data and all draws, (1 + draws,), with slopes in its ratios."""


def joined_at(
    task: Task, leaves: Sequence[Leaf], values: Sequence[float] | FloatArray
) -> tuple[float, FloatArray]:
    """Give a task where its leaves have some values, and its derivatives in these."""
    units = np.eye(len(leaves))
    parts = [Dual(np.array([value]), units[:, [k]]) for k, value in enumerate(values)]
    found = task.dual(parts, {leaf: k for k, leaf in enumerate(leaves)})
    value = float(found.value[0])
    return (value if math.isfinite(value) else math.nan), found.slope[:, 0]


def slopes_at(
    task: Task, leaves: Sequence[Leaf], values: Sequence[float] | FloatArray
) -> FloatArray:
    """Derivatives of a task in its leaves where these have some values, (k,)."""
    return joined_at(task, leaves, values)[1]


def value_at(task: Task, leaves: Sequence[Leaf], values: Sequence[float] | FloatArray) -> float:
    """A task where its leaves have some values."""
    return joined_at(task, leaves, values)[0]
