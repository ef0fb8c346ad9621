"""Canonical links, and the estimating equation of a regression solved by Newton's steps.

For a canonical link the coefficients b solve sum of w z (s - mean(z'b)) = 0, where s are labels or
what stands for them: a concave problem, with one solution or none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from itrust._core import FloatArray

STEPS = 60
SETTLED = 1e-9  # a step so short, in standard deviations of the columns, is the last one
HALVINGS = 30
ROUNDING = 1e-12  # of what is maximised
FARTHEST = 600.0  # a linear predictor whose exponential is finite, with room for sums
EDGE = 1e-6
FLAT = 1e-10  # slopes of means, in some direction, that come from rounding


def _softplus(eta: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(0.0, eta))


def _halved_square(eta: FloatArray) -> FloatArray:
    return np.square(eta) / 2


def _exponential(eta: FloatArray) -> FloatArray:
    return np.exp(np.clip(eta, -FARTHEST, FARTHEST))


def _logistic(eta: FloatArray) -> FloatArray:
    return np.exp(-np.logaddexp(0.0, -eta))  # without SciPy, which texts of tasks do not need


def _logistic_slope(eta: FloatArray) -> FloatArray:
    mean = _logistic(eta)
    return np.asarray(mean * (1 - mean))


def _same(eta: FloatArray) -> FloatArray:
    return eta


@dataclass(frozen=True)
class Link:
    """How the linear predictor of a regression gives the mean."""

    name: str
    potential: Callable[[FloatArray], FloatArray]
    mean: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    start: Callable[[float], float]


def _log_odds(mean: float) -> float:
    inside = min(max(mean, EDGE), 1 - EDGE)
    return math.log(inside / (1 - inside))


def _log_mean(mean: float) -> float:
    return math.log(max(mean, EDGE))


def _plain_mean(mean: float) -> float:
    return mean


LINKS = {
    "logit": Link("logit", _softplus, _logistic, _logistic_slope, _log_odds),
    "identity": Link("identity", _halved_square, _same, np.ones_like, _plain_mean),
    "log": Link("log", _exponential, _exponential, _exponential, _log_mean),
}


@dataclass(frozen=True, eq=False)
class NewtonStep:
    """Derivatives of what a regression maximises, summed over rows."""

    slope: FloatArray
    curve: FloatArray

    @classmethod
    def at(
        cls, link: Link, beta: FloatArray, design: FloatArray, w: FloatArray, s: FloatArray
    ) -> Self:
        """Sum over some rows."""
        eta = design @ beta
        slope = design.T @ (w * (s - link.mean(eta)))
        return cls(slope, (design * (w * link.slope(eta))[:, None]).T @ design)

    def __add__(self, other: Self) -> Self:
        return type(self)(self.slope + other.slope, self.curve + other.curve)

    def step(self) -> FloatArray:
        """Give the step that would solve a quadratic problem, (k,); NaN where there is none."""
        with np.errstate(all="ignore"):
            try:
                found = np.linalg.solve(self.curve, self.slope)
            except np.linalg.LinAlgError:
                found = np.full(self.slope.size, math.nan)
        return np.asarray(found)


def is_flat(curve: FloatArray, gram: FloatArray) -> bool:
    """Whether some direction has next to no curvature, so that its coefficient runs off."""
    try:
        root = np.linalg.cholesky(gram)
        turned = np.linalg.solve(root, np.linalg.solve(root, curve).T)
        return not float(np.linalg.eigvalsh((turned + turned.T) / 2)[0]) > FLAT
    except np.linalg.LinAlgError:
        return True


def solved(
    link: Link,
    design: FloatArray,
    w: FloatArray,
    moment: FloatArray,
    start: FloatArray | None = None,
) -> FloatArray | None:
    """Solve sum of w z mean(z'b) = moment, with steps that are halved where they are too long.

    Labels, or what stands for them, count by the sum of w z s only: that is the moment.
    """
    mass = float(w.sum())
    if not mass > 0:
        return None
    w, moment = w / mass, moment / mass
    beta = np.zeros(design.shape[1]) if start is None else start.copy()
    if start is None:
        beta[0] = link.start(float(moment[0]))

    def gain(at: FloatArray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(moment @ at - w @ link.potential(design @ at))

    reached = gain(beta)
    for _ in range(STEPS):
        eta = design @ beta
        slope = moment - design.T @ (w * link.mean(eta))
        step = NewtonStep(slope, (design * (w * link.slope(eta))[:, None]).T @ design).step()
        if not np.isfinite(step).all():
            return None
        for _ in range(HALVINGS):
            there = gain(beta + step)
            if there >= reached - ROUNDING * max(abs(reached), 1.0):
                break
            step = step / 2
        else:
            return None
        beta, reached = beta + step, there
        if np.abs(step).max() < SETTLED:
            curve = (design * (w * link.slope(design @ beta))[:, None]).T @ design
            return None if is_flat(curve, (design * w[:, None]).T @ design) else beta
    return None
