"""What an exact p-value rests on, and the checks that the data can answer.

Rows independent given (x, f); labels unseen by the model; weights that carry no information
on y beyond (x, f). The first and last leave traces, which are looked for here.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from itrust._core import AssumptionWarning, counted
from itrust.data import Column, Sample, Source, share_codes

CLEAR = 4.0  # standard errors
STRONG = 0.12  # correlation that miscalibration alone seldom reaches
MIN_ROWS, MAX_ROWS = 50, 20_000
MIN_GROUPS, LARGEST_GROUP = 20, 20  # repeated units are many and small; strata are not


def assumption_notes(source: Source) -> tuple[str, ...]:
    """One sentence for each assumption the data contradict; each is also a Python warning.

    Rows in files are not looked at: both checks need them side by side.
    """
    sample = source.in_memory
    if sample is None:
        return ()
    found = (outcome_in_weights(sample), dependence_of_twins(sample))
    notes = tuple(note for note in found if note)
    for note in notes:
        warnings.warn(note, AssumptionWarning, stacklevel=3)
    return notes


def outcome_in_weights(sample: Sample) -> str | None:
    """Weights that go with the labels beyond what p and x explain.

    A regression tree takes out of the weights what is a function of (p, x); it never sees a
    label. Uses 20,000 rows at most.
    """
    if sample.weights is None or np.ptp(sample.weights) == 0 or sample.n < MIN_ROWS:
        return None
    rows = np.unique(np.linspace(0, sample.n - 1, MAX_ROWS).astype(int))
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


def dependence_of_twins(sample: Sample) -> str | None:
    """Many small groups of rows with identical (p, x) whose labels agree more than neighbours'.

    Labels also agree where the model is miscalibrated, but then those of neighbouring rows do,
    too: the agreement between groups next to each other is taken off. Cost O(n log n).
    """
    ordered = np.sort(sample.p)
    may_be_twins = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
    if sample.cluster is not None or may_be_twins < MIN_GROUPS:
        return None
    # Neighbours share their categories and are next in p, then in the numbers.
    columns = sorted(_all_columns(sample), key=lambda column: not column.is_category)
    codes, _ = share_codes(columns, columns)
    _, codes = np.unique(codes, return_inverse=True)
    size = np.bincount(codes)
    twins = size >= 2
    if twins.sum() < MIN_GROUPS or np.median(size[twins]) > LARGEST_GROUP:
        return None
    sums = np.bincount(codes, sample.residuals)
    squares = np.bincount(codes, sample.residuals**2)
    within = (sums**2 - squares)[twins].sum()
    within_scale = (squares * (size - 1))[twins].sum() or 1.0
    spread = np.sqrt(2 * (squares**2 * (size - 1) / size)[twins].sum())
    scale = np.sqrt(size * squares)
    between = (sums[1:] * sums[:-1]).sum() / ((scale[1:] * scale[:-1]).sum() or 1.0)
    correlation = within / within_scale - max(between, 0.0)
    if correlation < STRONG or correlation * within_scale < CLEAR * spread:
        return None
    return (
        f"{counted(int(size[twins].sum()), 'row')} share p and all covariates with another row, "
        f"and their labels agree more than those of neighbours (correlation {correlation:.2f}); if "
        f"they are repeated units, pass cluster=, for the p-value takes rows as independent"
    )
