"""Maps of the prediction with few parameters, on the scale of logits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq

from itrust._core import (
    LARGEST,
    EntryShape,
    FloatArray,
    Maybe,
    Number,
    Numbers,
    Record,
    Whole,
    same_size,
    tuple_of,
)
from itrust.data import Rows
from itrust.recalibrate.base import Recalibrator
from itrust.recalibrate.rows import (
    MIN_TO_FOLD,
    NEARLY_ONE,
    Predictions,
    folds,
    held_logits,
    losses,
    probabilities,
    units,
)
from itrust.recalibrate.saved import EDGE, FLAG, POSITIVE, matrix_of
from itrust.terms import LINKS, MultinomialRows, RegressionRows, fit_glm, fit_multinomial

STEEPEST = 1e3  # of an inverse temperature
# Ridges of what is not penalised, in units of the mean loss: labels that can be told apart, and
# predictions that do not tell coefficients apart, have an answer all the same.
FREE, NEARLY_FREE = 1e-9, 1e-12
EXACT, CLOSE, ROUGH = 1e-16, 1e-10, 1e-7  # gains of the mean loss that are not worth a step
RIDGES = (1.0, 0.1, 0.01, 0.001, 0.0001)


class ScaleMap(Recalibrator):
    """A map that is simple on the scale of logits, and reads the prediction alone."""

    @abstractmethod
    def _logits(self, p: FloatArray) -> FloatArray:
        """Logits after the map, of checked probabilities, (n, K) -> (n, K)."""

    def _predict(self, rows: Rows) -> FloatArray:
        return probabilities(self._logits(rows.predictions))


class Platt(ScaleMap):
    """Logistic regression on the logit (Platt 1999): expit(slope logit(p) + intercept).

    Parameters
    ----------
    raw : bool
        Whether to regress on p itself with scikit-learn's default penalty, as the paper's published
        code does; the curve can then not leave a model as it is. By default the regression is on
        the logit, without a penalty.

    Attributes
    ----------
    slope_ : float
        Of the logit; 1 leaves predictions as spread out as they are.
    intercept_ : float
        Added on the scale of logits.
    edge_ : float
        Predictions are held within [edge, 1 - edge] before the logit.

    Examples
    --------
    >>> import itrust as it
    >>> few = it.simulate.survey(2_000, rng=0).sample
    >>> round(it.recalibrate.Platt().fit(few).slope_, 2)
    0.93
    """

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {"raw": FLAG}
    _LEARNED = Record({"slope": Number(), "intercept": Number(), "edge": EDGE})

    def __init__(self, raw: bool = False) -> None:
        self.raw = raw

    def _fit(self, rows: Predictions) -> None:
        self.edge_ = rows.edge
        design = np.column_stack([self._feature(rows.p), np.ones(len(rows.p))])
        free = NEARLY_FREE * rows.n
        penalty = np.array([1.0 if self.raw else free, free])
        block = RegressionRows(design, rows.codes, rows.w)
        theta = fit_glm(LINKS["logit"], lambda: (block,), penalty, done=EXACT)[0]
        self.slope_, self.intercept_ = float(theta[0]), float(theta[1])

    def _feature(self, p: FloatArray) -> FloatArray:
        return p if self.raw else held_logits(p, self.edge_)

    def _logits(self, p: FloatArray) -> FloatArray:
        return self.slope_ * self._feature(p) + self.intercept_


class Temperature(ScaleMap):
    """One number (Guo et al. 2017): expit(logit(p) / temperature), by maximum likelihood.

    Of several classes one number for all: softmax(log p / temperature).

    Parameters
    ----------
    edge : float, optional
        Predictions are held within [edge, 1 - edge]. The answer for a model that predicts 0 and 1
        depends on it; default: half of the distance between 0 and the model's next prediction.

    Attributes
    ----------
    inverse_ : float
        One over the temperature.
    edge_ : float
        The edge that was used.

    Examples
    --------
    >>> import itrust as it
    >>> p = [0.1, 0.2, 0.9]
    >>> it.recalibrate.Temperature().fit(it.Sample([0, 1, 1], p)).predict(p).round(2)
    array([0.22, 0.31, 0.78])
    """

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {"edge": Maybe(EDGE)}
    _LEARNED = Record({"inverse": Number(0, STEEPEST), "edge": EDGE})
    _classes_at_once = 3

    def __init__(self, edge: float | None = None) -> None:
        self.edge = edge

    def _fit(self, rows: Predictions) -> None:
        self.edge_ = rows.edge if self.edge is None else float(self.edge)
        z = held_logits(rows.p, self.edge_)
        if z.shape[1] == 1:
            labels, is_flat = rows.codes * z[:, 0], not z.any()
        else:
            labels, is_flat = z[np.arange(len(z)), rows.codes], not np.ptp(z, axis=1).any()

        def slope_of_likelihood(inverse: float) -> float:  # falls: the log loss is convex
            expected = (probabilities(inverse * z) * z).sum(axis=1)
            return float(rows.w @ (labels - expected))

        self.inverse_ = 1.0 if is_flat else _root_of(slope_of_likelihood)

    @property
    def temperature_(self) -> float:
        """float: Above 1 if the model is too sure; infinite where no slope helps, and p is 1/2."""
        return float("inf") if self.inverse_ == 0 else 1 / self.inverse_

    def _logits(self, p: FloatArray) -> FloatArray:
        return self.inverse_ * held_logits(p, self.edge_)


def _root_of(falling: Callable[[float], float]) -> float:
    """Where a falling function meets 0 on [0, STEEPEST], or the end it is nearer to 0 at."""
    if falling(0.0) <= 0:
        return 0.0
    if falling(STEEPEST) >= 0:
        return STEEPEST
    return float(brentq(falling, 0.0, STEEPEST, xtol=1e-12))


class TemperatureScaling(Temperature):
    """One number for all classes (Guo et al. 2017): softmax(log p / temperature).

    `Temperature` by the name that it has among methods for several classes.

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

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {}
    for_classes = True
    _classes_at_once = 2

    def __init__(self) -> None:
        super().__init__()


class Beta(ScaleMap):
    """Beta calibration (Kull, Silva Filho and Flach 2017): expit(a log p - b log(1 - p) + c).

    a, b >= 0, so the map is monotone; a = b = 1, c = 0 leaves a model as it is.

    Attributes
    ----------
    a_ : float
        Coefficient of log p.
    b_ : float
        Coefficient of -log(1 - p).
    c_ : float
        Intercept.
    edge_ : float
        Predictions are held within [edge, 1 - edge] before the logarithms.

    Examples
    --------
    >>> import itrust as it
    >>> beta = it.recalibrate.Beta().fit(it.simulate.survey(2_000, rng=0).sample)
    >>> round(beta.b_, 2), beta.predict([0.0]) > 0
    (1.74, array([ True]))
    """

    _LEARNED = Record(
        {"a": Number(0, LARGEST), "b": Number(0, LARGEST), "c": Number(), "edge": EDGE}
    )

    def _fit(self, rows: Predictions) -> None:
        self.edge_ = rows.edge
        design = np.column_stack([*self._logarithms(rows.p[:, 0]), np.ones(len(rows.p))])
        best = np.inf
        # The maximum lies where neither slope is 0, or one, or both: on the first face that holds
        # its own maximum.
        for has_a, has_b in product((True, False), repeat=2):
            theta, loss = _on_face(design, rows, np.array([has_a, has_b, True]))
            if (theta[:-1] >= 0).all() and loss < best:
                best = loss
                self.a_, self.b_, self.c_ = (float(value) for value in theta)
                if has_a and has_b:
                    break

    def _logarithms(self, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        inside = np.clip(p, self.edge_, min(1 - self.edge_, NEARLY_ONE))
        return np.log(inside), -np.log1p(-inside)

    def _logits(self, p: FloatArray) -> FloatArray:
        first, second = self._logarithms(p)
        return np.asarray(self.a_ * first + self.b_ * second + self.c_)


def _on_face(design: FloatArray, rows: Predictions, free: FloatArray) -> tuple[FloatArray, float]:
    """The best coefficients of some columns, shrunk next to nothing towards p, and their loss."""
    given = np.array([1.0, 1.0, 0.0])[free]
    x, w = design[:, free], rows.w / rows.n
    block = RegressionRows(x, rows.codes, w, x @ given)
    penalty = np.full(given.size, NEARLY_FREE)
    theta = np.zeros(free.size)
    theta[free] = given + fit_glm(LINKS["logit"], lambda: (block,), penalty, done=EXACT)[0]
    return theta, float(w @ losses(rows.codes, (design @ theta)[:, None]))


class DirichletCalibration(ScaleMap):
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

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {
        "ridges": tuple_of(POSITIVE, at_least=1),
        "rng": Whole(0, 2**128),
    }
    _LEARNED = Record(
        {"matrix": matrix_of(Number()), "intercepts": Numbers(), "ridge": POSITIVE, "edge": EDGE}
    )
    for_classes = True
    _classes_at_once = 2

    def __init__(self, ridges: Sequence[float] = RIDGES, rng: int = 0) -> None:
        self.ridges, self.rng = ridges, rng

    def _fit(self, rows: Predictions) -> None:
        self.edge_ = rows.edge
        z = self._logs(rows.p)
        self.ridge_ = self._chosen(rows, z)
        problem = self._problem(rows, z, slice(None))
        penalty = self._penalty(self.ridge_, len(self.classes_ or ())) * rows.w.sum()
        self._keep(fit_multinomial(problem, penalty, done=CLOSE))

    def _chosen(self, rows: Predictions, z: FloatArray) -> float:
        """The ridge with the least log loss on rows that were not fitted on."""
        from_above = sorted(self.ridges, reverse=True)
        if len(from_above) == 1 or units(rows.design) < MIN_TO_FOLD:
            return float(from_above[0])
        fold = folds(rows.design, self.rng)
        judged = np.zeros((len(from_above), len(z)))
        for number in np.unique(fold):
            out = fold == number
            problem = self._problem(rows, z, ~out)
            mass = float(problem.weights.sum())
            start: FloatArray | None = None
            for losses_of, ridge in zip(judged, from_above, strict=True):
                penalty = self._penalty(ridge, z.shape[1]) * mass
                start = fit_multinomial(problem, penalty, start, done=ROUGH)
                self._keep(start)
                moved = z[out] @ self.matrix_.T + self.intercepts_
                losses_of[out] = losses(rows.codes[out], moved)
        return float(from_above[int(np.argmin(judged @ rows.w))])

    def _logs(self, p: FloatArray) -> FloatArray:
        return held_logits(p, self.edge_)

    def _problem(self, rows: Predictions, z: FloatArray, some: Any) -> MultinomialRows:
        """Coefficients are what is added to the identity: the offset is z itself."""
        here = z[some]
        return MultinomialRows(self._designs(here), rows.codes[some], rows.w[some], here)

    def _designs(self, z: FloatArray) -> list[FloatArray]:
        """Columns of every class, the last of ones."""
        return [np.column_stack([z, np.ones(len(z))])] * z.shape[1]

    def _penalty(self, ridge: float, classes: int) -> FloatArray:
        """Of each coefficient and, last, intercept, (K, m)."""
        penalty = np.full((classes, classes + 1), ridge)
        penalty[np.arange(classes), np.arange(classes)] = FREE
        return penalty

    def _keep(self, theta: FloatArray) -> None:
        self.matrix_ = np.eye(len(theta)) + theta[:, :-1]
        self.intercepts_ = theta[:, -1].copy()

    def _logits(self, p: FloatArray) -> FloatArray:
        return np.asarray(self._logs(p) @ self.matrix_.T + self.intercepts_)

    def _refuse_misfit(self) -> None:
        size = len(self.classes_ or ())
        same_size("learned.matrix", len(self.matrix_), "classes", size)
        same_size("learned.matrix[0]", self.matrix_.shape[1], "classes", size)
        same_size("learned.intercepts", self.intercepts_.size, "classes", size)


class VectorScaling(DirichletCalibration):
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

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {}

    def __init__(self) -> None:
        super().__init__((FREE,))

    def _designs(self, z: FloatArray) -> list[FloatArray]:
        return [np.column_stack([column, np.ones(len(z))]) for column in z.T]

    def _penalty(self, ridge: float, classes: int) -> FloatArray:
        return np.full((classes, 2), ridge)

    def _keep(self, theta: FloatArray) -> None:
        self.matrix_ = np.diag(1 + theta[:, 0])
        self.intercepts_ = theta[:, 1].copy()


class MatrixScaling(DirichletCalibration):
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
        z = held_logits(p, self.edge_)
        return np.asarray(z - z.mean(axis=1, keepdims=True))

    def _penalty(self, ridge: float, classes: int) -> FloatArray:
        return np.full((classes, classes + 1), ridge)
