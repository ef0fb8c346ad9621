"""Tells whether a classifier's probabilities can be trusted for inference.

>>> import itrust as it
>>> sample = it.simulate.survey(2_000, rng=0).sample
>>> it.klce_test(sample, rng=0).pvalue
0.001

Every name is loaded when it is first asked for, so importing the package costs next to nothing.
Classes of results stand in the packages that make them, such as `itrust.calibration`.
"""

from itrust._core.later import offered

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = offered(__name__)
