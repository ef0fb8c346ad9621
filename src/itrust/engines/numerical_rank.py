"""Gaussian kernels of a single number as a few features, exact to rounding."""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray
from itrust.kernels import GaussianGram, Gram

ROUNDING = 1e-13  # of the diagonal, which is 1: what no feature explains
MAX_FEATURES, ROWS_A_FEATURE = 128, 8  # beyond which tiles cost no more


def exact_features(gram: Gram) -> FloatArray | None:
    """Features F with F F' = P up to 1e-13 in every entry, if few are enough.

    A Gaussian kernel of a single number has hardly more eigenvalues above rounding than twice the
    widths that its values spread over. Each step takes the row that is explained least; what is
    left is positive semi-definite, so its diagonal bounds it. Cost O(n r^2) for rank r.
    """
    if not isinstance(gram, GaussianGram) or gram.left.shape[1] != 1:
        return None
    n = len(gram.left)
    most = min(MAX_FEATURES, n // ROWS_A_FEATURE)
    if 2 * np.ptp(gram.left) > most:
        return None
    features, left = np.empty((most, n)), np.ones(n)
    everyone = slice(None)
    for rank in range(most):
        pivot = int(np.argmax(left))
        if left[pivot] <= ROUNDING:
            return np.ascontiguousarray(features[:rank].T)
        column = gram.block(everyone, np.array([pivot]))[:, 0]
        column -= features[:rank, pivot] @ features[:rank]
        column /= np.sqrt(left[pivot])
        features[rank] = column
        left -= column * column
        left[pivot] = 0.0
    return None
