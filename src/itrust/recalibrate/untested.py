"""One smooth correction of `Local` without its tests, for those who have a guard of their own.

`Local` asks exact tests whether to change anything, for whoever uses its probabilities has nothing
else. An estimate that is corrected by labels stays right whatever the correction is, and makes it
many times; so cross-validation alone decides here, in a tenth of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from itrust._core import FloatArray
from itrust.data import Points, Sample
from itrust.engines import one_blas_thread
from itrust.recalibrate.local import MARGIN, Local, _Chain, _corrected, _errors
from itrust.recalibrate.rows import edge_of

WIDTHS, RIDGES = (0.4, 1.0), (2.0, 16.0, 128.0)
FEATURES, MANY_FEATURES, MANY_ROWS = 60, 150, 5_000


@dataclass(frozen=True, eq=False)
class UntestedCorrection:
    """Probabilities as given, or with one smooth correction."""

    chain: _Chain

    def __call__(self, points: Points) -> FloatArray:
        """Corrected probabilities of rows with the same covariates, (n,)."""
        if not self.chain.corrections:
            return points.p
        return np.asarray(expit(self.chain.logits(points)))


def untested_correction(sample: Sample) -> UntestedCorrection:
    """Learn a correction if cross-validation says that it lowers the log loss."""
    features = FEATURES if sample.n < MANY_ROWS else MANY_FEATURES
    settings = Local(features=features, widths=WIDTHS, ridges=RIDGES)
    chain = _Chain(edge_of(sample.p), None)
    with one_blas_thread():
        choice, gains, rows = settings._tuned(sample, chain.logits(sample.points), _ignored)
        if _errors(gains, rows) <= MARGIN:
            return UntestedCorrection(chain)
        return UntestedCorrection(_corrected(sample, chain, choice, features, _ignored))


def _ignored(amount: float) -> None:
    """Nobody is told how far the work is."""
