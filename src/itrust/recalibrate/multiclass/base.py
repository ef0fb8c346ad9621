"""`ClassRecalibrator`: what the methods for several classes have in common."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, Subject, progress_stages
from itrust.data import Column, MulticlassSample, Points, Sample, Scan, same_length
from itrust.recalibrate.base import FITTING, Recalibrator
from itrust.recalibrate.multiclass.rows import (
    ClassPoints,
    FittedRows,
    checked_matrix,
    refuse_other_classes,
    with_predictions,
)


class ClassRecalibrator(Recalibrator):
    """A recalibration of the probabilities of several classes.

    `fit` takes a `MulticlassSample`; `predict` takes and gives one column for each class, in the
    order of `classes_`, and rows that sum to 1.
    """

    _for_classes: ClassVar[bool] = True
    classes_: tuple[Any, ...]

    def fit(
        self, sample: Sample | Scan | MulticlassSample, *, progress: bool | None = None
    ) -> Self:
        """Learn from labelled rows; rows of weight 0 are left out.

        Parameters
        ----------
        sample : MulticlassSample
            Rows that the model was not trained on, with labels.
        progress : bool, optional
            Whether to show how far the work is; default: in a terminal.

        Returns
        -------
        ClassRecalibrator
            The object itself, fitted.
        """
        if not isinstance(sample, MulticlassSample):
            raise InputError(
                "{name} is for several classes; fit it on a MulticlassSample, or take a method for "
                "two labels such as Platt() or Local()",
                argument="sample",
                details={"name": type(self).__name__},
            )
        self._check_settings()
        with progress_stages({FITTING: self._seconds}, self._words, progress) as begin:
            begin(FITTING)
            return self._learn_classes(FittedRows.of(sample))

    def _learn_classes(self, rows: FittedRows) -> Self:
        """Fit on rows that are read already."""
        if rows.has_one_class:
            raise InputError(
                "every label is {value}, so there is nothing to learn from; take more rows for "
                "calibration",
                argument="y",
                value=rows.classes[int(rows.codes[0])],
            )
        columns = rows.carrier.columns if self.reads_covariates else ()
        self._begin(columns, np.array([0.0, 1.0]), (), rows.n, rows.n)
        self.classes_ = rows.classes
        self._fit_classes(rows)
        return self

    def predict(self, p: object, x: object = None) -> FloatArray:
        """Recalibrate probabilities.

        Parameters
        ----------
        p : (n, K) array, mapping or frame
            Probabilities, one column for each class in the order of `classes_`.
        x : frame, mapping, array, MulticlassSample or Population, optional
            The covariates, as for `Recalibrator.predict`.

        Returns
        -------
        (n, K) array of float
            Rows that are not negative and sum to 1, in the same order.
        """
        self._check_fitted()
        if isinstance(p, MulticlassSample):
            raise InputError(
                "predict takes probabilities; for a MulticlassSample use .apply(sample)",
                argument="p",
                value=p,
            )
        return self._predict_classes(self._class_points(p, x))

    def apply(  # type: ignore[override]
        self,
        sample: MulticlassSample,
        out: str | Path | None = None,  # noqa: ARG002
        **settings: Any,  # noqa: ARG002
    ) -> MulticlassSample:
        """Recalibrate the probabilities of a sample.

        Parameters
        ----------
        sample : MulticlassSample
            Rows that the fit has not seen, with its classes in their order and its covariates.
        out : None
            For scans of two labels.
        **settings : object
            The same.

        Returns
        -------
        MulticlassSample
            The same rows with recalibrated probabilities.
        """
        self._check_fitted()
        if not isinstance(sample, MulticlassSample):
            raise InputError(
                "this {name} was fitted on several classes; apply it to a MulticlassSample of the "
                "same ones",
                argument="sample",
                details={"name": type(self).__name__},
            )
        refuse_other_classes(sample.classes, self.classes_, "sample")
        return with_predictions(sample, self.predict(sample.p, sample))

    def outside(self, p: object, x: object = None) -> BoolArray:
        """Mark the rows that lie outside the calibration rows, in any class or in x.

        Parameters
        ----------
        p : (n, K) array, mapping or frame
            Probabilities, one column for each class in the order of `classes_`.
        x : frame, mapping, array, MulticlassSample or Population, optional
            The covariates, as for `Recalibrator.predict`.

        Returns
        -------
        (n,) array of bool
            Only `Local` marks rows.
        """
        self._check_fitted()
        return np.asarray(self._class_distance(self._class_points(p, x)) >= 1)

    def at_edge(self, p: object, x: object = None) -> BoolArray:
        """Mark the rows at the edge of the calibration rows, where corrections fade.

        Parameters
        ----------
        p : (n, K) array, mapping or frame
            Probabilities, one column for each class in the order of `classes_`.
        x : frame, mapping, array, MulticlassSample or Population, optional
            The covariates, as for `Recalibrator.predict`.

        Returns
        -------
        (n,) array of bool
            Only `Local` marks rows.
        """
        self._check_fitted()
        far = self._class_distance(self._class_points(p, x))
        return np.asarray((far > 0) & (far < 1))

    def _class_points(self, p: object, x: object) -> ClassPoints:
        checked = checked_matrix(p, self.classes_)
        columns: tuple[Column, ...] = self._columns(x) if self.columns_ else ()
        for column in columns:
            same_length(Subject("x", column.name), len(column), len(checked), "probabilities")
        return ClassPoints(checked, columns)

    def _placed_classes(
        self, p: FloatArray, columns: tuple[Column, ...]
    ) -> tuple[FloatArray, FloatArray]:
        points = ClassPoints(checked_matrix(p, self.classes_), self._aligned(columns))
        return self._predict_classes(points), self._class_distance(points)

    @abstractmethod
    def _fit_classes(self, rows: FittedRows) -> None:
        """Fill the fitted attributes."""

    @abstractmethod
    def _predict_classes(self, points: ClassPoints) -> FloatArray:
        """Map checked rows to probabilities, (n, K)."""

    def _class_distance(self, points: ClassPoints) -> FloatArray:
        """How far rows lie from the calibration rows, (n,)."""
        return np.zeros(len(points))

    def _fit(self, sample: Sample) -> None:
        raise NotImplementedError  # two labels are learned by other methods

    def _predict(self, points: Points) -> FloatArray:
        raise NotImplementedError
