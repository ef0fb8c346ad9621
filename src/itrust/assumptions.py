"""What an exact p-value rests on, and the checks that the data can answer.

Rows independent given (x, f); labels unseen by the model; weights that carry no information
on y beyond (x, f). The first and last leave traces, which are looked for here.
"""

from __future__ import annotations

import warnings

import numpy as np

from itrust.columns import Column, share_codes
from itrust.errors import AssumptionWarning
from itrust.sample import Sample
from itrust.typing import FloatArray

CLEAR = 4.0  # standard errors
STRONG = 0.12  # correlation that miscalibration alone seldom reaches
MOST_DUMMIES = 30
FEWEST_GROUPS, LARGEST_GROUP = 20, 20  # repeated units are many and small; strata are not


def assumption_notes(sample: Sample) -> tuple[str, ...]:
    """One sentence for each assumption the data contradict; each is also a Python warning."""
    found = (outcome_in_weights(sample), dependence_of_twins(sample))
    notes = tuple(note for note in found if note)
    for note in notes:
        warnings.warn(note, AssumptionWarning, stacklevel=4)
    return notes


def outcome_in_weights(sample: Sample) -> str | None:
    """Weights that go with the labels beyond what p and x explain linearly.

    Cost O(n d^2).
    """
    if sample.weights is None or np.ptp(sample.weights) == 0:
        return None
    basis = _basis(sample)
    unexplained = sample.weights - basis @ np.linalg.lstsq(basis, sample.weights)[0]
    if np.abs(unexplained).max() < 1e-9 * sample.weights.max():
        return None
    products = unexplained * sample.residuals
    z = products.sum() / (np.sqrt((products**2).sum()) or 1.0)
    correlation = products.sum() / np.sqrt(
        (unexplained**2).sum() * (sample.residuals**2).sum() or 1.0
    )
    if abs(z) < CLEAR or abs(correlation) < STRONG:
        return None
    return (
        f"the weights go with the labels (correlation {correlation:.2f} with y - p beyond p and "
        f"the covariates); if they were built from the outcome, the p-value is not valid"
    )


def _basis(sample: Sample) -> FloatArray:
    """Intercept, p, covariates, squares and dummies: what weights may well depend on."""
    parts = [np.ones(sample.n), sample.p, sample.p**2]
    for column in sample.columns:
        parts.extend(_terms(column))
    return np.column_stack(parts)


def _terms(column: Column) -> list[FloatArray]:
    if column.is_category:
        return [
            (column.values == k).astype(float) for k in range(min(len(column.levels), MOST_DUMMIES))
        ]
    values = np.nan_to_num(
        (column.values - np.nanmean(column.values)) / (np.nanstd(column.values) or 1.0)
    )
    return [values, values**2, column.missing.astype(float)]


def dependence_of_twins(sample: Sample) -> str | None:
    """Many small groups of rows with identical (p, x) whose labels agree more than neighbours'.

    Labels also agree where the model is wrong, but then those of neighbouring rows do, too: the
    agreement between groups that are next in p is taken off. Cost O(n log n).
    """
    if sample.cluster is not None:
        return None
    columns = [sample.points.prediction, *sample.columns]
    codes, _ = share_codes(columns, columns)  # numbered in the order of p
    size = np.bincount(codes)
    twins = size >= 2
    if twins.sum() < FEWEST_GROUPS or np.median(size[twins]) > LARGEST_GROUP:
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
        f"{int(size[twins].sum()):,} rows share p and all covariates with another row, and their "
        f"labels agree more than those of neighbours (correlation {correlation:.2f}); if they are "
        f"repeated units, pass cluster=, for the p-value takes rows as independent"
    )
