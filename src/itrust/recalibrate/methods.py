"""All methods by the names that the command line knows, and what `save` wrote, read back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from itrust._core import EntryShape, InputError, Maybe, OneWord, json_of, mended_by
from itrust.recalibrate.base import FITS, Recalibrator, SavedMethod
from itrust.recalibrate.binning import BBQ, HistogramBinning, Isotonic
from itrust.recalibrate.local import Local
from itrust.recalibrate.multicalibration import (
    MCGrad,
    Multicalibration,
    ProportionalMulticalibration,
)
from itrust.recalibrate.saved import CURE, SCHEMA
from itrust.recalibrate.scaling import (
    Beta,
    DirichletCalibration,
    MatrixScaling,
    Platt,
    Temperature,
    TemperatureScaling,
    VectorScaling,
)

METHODS: dict[str, type[Recalibrator]] = {
    "local": Local,
    "platt": Platt,
    "temperature": Temperature,
    "isotonic": Isotonic,
    "histogram": HistogramBinning,
    "bbq": BBQ,
    "beta": Beta,
    "multicalibration": Multicalibration,
    "proportional": ProportionalMulticalibration,
    "mcgrad": MCGrad,
}
CLASS_METHODS: dict[str, type[Recalibrator]] = {
    "local": Local,
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "dirichlet": DirichletCalibration,
    **{name: METHODS[name] for name in ("isotonic", "histogram", "bbq", "platt", "beta")},
    **{name: METHODS[name] for name in ("multicalibration", "proportional", "mcgrad")},
}


class OneVsRest(Recalibrator):
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

    _SETTINGS: ClassVar[dict[str, EntryShape]] = {"method": Maybe(SavedMethod(fitted=False))}
    _LEARNED = FITS
    for_classes = True

    def __init__(self, method: Recalibrator | None = None) -> None:
        self.method = method

    @property
    def reads_covariates(self) -> bool:  # type: ignore[override]
        """bool: Whether the method uses covariates."""
        return self._for_each().reads_covariates

    def _for_each(self) -> Recalibrator:
        return Isotonic() if self.method is None else self.method

    def _check_settings(self) -> None:
        if self.method is not None and not isinstance(self.method, Recalibrator):
            raise InputError(
                "{argument} is a {kind}, not a recalibrator such as Isotonic() (with its brackets)",
                argument="method",
                value=self.method,
                details={"kind": type(self.method).__name__},
            )
        if self._for_each().for_classes:
            raise InputError(
                "{argument} must be a method for two labels, such as Isotonic(), not {value}",
                argument="method",
                value=self.method,
            )
        self._for_each()._check_settings()


def load(path: str | Path) -> Recalibrator:
    """Read a recalibrator that `save` wrote; a file is data here, never code.

    Parameters
    ----------
    path : str or Path
        The JSON file.

    Returns
    -------
    Recalibrator
        Of the class and with the settings that were saved, fitted.

    Raises
    ------
    InputError
        If the file is larger than 64 MB, is not strict JSON or holds anything that `save` would not
        have written; the message names the place in it, such as `learned.slope`.

    Notes
    -----
    Every entry is checked before it is used: its kind, its range, and whether it fits the others.
    What passes gives probabilities within [0, 1] for all rows. A file can still be wrong on
    purpose: whoever may change it may change the probabilities. What `MCGrad` learns is not
    saved.

    Examples
    --------
    >>> import itrust as it, tempfile, pathlib
    >>> few = it.simulate.survey(500, rng=0).sample
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "recalibration.json"
    >>> it.recalibrate.Platt().fit(few).save(path)
    >>> it.recalibrate.load(path)
    Platt()
    """
    methods = dict.fromkeys([*METHODS.values(), *CLASS_METHODS.values(), OneVsRest])
    try:
        with mended_by(*CURE):
            facts = json_of(Path(path))
            schema = facts.get("schema") if isinstance(facts, Mapping) else None
            OneWord((SCHEMA,)).read(schema, "schema")
            return SavedMethod(*methods).read(facts, "")
    except InputError as error:
        raise error.at(argument="path", file=str(path)) from None
