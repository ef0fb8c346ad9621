"""Naive answers to compare with, and a judge of simulated levels."""

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
    """Whether a count of rejections is believable for a test of this level, on both sides."""
    low = binom.cdf(rejections, runs, level)
    high = binom.sf(rejections - 1, runs, level)
    return bool(min(low, high) > doubt / 2)
