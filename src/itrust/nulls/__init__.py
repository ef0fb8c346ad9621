"""Null distributions: how the statistic behaves when the model is calibrated."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
