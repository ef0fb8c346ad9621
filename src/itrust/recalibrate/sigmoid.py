"""Recalibration with few parameters, monotone in the prediction: Platt, temperature, beta."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from itrust._core import (
    LARGEST,
    EntryShape,
    FloatArray,
    InputError,
    Maybe,
    Number,
    Record,
    checked_share,
)
from itrust.data import Points
from itrust.recalibrate.base import NEARLY_ONE, PredictionRecalibrator, held_logit
from itrust.recalibrate.rows import Predictions
from itrust.recalibrate.saved import EDGE, FLAG

if TYPE_CHECKING:
    from itrust.recalibrate.multiclass.base import ClassRecalibrator

STEEPEST = 1e3  # of an inverse temperature
POLISHING_STEPS = 12
SETTLED = 1e-11  # a step of this size in every logit is the last
FLAT = 1e-12  # a direction whose curvature is this share of the largest has no maximum


class Sigmoid(PredictionRecalibrator):
    """A monotone map that is simple on the scale of logits."""

    @abstractmethod
    def logits(self, p: FloatArray) -> FloatArray:
        """Give recalibrated predictions on the scale of logits.

        Parameters
        ----------
        p : (n,) array of float
            Probabilities, already checked.

        Returns
        -------
        (n,) array of float
            Their logits after the map.
        """

    def _predict(self, points: Points) -> FloatArray:
        return np.asarray(expit(self.logits(points.p)))


class Platt(Sigmoid):
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

    def _fit_predictions(self, rows: Predictions) -> None:
        self.edge_ = rows.edge
        model = LogisticRegression(C=1.0 if self.raw else np.inf, tol=1e-8, max_iter=1_000)
        model.fit(self._feature(rows.p)[:, None], rows.y, sample_weight=rows.w)
        self.slope_, self.intercept_ = float(model.coef_[0, 0]), float(model.intercept_[0])

    def _feature(self, p: FloatArray) -> FloatArray:
        return p if self.raw else held_logit(p, self.edge_)

    def logits(self, p: FloatArray) -> FloatArray:
        return self.slope_ * self._feature(p) + self.intercept_

    def _learned(self) -> dict[str, Any]:
        return {"slope": self.slope_, "intercept": self.intercept_, "edge": self.edge_}

    def _restore(self, learned: dict[str, Any]) -> None:
        self.slope_, self.intercept_ = learned["slope"], learned["intercept"]
        self.edge_ = learned["edge"]


class Temperature(Sigmoid):
    """One number (Guo et al. 2017): expit(logit(p) / temperature), by maximum likelihood.

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

    def __init__(self, edge: float | None = None) -> None:
        self.edge = edge

    @classmethod
    def _machine_type(cls, classes: int) -> type[ClassRecalibrator]:
        if classes > 2:
            raise InputError(
                "Temperature is for two labels; for {count} classes take TemperatureScaling()",
                argument="sample",
                count=classes,
            )
        return super()._machine_type(classes)

    def _fit_predictions(self, rows: Predictions) -> None:
        if self.edge is not None:
            checked_share(self.edge, "edge")
            if self.edge >= 0.5:
                raise InputError(
                    "{argument} must lie below 0.5, not {value}", argument="edge", value=self.edge
                )
        self.edge_ = rows.edge if self.edge is None else float(self.edge)
        z = held_logit(rows.p, self.edge_)

        def slope_of_likelihood(inverse: float) -> float:  # falls: the log loss is convex
            return float(rows.w @ (z * (rows.y - expit(inverse * z))))

        self.inverse_ = 1.0
        if np.any(z != 0):
            self.inverse_ = root_of(slope_of_likelihood)

    @property
    def temperature_(self) -> float:
        """float: Above 1 if the model is too sure; infinite where no slope helps, and p is 1/2."""
        return float("inf") if self.inverse_ == 0 else 1 / self.inverse_

    def logits(self, p: FloatArray) -> FloatArray:
        return self.inverse_ * held_logit(p, self.edge_)

    def _learned(self) -> dict[str, Any]:
        return {"inverse": self.inverse_, "edge": self.edge_}

    def _restore(self, learned: dict[str, Any]) -> None:
        self.inverse_, self.edge_ = learned["inverse"], learned["edge"]


def root_of(falling: Any) -> float:
    """Where a falling function meets 0 on [0, STEEPEST], or the end it is nearer to 0 at."""
    if falling(0.0) <= 0:
        return 0.0
    if falling(STEEPEST) >= 0:
        return STEEPEST
    return float(brentq(falling, 0.0, STEEPEST, xtol=1e-12))


class Beta(Sigmoid):
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

    def _fit_predictions(self, rows: Predictions) -> None:
        self.edge_ = rows.edge
        design, w = self._design(rows.p), rows.w / rows.n

        def loss(theta: FloatArray) -> tuple[float, FloatArray]:
            z = design @ theta
            gradient = design.T @ (w * (expit(z) - rows.y))
            return float(w @ (np.logaddexp(0, z) - rows.y * z)), gradient

        bounds = [(0, None), (0, None), (None, None)]
        near = minimize(loss, [1.0, 1.0, 0.0], jac=True, bounds=bounds, method="L-BFGS-B")
        found = _polished(np.asarray(near.x), design, rows.y, w)
        self.a_, self.b_, self.c_ = (float(value) for value in found)

    def _design(self, p: FloatArray) -> FloatArray:
        held = np.clip(p, self.edge_, min(1 - self.edge_, NEARLY_ONE))
        return np.column_stack([np.log(held), -np.log1p(-held), np.ones(p.size)])

    def logits(self, p: FloatArray) -> FloatArray:
        return np.asarray(self._design(p) @ np.array([self.a_, self.b_, self.c_]))

    def _learned(self) -> dict[str, Any]:
        return {"a": self.a_, "b": self.b_, "c": self.c_, "edge": self.edge_}

    def _restore(self, learned: dict[str, Any]) -> None:
        self.a_, self.b_, self.c_ = learned["a"], learned["b"], learned["c"]
        self.edge_ = learned["edge"]


def _polished(
    near: FloatArray, design: FloatArray, y: FloatArray, weights: FloatArray
) -> FloatArray:
    """Newton's steps from nearly the maximum on, in the slopes that are not held at 0.

    `near` is given back where they do not settle: labels that are separated have no maximum.
    """
    found = near
    for _ in range(POLISHING_STEPS):
        mean = expit(design @ found)
        gradient = design.T @ (weights * (mean - y))
        curve = design.T @ ((weights * mean * (1 - mean))[:, None] * design)
        free = np.append((found[:-1] > 0) | (gradient[:-1] < 0), True)
        step = np.zeros(found.size)
        # Two different predictions do not tell three coefficients; what is flat stays as it is.
        step[free] = -np.linalg.lstsq(curve[np.ix_(free, free)], gradient[free], rcond=FLAT)[0]
        moved = found + step
        moved[:-1] = np.maximum(moved[:-1], 0)
        reach = float(np.abs(design @ (moved - found)).max())
        if not np.isfinite(reach):
            return near
        found = moved
        if reach < SETTLED:
            return found
    return near
