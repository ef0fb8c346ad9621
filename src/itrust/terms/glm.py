"""One Newton: what is convex is minimised by steps that are halved where they are too long.

A regression with a canonical link minimises, over coefficients b, the sum over rows of
w (A(z) - s z) plus sum of r b^2 / 2. Here z = offset + X b, the derivative of A is the mean, s are
labels or what stands for them, and r is a penalty. Its derivatives are sums over rows, so rows may
come in blocks: a step costs O(n k^2), memory is k^2 and a block.

Multinomial regression has columns for every class: the logit of class k is offset_k + X_k b_k. The
second derivatives of K classes are never held: a step solves for its direction by conjugate
gradients, preconditioned by the blocks of single classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Self

import numpy as np

from itrust._core import AnyArray, FloatArray, IntArray

STEPS, HALVINGS = 60, 30
ROUNDING = 1e-12  # of what is minimised
FARTHEST = 600.0  # a linear predictor whose exponential is finite, with room for sums
EDGE = 1e-6
FLAT = 1e-10  # slopes of means, in some direction, that come from rounding
MAX_TURNS = 200  # of conjugate gradients
NEAR, ROUGHLY_NEAR = 1e-3, 0.1  # residual of a direction that will do, as share of the gradient's
ROUGH = 1e-8  # of `done`: from here on directions may be rough


# A convex function at a point, and what gives its derivatives there, a row's share of them, and
# where to go from there, NaN where there is no saying.
Expansion = tuple[float, Callable[[], tuple[FloatArray, FloatArray]]]


def minimised(
    expanded: Callable[[FloatArray], Expansion], start: FloatArray, done: float, steps: int = STEPS
) -> tuple[FloatArray, bool]:
    """Go down until a step promises less than `done`; tell where that is, and whether it did.

    >>> import numpy as np
    >>> rows = RegressionRows(np.ones((4, 1)), np.array([0.0, 1.0, 1.0, 1.0]), np.ones(4))
    >>> log_odds, _ = fit_glm(LINKS["logit"], lambda: [rows], np.zeros(1), done=1e-16)
    >>> round(float(np.exp(log_odds[0])), 9)
    3.0
    """
    theta, (loss, ahead) = start, expanded(start)
    for _ in range(steps):
        gradient, step = ahead()
        promised = -float((gradient * step).sum()) / 2  # if the function is a parabola
        if not math.isfinite(promised):
            break
        if promised < done:  # the last step needs no look back
            return theta + step, True
        most = loss + ROUNDING * max(abs(loss), 1.0)
        for _ in range(HALVINGS):
            loss, ahead = expanded(theta + step)
            if loss <= most:
                break
            step = step / 2  # far from the minimum a whole step may go too far
        else:
            break
        theta = theta + step
    return theta, False


# --- canonical links ------------------------------------------------------------------------------


def _softplus(eta: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta))))


def _halved_square(eta: FloatArray) -> FloatArray:
    return np.square(eta) / 2


def _exponential(eta: FloatArray) -> FloatArray:
    return np.exp(np.clip(eta, -FARTHEST, FARTHEST))


def _logistic(eta: FloatArray) -> FloatArray:
    small = np.exp(-np.abs(eta))  # without SciPy, which texts of tasks do not need
    return np.asarray(np.where(eta < 0, small, 1.0) / (1 + small))


def _binary_variance(mean: FloatArray) -> FloatArray:
    return np.asarray(mean * (1 - mean))


def _log_odds(mean: float) -> float:
    inside = min(max(mean, EDGE), 1 - EDGE)
    return math.log(inside / (1 - inside))


def _log_mean(mean: float) -> float:
    return math.log(max(mean, EDGE))


@dataclass(frozen=True)
class Link:
    """How the linear predictor of a regression gives the mean, and the mean its slope there."""

    name: str
    potential: Callable[[FloatArray], FloatArray]
    mean: Callable[[FloatArray], FloatArray]
    variance: Callable[[FloatArray], FloatArray]
    start: Callable[[float], float]


LINKS = {
    "logit": Link("logit", _softplus, _logistic, _binary_variance, _log_odds),
    "identity": Link("identity", _halved_square, np.positive, np.ones_like, float),
    "log": Link("log", _exponential, _exponential, np.positive, _log_mean),
}


# --- regressions over blocks of rows --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RegressionRows:
    """Some rows: columns (n, k), labels or what stands for them, weights and offsets (n,)."""

    design: FloatArray
    s: AnyArray
    weights: FloatArray
    offset: FloatArray | float = 0.0


Blocks = Callable[[], Iterable[RegressionRows]]


@dataclass(frozen=True, eq=False)
class RegressionSums:
    """What a regression minimises and its derivatives, summed over rows."""

    mass: float
    loss: float
    gradient: FloatArray
    curve: FloatArray

    @classmethod
    def at(cls, link: Link, beta: FloatArray, rows: RegressionRows, *, curved: bool = True) -> Self:
        """Sum over some rows."""
        x, w = rows.design, rows.weights
        eta = x @ beta + rows.offset
        with np.errstate(over="ignore", invalid="ignore"):
            loss = float(w @ (link.potential(eta) - rows.s * eta))
        mean = link.mean(eta)
        gradient = x.T @ (w * (mean - rows.s))
        curve = (x * (w * link.variance(mean))[:, None]).T @ x if curved else np.zeros((0, 0))
        return cls(float(w.sum()), loss, gradient, curve)

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, vars(self).values(), vars(other).values()))

    def step(self) -> FloatArray:
        """The step that would solve a quadratic problem, (k,); NaN where there is none."""
        with np.errstate(all="ignore"):
            try:
                return np.asarray(-np.linalg.solve(self.curve, self.gradient))
            except np.linalg.LinAlgError:
                return np.full(self.gradient.size, math.nan)


def summed(link: Link, beta: FloatArray, blocks: Blocks, *, curved: bool = True) -> RegressionSums:
    """Sum over all rows, one pass."""
    return reduce(add, (RegressionSums.at(link, beta, rows, curved=curved) for rows in blocks()))


def fit_glm(
    link: Link,
    blocks: Blocks,
    penalty: FloatArray,
    start: FloatArray | None = None,
    *,
    done: float,
    moment: FloatArray | None = None,
    curve: FloatArray | None = None,
) -> tuple[FloatArray, bool]:
    """Fit coefficients, with a penalty of each; tell whether the search came to an end.

    `moment` adds sums of w x s of labels that are not among the rows. With a `curve`, second
    derivatives of few rows that stand for all, a step costs O(n k).
    """

    def expanded(beta: FloatArray) -> Expansion:
        sums = summed(link, beta, blocks, curved=curve is None)
        known = sums.curve if curve is None else curve
        pull = 0.0 if moment is None else moment
        curved = known + np.diag(penalty)
        whole = replace(sums, gradient=sums.gradient + penalty * beta - pull, curve=curved)

        def ahead() -> tuple[FloatArray, FloatArray]:
            with np.errstate(all="ignore"):
                return np.asarray(whole.gradient / whole.mass), whole.step()

        return sums.loss + float(((penalty * beta / 2 - pull) * beta).sum()), ahead

    return minimised(expanded, np.zeros(penalty.size) if start is None else start, done)


def is_flat(curve: FloatArray, gram: FloatArray) -> bool:
    """Whether some direction has next to no curvature, so that its coefficient runs off."""
    try:
        root = np.linalg.cholesky(gram)
        turned = np.linalg.solve(root, np.linalg.solve(root, curve).T)
        return not float(np.linalg.eigvalsh((turned + turned.T) / 2)[0]) > FLAT
    except np.linalg.LinAlgError:
        return True


# --- several classes ------------------------------------------------------------------------------


def log_softmax(logits: FloatArray) -> FloatArray:
    """Logarithms of the probabilities of rows with these logits, (n, K)."""
    moved = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(moved - np.log(np.exp(moved).sum(axis=1, keepdims=True)))


def added_logits(designs: Sequence[FloatArray], theta: FloatArray) -> FloatArray:
    """Columns of K classes, each (n, m), times their coefficients (K, m), (n, K)."""
    if _is_shared(designs):
        return np.asarray(designs[0] @ theta.T)
    return np.column_stack([x @ c for x, c in zip(designs, theta, strict=True)])


def _is_shared(designs: Sequence[FloatArray]) -> bool:
    """Whether all classes have the same columns, so that one product does for all."""
    return all(x is designs[0] for x in designs)


@dataclass(frozen=True, eq=False)
class MultinomialRows:
    """Rows with K arrays of columns (n, m), codes and weights (n,), and offsets (n, K)."""

    designs: Sequence[FloatArray]
    codes: IntArray
    weights: FloatArray
    offset: FloatArray

    def back(self, left: FloatArray) -> FloatArray:
        """The transpose of `added_logits`: (n, K) to (K, m)."""
        if _is_shared(self.designs):
            return np.asarray(left.T @ self.designs[0])
        columns = np.ascontiguousarray(left.T)
        return np.array([c @ x for x, c in zip(self.designs, columns, strict=True)])

    @cached_property
    def blocks(self) -> list[FloatArray]:
        """Second derivatives of each class alone at the offset, K arrays (m, m)."""
        p = np.exp(log_softmax(self.offset))
        curves = (self.weights[:, None] * p * (1 - p)).T
        return [x.T @ (x * c[:, None]) for x, c in zip(self.designs, curves, strict=True)]


def _conjugate(
    curved: Callable[[FloatArray], FloatArray],
    gradient: FloatArray,
    inverses: FloatArray,
    near: float,
) -> FloatArray:
    """Newton's direction, by conjugate gradients; the inverses are those of blocks, (K, m, m)."""

    def preconditioned(v: FloatArray) -> FloatArray:
        return np.asarray((inverses @ v[:, :, None])[:, :, 0])

    step, residual = np.zeros(gradient.shape), -gradient
    way = ready = preconditioned(residual)
    size = first = float((residual * ready).sum())
    for _ in range(MAX_TURNS):
        if size <= near**2 * first or size <= 0:
            break
        bent = curved(way)
        length = size / float((way * bent).sum())
        step = step + length * way
        residual = residual - length * bent
        ready = preconditioned(residual)
        before, size = size, float((residual * ready).sum())
        way = ready + size / before * way
    return step


def fit_multinomial(
    rows: MultinomialRows, penalty: FloatArray, start: FloatArray | None = None, *, done: float
) -> FloatArray:
    """Minimise the sum of w log losses + sum of penalty theta^2 / 2 over theta, (K, m).

    `penalty` has the shape of theta, all of it above 0: the logits of a row may all be moved by
    the same, and the penalty says by how much. Cost O(n m^2 K) once, then O(n m K) for each of
    some ten turns of each of a few steps.
    """
    blocks = zip(rows.blocks, penalty, strict=True)
    inverses = np.array([np.linalg.inv(block + np.diag(ridge)) for block, ridge in blocks])
    near = NEAR if done < ROUGH else ROUGHLY_NEAR
    mass = float(rows.weights.sum())

    labels, weights = (np.arange(rows.codes.size), rows.codes), rows.weights[:, None]

    def expanded(theta: FloatArray) -> Expansion:
        logs = log_softmax(rows.offset + added_logits(rows.designs, theta))
        loss = float(-rows.weights @ logs[labels] + (penalty * theta**2).sum() / 2)

        def ahead() -> tuple[FloatArray, FloatArray]:
            p = np.exp(logs)
            left = weights * p
            left[labels] -= rows.weights
            gradient = rows.back(left) + penalty * theta

            def curved(v: FloatArray) -> FloatArray:
                turned = p * added_logits(rows.designs, v)
                turned -= p * turned.sum(axis=1, keepdims=True)
                return rows.back(weights * turned) + penalty * v

            return gradient / mass, _conjugate(curved, gradient, inverses, near)

        return loss, ahead

    return minimised(expanded, np.zeros(penalty.shape) if start is None else start, done)[0]
