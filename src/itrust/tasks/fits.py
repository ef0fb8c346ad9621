"""What tasks are made of as M-estimators: fitted on some rows, with shares and gradients at others.

What a number moves if labels do is a sum over rows of a gradient g(x) times the move. Means,
shares, rates and coefficients differ in their gradients only, so whatever corrects
predictions by labels (a bias, a prediction-powered or a transported estimate) is made of
`value`, `lean` and `shares`, for all of them and for what arithmetic makes of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from itrust._core import FloatArray
from itrust.data import Points


class LeafFit(ABC):
    """A mean, a rate or a coefficient as some rows have it."""

    value: float
    mass: float

    @abstractmethod
    def read(self, points: Points, weights: FloatArray, first: int = 0) -> Any:
        """Read from some rows what the other methods need."""

    @abstractmethod
    def shares(self, read: Any, weights: FloatArray, stand_in: FloatArray) -> FloatArray:
        """Give the shares of rows in the number, (n,), if it was fitted to their stand-ins."""

    @abstractmethod
    def lean(self, read: Any, weights: FloatArray) -> FloatArray:
        """Give how much the stand-in of each row moves the number, times `mass`, (n,)."""

    def below(self, read: Any, weights: FloatArray) -> FloatArray:  # noqa: ARG002
        """Give what the stand-in of each row adds to `mass`, (n,)."""
        return np.zeros(weights.size)
