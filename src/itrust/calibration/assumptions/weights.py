"""Weights that carry information on the labels beyond what p and the covariates explain."""

from __future__ import annotations

import numpy as np

from itrust.calibration.assumptions.rows import spread_rows
from itrust.data import Column, Sample

CLEAR = 4.0  # standard errors
STRONG = 0.12  # correlation that miscalibration alone seldom reaches
MIN_ROWS = 50


def outcome_in_weights(sample: Sample) -> str | None:
    """Weights that go with the labels beyond what p and x explain.

    A regression tree takes out of the weights what is a function of (p, x); it never sees a
    label. Uses 20,000 rows at most.
    """
    if sample.weights is None or np.ptp(sample.weights) == 0 or sample.n < MIN_ROWS:
        return None
    from sklearn.tree import DecisionTreeRegressor  # slow to load, and few samples have weights

    rows = spread_rows(sample.n)
    weights, residuals = sample.weights_or_ones[rows], sample.residuals[rows]
    table = np.column_stack(
        [np.nan_to_num(c.values[rows], nan=-1e30) for c in _all_columns(sample)]
    )
    tree = DecisionTreeRegressor(min_samples_leaf=5, max_leaf_nodes=512, random_state=0)
    unexplained = weights - tree.fit(table, weights).predict(table)
    products = unexplained * residuals
    scale = np.sqrt((unexplained**2).sum() * (residuals**2).sum())
    if np.abs(unexplained).max() < 1e-9 or scale == 0:
        return None
    z = products.sum() / np.sqrt((products**2).sum())
    correlation = products.sum() / scale
    if abs(z) < CLEAR or abs(correlation) < STRONG:
        return None
    return (
        f"the weights go with the labels (correlation {correlation:.2f} with y - p beyond p and "
        f"the covariates); if they were built from the outcome, the p-value is not valid"
    )


def _all_columns(sample: Sample) -> list[Column]:
    return [sample.points.prediction, *sample.columns]
