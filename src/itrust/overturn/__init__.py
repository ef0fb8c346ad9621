"""What would overturn it: how far selection, errors of labels or a tolerance would have to go."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
