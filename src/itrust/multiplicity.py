"""P-values for many statistics at once, adjusted by the same draws."""

from __future__ import annotations

import numpy as np

from itrust.typing import FloatArray

TIE = 1e-9  # draws within this share of the largest value count as ties with the data


def own_pvalues(scores: FloatArray) -> FloatArray:
    """(1 + draws at least as large) / (1 + draws) for every row, data first, (E,)."""
    return np.asarray(_as_large(scores, scores[:, 0]).mean(axis=1))


def step_down(scores: FloatArray) -> FloatArray:
    """Step-down max-T p-values (Westfall and Young 1993), (E,).

    The largest score is compared with the maxima of all rows, the second with the maxima
    of all but that row, and so on. Scores (E, 1 + draws) are on one scale, data first.

    >>> import numpy as np
    >>> step_down(np.array([[3.0, 1.0, 2.0, 0.0], [2.0, 2.5, 0.0, 0.0]]))
    array([0.25, 0.5 ])
    """
    if not len(scores):
        return np.empty(0)
    order = np.argsort(-scores[:, 0], kind="stable")
    maxima = np.maximum.accumulate(scores[order[::-1]], axis=0)[::-1]
    shares = _as_large(maxima, scores[order, 0]).mean(axis=1)
    adjusted = np.empty(len(scores))
    adjusted[order] = np.maximum.accumulate(shares)
    return adjusted


def _as_large(values: FloatArray, observed: FloatArray) -> FloatArray:
    """Where values reach what was observed; the data, in column 0, always do."""
    tie = TIE * np.maximum(np.abs(values).max(axis=1), np.abs(observed))
    reached = values >= (observed - tie)[:, None]
    reached[:, 0] = True
    return np.asarray(reached)
