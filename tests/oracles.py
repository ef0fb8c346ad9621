"""Naive answers to compare with, and judges of simulated levels."""

import math

import numpy as np
from scipy.stats import binom

import itrust as it


def double_loop(sample: it.Sample, pair_value) -> tuple[float, float]:
    """Weighted sum over i != j of e_i P_ij e_j and of its absolute terms, one pair at a time."""
    e = (sample.y - sample.p) * sample.weights_or_ones
    total = absolute = 0.0
    for i in range(sample.n):
        for j in range(sample.n):
            if i != j:
                term = e[i] * pair_value(i, j) * e[j]
                total += term
                absolute += abs(term)
    return total, absolute


def plausible(rejections: int, runs: int, level: float = 0.05, doubt: float = 0.001) -> bool:
    """Whether a count of rejections is believable for a test of this level, on both sides.

    At 400 runs a true level of .08 passes four times in five: `holds_level` can tell.
    """
    low = binom.cdf(rejections, runs, level)
    high = binom.sf(rejections - 1, runs, level)
    return bool(min(low, high) > doubt / 2)


def holds_level(
    rejects,
    level: float = 0.05,
    *,
    conservative: bool = False,
    power: float = 0.9,
    doubt: float = 0.001,
    max_runs: int = 4_000,
) -> bool:
    """Whether a test rejects in a share `level` of runs: not in 1.6 times, nor in half of that.

    Wald's sequential test (1945) against both: run k is `rejects(k)`, a truth value or several, and
    there are runs until all is decided, about 400. With the level .05, a test of .08 or .025 is
    found out with probability `power` at least, and one of .05 blamed with probability `doubt` at
    most on either side. A `conservative` test may reject less.
    """
    others = [1.6 * level] if conservative else [1.6 * level, 0.5 * level]
    gains = np.log([[other / level, (1 - other) / (1 - level)] for other in others])
    accepted, refused = math.log((1 - power) / (1 - doubt)), math.log(power / doubt)
    evidence, done = np.zeros((1, len(others))), np.array(False)
    for run in range(max_runs):
        outcome = np.atleast_1d(rejects(run))[:, None]
        evidence = evidence + np.where(outcome, *gains.T)
        if (~done & (evidence >= refused)).any():
            return False
        done = done | (evidence <= accepted)
        if done.all():
            return True
    return False
