"""Regressions that rows cannot give: what is refused, and the sentence that says why."""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray, InputError, listed
from itrust.data import Sample
from itrust.tasks.expressions import Task
from itrust.tasks.terms import NO_PREDICTION, Frame, Regression, RegressionColumn

MIN_ROWS, MIN_LABELS = 5, 2  # for every coefficient: rows, and labels of the rarer kind
ALIKE = 1e-9  # share of a column's variance that the columns before it leave, or it is one of them
TELLS = 1e-4  # a column so much in another one, in standard deviations, is named


def refuse_collinear(frame: Frame, gram: FloatArray) -> None:
    """Refuse columns that are constant, or told by those before them.

    Parameters
    ----------
    frame : Frame
        The columns.
    gram : (1 + k, 1 + k) array
        Sums of w z z' of the constant and the scaled columns.
    """
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
    """Refuse a column that is the label, or the prediction, under another name.

    Parameters
    ----------
    column : RegressionColumn
        Of a regression.
    values, y, p : (n,) arrays
        Its values, labels and predictions.
    """
    if np.array_equal(values, y) or np.array_equal(values, 1 - y):
        raise InputError(
            "{value} equals the label in every row that counts: a label cannot stand on the right "
            "side of its own regression",
            argument="tasks",
            value=str(column),
        )
    for same in (p, 1 - p):
        if np.ptp(p) > 0 and np.allclose(values, same, rtol=1e-12, atol=0):
            raise InputError(
                NO_PREDICTION,
                argument="tasks",
                value=str(column),
                details={"name": str(column), "rows": f"{values.size:,}"},
            )


def refuse_few(coefficient: Task, columns: int, ones: int, zeros: int) -> None:
    """Refuse a regression with fewer rows or labels than its coefficients need.

    Parameters
    ----------
    coefficient : Task
        What is asked.
    columns : int
        How many there are, without the constant.
    ones, zeros : int
        Rows that count, by label.
    """
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
    """Make the error about a regression without finite coefficients, and say why.

    Parameters
    ----------
    coefficient : Task
        What is asked.
    frame : Frame
        The columns.
    values : (n, k) array
        Of some rows.
    s : (n,) array
        Their labels or what stands for them.

    Returns
    -------
    InputError
        Names the level whose rows have all the same label, if there is one.
    """
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
