"""`MCGrad`, for comparison: the package of that name behind this interface, if installed."""

from __future__ import annotations

import ast
import importlib
import json
import re
from typing import Any

import numpy as np

from itrust._core import (
    FloatArray,
    InputError,
    ListOf,
    Maybe,
    Number,
    Record,
    Text,
    Whole,
    inside,
    strict_json,
    unfit,
)
from itrust.data import Points, Sample
from itrust.recalibrate.base import Recalibrator
from itrust.recalibrate.saved import FLAG, MAX_BYTES
from itrust.recalibrate.trees import checked_trees

FOLDS = 5  # of the cross-validation by which the package finds when to stop
PREDICTION, LABEL, WEIGHT = "itrust p", "itrust y", "itrust w"
TREES = Record({"booster": Text(MAX_BYTES), "unshrink_factor": Number(0, 1e3, above=True)})
# What the package writes of a model with its default settings, but for `params`, the settings.
MODEL = Record(
    {
        "schema_version": Whole(1, 2),
        "mcgrad": ListOf(TREES, at_most=100),
        "has_encoder": FLAG,
        "encoder": Text(MAX_BYTES),
        "categorical_feature_names": Maybe(ListOf(Text())),
        "numerical_feature_names": Maybe(ListOf(Text())),
    },
    frozenset({"encoder"}),
)
MODEL_PLACE = "learned.model"
QUOTED = r"(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
PAIR = rf"(?:{QUOTED}|None): \d{{1,7}}"
CODES = rf"\d{{1,5}}: \{{(?:{PAIR}(?:, {PAIR})*)?\}}"
ENCODER = re.compile(rf"\{{(?:{CODES}(?:, {CODES})*)?\}}")


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
    _LEARNED = Record({"model": Text(MAX_BYTES)})

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

    def _fit(self, sample: Sample) -> None:
        methods = _package()
        rarer = int(min(sample.y.sum(), sample.n - sample.y.sum()))
        if rarer < FOLDS:
            raise InputError(
                "MCGrad needs {folds} rows with each label, and one label has {count}; take more "
                "rows for calibration",
                argument="y",
                count=rarer,
                details={"folds": FOLDS},
            )
        frame = self._frame(sample.points)
        frame[LABEL], frame[WEIGHT] = sample.y.astype(int), sample.weights_or_ones
        self.model_ = methods.MCGrad()
        self.model_.fit(frame, PREDICTION, LABEL, WEIGHT, **self._features())

    def _predict(self, points: Points) -> FloatArray:
        with np.errstate(over="ignore"):  # logits beyond all numbers are 0 and 1
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
        facts = strict_json(learned["model"], MODEL_PLACE)
        if isinstance(facts, dict):
            facts.pop("params", None)  # settings of a fit; they are the package's own
        model = MODEL.read(facts, MODEL_PLACE)
        for name, columns in self._features().items():
            entry = name.replace("column_names", "names")
            if (model[entry] or []) != columns:
                unfit(inside(MODEL_PLACE, entry), "must be the columns of that kind, in order")
        for at, own in enumerate(model["mcgrad"]):
            place = inside(inside(MODEL_PLACE, "mcgrad"), at)
            own["booster"] = checked_trees(own["booster"], len(self.columns_) + 1, place)
        if "encoder" in model:
            model["encoder"] = self._encoder(model["encoder"])
        elif self._features()["categorical_feature_column_names"]:
            unfit(MODEL_PLACE, "lacks the entry 'encoder', which its categories need")
        self.model_ = _package().MCGrad.deserialize(json.dumps(model))

    def _encoder(self, text: str) -> str:
        """Levels and their numbers, for each category in turn, as the package reads them."""
        place = inside(MODEL_PLACE, "encoder")
        if ENCODER.fullmatch(text) is None:
            unfit(place, "must be levels and their numbers, such as {0: {'north': 0}}")
        categories = self._features()["categorical_feature_column_names"]
        try:
            found = ast.literal_eval(text)  # quoted texts and whole numbers, by the line above
        except (ValueError, SyntaxError):
            unfit(place, "must be levels and their numbers, such as {0: {'north': 0}}")
        if list(found) != list(range(len(categories))):
            unfit(place, f"must have one entry for each of {len(categories)} categories")
        return str(found)


def _package() -> Any:
    try:
        return importlib.import_module("mcgrad.methods")
    except ImportError:
        raise InputError("MCGrad is not installed; pip install MCGrad") from None
