"""Are two sets of rows alike? An exact test: which rows are labelled is permuted.

If the labelled rows are drawn like the others, every choice of n of all rows was equally likely to
be the labelled ones. So the p-value is exact at every size, for whatever functions of (p, x) are
compared, as long as they were settled from all rows together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from itrust._core import BoolArray, FloatArray

BATCH = 2**21  # marks of permuted rows at a time
TIE = 1e-9
TINY = 1e-12
RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class Permuted:
    """What permuted rows say about differences of means."""

    pvalue: float
    z: FloatArray
    adjusted: FloatArray
    draws: int


def permutation_test(
    features: FloatArray,
    labelled: int,
    is_product: BoolArray,
    draws: int,
    rng: np.random.Generator,
) -> Permuted:
    """Permute which rows are labelled.

    Four statistics count: the largest difference of a feature of one covariate and of a product,
    and the sum of squares of all whitened differences of either kind. Each is turned into the rank
    it has among its own permutations, and the best rank is ranked again, ties by how far out it is:
    no correction is needed.
    """
    whole = features.shape[0]
    centred = features - features.mean(axis=0)
    spread = np.sqrt(np.square(centred).sum(axis=0) / max(whole - 1, 1))
    kept = spread > TINY * np.maximum(1.0, np.abs(features).max(axis=0))
    scale = np.where(kept, spread, 1.0)
    centred = np.where(kept, centred / scale, 0.0)
    # Means of n of N rows without replacement have variance (1 / n - 1 / N) S^2.
    error = np.sqrt(max(1 / labelled - 1 / whole, TINY))
    sums = _sums(centred, labelled, draws, rng)  # (1 + draws, k), data first
    z = sums / (labelled * error)
    kinds = [own for own in (kept & ~is_product, kept & is_product) if own.any()]
    if not kinds:
        return Permuted(1.0, z[0], np.ones(z.shape[1]), draws)
    scores, adjusted = [], np.ones(z.shape[1])
    for own in kinds:
        largest = np.abs(z[:, own]).max(axis=1)
        scores += [largest, _whitened(z[:, own], centred[:, own])]
        adjusted[own] = _tails(largest, np.abs(z[0, own]))
    best = np.min([_tails(score, score) for score in scores], axis=0)
    # Several statistics have a largest value each: of those the farthest out goes first.
    far = np.max([(score - score.mean()) / (score.std() or 1.0) for score in scores], axis=0)
    far = np.maximum(far, 0.0)
    order = best * (1 + draws) - far / (1 + far) / 2
    pvalue = float((order <= order[0] + TIE * (1 + draws)).mean())
    return Permuted(pvalue, z[0], adjusted, draws)


def _sums(centred: FloatArray, labelled: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Sums over the labelled rows, and over as many chosen ones, (1 + draws, k)."""
    whole, k = centred.shape
    found = np.empty((1 + draws, k))
    at_once = max(1, BATCH // whole)
    first = np.zeros(whole, dtype=bool)
    first[:labelled] = True
    for start in range(0, 1 + draws, at_once):
        count = min(at_once, 1 + draws - start)
        marks = np.tile(first, (count, 1))
        chosen = marks[1:] if start == 0 else marks
        rng.permuted(chosen, axis=1, out=chosen)
        found[start : start + count] = marks.astype(float) @ centred
    return found


def _whitened(z: FloatArray, centred: FloatArray) -> FloatArray:
    """Sums of squares without the covariance of the features, a ridge where it is singular."""
    covariance = centred.T @ centred / centred.shape[0]
    values, vectors = np.linalg.eigh(covariance)
    turned = (z @ vectors) / np.sqrt(np.maximum(values, 0.0) + RIDGE * values.max() + 0.01)
    return np.asarray(np.square(turned).sum(axis=1))


def _tails(among: FloatArray, values: FloatArray) -> FloatArray:
    """Share of entries of `among` that reach each value."""
    ordered = np.sort(among)
    slack = TIE * max(1.0, float(np.abs(ordered[-1])))
    below = np.searchsorted(ordered, values - slack, side="left")
    return np.asarray((ordered.size - below) / ordered.size)
