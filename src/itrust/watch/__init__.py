"""Are the probabilities still calibrated? The same question with every batch, at any time."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
