"""Tasks as M-estimators: fitted on some rows, with a gradient that can be read at others.

What a number moves if labels do is a sum over rows of a gradient g(x) times the move. Means,
shares, rates and coefficients differ in their gradients only, so whatever corrects
predictions by labels (a bias, a prediction-powered or a transported estimate) is made of
`value`, `gradient` and `shares`, for all of them and for what arithmetic makes of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from itrust._core import FloatArray
from itrust.data import Points
from itrust.tasks.differentials import Dual

if TYPE_CHECKING:
    from itrust.tasks.expressions import Task, TaskRows


class LeafFit(ABC):
    """A mean, a rate or a coefficient as some rows have it.

    Attributes
    ----------
    value : float
        The number.
    mass : float
        What `lean` is divided by.
    """

    value: float
    mass: float

    @abstractmethod
    def read(self, points: Points, weights: FloatArray, first: int = 0) -> Any:
        """Read from some rows what the other methods need.

        Parameters
        ----------
        points : Points
            The rows, of this sample or of another.
        weights : (n,) array
            How much each counts.
        first : int
            Number of the first row, for what is said of a row without a finite value.

        Returns
        -------
        object
            For `shares`, `lean` and `below`.
        """

    @abstractmethod
    def shares(self, read: Any, weights: FloatArray, stand_in: FloatArray) -> FloatArray:
        """Give the shares of rows in the number, (n,), if it was fitted to their stand-ins."""

    @abstractmethod
    def lean(self, read: Any, weights: FloatArray) -> FloatArray:
        """Give how much the stand-in of each row moves the number, times `mass`, (n,)."""

    def below(self, read: Any, weights: FloatArray) -> FloatArray:  # noqa: ARG002
        """Give what the stand-in of each row adds to `mass`, (n,)."""
        return np.zeros(weights.size)


@dataclass(frozen=True, eq=False)
class TaskFit:
    """A task, fitted on some rows.

    Attributes
    ----------
    value : float
        The number.
    slopes : (k,) array
        Its derivatives in what it is made of.
    fits : tuple of LeafFit
        What it is made of.
    mass : float
        Sum of the weights of the rows that it was fitted on.
    """

    value: float
    slopes: FloatArray
    fits: tuple[LeafFit, ...]
    mass: float

    def gradient(self, points: Points) -> FloatArray:
        """Say how much labels of rows like these move the number.

        Parameters
        ----------
        points : Points
            Any rows with the covariates of the task.

        Returns
        -------
        (n,) array
            g(x): if stand-ins move by d(x), the number moves by the mean of g(x) d(x) over the
            rows that it was fitted on, to first order.
        """
        ones, found = np.ones(len(points)), np.zeros(len(points))
        for slope, fit in zip(self.slopes, self.fits, strict=True):
            found += slope * self.mass / fit.mass * fit.lean(fit.read(points, ones), ones)
        return found

    def shares(self, rows: TaskRows) -> FloatArray:
        """Give the shares of the rows that it was fitted on: their sum of squares is a variance.

        Parameters
        ----------
        rows : TaskRows
            The same rows.

        Returns
        -------
        (n,) array
            They sum to 0.
        """
        found = np.zeros(rows.weights.size)
        for slope, fit in zip(self.slopes, self.fits, strict=True):
            read = fit.read(rows.points, rows.weights)
            found += slope * fit.shares(read, rows.weights, rows.stand_in)
        return found


def fit_task(task: Task, rows: TaskRows) -> TaskFit:
    """Fit a task on some rows, as an M-estimator.

    Parameters
    ----------
    task : Task
        The number.
    rows : TaskRows
        Covariates, weights and what stands for labels, such as recalibrated probabilities.

    Returns
    -------
    TaskFit
        Its value, its gradient at any rows, and the shares of these rows.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.tasks.expressions import TaskRows
    >>> sample = it.simulate.survey(2_000, rng=0).sample
    >>> fit = fit_task(it.tasks.prevalence(), TaskRows.predicted(sample))
    >>> bool(abs(fit.value - sample.p.mean()) < 1e-12), fit.gradient(sample.points)[:2].tolist()
    (True, [1.0, 1.0])
    """
    leaves = list(dict.fromkeys(task.leaves()))
    fits = tuple(leaf.fit(rows) for leaf in leaves)
    units = np.eye(len(fits))
    parts = [Dual(np.array([fit.value]), units[:, [k]]) for k, fit in enumerate(fits)]
    joined = task.dual(parts, {leaf: k for k, leaf in enumerate(leaves)})
    value, slopes = float(joined.value[0]), joined.slope[:, 0]
    return TaskFit(value, slopes, fits, float(rows.weights.sum()))
