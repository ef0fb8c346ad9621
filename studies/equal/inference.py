"""Tails, adjusted p-values, and numbers for rows without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate, stats
from statsmodels.stats.multitest import multipletests

import itrust as it
from equal.data import NONE, SURVEY, Halves
from equal.kit import row
from itrust import tasks
from itrust.calibration.tails import step_down, student_quantile, student_tail
from itrust.nulls import weighted_chi2_sf

Pair = tuple[Any, Any]
WEIGHTS = np.array([3.0, 1.5, 1.0, 0.6, 0.3, 0.1])
FREEDOM = (1, 2.5, 7, 40)
PLACES = (2.0, 5.0, 10.0, 20.0, 30.0)


@row("Tails of Student's and the normal law", "scipy", on=(NONE,))
def tails() -> Pair:
    z = np.linspace(-6, 6, 25)
    ours = [student_tail(z, freedom) for freedom in (*FREEDOM, np.inf)]
    return ours, [*(stats.t.sf(z, freedom) for freedom in FREEDOM), stats.norm.sf(z)]


@row("Their quantiles", "scipy", on=(NONE,), within=1e-9)
def quantiles() -> Pair:
    tail = np.array([0.4, 0.1, 0.025, 1e-3, 1e-6])
    ours = [student_quantile(tail, freedom) for freedom in (*FREEDOM, np.inf)]
    return ours, [*(stats.t.isf(tail, freedom) for freedom in FREEDOM), stats.norm.isf(tail)]


@row("Tail of a chi-square, 1 to 40 degrees of freedom", "scipy", on=(NONE,), within=1e-9)
def equal_weights() -> Pair:
    places = [(k, x) for k in (1, 2, 5, 40) for x in (0.5 * k, k, 2 * k, 6 * k)]
    ours = [weighted_chi2_sf(x, np.ones(k)) for k, x in places]
    return ours, [stats.chi2.sf(x, k) for k, x in places]


def imhof(value: float) -> float:
    """Imhof's (1961) integral, by scipy's quadrature."""

    def integrand(u: float) -> float:
        theta = 0.5 * np.arctan(WEIGHTS * u).sum() - 0.5 * value * u
        return float(np.sin(theta) / (u * np.prod((1 + (WEIGHTS * u) ** 2) ** 0.25)))

    return 0.5 + integrate.quad(integrand, 0, 400, limit=4_000, epsabs=1e-11)[0] / np.pi


@row("Tail of a weighted sum of six chi-squares (Imhof)", "scipy", on=(NONE,), within=1e-4)
def by_quadrature() -> Pair:
    return [weighted_chi2_sf(x, WEIGHTS) for x in PLACES], [imhof(x) for x in PLACES]


@row(
    "Tail of a weighted sum of six chi-squares",
    "momentchi2",
    on=(NONE,),
    within=None,
    note="Hall, Buckley and Eagleson's approximation; ours integrates the law. Its method with "
    "four moments calls `numpy.math`, which NumPy 2 does not have",
)
def three_moments() -> Pair:
    from momentchi2 import hbe

    ours = [weighted_chi2_sf(x, WEIGHTS) for x in PLACES]
    return ours, [1 - hbe(list(WEIGHTS), x) for x in PLACES]


@row(
    "Step-down max-T of 8 independent scores, 200,000 draws",
    "statsmodels",
    on=(NONE,),
    within=2e-2,
    note="Holm-Sidak is what max-T becomes for independent scores; the rest is the error of the "
    "draws",
)
def max_t() -> Pair:
    rng = np.random.default_rng(3)
    observed = np.array([3.4, 3.0, 2.7, 2.2, 1.9, 1.2, 0.4, -0.3])
    scores = np.column_stack([observed, rng.normal(size=(8, 200_000))])
    return step_down(scores), multipletests(stats.norm.sf(observed), method="holm-sidak")[1]


def ppi(rows: Halves) -> tuple[tasks.TaskEstimate, tuple[float, ...]]:
    """A prevalence from 500 labels and 1,500 rows without, by both packages."""
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    y, p = rows.pair
    found = tasks.prevalence().estimate(
        it.Population(p[500:]), labelled=it.Sample(y[:500], p[:500])
    )
    given = (y[:500], p[:500], p[500:])
    point = ppi_mean_pointestimate(*given, lam=found.lam)
    lower, upper = ppi_mean_ci(*given, alpha=0.05, lam=found.lam)
    return found, tuple(float(np.ravel(own)[0]) for own in (point, lower, upper))


@row("Prediction-powered prevalence, given the share of the probabilities", "ppi-python")
def powered(rows: Halves) -> Pair:
    found, (point, _, _) = ppi(rows)
    return found.prediction_powered.value, point


@row(
    "Width of its 95 % interval",
    "ppi-python",
    within=2e-2,
    note="ppi-python takes the normal interval; ours Student's quantile, and for a rate an "
    "interval within its bounds",
)
def powered_width(rows: Halves) -> Pair:
    found, (_, lower, upper) = ppi(rows)
    return found.prediction_powered.width, upper - lower


@row(
    "The share of the probabilities itself",
    "ppi-python",
    on=(SURVEY,),
    within=None,
    note="both minimise the variance, with other estimates of it",
)
def share(rows: Halves) -> Pair:
    from ppi_py import ppi_mean_pointestimate

    found, _ = ppi(rows)
    y, p = rows.pair
    tuned = float(np.ravel(ppi_mean_pointestimate(y[:500], p[:500], p[500:]))[0])
    return found.lam, (tuned - y[:500].mean()) / (p[500:].mean() - p[:500].mean())
