"""Multinomial regression with an offset and a ridge, by Newton's steps.

Every class has features of its own: the logit of class k is offset_k + F_k c_k + intercept_k. The
second derivatives of K classes are never held: a step solves for its direction by conjugate
gradients, preconditioned by the blocks of single classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_softmax

from itrust._core import FloatArray, IntArray

MAX_STEPS, MAX_TURNS = 50, 200
DONE = 1e-10  # improvement of the mean loss that is not worth a step
NEAR = 1e-3  # a direction's residual, as a share of the gradient's, that is small enough


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """Rows to fit on.

    `features` has K arrays (n, m), which may be the same one; codes and weights are (n,), the
    offset (n, K).
    """

    features: Sequence[FloatArray]
    codes: IntArray
    offset: FloatArray
    weights: FloatArray

    def added(self, theta: FloatArray) -> FloatArray:
        """What coefficients (K, m + 1), the last one an intercept, add to the offset, (n, K)."""
        return added_logits(self.features, theta)

    def back(self, left: FloatArray) -> FloatArray:
        """The transpose of `added`: (n, K) to (K, m + 1)."""
        own = [f.T @ column for f, column in zip(self.features, left.T, strict=True)]
        return np.column_stack([np.array(own), left.sum(axis=0)])

    def losses(self, logits: FloatArray) -> FloatArray:
        """Log loss of every row, (n,)."""
        return class_losses(self.codes, logits)

    @cached_property
    def blocks(self) -> list[FloatArray]:
        """Second derivatives of each class alone at the offset, K arrays (m + 1, m + 1)."""
        p = np.exp(log_softmax(self.offset, axis=1))
        curves = (self.weights[:, None] * p * (1 - p)).T
        found = []
        for f, curve in zip(self.features, curves, strict=True):
            scaled = f * curve[:, None]
            edge = scaled.sum(axis=0)
            found.append(np.block([[f.T @ scaled, edge[:, None]], [edge, curve.sum()]]))
        return found


def added_logits(features: Sequence[FloatArray], theta: FloatArray) -> FloatArray:
    """Features of K classes, each (n, m), times their coefficients and the intercepts, (n, K)."""
    own = [f @ c for f, c in zip(features, theta[:, :-1], strict=True)]
    return np.column_stack(own) + theta[:, -1]


def class_losses(codes: IntArray, logits: FloatArray) -> FloatArray:
    """Log loss of rows with these logits, (n,)."""
    told = log_softmax(logits, axis=1)
    return np.asarray(-told[np.arange(codes.size), codes])


def fit_softmax(
    rows: SoftmaxRows, penalty: FloatArray, start: FloatArray | None = None, done: float = DONE
) -> FloatArray:
    """Minimise the sum of w log losses + sum of penalty theta^2 / 2 over theta, (K, m + 1).

    `penalty` has the shape of theta, all of it above 0: the logits of a row may all be moved by
    the same, and the penalty says by how much. Cost O(n m^2 K) once, then O(n m K) for each of
    some ten turns of each of a few steps.
    """
    theta = np.zeros(penalty.shape) if start is None else start
    factors = [
        cho_factor(block + np.diag(own)) for block, own in zip(rows.blocks, penalty, strict=True)
    ]

    def preconditioned(gradient: FloatArray) -> FloatArray:
        return np.array([cho_solve(f, g) for f, g in zip(factors, gradient, strict=True)])

    def loss_at(where: FloatArray) -> tuple[float, FloatArray]:
        told = log_softmax(rows.offset + rows.added(where), axis=1)
        own = told[np.arange(rows.codes.size), rows.codes]
        return float(-rows.weights @ own + (penalty * where**2).sum() / 2), np.exp(told)

    total = float(rows.weights.sum())
    loss, p = loss_at(theta)
    for _ in range(MAX_STEPS):
        left = rows.weights[:, None] * p
        left[np.arange(rows.codes.size), rows.codes] -= rows.weights
        gradient = rows.back(left) + penalty * theta
        step = _direction(rows, penalty, p, gradient, preconditioned)
        promised = -float((gradient * step).sum()) / 2
        size = 1.0
        after, moved = loss_at(theta + step)
        while after > loss and size > 1e-6:
            size /= 2  # far from the minimum a whole step may go too far
            after, moved = loss_at(theta + size * step)
        if after > loss:
            break  # no better number can be told apart
        theta, loss, p = theta + size * step, after, moved
        if promised < done * total:
            break
    return theta


def _direction(
    rows: SoftmaxRows,
    penalty: FloatArray,
    p: FloatArray,
    gradient: FloatArray,
    preconditioned: object,
) -> FloatArray:
    """Where the second derivatives send the gradient, by conjugate gradients."""

    def curved(v: FloatArray) -> FloatArray:
        turned = p * rows.added(v)
        turned -= p * turned.sum(axis=1, keepdims=True)
        return rows.back(rows.weights[:, None] * turned) + penalty * v

    assert callable(preconditioned)
    step = np.zeros(gradient.shape)
    residual = -gradient
    ready = preconditioned(residual)
    way = ready
    size = first = float((residual * ready).sum())
    for _ in range(MAX_TURNS):
        if size <= NEAR**2 * first or size <= 0:
            break
        bent = curved(way)
        length = size / float((way * bent).sum())
        step = step + length * way
        residual = residual - length * bent
        ready = preconditioned(residual)
        before, size = size, float((residual * ready).sum())
        way = ready + size / before * way
    return step
