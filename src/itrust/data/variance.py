"""The variance that a design gives a number: linearised, or from every set of replicate weights."""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.data.design import Design


def linear_moves(design: Design, shares: FloatArray) -> FloatArray:
    """How far every set of replicate weights moves a sum of shares, (R,).

    Every set is scaled to the total of the sample's weights, so that the scale of neither counts;
    the numbers that shares are of are ratios, which have none.
    """
    assert design.replicate_weights is not None
    base = np.ones(design.n) if design.weights is None else design.weights
    per_weight = np.divide(shares, base, out=np.zeros(design.n), where=base > 0)
    sets = design.replicate_weights
    scale = float(base.sum()) / sets.sum(axis=0)
    return np.asarray((per_weight @ sets) * scale - shares.sum())


def design_variance(design: Design, shares: FloatArray, moves: FloatArray | None = None) -> float:
    """Variance of a number by the design: from replicate weights, or linearised."""
    if design.replicate_weights is None:
        return float(design.linearised_variance(shares))
    linear = linear_moves(design, shares)
    moves = linear if moves is None else np.where(np.isfinite(moves), moves, linear)
    return design.replicated_variance(0.0, moves)


def variance_units(design: Design) -> IntArray | None:
    """Which rows were drawn together, (n,); None if each was drawn by itself."""
    return None if design.rows_are_independent else design.drawn_together
