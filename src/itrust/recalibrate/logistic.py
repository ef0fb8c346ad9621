"""Logistic regression with an offset and a ridge, by Newton's steps over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from itrust.typing import FloatArray

MOST_STEPS = 30
DONE = 1e-7  # improvement of the mean loss that is not worth a step
FREE = 1e-8  # ridge of the intercept, against labels that one feature tells apart


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows: features (n, k), labels, offsets and weights (n,)."""

    features: FloatArray
    y: FloatArray
    offset: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients of the features, (k,), and the intercept."""

    coefficients: FloatArray
    intercept: float

    def added(self, features: FloatArray) -> FloatArray:
        """What is added to the offset, (n,)."""
        return np.asarray(features @ self.coefficients + self.intercept)


def fit_logistic(
    blocks: Callable[[], Iterable[Block]], k: int, ridge: float, start: Fit | None = None
) -> Fit:
    """Minimise sum of w (log(1 + e^z) - y z) + ridge |c|^2 / 2 with z = offset + F c + intercept.

    `blocks` gives all rows, each time it is called. Cost O(n k^2) a step, of which there are few;
    memory k^2 and a block.
    """
    theta = np.zeros(k + 1) if start is None else np.append(start.coefficients, start.intercept)
    penalty = np.append(np.full(k, ridge), FREE)
    loss, step, rows = _newton(blocks, theta, penalty)
    for _ in range(MOST_STEPS):
        size = 1.0
        while True:
            tried = theta + size * step
            new = _newton(blocks, tried, penalty)
            if new[0] <= loss or size < 1e-3:
                break
            size /= 2  # far from the minimum a whole step may go too far
        gain = loss - new[0]
        if gain < 0:
            break
        theta, (loss, step, rows) = tried, new
        if gain < DONE * rows:
            break
    return Fit(theta[:-1], float(theta[-1]))


def _newton(
    blocks: Callable[[], Iterable[Block]], theta: FloatArray, penalty: FloatArray
) -> tuple[float, FloatArray, float]:
    """Loss, Newton's step and the weight of all rows."""
    rows, loss = 0.0, float(penalty @ theta**2) / 2
    gradient, hessian = penalty * theta, np.diag(penalty)
    for block in blocks():
        z = block.offset + block.features @ theta[:-1] + theta[-1]
        mean = expit(z)
        rows += float(block.weights.sum())
        loss += float(block.weights @ (np.logaddexp(0, z) - block.y * z))
        left = block.weights * (mean - block.y)
        gradient[:-1] += block.features.T @ left
        gradient[-1] += left.sum()
        curve = block.weights * mean * (1 - mean)
        scaled = block.features * curve[:, None]
        hessian[:-1, :-1] += scaled.T @ block.features
        edge = scaled.sum(axis=0)
        hessian[:-1, -1] += edge
        hessian[-1, :-1] += edge
        hessian[-1, -1] += curve.sum()
    return loss, -cho_solve(cho_factor(hessian), gradient), rows
