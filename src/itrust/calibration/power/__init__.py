"""What the test can see: the smallest bias with a given power, and the rows that a bias needs."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
