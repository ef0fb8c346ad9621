"""Few parameters on the scale of logarithms: temperature, vector, matrix, Dirichlet."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from itrust._core import (
    EntryShape,
    FloatArray,
    InputError,
    ListOf,
    Number,
    Numbers,
    Record,
    Whole,
    checked_count,
    same_size,
)
from itrust.recalibrate.multiclass.base import ClassRecalibrator
from itrust.recalibrate.multiclass.rows import (
    ClassPoints,
    FittedRows,
    edge_of_classes,
    held_logs,
    probabilities,
)
from itrust.recalibrate.multiclass.softmax import SoftmaxRows, class_losses, fit_softmax
from itrust.recalibrate.saved import EDGE, POSITIVE
from itrust.recalibrate.sigmoid import STEEPEST, root_of

FREE = 1e-9  # ridge of what is not penalised, so that labels that can be told apart have an answer
FOLDS = 4
MIN_TO_FOLD = 8
RIDGES = (1.0, 0.1, 0.01, 0.001, 0.0001)


class ClassScaling(ClassRecalibrator):
    """A map of log p that reads no covariate."""

    @abstractmethod
    def logits(self, p: FloatArray) -> FloatArray:
        """Give recalibrated predictions as logits.

        Parameters
        ----------
        p : (n, K) array of float
            Probabilities, already checked.

        Returns
        -------
        (n, K) array of float
            Their logits after the map: the probabilities are their softmax.
        """

    def _predict_classes(self, points: ClassPoints) -> FloatArray:
        return probabilities(self.logits(points.p))


class TemperatureScaling(ClassScaling):
    """One number for all classes (Guo et al. 2017): softmax(log p / temperature).

    By maximum likelihood. With two classes it is `Temperature`.

    Attributes
    ----------
    inverse_ : float
        One over the temperature.
    edge_ : float
        Probabilities below are read as this one: a probability of 0 as half of the smallest other
        one, at most .01.

    Examples
    --------
    >>> import itrust as it
    >>> p = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    >>> sample = it.MulticlassSample(["a", "b", "c", "b"], p, classes=["a", "b", "c"])
    >>> scaling = it.recalibrate.TemperatureScaling().fit(sample)
    >>> scaling.predict([[0.8, 0.1, 0.1]]).round(3)
    array([[0.75 , 0.125, 0.125]])
    """

    _LEARNED = Record({"inverse": Number(0, STEEPEST), "edge": EDGE})

    def _fit_classes(self, rows: FittedRows) -> None:
        self.edge_ = edge_of_classes(rows.p)
        z = held_logs(rows.p, self.edge_)
        own = z[np.arange(rows.n), rows.codes]

        def slope_of_likelihood(inverse: float) -> float:  # falls: the log loss is convex
            expected = (probabilities(inverse * z) * z).sum(axis=1)
            return float(rows.w @ (own - expected))

        self.inverse_ = 1.0
        if np.ptp(z, axis=1).any():
            self.inverse_ = root_of(slope_of_likelihood)

    @property
    def temperature_(self) -> float:
        """float: Above 1 if the model is too sure; infinite where no slope helps."""
        return float("inf") if self.inverse_ == 0 else 1 / self.inverse_

    def logits(self, p: FloatArray) -> FloatArray:  # noqa: D102
        return self.inverse_ * held_logs(p, self.edge_)

    def _learned(self) -> dict[str, Any]:
        return {"inverse": self.inverse_, "edge": self.edge_}

    def _restore(self, learned: dict[str, Any]) -> None:
        self.inverse_, self.edge_ = learned["inverse"], learned["edge"]


class LinearScaling(ClassScaling):
    """softmax(W z + b) of logarithms z: what vector, matrix and Dirichlet have in common."""

    _LEARNED = Record(
        {
            "matrix": ListOf(Numbers()),
            "intercepts": Numbers(),
            "ridge": POSITIVE,
            "edge": EDGE,
        }
    )

    def _fit_classes(self, rows: FittedRows) -> None:
        self.edge_ = edge_of_classes(rows.p)
        z = self._logs(rows.p)
        self.ridge_ = self._chosen(rows, z)
        problem = self._problem(rows, z, np.arange(rows.n))
        self._keep(fit_softmax(problem, self._penalty(self.ridge_, problem)))

    @abstractmethod
    def _chosen(self, rows: FittedRows, z: FloatArray) -> float:
        """The ridge."""

    @abstractmethod
    def _penalty(self, ridge: float, problem: SoftmaxRows) -> FloatArray:
        """Of each coefficient and intercept; the ridge is one of the mean loss."""

    def _logs(self, p: FloatArray) -> FloatArray:
        return held_logs(p, self.edge_)

    def _problem(self, rows: FittedRows, z: FloatArray, some: Any) -> SoftmaxRows:
        """Coefficients are what is added to the identity: the offset is z itself."""
        here = z[some]
        return SoftmaxRows([here] * z.shape[1], rows.codes[some], here, rows.w[some])

    def _keep(self, theta: FloatArray) -> None:
        self.matrix_ = np.eye(len(theta)) + theta[:, :-1]
        self.intercepts_ = theta[:, -1].copy()

    def logits(self, p: FloatArray) -> FloatArray:  # noqa: D102
        return np.asarray(self._logs(p) @ self.matrix_.T + self.intercepts_)

    def _learned(self) -> dict[str, Any]:
        return {
            "matrix": self.matrix_,
            "intercepts": self.intercepts_,
            "ridge": self.ridge_,
            "edge": self.edge_,
        }

    def _restore(self, learned: dict[str, Any]) -> None:
        size = len(self.classes_)
        same_size("learned.matrix", len(learned["matrix"]), "classes", size)
        for at, row in enumerate(learned["matrix"]):
            same_size(f"learned.matrix[{at}]", row.size, "classes", size)
        same_size("learned.intercepts", learned["intercepts"].size, "classes", size)
        self.matrix_, self.intercepts_ = np.array(learned["matrix"]), learned["intercepts"]
        self.ridge_, self.edge_ = learned["ridge"], learned["edge"]


class VectorScaling(LinearScaling):
    """A slope and an intercept for each class (Guo et al. 2017): softmax(a_k log p_k + b_k).

    By maximum likelihood, with a ridge of 1e-9 of the mean loss towards the probabilities as given,
    so that labels that can be told apart have an answer.

    Attributes
    ----------
    matrix_ : (K, K) array of float
        The slopes, on the diagonal.
    intercepts_ : (K,) array of float
        The intercepts; they sum to 0.
    edge_ : float
        Probabilities below are read as this one, as in `TemperatureScaling`.

    Examples
    --------
    >>> import numpy as np, itrust as it
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1, 1, 1], 2_000)
    >>> y = [rng.choice(3, p=row) for row in truth]
    >>> too_sure = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    >>> rows = it.MulticlassSample(y, too_sure)
    >>> it.recalibrate.VectorScaling().fit(rows).matrix_.diagonal().round(1)
    array([0.5, 0.4, 0.6])
    """

    def _chosen(self, rows: FittedRows, z: FloatArray) -> float:  # noqa: ARG002
        return FREE

    def _problem(self, rows: FittedRows, z: FloatArray, some: Any) -> SoftmaxRows:
        features = [z[some, k : k + 1] for k in range(z.shape[1])]
        return SoftmaxRows(features, rows.codes[some], z[some], rows.w[some])

    def _penalty(self, ridge: float, problem: SoftmaxRows) -> FloatArray:
        return np.full((len(problem.features), 2), ridge * float(problem.weights.sum()))

    def _keep(self, theta: FloatArray) -> None:
        self.matrix_ = np.diag(1 + theta[:, 0])
        self.intercepts_ = theta[:, 1].copy()


class RidgeScaling(LinearScaling):
    """A whole matrix, with a ridge that is chosen by cross-validation."""

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {
        "ridges": ListOf(POSITIVE, at_least=1),
        "rng": Whole(0, 2**128),
    }

    def __init__(self, ridges: Sequence[float] = RIDGES, rng: int = 0) -> None:
        self.ridges, self.rng = ridges, rng

    def _chosen(self, rows: FittedRows, z: FloatArray) -> float:
        """The ridge with the least log loss on rows that were not fitted on."""
        from_above = sorted(self.ridges, reverse=True)
        if len(from_above) == 1 or rows.units < MIN_TO_FOLD:
            return float(from_above[0])
        fold = rows.folds(self.rng, FOLDS)
        losses = np.zeros((len(from_above), rows.n))
        for held in np.unique(fold):
            out = fold == held
            problem = self._problem(rows, z, ~out)
            start: FloatArray | None = None
            for own, ridge in zip(losses, from_above, strict=True):
                start = fit_softmax(problem, self._penalty(ridge, problem), start, done=1e-7)
                self._keep(start)
                told = z[out] @ self.matrix_.T + self.intercepts_
                own[out] = class_losses(rows.codes[out], told)
        return float(from_above[int(np.argmin(losses @ rows.w))])

    def _check_settings(self) -> None:
        checked_count(self.rng, "rng", at_least=0)
        values = self.ridges
        if not isinstance(values, Sequence) or not values or not all(v > 0 for v in values):
            raise InputError(
                "{argument} must be positive numbers, not {value}", argument="ridges", value=values
            )


class MatrixScaling(RidgeScaling):
    """A matrix and intercepts (Guo et al. 2017): softmax(W z + b), shrunk towards p as given.

    z are log-ratios: log p less its mean over the classes, which is what a model's logits are known
    by. Minimises the mean log loss + ridge / 2 (|W - I|^2 + |b|^2).

    Parameters
    ----------
    ridges : sequence of float
        Penalties to choose from, by the log loss in cross-validation with four folds. A larger one
        changes less.
    rng : int
        Divides the rows into folds; a setting that is saved with the others.

    Attributes
    ----------
    matrix_ : (K, K) array of float
        W.
    intercepts_ : (K,) array of float
        b, of sum 0.
    ridge_ : float
        The penalty that was chosen.
    edge_ : float
        Probabilities below are read as this one, as in `TemperatureScaling`.

    Examples
    --------
    >>> import numpy as np, itrust as it
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1, 1, 1], 2_000)
    >>> y = [rng.choice(3, p=row) for row in truth]
    >>> too_sure = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    >>> rows = it.MulticlassSample(y, too_sure)
    >>> it.recalibrate.MatrixScaling().fit(rows).predict(rows.p).shape
    (2000, 3)
    """

    def _logs(self, p: FloatArray) -> FloatArray:
        z = held_logs(p, self.edge_)
        return np.asarray(z - z.mean(axis=1, keepdims=True))

    def _penalty(self, ridge: float, problem: SoftmaxRows) -> FloatArray:
        size = len(problem.features)
        return np.full((size, size + 1), ridge * float(problem.weights.sum()))


class DirichletCalibration(RidgeScaling):
    """Dirichlet calibration (Kull et al. 2019): softmax(W log p + b).

    Minimises the mean log loss + ridge / 2 times the squares of the intercepts and of all entries
    of W off the diagonal (the authors' ODIR, with one penalty for both); the diagonal is free, but
    for a ridge of 1e-9 towards 1.

    Parameters
    ----------
    ridges : sequence of float
        Penalties to choose from, by the log loss in cross-validation with four folds. A larger one
        leaves a slope for each class.
    rng : int
        Divides the rows into folds; a setting that is saved with the others.

    Attributes
    ----------
    matrix_ : (K, K) array of float
        W.
    intercepts_ : (K,) array of float
        b.
    ridge_ : float
        The penalty that was chosen.
    edge_ : float
        Probabilities below are read as this one, as in `TemperatureScaling`.

    Examples
    --------
    >>> import numpy as np, itrust as it
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1, 1, 1], 2_000)
    >>> y = [rng.choice(3, p=row) for row in truth]
    >>> too_sure = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    >>> rows = it.MulticlassSample(y, too_sure)
    >>> it.recalibrate.DirichletCalibration().fit(rows).matrix_.shape
    (3, 3)
    """

    def _penalty(self, ridge: float, problem: SoftmaxRows) -> FloatArray:
        size = len(problem.features)
        found = np.full((size, size + 1), ridge)
        found[np.arange(size), np.arange(size)] = FREE
        return found * float(problem.weights.sum())
