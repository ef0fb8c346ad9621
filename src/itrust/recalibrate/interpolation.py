"""Straight lines between points, for numbers of any size."""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray


def interpolated(values: FloatArray, knots: FloatArray, heights: FloatArray) -> FloatArray:
    """Straight lines between `heights` at rising `knots`, beyond the ends the height of the end.

    As `numpy.interp`, but never beyond the two heights that a value lies between: its slopes
    overflow where knots are very near to each other or very far apart.

    Examples
    --------
    >>> import numpy as np
    >>> ends = np.array([-1e308, 1e308])
    >>> interpolated(np.array([-1.5e308, 0.0, 5e307]), ends, np.array([0.0, 1.0]))
    array([0.  , 0.5 , 0.75])
    """
    held = np.clip(values, knots[0], knots[-1])
    at = np.minimum(np.searchsorted(knots, held, side="right"), knots.size) - 1
    after = np.minimum(at + 1, knots.size - 1)
    # Halves: the difference of two finite numbers may be none.
    gap = knots[after] / 2 - knots[at] / 2
    far = held / 2 - knots[at] / 2
    share = np.divide(far, gap, out=np.zeros(held.shape), where=gap > 0)
    low, high = heights[at], heights[after]
    found = low + np.minimum(share, 1.0) * (high - low)
    return np.asarray(np.clip(found, np.minimum(low, high), np.maximum(low, high)))
