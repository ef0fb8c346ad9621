"""All methods by the names that the command line knows, and what `save` wrote, read back."""

from __future__ import annotations

import json
from pathlib import Path

from itrust._core import InputError, did_you_mean
from itrust.recalibrate.base import FIRST_SCHEMA, SCHEMA, Recalibrator
from itrust.recalibrate.binning import BBQ, HistogramBinning, Isotonic
from itrust.recalibrate.local import Local
from itrust.recalibrate.mcgrad import MCGrad
from itrust.recalibrate.multicalibration import Multicalibration, ProportionalMulticalibration
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

    Examples
    --------
    >>> import itrust as it, tempfile, pathlib
    >>> few = it.simulate.survey(500, rng=0).sample
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "recalibration.json"
    >>> it.recalibrate.Platt().fit(few).save(path)
    >>> it.recalibrate.load(path)
    Platt()
    """
    try:
        facts = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            "cannot read {file}: {reason}",
            argument="path",
            file=str(path),
            details={"reason": error.strerror},
        ) from None
    except ValueError:
        raise InputError(
            "{file} is not JSON; give a file that save() wrote", argument="path", file=str(path)
        ) from None
    if isinstance(facts, dict) and facts.get("schema") == FIRST_SCHEMA:
        raise InputError(
            "{file} has the schema {schema} of an earlier version, which does not know where the "
            "calibration rows lie; fit again and save",
            argument="path",
            file=str(path),
            details={"schema": FIRST_SCHEMA},
        )
    if not isinstance(facts, dict) or facts.get("schema") != SCHEMA:
        raise InputError(
            "{file} does not have the schema {schema}; give a file that save() wrote",
            argument="path",
            file=str(path),
            details={"schema": SCHEMA},
        )
    known = {method.__name__: method for method in METHODS.values()}
    name = str(facts.get("method"))
    if name not in known:
        raise InputError(
            "no method {value}; {guess}",
            argument="path",
            value=name,
            file=str(path),
            details={"guess": did_you_mean(name, list(known))},
        )
    try:
        return known[name].from_dict(facts)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise InputError(
            "{file} is damaged: {error}; save it again",
            argument="path",
            file=str(path),
            details={"error": repr(error)},
        ) from None
