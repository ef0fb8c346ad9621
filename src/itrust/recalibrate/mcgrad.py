"""`MCGrad`, for comparison: the package of that name behind this interface, if installed."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, Record
from itrust.data import Points, Rows
from itrust.recalibrate.base import Recalibrator

FOLDS = 5  # of the cross-validation by which the package finds when to stop
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
    _LEARNED = Record({})

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle keeps: the package's model as text, for it cannot be pickled itself."""
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = self.model_.serialize()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "model_" in state:
            state = {**state, "model_": _package().MCGrad.deserialize(state["model_"])}
        super().__setstate__(state)

    def _fit(self, rows: Rows) -> None:
        methods = _package()
        rarer = int(min(rows.y.sum(), rows.n - rows.y.sum()))
        if rarer < FOLDS:
            raise InputError(
                "MCGrad needs {folds} rows with each label, and one label has {count}; take more "
                "rows for calibration",
                argument="y",
                count=rarer,
                details={"folds": FOLDS},
            )
        frame = self._frame(rows.points)
        frame[LABEL], frame[WEIGHT] = rows.y.astype(int), rows.weights_or_ones
        self.model_ = methods.MCGrad()
        self.model_.fit(frame, PREDICTION, LABEL, WEIGHT, **self._features())

    def _predict(self, rows: Rows) -> FloatArray:
        frame = self._frame(rows.points)
        with np.errstate(over="ignore"):  # logits beyond all numbers are 0 and 1
            told = self.model_.predict(frame, PREDICTION, **self._features())
        return np.asarray(told, dtype=float)[:, None]

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

    @classmethod
    def _shape(cls, classes: tuple[Any, ...] | None) -> Record:  # noqa: ARG003
        raise InputError("what MCGrad learns is not saved; fit it again, or keep it with pickle")


def _package() -> Any:
    try:
        return importlib.import_module("mcgrad.methods")
    except ImportError:
        raise InputError("MCGrad is not installed; pip install MCGrad") from None
