"""Bets by recalibrations that were fitted on earlier rows.

A recalibration moves the logit of p by t = theta' phi, with the functions phi of some checks. Its
likelihood ratio against p, e^(t y) / (1 - p + p e^t), has mean 1 while the model is calibrated, if
theta was known before the labels; that of a cluster is the geometric mean over its rows, whose mean
is at most 1 (Hoelder). Theta is one of Newton's steps from p with a ridge: theta = (J + r I)^-1 S,
S = sum phi (y - p), J = sum phi phi' p (1 - p), so two sums stand for all earlier rows. Several
memories and ridges are kept beside each other; each is a martingale of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from itrust._core import FloatArray
from itrust.watch.bets import BatchRows

MEMORIES = (math.inf, math.inf, 24.0, 6.0)  # batches; the first one begins with the reference
RIDGES = (30.0, 300.0)
MAX_MOVE = 3.0  # of a logit


@dataclass(frozen=True, eq=False)
class Recalibrations:
    """What is known of earlier rows."""

    scores: FloatArray
    information: FloatArray

    @classmethod
    def empty(cls, functions: int) -> Self:
        """Nothing is known yet."""
        m = len(MEMORIES)
        return cls(np.zeros((m, functions)), np.zeros((m, functions, functions)))

    def with_reference(self, phi: FloatArray, rows: BatchRows) -> Recalibrations:
        """Let the first memory begin with rows of the reference."""
        scores, information = self.scores.copy(), self.information.copy()
        s, j = _sums(phi, rows)
        scores[0] += s
        information[0] += j
        return Recalibrations(scores, information)

    def moves(self) -> FloatArray:
        """Theta of every memory and ridge, (M * R, D)."""
        size = self.scores.shape[1]
        ridges = np.array(RIDGES)[None, :, None, None] * np.eye(size)
        found = np.linalg.solve(
            self.information[:, None] + ridges,
            np.broadcast_to(self.scores[:, None, :, None], (len(MEMORIES), len(RIDGES), size, 1)),
        )
        return np.asarray(found.reshape(-1, size), dtype=np.float64)

    def faded(self) -> Recalibrations:
        """What is left of earlier batches when one more comes, by each memory."""
        keep = np.array([1 - 1 / memory for memory in MEMORIES])
        return Recalibrations(keep[:, None] * self.scores, keep[:, None, None] * self.information)

    def plus(self, phi: FloatArray, rows: BatchRows) -> Recalibrations:
        """What is known with some rows more, in all memories."""
        s, j = _sums(phi, rows)
        return Recalibrations(self.scores + s, self.information + j)


def ratios_of(moves: FloatArray, phi: FloatArray, rows: BatchRows) -> FloatArray:
    """Log-likelihood ratios of moved logits against p."""
    t = np.clip(moves @ phi, -MAX_MOVE, MAX_MOVE)
    each = t * rows.y - np.log1p(rows.p * np.expm1(t))
    share = np.ones(rows.y.size) if rows.share is None else rows.share
    return np.asarray(each @ share)


def _sums(phi: FloatArray, rows: BatchRows) -> tuple[FloatArray, FloatArray]:
    share = 1.0 if rows.share is None else rows.share
    v = rows.p * (1 - rows.p) * share
    return phi @ ((rows.y - rows.p) * share), (phi * v) @ phi.T
