"""Dictionaries: the checks that an adaptive test makes, built without labels."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
