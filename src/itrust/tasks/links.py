"""Canonical links, and the estimating equation of a regression solved by Newton's steps.

For a canonical link the coefficients b solve sum of w z (s - mean(z'b)) = 0, where s are labels or
what stands for them: a concave problem, with one solution or none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from itrust._core import FloatArray
from itrust.terms import LINKS, Link, RegressionRows, fit_glm, is_flat, summed

__all__ = ["LINKS", "SETTLED", "STEPS", "Link", "NewtonStep", "is_flat", "solved"]

STEPS = 60
SETTLED = 1e-9  # a step so short, in standard deviations of the columns, is the last one


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
    rows = RegressionRows(design, np.zeros(w.size), w)
    found = fit_glm(
        link, lambda: (rows,), np.zeros(beta.size), beta, done=SETTLED**2, moment=moment
    )
    if not found.is_settled:
        return None
    curve = summed(link, found.theta, lambda: (rows,)).curve
    return None if is_flat(curve, (design * w[:, None]).T @ design) else found.theta
