"""`Recalibrator`: what every repair has in common. It learns from a `Sample`, maps (p, x) to p."""

from __future__ import annotations

import json
import os
import tempfile
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from itrust.columns import Column
from itrust.errors import InputError, listed, shown
from itrust.intake import named_columns
from itrust.plain import plain
from itrust.points import Points
from itrust.population import Population
from itrust.sample import Sample, checked_sample
from itrust.typing import FloatArray

SCHEMA = "itrust-repair/1"
NO_DISTANCE = 1e-9  # closer to 0 or 1 than this is rounding
FARTHEST_EDGE = 0.01


class Recalibrator(BaseEstimator):  # type: ignore[misc]
    """A repair of probabilities, learned from labelled rows that the model has not seen.

    Parameters are settings and never change; `fit` fills attributes with a trailing underscore.
    Copies are made with `sklearn.base.clone`; `save` writes JSON, `load` reads it.

    Attributes
    ----------
    columns_ : dict
        Covariates of the rows it was fitted on, and their kinds.
    n_rows_ : int
    """

    reads_covariates: ClassVar[bool] = False

    def fit(self, sample: Sample) -> Self:
        """Learn from labelled rows; weights count, the rows' order does not.

        Raises
        ------
        InputError
            If all labels (that count) are equal: no method can learn from them.
        """
        checked_sample(sample)
        if one_class(sample):
            told = shown(sample.values[int(sample.y[np.argmax(sample.weights_or_ones)])])
            raise InputError(
                f"every label is {told}, so there is nothing to learn a repair from; take more "
                f"rows for calibration"
            )
        columns = sample.columns if self.reads_covariates else ()
        self.columns_ = {column.name: column.kind for column in columns}
        self.n_rows_ = sample.n
        self._fit(sample)
        return self

    def predict(self, p: object, x: object = None) -> FloatArray:
        """Repaired probabilities, (n,).

        Parameters
        ----------
        p : column of n probabilities
        x : covariates
            A frame or mapping with (at least) the columns that `fit` saw, an array with them in
            that order, or a Sample, a Population or its `columns`. Methods that look at the
            prediction alone ignore it. A missing value is a level of its own.

        Notes
        -----
        A category or level that `fit` has not seen is repaired as rows of no particular category
        are: what was learned about the others is not applied to it.
        """
        self._check_fitted()
        return self._of_points(self._points(p, x))

    def apply(self, sample: Sample) -> Sample:
        """The same rows with repaired probabilities, ready for the test."""
        checked_sample(sample)
        return sample.with_predictions(self.predict(sample.p, sample))

    def _of_points(self, points: Points) -> FloatArray:
        return np.clip(self._predict(points), 0.0, 1.0)

    @abstractmethod
    def _fit(self, sample: Sample) -> None:
        """Fill the fitted attributes."""

    @abstractmethod
    def _predict(self, points: Points) -> FloatArray:
        """Map checked rows to probabilities."""

    @abstractmethod
    def _learned(self) -> dict[str, Any]:
        """All that `_predict` needs, JSON-safe."""

    @abstractmethod
    def _restore(self, learned: dict[str, Any]) -> None:
        """The inverse of `_learned`."""

    def to_dict(self) -> dict[str, Any]:
        """Settings and what was learned, ready for JSON."""
        self._check_fitted()
        from itrust import __version__

        return {
            "schema": SCHEMA,
            "version": __version__,
            "method": type(self).__name__,
            "settings": plain(self.get_params()),
            "columns": dict(self.columns_),
            "rows": self.n_rows_,
            "learned": plain(self._learned()),
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """The inverse of `to_dict`, for a class that is known; else `itrust.recalibrate.load`."""
        made = cls(**facts["settings"])
        made.columns_, made.n_rows_ = dict(facts["columns"]), facts["rows"]
        made._restore(facts["learned"])
        return made

    def save(self, path: str | Path) -> None:
        """Write JSON, whole or not at all; `itrust.recalibrate.load` reads it."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        target = Path(path)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as draft:
            draft.write(text)
        os.replace(draft.name, target)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_rows_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} has learned nothing yet; call fit(sample) first")

    def _points(self, p: object, x: object) -> Points:
        if not self.columns_:
            return Population(p).points
        names = list(self.columns_)
        if x is None:
            raise InputError(f"this repair reads the covariates {listed(names)}; pass them as x")
        if isinstance(x, Sample | Population):
            x = x.columns
        if isinstance(x, tuple) and x and all(isinstance(column, Column) for column in x):
            points = Points(Population(p).p, x)
            if any(len(column) != len(points) for column in x):
                raise InputError(
                    f"p has {len(points):,} rows and the covariates {len(x[0]):,}; align them"
                )
        elif isinstance(x, np.ndarray | list):
            points = Population(p, x, names=names, missing="level").points
        else:
            found, _, _ = named_columns(x, {}, names)
            chosen = {name: found[name] for name in names}
            points = Population(p, chosen, missing="level").points
        return Points(points.p, self._aligned(points.columns))

    def _aligned(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        by_name = {column.name: column for column in columns}
        for name, kind in self.columns_.items():
            if name not in by_name:
                raise InputError(f"x lacks the covariate {name!r}, which this repair reads")
            column = by_name[name]
            if column.is_category != (kind == "category") and not column.missing.all():
                raise InputError(
                    f"covariate {name!r} was a {kind} when the repair was fitted, and is a "
                    f"{column.kind} now"
                )
        return tuple(by_name[name] for name in self.columns_)


def one_class(sample: Sample) -> bool:
    """Whether all labels that count are equal."""
    counted = sample.y[sample.weights_or_ones > 0]
    return bool(counted.min() == counted.max())


def edge_of(p: FloatArray) -> float:
    """How near to 0 and 1 a probability may be taken at its word, for a logit.

    Predictions at exactly 0 or 1 are read as lying half as far from it as the nearest others do
    (0.005 for a forest of 100 trees), at most .01. Where there are none, at half of 1 / n or of
    the smallest distance.

    >>> import numpy as np
    >>> edge_of(np.array([0.0, 0.01, 0.5, 1.0]))
    0.005
    """
    distance = np.minimum(p, 1 - p)
    apart = distance > NO_DISTANCE
    nearest = float(distance[apart].min()) / 2 if apart.any() else FARTHEST_EDGE
    return min(nearest, FARTHEST_EDGE if not apart.all() else 0.5 / p.size)


def held_logit(p: FloatArray, edge: float) -> FloatArray:
    """Logits of probabilities held within [edge, 1 - edge]."""
    return np.asarray(logit(np.clip(p, edge, 1 - edge)))
