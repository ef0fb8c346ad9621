"""`Recalibrator`: what every repair has in common. It learns from a `Sample`, maps (p, x) to p."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from datetime import date, datetime
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from itrust import __version__
from itrust._core import FloatArray, InputError, listed, plain, shown, write_whole
from itrust.data import (
    Column,
    Points,
    Population,
    Sample,
    checked_sample,
    named_columns,
    read_covariates,
    same_length,
)

SCHEMA = "itrust-repair/1"
NO_DISTANCE = 1e-9  # closer to 0 or 1 than this is rounding
FARTHEST_EDGE = 0.01
MOMENTS: dict[str, Any] = {"datetime": datetime, "date": date}


class Recalibrator(BaseEstimator):  # type: ignore[misc]
    """A repair of probabilities, learned from labelled rows that the model has not seen.

    Parameters are settings and never change; `fit` fills attributes with a trailing underscore.
    Copies are made with `sklearn.base.clone`; `save` writes JSON, `load` reads it.

    Attributes
    ----------
    columns_ : dict
        Covariates of the rows it was fitted on, and their kinds.
    missing_levels_ : dict
        The level that stands for a missing value in each of them, None if there is none.
    seen_levels_ : dict or None
        Levels of the categories among them; None in a repair saved before they were kept.
    prob_ : str or None
        The column of probabilities it is for, where that has a name.
    n_rows_ : int
    """

    reads_covariates: ClassVar[bool] = False
    prob_: str | None = None

    def fit(self, sample: Sample) -> Self:
        """Learn from labelled rows; rows of weight 0 are left out.

        Raises
        ------
        InputError
            If all labels (that count) are equal: no method can learn from them.
        """
        checked_sample(sample)
        if (sample.weights_or_ones == 0).any():
            sample = sample.take(sample.weights_or_ones > 0)
        if one_class(sample):
            told = shown(sample.values[int(sample.y[0])])
            raise InputError(
                f"every label is {told}, so there is nothing to learn a repair from; take more "
                f"rows for calibration"
            )
        columns = sample.columns if self.reads_covariates else ()
        self.columns_ = {column.name: column.kind for column in columns}
        self.missing_levels_ = {column.name: _missing_level(column) for column in columns}
        self.seen_levels_: dict[str, list[Any]] | None = {
            column.name: [column.levels[code] for code in np.unique(column.values) if code >= 0]
            for column in columns
            if column.is_category
        }
        self.prob_ = None
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
        A level that `fit` has not seen is repaired as rows of no particular category are: what was
        learned about the others is not applied to it. Levels are compared as they are: the text
        "1" is not the number 1.
        """
        self._check_fitted()
        if isinstance(p, Sample):
            raise InputError("predict takes probabilities; for a Sample use .apply(sample)")
        if isinstance(p, Population):
            raise InputError(
                "predict takes probabilities; for a Population use .predict(rows.p, rows)"
            )
        return np.clip(self._predict(self._points(p, x)), 0.0, 1.0)

    def apply(self, sample: Sample) -> Sample:
        """The same rows with repaired probabilities, ready for the test."""
        checked_sample(sample)
        return sample.with_predictions(self.predict(sample.p, sample))

    def unseen(self, x: object) -> dict[str, int]:
        """Rows whose level `fit` has not seen, by covariate; covariates without any are left out.

        `x` is as for `predict`. Missing values are not counted.
        """
        self._check_fitted()
        if not self.seen_levels_:
            return {}
        counts = {}
        for column in self._columns(x):
            if column.is_category:
                seen = set(self.seen_levels_[column.name])
                new = [code for code, level in enumerate(column.levels) if level not in seen]
                counts[column.name] = int(np.isin(column.values, new).sum())
        return {name: count for name, count in counts.items() if count}

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
        return {
            "schema": SCHEMA,
            "version": __version__,
            "method": type(self).__name__,
            "settings": plain(self.get_params()),
            "columns": dict(self.columns_),
            "missing_levels": dict(self.missing_levels_),
            "seen_levels": _packed_levels(self.seen_levels_),
            "prob": self.prob_,
            "rows": self.n_rows_,
            "learned": plain(self._learned()),
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """The inverse of `to_dict`, for a class that is known; else `itrust.recalibrate.load`."""
        settings = facts["settings"].items()
        made = cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings})
        made.columns_, made.n_rows_ = dict(facts["columns"]), facts["rows"]
        made.missing_levels_ = dict(facts["missing_levels"])
        seen = facts.get("seen_levels")  # as the prob, not in files of older versions
        made.seen_levels_ = seen and {k: [unpacked(v) for v in vs] for k, vs in seen.items()}
        made.prob_ = facts.get("prob")
        made._restore(facts["learned"])
        return made

    def save(self, path: str | Path) -> None:
        """Write JSON, whole or not at all; `itrust.recalibrate.load` reads it."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        write_whole(Path(path), text)

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_rows_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} has learned nothing yet; call fit(sample) first")

    def _points(self, p: object, x: object) -> Points:
        if not self.columns_:
            return Population(p).points
        checked = Population(p).p
        columns = self._columns(x)
        for column in columns:
            same_length(f"covariate {column.name!r}", len(column), checked.size, "probabilities")
        return Points(checked, columns)

    def _columns(self, x: object) -> tuple[Column, ...]:
        """The covariates that this repair reads, as it saw them."""
        names = list(self.columns_)
        if x is None:
            raise InputError(f"this repair reads the covariates {listed(names)}; pass them as x")
        if isinstance(x, Sample | Population):
            x = x.columns
        if isinstance(x, tuple) and x and all(isinstance(column, Column) for column in x):
            columns = x
        elif isinstance(x, np.ndarray | list):
            columns = read_covariates(x, names, partial=True)
        else:
            found, _, _ = named_columns(x, {}, names)
            columns = read_covariates({name: found[name] for name in names}, None, partial=True)
        return self._aligned(columns)

    def _aligned(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        by_name = {column.name: column for column in columns}
        found = []
        for name, kind in self.columns_.items():
            if name not in by_name:
                raise InputError(f"x lacks the covariate {name!r}, which this repair reads")
            column = by_name[name]
            if column.missing.all():
                column = _all_missing(name, kind, len(column))
            if column.kind != kind and {column.kind, kind} != {"number", "boolean"}:
                raise InputError(
                    f"covariate {name!r} was a {kind} when the repair was fitted, and is a "
                    f"{column.kind} now"
                )
            found.append(_with_level(column, self.missing_levels_[name]))
        return tuple(found)


def _missing_level(column: Column) -> str | None:
    """The level that `Sample` made of missing values: the last, in one bracket more than others."""
    last = column.levels[-1] if column.levels else None
    is_one = isinstance(last, str) and re.fullmatch(r"\(+missing\)+", last)
    return last if is_one else None


def _all_missing(name: str, kind: Any, n: int) -> Column:
    """A column without any value; Arrow cannot tell what kind it is."""
    if kind == "category":
        return Column(name, kind, np.full(n, -1, dtype=np.int64))
    return Column(name, kind, np.full(n, np.nan))


def _with_level(column: Column, level: str | None) -> Column:
    """Missing values as the level they were when the repair was fitted."""
    if level is None or not column.is_category or not column.missing.any():
        return column
    levels = column.levels if level in column.levels else (*column.levels, level)
    codes = np.where(column.missing, levels.index(level), column.values)
    return Column(column.name, column.kind, codes, levels)


def _packed_levels(levels: dict[str, list[Any]] | None) -> dict[str, list[Any]] | None:
    return levels and {name: [packed(level) for level in own] for name, own in levels.items()}


def packed(level: Any) -> Any:
    """A level as JSON can hold it."""
    if level is None or isinstance(level, str | bool | int | float):
        return level
    for kind, type_ in MOMENTS.items():
        if type(level) is type_:
            return {kind: level.isoformat()}
    raise InputError(
        f"the level {shown(level)} is a {type(level).__name__}, which JSON cannot hold; turn the "
        f"column into text before the fit"
    )


def unpacked(level: Any) -> Any:
    """The inverse of `packed`."""
    if not isinstance(level, dict):
        return level
    ((kind, text),) = level.items()
    return MOMENTS[kind].fromisoformat(text)


def checked_count(value: object, name: str) -> None:
    """Refuse a setting that is no whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")


def checked_share(value: object, name: str, *, whole: bool = False) -> None:
    """Refuse a setting that is no number between 0 and 1."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else -1.0
    if not (0 < number < 1 or (whole and number == 1)):
        where = "in (0, 1]" if whole else "between 0 and 1"
        raise InputError(f"{name} must lie {where}, not {value!r}")


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
