"""All methods by the names that the command line knows, and what `save` wrote, read back."""

from __future__ import annotations

from pathlib import Path

from itrust._core import InputError, json_of, mended_by
from itrust.recalibrate.base import Recalibrator
from itrust.recalibrate.binning import BBQ, HistogramBinning, Isotonic
from itrust.recalibrate.local import Local
from itrust.recalibrate.mcgrad import MCGrad
from itrust.recalibrate.multicalibration import Multicalibration, ProportionalMulticalibration
from itrust.recalibrate.multiclass.one_vs_rest import OneVsRest
from itrust.recalibrate.multiclass.scaling import (
    DirichletCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from itrust.recalibrate.saved import CURE, method_named
from itrust.recalibrate.sigmoid import Beta, Platt, Temperature

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
    purpose: whoever may change it may change the probabilities. The trees of `MCGrad` are read by
    LightGBM, which does not check them, so they are checked and written anew before it sees them.

    Examples
    --------
    >>> import itrust as it, tempfile, pathlib
    >>> few = it.simulate.survey(500, rng=0).sample
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "recalibration.json"
    >>> it.recalibrate.Platt().fit(few).save(path)
    >>> it.recalibrate.load(path)
    Platt()
    """
    methods: tuple[type[Recalibrator], ...] = (
        *METHODS.values(),
        *CLASS_METHODS.values(),
        OneVsRest,
    )
    known = {method.__name__: method for method in methods}
    try:
        with mended_by(*CURE):
            facts = json_of(Path(path))
        return method_named(facts, known).from_dict(facts)
    except InputError as error:
        raise error.at(argument="path", file=str(path)) from None
