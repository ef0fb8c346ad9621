"""`MCGrad`, for comparison: the package of that name behind this interface, if installed."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError
from itrust.data import Points, Sample
from itrust.recalibrate.base import Recalibrator

PREDICTION, LABEL, WEIGHT = "itrust p", "itrust y", "itrust w"


class MCGrad(Recalibrator):
    """Gradient boosting until multicalibrated (Perini et al. 2025, package `MCGrad`).

    Needs `pip install MCGrad`, which brings LightGBM, PyTorch and about eighty other packages, and
    is no extra of this package. Of these, fitting and predicting need LightGBM alone:
    `pip install lightgbm` and `pip install --no-deps MCGrad` suffice. Tested with MCGrad 0.1.5.

    Attributes
    ----------
    model_ : mcgrad.methods.MCGrad
        The fitted model of that package, with its default settings.
    """

    reads_covariates = True

    def _fit(self, sample: Sample) -> None:
        methods = _package()
        frame = self._frame(sample.points)
        frame[LABEL], frame[WEIGHT] = sample.y.astype(int), sample.weights_or_ones
        self.model_ = methods.MCGrad()
        self.model_.fit(frame, PREDICTION, LABEL, WEIGHT, **self._features())

    def _predict(self, points: Points) -> FloatArray:
        told = self.model_.predict(self._frame(points), PREDICTION, **self._features())
        return np.asarray(told, dtype=float)

    def _frame(self, points: Points) -> Any:
        import pandas as pd

        columns: dict[str, Any] = {PREDICTION: points.p}
        for column in points.columns:
            cells = (
                [None if code < 0 else str(column.levels[code]) for code in column.values]
                if column.is_category
                else column.values
            )
            columns[column.name] = cells
        return pd.DataFrame(columns)

    def _features(self) -> dict[str, list[str]]:
        categories = [name for name, kind in self.columns_.items() if kind == "category"]
        numbers = [name for name in self.columns_ if name not in categories]
        return {
            "categorical_feature_column_names": categories,
            "numerical_feature_column_names": numbers,
        }

    def _learned(self) -> dict[str, Any]:
        return {"model": self.model_.serialize()}

    def _restore(self, learned: dict[str, Any]) -> None:
        self.model_ = _package().MCGrad.deserialize(learned["model"])


def _package() -> Any:
    try:
        return importlib.import_module("mcgrad.methods")
    except ImportError:
        raise InputError("MCGrad is not installed; pip install MCGrad") from None
