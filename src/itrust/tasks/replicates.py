"""Estimates with every set of replicate weights."""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray
from itrust.tasks.differentials import Dual
from itrust.tasks.expressions import Task, TaskRows


def reestimated(task: Task, rows: TaskRows, weights: FloatArray) -> FloatArray:
    """Estimate a task with other sets of weights.

    Parameters
    ----------
    task : Task
        The number.
    rows : TaskRows
        Covariates and what stands for labels; rows of weight 0 stay out.
    weights : (n, R) array
        R sets of weights, of any scale.

    Returns
    -------
    (R,) array
        NaN or infinite where a set of weights leaves nothing to divide by.
    """
    leaves = list(dict.fromkeys(task.leaves()))
    no_slopes = np.zeros((0, weights.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [Dual(leaf.reestimated(rows, weights), no_slopes) for leaf in leaves]
        found = task.dual(values, {leaf: k for k, leaf in enumerate(leaves)})
    return np.asarray(found.value, dtype=float)
