"""Tails of skewed laws, and p-values for many statistics at once, adjusted by the same draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import (
    gammainc,
    gammaincc,
    gammaln,
    log_ndtr,
    ndtr,
    ndtri,
    ndtri_exp,
    stdtr,
    stdtrit,
)

from itrust._core import AnyArray, FloatArray, IntArray

NEARLY_NORMAL = 1e-3  # skewness below which the gamma law is taken as normal
UNDERFLOW = 1e-280
FRACTIONS = 60  # of the continued fraction, which converges fast where it is needed


def pearson3_log_sf(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """Log of P(Z >= z) for a shifted gamma law with mean 0, variance 1 and this skewness.

    Equal to the chi-square law with k degrees of freedom, standardised, at skewness
    sqrt(8 / k), and to the normal law at 0. Arguments are broadcast; skewness is not negative.
    """
    z, skewness = np.broadcast_arrays(np.asarray(z, dtype=float), np.asarray(skewness, dtype=float))
    shape = 4 / np.square(np.maximum(skewness, NEARLY_NORMAL))
    log_sf = np.asarray(_log_gammaincc(shape, np.maximum(shape + z * np.sqrt(shape), 0.0)))
    normal = skewness < NEARLY_NORMAL
    log_sf[normal] = log_ndtr(-z[normal])
    return log_sf


def _log_gammaincc(shape: FloatArray, x: FloatArray) -> FloatArray:
    upper = np.asarray(gammaincc(shape, x))
    deep = upper < UNDERFLOW
    log_upper: FloatArray = np.log(np.where(deep, 1.0, upper))
    if deep.any():
        log_upper[deep] = _log_continued_fraction(shape[deep], x[deep])
    return log_upper


def _log_continued_fraction(shape: FloatArray, x: FloatArray) -> FloatArray:
    """Legendre's fraction for the upper incomplete gamma function, for x well above shape."""
    below = x + 2 * FRACTIONS + 1 - shape
    for k in range(FRACTIONS, 0, -1):
        below = x + 2 * k - 1 - shape - k * (k - shape) / below
    return np.asarray(shape * np.log(x) - x - gammaln(shape) - np.log(below))


def normal_score(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """Where a standardised, skewed value would lie on the normal scale (Wilson and Hilferty 1931).

    A shifted gamma law of this skewness (of either sign) becomes nearly normal; what lies beyond
    the end of its support counts as the end.
    """
    half, small = _half_skewness(skewness)
    with np.errstate(over="ignore", invalid="ignore"):
        bent = 3 / half * (np.cbrt(np.maximum(1 + half * z, 0.0)) - 1) + half / 3
    return np.where(small, z, bent)


def from_normal_score(score: FloatArray, skewness: FloatArray) -> FloatArray:
    """Give the standardised value with this normal score: the inverse of `normal_score`."""
    half, small = _half_skewness(skewness)
    root = (score - half / 3) * half / 3 + 1
    inside = (np.maximum(root, 0.0) ** 3 - 1) / half
    return np.where(small, score, np.where(root > 0, inside, -np.sign(half) * np.inf))


def _half_skewness(skewness: FloatArray) -> tuple[FloatArray, AnyArray]:
    half = np.asarray(skewness, dtype=float) / 2
    small = np.abs(half) < NEARLY_NORMAL / 2
    return np.where(small, 1.0, half), small


def upper_score(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """The normal score of an upper tail: -Phi^-1(P(Z >= z)) for a shifted gamma law, exactly."""
    z, skewness = np.broadcast_arrays(np.asarray(z, dtype=float), np.asarray(skewness, dtype=float))
    log_tail = pearson3_log_sf(z, np.abs(skewness))
    left = skewness <= -NEARLY_NORMAL
    if left.any():  # the lower tail of the mirrored law
        shape = 4 / np.square(skewness[left])
        x = np.maximum(shape - z[left] * np.sqrt(shape), 0.0)
        with np.errstate(divide="ignore"):
            log_tail[left] = np.log(gammainc(shape, x))
    return np.asarray(-ndtri_exp(log_tail))


def student_tail(z: FloatArray | float, freedom: FloatArray | float) -> FloatArray:
    """P(T >= z) for Student's law."""
    many = np.isinf(freedom)
    return np.where(many, ndtr(-np.asarray(z)), stdtr(np.where(many, 1.0, freedom), -np.asarray(z)))


def student_quantile(tail: FloatArray | float, freedom: FloatArray | float) -> FloatArray:
    """The value that Student's law exceeds with this probability."""
    many, tail = np.isinf(freedom), np.asarray(tail, dtype=float)
    inside = (tail > 0) & (tail < 1)
    within = np.where(inside, tail, 0.5)  # stdtrit has a wrong sign or NaN at the ends
    quantile = np.where(many, ndtri(within), stdtrit(np.where(many, 1.0, freedom), within))
    ends = np.select([tail == 0, tail == 1], [np.inf, -np.inf], np.nan)
    return np.where(inside, -quantile, ends)


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
