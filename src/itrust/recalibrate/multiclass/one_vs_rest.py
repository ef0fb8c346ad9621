"""`OneVsRest`: any method for two labels, once for each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from itrust._core import EntryShape, FloatArray, InputError, ListOf, Maybe, Record, same_size, unfit
from itrust.recalibrate.applying import as_probabilities
from itrust.recalibrate.base import Recalibrator
from itrust.recalibrate.binning import Isotonic
from itrust.recalibrate.multiclass.base import ClassRecalibrator
from itrust.recalibrate.multiclass.rows import ClassPoints, FittedRows


def _known() -> dict[str, type[Recalibrator]]:
    """Methods for two labels by the names of their classes."""
    from itrust.recalibrate.methods import METHODS

    return {method.__name__: method for method in METHODS.values()}


def _class_of(value: Any, place: str) -> type[Recalibrator]:
    name = value.get("method") if isinstance(value, Mapping) else None
    known = _known()
    if not isinstance(name, str) or name not in known:
        unfit(f"{place}.method", f"must be one of {', '.join(known)}")
    return known[name]


class _SavedMethod(EntryShape):
    """A method for two labels and its settings, not fitted."""

    def read(self, value: Any, place: str) -> Recalibrator:
        """Give the method."""
        method = _class_of(value, place)
        entries = {"method": _Anything(), "settings": Record(method._SETTINGS)}
        settings = Record(entries).read(value, place)["settings"]
        return method(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()})


class _Anything(EntryShape):
    """An entry that was read before."""

    def read(self, value: Any, place: str) -> Any:  # noqa: ARG002
        """Give it as it is."""
        return value


class _SavedFit(EntryShape):
    """A fitted method for two labels."""

    def read(self, value: Any, place: str) -> Recalibrator:
        """Give the method, fitted."""
        return _class_of(value, place)._read(value, place)


class WrappedMethod(ClassRecalibrator):
    """A method for several classes that has the settings of one for two labels."""

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {"method": Maybe(_SavedMethod())}

    def __init__(self, method: Recalibrator | None = None) -> None:
        self.method = method

    @property
    def inner(self) -> Recalibrator:
        """Recalibrator: The method for two labels."""
        return Isotonic() if self.method is None else self.method

    @property
    def reads_covariates(self) -> bool:  # type: ignore[override]
        """bool: Whether the method uses covariates."""
        return self.inner.reads_covariates

    def _saved_settings(self) -> dict[str, Any]:
        if self.method is None:
            return {"method": None}
        own = {"method": type(self.method).__name__, "settings": self.method._saved_settings()}
        return {"method": own}


class OneVsRest(WrappedMethod):
    """One class against the rest, by any method for two labels; rows are divided by their sums.

    The usual way of isotonic regression and binning for several classes (Zadrozny and Elkan 2002).
    A row in which all classes get 0 stays as it was. So does, before the division, a class that no
    calibration row has as its label. With two classes the method is fitted to the second one alone,
    and gives what it gives for a `Sample`.

    Parameters
    ----------
    method : Recalibrator
        For two labels, such as `Platt()`; it is cloned for each class. `Isotonic()` by default.

    Attributes
    ----------
    fits_ : tuple of (Recalibrator or None)
        The fitted methods, one for each class; None for a class without labels. With two classes
        there is one, for the second.

    Examples
    --------
    >>> import numpy as np, itrust as it
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1, 1, 1], 2_000)
    >>> y = [rng.choice(3, p=row) for row in truth]
    >>> rows = it.MulticlassSample(y, truth**2 / (truth**2).sum(axis=1, keepdims=True))
    >>> it.recalibrate.OneVsRest().fit(rows).predict([[0.9, 0.1, 0.0]]).round(1)
    array([[0.8, 0.2, 0. ]])
    """

    _LEARNED = Record({"fits": ListOf(Maybe(_SavedFit()), at_least=1)})

    def _fit_classes(self, rows: FittedRows) -> None:
        if self.inner._for_classes:
            raise InputError(
                "{argument} must be a method for two labels, such as Isotonic(), not {value}",
                argument="method",
                value=self.method,
            )
        codes = (1,) if len(rows.classes) == 2 else range(len(rows.classes))
        self.fits_ = tuple(self._one(rows, code) for code in codes)

    def _check_settings(self) -> None:
        if self.method is not None and not isinstance(self.method, Recalibrator):
            raise InputError(
                "{argument} is a {kind}, not a recalibrator such as Isotonic() (with its brackets)",
                argument="method",
                value=self.method,
                details={"kind": type(self.method).__name__},
            )

    def _one(self, rows: FittedRows, code: int) -> Recalibrator | None:
        if not (rows.codes == code).any():
            return None
        fitted: Recalibrator = clone(self.inner).fit(rows.binary(code), progress=False)
        return fitted

    @property
    def unchanged_(self) -> bool:
        """bool: Whether the fits of all classes decided to change nothing."""
        return all(fit is None or fit.unchanged_ for fit in self.fits_)

    def _predict_classes(self, points: ClassPoints) -> FloatArray:
        if len(self.classes_) == 2:
            p = self._told(points, 1, self.fits_[0])
            return np.column_stack([1 - p, p])
        told = np.column_stack([self._told(points, k, fit) for k, fit in enumerate(self.fits_)])
        sums = told.sum(axis=1, keepdims=True)
        told = np.where(sums > 0, told, points.p)
        return np.asarray(told / told.sum(axis=1, keepdims=True))

    def _told(self, points: ClassPoints, code: int, fit: Recalibrator | None) -> FloatArray:
        if fit is None:
            return points.p[:, code]
        return as_probabilities(fit._predict(points.one(code)))

    def _class_distance(self, points: ClassPoints) -> FloatArray:
        codes = (1,) if len(self.classes_) == 2 else range(len(self.classes_))
        far = [
            fit._distance(points.one(code))
            for code, fit in zip(codes, self.fits_, strict=True)
            if fit is not None
        ]
        return np.asarray(np.max(far, axis=0))

    def _learned(self) -> dict[str, Any]:
        return {"fits": [None if fit is None else fit.to_dict() for fit in self.fits_]}

    def _restore(self, learned: dict[str, Any]) -> None:
        size = 1 if len(self.classes_) == 2 else len(self.classes_)
        same_size("learned.fits", len(learned["fits"]), "the classes to fit", size)
        self.fits_ = tuple(learned["fits"])
        kind = type(self.inner)
        for at, fit in enumerate(self.fits_):
            if fit is not None and (type(fit) is not kind or fit.columns_ != self.columns_):
                unfit(f"learned.fits[{at}]", f"must be a {kind.__name__} of the same columns")
        if all(fit is None for fit in self.fits_):
            unfit("learned.fits", "must have a fit")
