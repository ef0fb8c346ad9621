"""Where a falling function crosses 0; SciPy's solvers would load what an audit does not need."""

from __future__ import annotations

from collections.abc import Callable

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
