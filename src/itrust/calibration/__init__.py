"""Are the probabilities calibrated, given the covariates? Statistic, test, power, scores."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
