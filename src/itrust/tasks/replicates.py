"""Estimates with every set of replicate weights."""

from __future__ import annotations

import numpy as np

from itrust._core import FloatArray
from itrust.tasks.differentials import Dual
from itrust.tasks.expressions import Task, TaskRows


def reestimated(task: Task, rows: TaskRows, weights: FloatArray) -> FloatArray:
    """Estimate a task with other sets of weights."""
    leaves = list(dict.fromkeys(task.leaves()))
    no_slopes = np.zeros((0, weights.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [Dual(leaf.reestimated(rows, weights), no_slopes) for leaf in leaves]
        found = task.dual(values, {leaf: k for k, leaf in enumerate(leaves)})
    return np.asarray(found.value, dtype=float)
