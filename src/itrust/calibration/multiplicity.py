"""P-values for many statistics at once, adjusted by the same draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from itrust._core import FloatArray, IntArray

COLUMNS_AT_ONCE = 512
TIE = 1e-9  # draws within this share of the largest value count as ties with the data


def unadjusted_pvalues(scores: FloatArray, shift: FloatArray | None = None) -> FloatArray:
    """Give (1 + draws at least as large) / (1 + draws) for every row."""
    return _shares(scores, np.arange(len(scores)), lambda part: part, shift)


def step_down(scores: FloatArray, shift: FloatArray | None = None) -> FloatArray:
    """Give step-down max-T p-values (Westfall and Young 1993).

    The largest score is compared with the maxima of all rows, the second with the maxima
    of all but that row, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> step_down(np.array([[3.0, 1.0, 2.0, 0.0], [2.0, 2.5, 0.0, 0.0]]))
    array([0.25, 0.5 ])
    """
    observed = scores[:, 0] if shift is None else scores[:, 0] + shift
    order = np.argsort(-observed, kind="stable")
    shares = _shares(
        scores, order, lambda part: np.maximum.accumulate(part[::-1], axis=0)[::-1], shift
    )
    adjusted = np.empty(len(scores))
    adjusted[order] = np.maximum.accumulate(shares)
    return adjusted


def share_above(scores: FloatArray) -> float:
    """The p-value of the first of some scores among all of them."""
    return float(unadjusted_pvalues(scores[None])[0])


def largest_of(log_tails: FloatArray, log_weights: FloatArray) -> FloatArray:
    """The largest weighted score of every column, (columns,); no copy is as large as the scores."""
    largest = np.full(log_tails.shape[1], -np.inf)
    for at in range(0, largest.size if len(log_weights) else 0, COLUMNS_AT_ONCE):
        block = slice(at, at + COLUMNS_AT_ONCE)
        largest[block] = (log_tails[:, block] + log_weights[:, None]).max(axis=0)
    return largest


def _shares(
    scores: FloatArray,
    order: IntArray,
    combined: Callable[[FloatArray], FloatArray],
    shift: FloatArray | None,
) -> FloatArray:
    """Share of columns whose combined rows reach what was observed, in this order of rows.

    The data, in column 0, always do. Some columns at a time, so that no copy is as large as the
    scores.
    """
    more = np.zeros(len(scores)) if shift is None else shift
    blocks = [slice(at, at + COLUMNS_AT_ONCE) for at in range(0, scores.shape[1], COLUMNS_AT_ONCE)]
    tie = TIE * max((_largest(scores[:, block] + more[:, None]) for block in blocks), default=0.0)
    observed = (scores[order, 0] + more[order] - tie)[:, None]
    reached = np.zeros(len(scores))
    for block in blocks:
        part = combined(scores[order, block] + more[order, None])
        found = part >= observed
        if block.start == 0:
            found[:, 0] = True
        reached += np.count_nonzero(found, axis=1)
    return np.asarray(reached / scores.shape[1])


def _largest(scores: FloatArray) -> float:
    """The largest size of a finite number."""
    return float(np.abs(scores).max(initial=0.0, where=np.isfinite(scores)))
