"""Samples whose rows come in clusters and strata; calibrated unless a bias is asked for."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

import itrust as it


def covariates(rng, unit):
    """A number of the row, a number of the cluster, and a category of the row."""
    return {
        "x": rng.normal(size=unit.size),
        "z": rng.normal(size=unit.max() + 1)[unit],
        "g": rng.choice(list("abcd"), unit.size),
    }


def biased(p, x, bias):
    """True probabilities: log odds off along the cluster's number."""
    return expit(logit(p) + bias * x["z"])


def gaussian(rng, q, unit, rho):
    """Labels that are alike by a normal number that a cluster shares."""
    shared = np.sqrt(rho) * rng.normal(size=unit.max() + 1)[unit]
    return norm.cdf(shared + np.sqrt(1 - rho) * rng.normal(size=q.size)) < q


def shared(rng, q, unit, part):
    """Labels of which some take the uniform number of their cluster, the others their own."""
    common = rng.random(unit.max() + 1)[unit]
    takes = rng.random(q.size) < part
    return np.where(takes, common, rng.random(q.size)) < q


def equal(clusters, rows):
    return np.repeat(np.arange(clusters), rows)


def one_label(rng, bias, clusters=60, rows=4):
    unit = equal(clusters, rows)
    x, p = covariates(rng, unit), rng.uniform(0.001, 0.03, clusters)[unit]
    return it.Sample(shared(rng, biased(p, x, bias), unit, 1.0), p, x, cluster=unit)


def rare_shared(rng, bias):
    unit = equal(60, 20)
    x, p = covariates(rng, unit), expit(logit(0.05) + 0.2 * rng.normal(size=unit.size))
    return it.Sample(shared(rng, biased(p, x, bias), unit, np.sqrt(0.5)), p, x, cluster=unit)


def unequal(rng, bias, p=0.05):
    unit = np.repeat(np.arange(40), rng.geometric(0.1, 40) + 1)
    x, p = covariates(rng, unit), np.full(unit.size, p)
    return it.Sample(gaussian(rng, biased(p, x, bias), unit, 0.3), p, x, cluster=unit)


def sure(rng, bias):
    unit = equal(100, 10)
    x, p = covariates(rng, unit), np.clip(rng.beta(0.25, 0.25, unit.size), 1e-6, 1 - 1e-6)
    return it.Sample(shared(rng, biased(p, x, bias), unit, 0.5), p, x, cluster=unit)


def low_shared(rng, bias):
    unit = equal(60, 10)
    x, p = covariates(rng, unit), rng.uniform(0.02, 0.3, 60)[unit]
    return it.Sample(shared(rng, biased(p, x, bias), unit, 1.0), p, x, cluster=unit)


def even(clusters, rng, bias):
    unit = equal(clusters, 10)
    x, p = covariates(rng, unit), np.full(unit.size, 0.5)
    return it.Sample(gaussian(rng, biased(p, x, bias), unit, 0.3), p, x, cluster=unit)


def middling(rho, rng, bias):
    unit = equal(60, 20)
    x, p = covariates(rng, unit), rng.uniform(0.2, 0.8, unit.size)
    return it.Sample(gaussian(rng, biased(p, x, bias), unit, rho), p, x, cluster=unit)


def frail(rng, bias):
    """Clusters have a rate of their own, from a beta law around p."""
    unit = equal(40, 15)
    x, p = covariates(rng, unit), rng.uniform(0.05, 0.3, 40)
    q = biased(p[unit], x, bias)[::15]
    return it.Sample(
        rng.random(unit.size) < rng.beta(6 * q, 6 - 6 * q)[unit], p[unit], x, cluster=unit
    )


def paired(centre, rng, bias):
    """31 strata of two clusters, with weights, as a national survey has them."""
    unit = equal(62, 12)
    stratum, x = unit // 2, covariates(rng, unit)
    p = expit(centre + rng.normal(0, 0.7, 31)[stratum] + rng.normal(0, 0.5, unit.size))
    y = gaussian(rng, biased(p, x, bias), unit, 0.2)
    w = np.exp(rng.normal(0, 0.6, 31)[stratum] + 0.2 * rng.normal(size=unit.size))
    return it.Sample(y, p, x, cluster=unit, strata=stratum, weights=w)


def heavy(rng, bias):
    """Ten strata of six unequal clusters, with heavy weights."""
    unit = np.repeat(np.arange(60), rng.geometric(0.08, 60) + 2)
    stratum, x = unit // 6, covariates(rng, unit)
    p = expit(rng.normal(-0.8, 0.6, 10)[stratum] + rng.normal(0, 0.8, unit.size))
    y = gaussian(rng, biased(p, x, bias), unit, 0.15)
    return it.Sample(
        y, p, x, cluster=unit, strata=stratum, weights=rng.exponential(size=unit.size) ** 2
    )


def mixed(low, high, rng, bias):
    """One label a cluster; events are rare in half of the clusters."""
    unit = equal(60, 15)
    x, p = covariates(rng, unit), np.where(unit < 30, low, high)
    return it.Sample(shared(rng, biased(p, x, bias), unit, 1.0), p, x, cluster=unit)


def households(rng, bias):
    """Heavy clusters with one label each beside light ones of independent rows."""
    unit = np.repeat(np.arange(90), np.where(np.arange(90) < 40, 5, 20))
    x, p, heavy = covariates(rng, unit), np.full(unit.size, 0.12), unit < 40
    q = biased(p, x, bias)
    y = np.where(heavy, shared(rng, q, unit, 1.0), shared(rng, q, unit, 0.0))
    return it.Sample(y, p, x, cluster=unit, weights=np.where(heavy, 20.0, 1.0))


DESIGNS = {
    "one label a cluster, p .001 to .03, 60 x 4": one_label,
    "labels shared at .5, p near .05, 60 x 20": rare_shared,
    "40 unequal clusters, p = .05": unequal,
    "p ~ Beta(.25, .25), 100 x 10": sure,
    "p .02 to .3, one label a cluster, 60 x 10": low_shared,
    "p .001 to .03, one label a cluster, 80 x 3": partial(one_label, clusters=80, rows=3),
    "31 strata x 2, weights, p around .35": partial(paired, -0.6),
    "31 strata x 2, weights, p around .04": partial(paired, -3.3),
    "10 strata x 6 unequal, heavy weights": heavy,
    "30 clusters, p = .5": partial(even, 30),
    "60 clusters, p = .5": partial(even, 60),
    "200 clusters, p = .5": partial(even, 200),
    "p .5 or .03, one label a cluster, 60 x 15": partial(mixed, 0.03, 0.5),
    "p .02 or .98, one label a cluster, 60 x 15": partial(mixed, 0.02, 0.98),
    "heavy clusters alike, light ones not, p = .12": households,
    "p .2 to .8, independent, 60 x 20": partial(middling, 0.0),
    "p .2 to .8, rho .3, 60 x 20": partial(middling, 0.3),
    "beta frailty, p .05 to .3, 40 x 15": frail,
}
HARD = tuple(DESIGNS)[:15]
# Biases with which about half of the samples are rejected, or more.
POWER = {
    "30 clusters, p = .5": 0.7,
    "60 clusters, p = .5": 0.5,
    "p .2 to .8, independent, 60 x 20": 0.2,
    "p .2 to .8, rho .3, 60 x 20": 0.4,
    "p ~ Beta(.25, .25), 100 x 10": 0.5,
    "31 strata x 2, weights, p around .35": 0.35,
    "one label a cluster, p .001 to .03, 60 x 4": 1.5,
    "labels shared at .5, p near .05, 60 x 20": 1.0,
    "beta frailty, p .05 to .3, 40 x 15": 0.8,
}
