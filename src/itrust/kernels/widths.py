"""Rules that choose a kernel width from one column of values; labels never come near them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from itrust._core import FloatArray

# Medians of distances are taken over this many order statistics: exact up to there, and
# beyond it independent of the order of the rows.
MAX_POINTS = 500


class WidthRule(ABC):
    """Chooses a width from the values that are present in one column."""

    @abstractmethod
    def __call__(self, present: FloatArray) -> float:
        """Choose a width.

        Labels are not handed in, so that no rule can look at them.

        Parameters
        ----------
        present : (m,) array of float
            The values of a column, none of them missing.

        Returns
        -------
        float
            A positive width.
        """


@dataclass(frozen=True)
class Median(WidthRule):
    """The median distance between two rows, times `factor`.

    Where more than half of the pairs are ties (a 0/1 column, a count), the plain median is
    0; then the median of the positive distances is taken. A constant column gets 1.

    Parameters
    ----------
    factor : float
        What the median is multiplied by; 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> Median()(np.array([0.0, 0.0, 0.0, 1.0, 1.0]))
    1.0
    >>> Median()(np.full(4, 7.0))
    1.0
    """

    factor: float = 1.0

    def __call__(self, present: FloatArray) -> float:
        values = _thinned(present)
        distances = np.abs(values[:, None] - values)[np.triu_indices(values.size, 1)]
        median = float(np.median(distances)) if distances.size else 0.0
        if median == 0:
            positive = distances[distances > 0]
            median = float(np.median(positive)) if positive.size else 1.0
        return self.factor * median


@dataclass(frozen=True)
class Scale(WidthRule):
    """The spread of the values, times `factor`: interquartile range / 1.349.

    That is the standard deviation of a normal column, without its sensitivity to outliers.
    A column whose quartiles coincide falls back to the standard deviation, a constant one
    to 1.

    Parameters
    ----------
    factor : float
        What the spread is multiplied by; 1 by default, which for normal values is their standard
        deviation.

    Examples
    --------
    >>> import numpy as np
    >>> round(Scale(0.5)(np.linspace(0, 1.349, 101)), 6)
    0.25
    """

    factor: float = 1.0

    def __call__(self, present: FloatArray) -> float:
        if present.size == 0:
            return self.factor
        low, high = np.percentile(present, [25, 75])
        spread = float(high - low) / 1.349 or float(present.std()) or 1.0
        return self.factor * spread


def _thinned(present: FloatArray) -> FloatArray:
    if present.size <= MAX_POINTS:
        return present
    middle_of_slots = (np.arange(MAX_POINTS) + 0.5) / MAX_POINTS
    thinned: FloatArray = np.sort(present)[(middle_of_slots * present.size).astype(int)]
    return thinned
