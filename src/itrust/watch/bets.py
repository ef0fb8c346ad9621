r"""Bets on a check: what rows add to them, in sums that no row need be kept for.

For a check phi with |phi| <= 1 and a stake l > 0 on the side s = +-1, let t = s l phi. While the
probability of a label lies within `tolerance` m of p, it is at most q = min(p + m, 1) where t > 0
and at least q = max(p - m, 0) where t < 0, and the law at q is the worst one, so that

    E exp(t (y - p) - |t| |q - p|) <= exp(K(t)),

K being the cumulant function of y - q, whose second derivative at r is the variance of a label with
the odds of q times e^r. Where r moves q away from 1/2 this is at most v = q (1 - q), else at most v
e^|r|. So K(t) <= phi^2 v l^2 / 2 in rows of the first kind (b) and phi^2 v (e^l - 1 - l) in those
of the second (a), and

    exp(l u - (e^l - 1 - l) a - l^2 / 2 b),   u = sum of s phi (y - p) - |phi| |q - p|,

is a supermartingale for every l: three sums for each check and side serve all stakes.

Rows of one cluster may depend on each other in any way. By Jensen, E exp of a mean is at most the
mean of E exp, which is at most 1 + (e^l - 1 - l) times the mean of phi^2 v: the same form, with
means over each cluster in place of its rows and every row of the second kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from itrust._core import FloatArray

# Stakes l and how likely each is beforehand: a bias d in rows of variance v is met by l = d / v.
STAKES = np.array([0.01, 0.03, 0.08, 0.18, 0.36, 0.70, 1.40])
CHANCES = np.array([0.04, 0.08, 0.16, 0.24, 0.24, 0.16, 0.08])
SIDES = np.array([1.0, -1.0])
LOG_CHANCES = np.log(CHANCES / 2)  # of each side


@dataclass(frozen=True, eq=False)
class BatchRows:
    """The rows of a batch as bets see them."""

    y: FloatArray
    p: FloatArray
    share: FloatArray | None = None

    def take(self, rows: slice) -> BatchRows:
        """Some of the rows."""
        share = None if self.share is None else self.share[rows]
        return BatchRows(self.y[rows], self.p[rows], share)


def bet_sums(matrix: FloatArray, rows: BatchRows, tolerance: float = 0.0) -> FloatArray:
    """Add up u, a and b for both sides of every check."""
    up, down = np.maximum(matrix, 0.0), np.maximum(-matrix, 0.0)
    high, low = np.minimum(rows.p + tolerance, 1.0), np.maximum(rows.p - tolerance, 0.0)
    share = np.ones(rows.y.shape) if rows.share is None else rows.share
    terms = [(rows.y - rows.p) * share, (high - rows.p) * share, (rows.p - low) * share]
    e_up, above_up, below_up = _sums(up, terms)
    e_down, above_down, below_down = _sums(down, terms)
    signed = e_up - e_down
    u = np.stack([signed - above_up - below_down, -signed - below_up - above_down], axis=-2)
    # Whether the worst probability is moved towards 1/2, upwards and downwards.
    rises = (high < 0.5) if rows.share is None else np.ones(high.shape, dtype=bool)
    falls = (low > 0.5) if rows.share is None else np.ones(low.shape, dtype=bool)
    v_high, v_low = high * (1 - high) * share, low * (1 - low) * share
    kinds = [v_high * rises, v_high * ~rises, v_low * falls, v_low * ~falls]
    first, second = _sums(np.square(up), kinds), _sums(np.square(down), kinds)
    a = np.stack([first[0] + second[2], first[2] + second[0]], axis=-2)
    b = np.stack([first[1] + second[3], first[3] + second[1]], axis=-2)
    return np.stack([u, a, b])


def _sums(functions: FloatArray, terms: Sequence[FloatArray]) -> list[FloatArray]:
    """Sums over rows of functions times each of some terms, (..., K) each."""
    products = functions @ np.stack(terms, axis=-1)
    return [products[..., k] for k in range(len(terms))]


def log_factors(sums: FloatArray) -> FloatArray:
    """What every bet is multiplied by, (3, ..., 2, K) -> (..., 2, K, L), as logarithms."""
    u, a, b = sums[..., None].astype(np.float64)
    return np.asarray(
        STAKES * u - (np.expm1(STAKES) - STAKES) * a - np.square(STAKES) / 2 * b, dtype=np.float64
    )


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
        s, j = _score_sums(phi, rows)
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
        s, j = _score_sums(phi, rows)
        return Recalibrations(self.scores + s, self.information + j)


def ratios_of(moves: FloatArray, phi: FloatArray, rows: BatchRows) -> FloatArray:
    """Log-likelihood ratios of moved logits against p."""
    t = np.clip(moves @ phi, -MAX_MOVE, MAX_MOVE)
    each = t * rows.y - np.log1p(rows.p * np.expm1(t))
    share = np.ones(rows.y.size) if rows.share is None else rows.share
    return np.asarray(each @ share)


def _score_sums(phi: FloatArray, rows: BatchRows) -> tuple[FloatArray, FloatArray]:
    share = 1.0 if rows.share is None else rows.share
    v = rows.p * (1 - rows.p) * share
    return phi @ ((rows.y - rows.p) * share), (phi * v) @ phi.T
