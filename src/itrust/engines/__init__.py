"""Engines that compute e'Pe for the data and many redraws at once."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
