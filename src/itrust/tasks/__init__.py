"""The numbers people report: how they are written, their bias, their estimates on a population."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
