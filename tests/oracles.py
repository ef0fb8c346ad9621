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

    Where runs are few, a larger `doubt` keeps the power: seeds are fixed, so a count that is
    believed once is believed for ever. At 400 runs a true level of .08 passes four times in five:
    `holds_level` can tell.
    """
    low = binom.cdf(rejections, runs, level)
    high = binom.sf(rejections - 1, runs, level)
    return bool(min(low, high) > doubt / 2)


STRICT = (1.6, 0.5)


def holds_level(
    rejects,
    level: float = 0.05,
    *,
    others: tuple[float, float] = (2.0, 1 / 3),
    conservative: bool = False,
    power: float = 0.9,
    doubt: float = 0.001,
    max_runs: int = 4_000,
) -> bool:
    """Whether a test rejects in a share `level` of runs: not in twice, nor in a third of that.

    Wald's sequential test (1945) against both `others`: run k is `rejects(k)`, a truth value or
    several, and there are runs until all is decided, about 150. With the level .05, a test of .10
    or .017 is found out with probability `power` at least, and one of .05 blamed with probability
    `doubt` at most on either side. A `conservative` test may reject less. The `STRICT` others, .08
    and .025, take about 400 runs; `make study NAME=level` has more.
    """
    levels = [level * times for times in (others[:1] if conservative else others)]
    gains = np.log([[other / level, (1 - other) / (1 - level)] for other in levels])
    accepted, refused = math.log((1 - power) / (1 - doubt)), math.log(power / doubt)
    evidence, done = np.zeros((1, len(levels))), np.array(False)
    for run in range(max_runs):
        outcome = np.atleast_1d(rejects(run))[:, None]
        evidence = evidence + np.where(outcome, *gains.T)
        if (~done & (evidence >= refused)).any():
            return False
        done = done | (evidence <= accepted)
        if done.all():
            return True
    return False
