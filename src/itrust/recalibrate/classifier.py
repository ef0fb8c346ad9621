"""A classifier and its recalibration as one scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from itrust._core import AnyArray, FloatArray, InputError, place_of
from itrust.data import MulticlassSample, Sample, frame_columns
from itrust.recalibrate.base import Recalibrator


class RecalibratedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier, of two classes or more, whose probabilities are recalibrated.

    `fit` trains the classifier on part of the rows and fits the recalibrator on the others. A
    classifier that is fitted already is left as it is (`prefit`), and the recalibrator learns from
    all rows.

    Parameters
    ----------
    classifier : scikit-learn classifier with predict_proba
        It is cloned, unless `prefit`.
    recalibrator : Recalibrator
        How to recalibrate, such as `Local()`; it is cloned.
    on : sequence of str or int, optional
        Names or positions of the columns of X that the recalibrator reads; default: all.
    calibration : float
        Share of the rows that are kept for the recalibrator, between 0 and 1; 0.3 by default.
    prefit : bool
        Whether the classifier is fitted already; by default it is not. In cross-validation, which
        clones, wrap a fitted classifier in scikit-learn's `FrozenEstimator` as well.
    random_state : int
        Seed of the division of the rows; the name is scikit-learn's.

    Attributes
    ----------
    classes_ : (K,) array
        The labels, sorted; of two the second one is the positive label.
    classifier_ : scikit-learn classifier
        The fitted classifier.
    recalibrator_ : Recalibrator
        The fitted recalibrator.
    n_features_in_ : int
        Number of columns of X in the fit.
    feature_names_in_ : (d,) array of str
        Names of these columns, where the classifier was fitted to a frame and tells.

    Notes
    -----
    It passes scikit-learn's `check_estimator`, but for one check: rows that stand twice are divided
    otherwise than rows of weight 2, as in scikit-learn's own `CalibratedClassifierCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from itrust.recalibrate import Local, RecalibratedClassifier
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> y = np.random.default_rng(1).random(2_000) < 1 / (1 + np.exp(-X[:, 0] ** 2 + 1))
    >>> model = RecalibratedClassifier(LogisticRegression(), Local(), on=[0]).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        classifier: Any,
        recalibrator: Recalibrator,
        on: Sequence[str | int] | None = None,
        calibration: float = 0.3,
        prefit: bool = False,
        random_state: int = 0,
    ) -> None:
        self.classifier, self.recalibrator, self.on = classifier, recalibrator, on
        self.calibration, self.prefit, self.random_state = calibration, prefit, random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the classifier and fit the recalibrator, on different rows.

        Parameters
        ----------
        X : (n, d) array or frame
            The features.
        y : (n,) array
            Labels, of two values or more.
        sample_weight : (n,) array of float, optional
            Weights of the rows, which count for both; default: all rows count alike.

        Returns
        -------
        RecalibratedClassifier
            The object itself, fitted.
        """
        X, y_known, w = _checked(X, y, sample_weight)
        self.classes_ = np.unique(y_known)
        if self.prefit:
            self.classifier_, rows, targets, weights = self.classifier, X, y_known, w
            known = np.asarray(getattr(self.classifier, "classes_", self.classes_))
            if not np.array_equal(known, self.classes_):
                raise InputError(
                    "the classifier knows the labels {known}, {argument} has {classes}",
                    argument="y",
                    value=self.classes_,
                    details={"known": known, "classes": self.classes_},
                )
        else:
            parts = (X, y_known) if w is None else (X, y_known, w)
            train, rows, train_y, targets, *weighted = train_test_split(
                *parts, test_size=self.calibration, random_state=self.random_state, stratify=y_known
            )
            extra = {"sample_weight": weighted[0]} if weighted else {}
            weights = weighted[1] if weighted else None
            self.classifier_ = clone(self.classifier).fit(train, train_y, **extra)
        self._keep_features(X)
        told = np.asarray(self.classifier_.predict_proba(rows), dtype=float)
        given: dict[str, Any] = {"x": self._covariates(rows), "weights": weights}
        sample: Sample | MulticlassSample
        if self.classes_.size > 2 or self.recalibrator.for_classes:
            names = self.classes_.tolist()
            labels = [names[code] for code in np.searchsorted(self.classes_, targets)]
            sample = MulticlassSample(labels, told, classes=names, missing="level", **given)
        else:
            sample = Sample(targets == self.classes_[1], told[:, 1], missing="level", **given)
        self.recalibrator_ = clone(self.recalibrator).fit(sample)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict recalibrated probabilities of all labels.

        Parameters
        ----------
        X : (n, d) array or frame
            The features, as in `fit`.

        Returns
        -------
        (n, K) array of float
            One column for each label in `classes_`.
        """
        self._check_fitted()
        (X,) = indexable(X)
        told = np.asarray(self.classifier_.predict_proba(X), dtype=float)
        if self.recalibrator_.classes_ is not None:
            return np.asarray(self.recalibrator_.predict(told, self._covariates(X)))
        p = self.recalibrator_.predict(told[:, 1], self._covariates(X))
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> AnyArray:
        """Predict labels.

        Parameters
        ----------
        X : (n, d) array or frame
            What `predict_proba` takes. Of two labels the threshold is 1/2, whatever the share of
            positive labels.

        Returns
        -------
        (n,) array
            The label with the largest recalibrated probability, the first of equals.
        """
        largest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[largest])

    def __sklearn_tags__(self) -> Any:
        """What the classifier takes."""
        tags = super().__sklearn_tags__()
        if hasattr(self.classifier, "__sklearn_tags__"):
            own = self.classifier.__sklearn_tags__().input_tags
            tags.input_tags = own
            own.sparse = own.sparse and not self.recalibrator.reads_covariates
        return tags

    def _check_fitted(self) -> None:
        try:
            check_is_fitted(self, "recalibrator_")
        except NotFittedError:
            raise NotFittedError("this classifier is not fitted yet; call fit(X, y)") from None

    def _keep_features(self, X: Any) -> None:
        """What the classifier tells about its columns; else how many there are."""
        known = getattr(self.classifier_, "n_features_in_", None)
        self.n_features_in_ = int(np.shape(X)[1] if known is None else known)
        names = getattr(self.classifier_, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _covariates(self, X: Any) -> dict[str, Any] | None:
        """The chosen columns by name; those of an array are x1, x2, ..."""
        if not self.recalibrator.reads_covariates:
            return None
        if hasattr(X, "tocsr"):
            raise InputError(
                "X is sparse, and {name} reads its columns; pass X.toarray(), or take a method "
                "that reads the prediction alone",
                argument="X",
                details={"name": type(self.recalibrator).__name__},
            )
        if isinstance(X, np.ndarray | list):
            matrix = np.asarray(X)
            columns: dict[str, Any] = {f"x{k + 1}": matrix[:, k] for k in range(matrix.shape[1])}
        else:
            columns = dict(frame_columns(X))
        if self.on is None:
            return columns
        names = list(columns)
        chosen = [self._name(key, names) for key in self.on]
        return {name: columns[name] for name in chosen}

    def _name(self, key: object, names: list[str]) -> str:
        if isinstance(key, Integral) and not isinstance(key, bool) and 0 <= int(key) < len(names):
            return names[int(key)]
        place_of(key, names, "{argument}: X has no column {value}; {guess}", argument="on")
        return str(key)


def _checked(X: Any, y: Any, sample_weight: Any) -> tuple[Any, AnyArray, FloatArray | None]:
    """Features that can be divided, labels, and weights."""
    if y is None:
        raise InputError(
            "RecalibratedClassifier requires y to be passed, but the target y is None", argument="y"
        )
    labels = np.asarray(column_or_1d(y, warn=True))
    if not labels.size:
        raise InputError("{argument} has no rows, so there is nothing to learn from", argument="y")
    check_classification_targets(labels)
    X, weights = indexable(X, sample_weight)
    check_consistent_length(X, labels, weights)
    w = None if weights is None else np.asarray(weights, dtype=float)
    if w is not None and w.ndim != 1:
        raise InputError(
            "{argument} must be one column, not an array of shape {value}",
            argument="sample_weight",
            value=w.shape,
        )
    counted = np.unique(labels if w is None else labels[w > 0])
    if not counted.size:
        problem = "every weight is zero or less; some rows must count"
        raise InputError(problem, argument="sample_weight")
    if counted.size < 2:
        raise InputError(
            "{argument} has one class only, {value}{among}; two are needed",
            argument="y",
            value=counted[0],
            details={"among": "" if w is None else ", where weights are positive"},
        )
    return X, labels, w
