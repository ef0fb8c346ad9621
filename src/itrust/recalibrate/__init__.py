"""Recalibration: every method of the paper under one interface, and `Local`.

>>> import itrust as it
>>> calibration, test = it.simulate.survey(6_000, rng=0).sample.split([0.5, 0.5], rng=0)
>>> local = it.recalibrate.Local().fit(calibration)
>>> local.predict(test.p, test).shape
(3000,)
"""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
