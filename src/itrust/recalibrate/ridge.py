"""Logistic regression with an offset and a ridge, by Newton's steps over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from itrust._core import FloatArray

MAX_STEPS = 30
DONE = 1e-7  # improvement of the mean loss that is not worth a step
FREE = 1e-8  # ridge of the intercept, against labels that one feature tells apart


@dataclass(frozen=True, eq=False)
class RowBlock:
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
    blocks: Callable[[], Iterable[RowBlock]],
    k: int,
    ridge: float,
    start: Fit | None = None,
    sketch: Sketch | None = None,
) -> Fit:
    """Minimise sum of w (log(1 + e^z) - y z) + ridge |c|^2 / 2 with z = offset + F c + intercept.

    `blocks` gives all rows, each time it is called. Newton's steps, cost O(n k^2) each; with a
    `sketch` second derivatives come from few rows, and a step costs O(n k). Memory k^2 and a block.
    """
    theta = np.zeros(k + 1) if start is None else np.append(start.coefficients, start.intercept)
    penalty = np.append(np.full(k, ridge), FREE)
    inverse = None if sketch is None else sketch.factor(theta, penalty)
    state = _State.at(blocks, theta, penalty, inverse)
    for _ in range(MAX_STEPS):
        if state.promised < DONE * state.rows:  # the last step needs no look back
            last = state.theta + state.step
            return Fit(last[:-1], float(last[-1]))
        size = 1.0
        while True:
            tried = _State.at(blocks, state.theta + size * state.step, penalty, inverse)
            if tried.loss <= state.loss or size < 1e-3:
                break
            size /= 2  # far from the minimum a whole step may go too far
        if tried.loss > state.loss:
            break
        state = tried
    return Fit(state.theta[:-1], float(state.theta[-1]))


@dataclass(frozen=True, eq=False)
class Sketch:
    """Few rows that stand for many in the second derivatives.

    `times` is how many rows each of them stands for.
    """

    blocks: Callable[[], Iterable[RowBlock]]
    times: float

    def factor(self, theta: FloatArray, penalty: FloatArray) -> Factor:
        """Cholesky factor of the second derivatives."""
        sums = _LossSums(theta, curved=True)
        for block in self.blocks():
            sums.add(block)
        return cho_factor(self.times * sums.hessian + np.diag(penalty))


Factor = tuple[FloatArray, bool]


@dataclass(frozen=True, eq=False)
class _State:
    """Loss at theta and where to go from there."""

    theta: FloatArray
    loss: float
    step: FloatArray
    promised: float  # what the step gains if the loss is a parabola
    rows: float

    @classmethod
    def at(
        cls,
        blocks: Callable[[], Iterable[RowBlock]],
        theta: FloatArray,
        penalty: FloatArray,
        inverse: Factor | None,
    ) -> _State:
        sums = _LossSums(theta, curved=inverse is None)
        for block in blocks():
            sums.add(block)
        factor = cho_factor(sums.hessian + np.diag(penalty)) if inverse is None else inverse
        gradient = sums.gradient + penalty * theta
        step = -cho_solve(factor, gradient)
        loss = sums.loss + float(penalty @ theta**2) / 2
        return cls(theta, loss, step, -float(gradient @ step) / 2, sums.rows)


class _LossSums:
    """Loss and its derivatives, summed over blocks."""

    def __init__(self, theta: FloatArray, *, curved: bool) -> None:
        self.theta, self.curved = theta, curved
        self.loss = self.rows = 0.0
        self.gradient = np.zeros(theta.size)
        self.hessian = np.zeros((theta.size, theta.size))

    def add(self, block: RowBlock) -> None:
        z = block.offset + block.features @ self.theta[:-1] + self.theta[-1]
        mean = expit(z)
        self.rows += float(block.weights.sum())
        self.loss += float(block.weights @ (np.logaddexp(0, z) - block.y * z))
        left = block.weights * (mean - block.y)
        self.gradient[:-1] += block.features.T @ left
        self.gradient[-1] += left.sum()
        if not self.curved:
            return
        curve = block.weights * mean * (1 - mean)
        scaled = block.features * curve[:, None]
        edge = scaled.sum(axis=0)
        self.hessian[:-1, :-1] += scaled.T @ block.features
        self.hessian[:-1, -1] += edge
        self.hessian[-1, :-1] += edge
        self.hessian[-1, -1] += curve.sum()
