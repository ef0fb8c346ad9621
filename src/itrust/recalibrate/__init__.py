"""Recalibration: every method of the paper under one interface, and `Local`.

>>> import itrust as it
>>> calibration, test = it.simulate.survey(6_000, rng=0).sample.split([0.5, 0.5], rng=0)
>>> local = it.recalibrate.Local().fit(calibration)
>>> local.predict(test.p, test).shape
(3000,)
"""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)

# What the command asks before it loads any method: whether those of `METHODS` read covariates, and
# which of `CLASS_METHODS` are for several classes alone.
READS_COVARIATES = {
    "local": True,
    "platt": False,
    "temperature": False,
    "isotonic": False,
    "histogram": False,
    "bbq": False,
    "beta": False,
    "multicalibration": True,
    "proportional": True,
    "mcgrad": True,
}
FOR_CLASSES = ("vector", "matrix", "dirichlet")
