"""Regressions that rows cannot give: what is refused, and the sentence that says why."""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray, InputError, listed
from itrust.data import Sample
from itrust.tasks.expressions import Task
from itrust.tasks.terms import (
    IS_PREDICTION,
    NO_PREDICTION,
    TELLS_PREDICTION,
    Frame,
    Regression,
    RegressionColumn,
)

MIN_ROWS, MIN_LABELS = 5, 2  # for every coefficient: rows, and labels of the rarer kind
ALIKE = 1e-9  # share of a column's variance that the columns before it leave, or it is one of them
# A column with this rank correlation with the prediction tells it, if it has so many values.
SAME_ORDER, MANY_VALUES, NEARLY_ALL = 0.999, 100, 0.9
TELLS = 1e-4  # a column so much in another one, in standard deviations, is named


def refuse_collinear(frame: Frame, gram: FloatArray) -> None:
    """Refuse columns that are constant, or told by those before them."""
    mass = gram[0, 0]
    mean = gram[0, 1:] / mass
    covariance = gram[1:, 1:] / mass - np.outer(mean, mean)
    left = covariance.copy()
    for k, column in enumerate(frame.columns):
        before = covariance[k, k]
        size = before + mean[k] ** 2  # in squared units of the scale
        if not before > ALIKE * max(size, 1.0):
            raise InputError(
                "{column} is the same in all rows that the regression on {regression} counts, so "
                "it has no coefficient; leave it out",
                argument="tasks",
                value=str(column),
                details={"column": str(column), "regression": str(frame.regression)},
            )
        if not left[k, k] > ALIKE * before:
            raise _told_by_others(frame, covariance, k)
        row = left[k] / left[k, k]
        left = left - np.outer(left[:, k], row)


def _told_by_others(frame: Frame, covariance: FloatArray, k: int) -> InputError:
    share = np.linalg.lstsq(covariance[:k, :k], covariance[:k, k], rcond=1e-9)[0]
    size = np.sqrt(np.diag(covariance)[:k] / covariance[k, k])
    told = [str(frame.columns[j]) for j in np.flatnonzero(np.abs(share) * size > TELLS)]
    return InputError(
        "in the regression on {regression}, {column} is told by {others} (collinear): leave one "
        "of them out",
        argument="tasks",
        value=str(frame.columns[k]),
        details={
            "regression": str(frame.regression),
            "column": str(frame.columns[k]),
            "others": listed(told) if told else "the columns before it",
        },
    )


def refuse_label_by_name(regression: Regression, sample: Sample) -> None:
    """Refuse the label itself among the covariates, where it is not one of the columns."""
    known = {column.name for column in sample.columns}
    for name in sorted(regression.names - known):
        if name == sample.label:
            raise InputError(
                "{value} is the label that the regression explains, so it cannot stand on its "
                "right side",
                argument="tasks",
                value=name,
            )


def refuse_outcome(
    column: RegressionColumn, values: FloatArray, y: FloatArray, p: FloatArray
) -> None:
    """Refuse a column that is the label, or tells the prediction, under another name.

    A column tells the prediction if it orders the rows as that does, in either direction, and has
    many values: percents, logits and rounded probabilities do. A covariate that the model leans on
    does not, as long as the model reads others beside it.
    """
    if np.array_equal(values, y) or np.array_equal(values, 1 - y):
        raise InputError(
            "{value} equals the label in every row that counts: a label cannot stand on the right "
            "side of its own regression",
            argument="tasks",
            value=str(column),
        )
    is_same = any(np.allclose(values, same, rtol=1e-12, atol=0) for same in (p, 1 - p))
    if np.ptp(p) > 0 and (is_same or _tells(values, p)):
        told = IS_PREDICTION if is_same else TELLS_PREDICTION
        raise InputError(
            NO_PREDICTION,
            argument="tasks",
            value=str(column),
            details={"name": str(column), "is_told": told, "rows": f"{values.size:,}"},
        )


def _tells(values: FloatArray, p: FloatArray) -> bool:
    """Whether values have the order of p, and are more than, say, years would be."""
    if np.unique(values).size <= min(MANY_VALUES, NEARLY_ALL * values.size):
        return False
    return abs(_rank_correlation(values, p)) > SAME_ORDER


def _rank_correlation(one: FloatArray, other: FloatArray) -> float:
    """Spearman's correlation; 0 where one is constant."""
    ranks = np.array([_ranks(one), _ranks(other)])
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    (a, c), (_, b) = centred @ centred.T
    return float(c / np.sqrt(a * b)) if a * b > 0 else 0.0


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks, the mean of them where values are equal, (n,)."""
    _, place, often = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(often)
    return np.asarray((last - (often - 1) / 2)[place])


def refuse_few(coefficient: Task, columns: int, ones: int, zeros: int) -> None:
    """Refuse a regression with fewer rows or labels than its coefficients need."""
    number = 1 + columns
    told = {"task": coefficient, "number": number}
    if ones + zeros < MIN_ROWS * number:
        raise InputError(
            "{task} has {number} coefficients and {rows} rows: it needs at least {least}",
            argument="tasks",
            count=ones + zeros,
            details={**told, "rows": ones + zeros, "least": MIN_ROWS * number},
        )
    if min(ones, zeros) < MIN_LABELS * number:
        rare = "positives" if ones <= zeros else "rows that are not positive"
        raise InputError(
            "{task} has {number} coefficients and {rows} {rare}: it needs at least {least}",
            argument="tasks",
            count=min(ones, zeros),
            details={
                **told,
                "rows": min(ones, zeros),
                "rare": rare,
                "least": MIN_LABELS * number,
            },
        )


def without_solution(
    coefficient: Task, frame: Frame, values: FloatArray, s: FloatArray
) -> InputError:
    """Make the error about a regression without finite coefficients, and say why."""
    is_labels = bool(np.isin(s, (0.0, 1.0)).all())
    what = "labels" if is_labels else "probabilities"
    if frame.link.name == "log":
        for k, column in enumerate(frame.columns):
            own = values[:, k] != 0
            if 0 < own.sum() < own.size and not s[own].any():
                return _no_solution(
                    coefficient, f"no row with {column} is positive, so the log of its mean is none"
                )
        return _no_solution(
            coefficient, f"no finite coefficients make the means of these {what}; take another link"
        )
    for k, column in enumerate(frame.columns):
        own = values[:, k] != 0
        few = np.unique(values[:, k]).size
        if few == 2 and 0 < own.sum() < own.size:
            for part, said in ((own, f"with {column}"), (~own, f"without {column}")):
                if np.ptp(s[part]) == 0 and s[part][0] in (0.0, 1.0):
                    every = "all" if s[part][0] else "none"
                    return _no_solution(
                        coefficient,
                        f"of the rows {said}, {every} are positive, so its coefficient is infinite",
                    )
    return _no_solution(
        coefficient,
        f"the covariates tell the {what} apart without an exception, so coefficients are infinite",
    )


def _no_solution(coefficient: Task, why: str) -> InputError:
    return InputError(
        "{task} has no estimate: {why}; leave such a covariate out, or join levels",
        argument="tasks",
        value=coefficient,
        details={"task": coefficient, "why": why},
    )
