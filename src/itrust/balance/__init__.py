"""Are labelled rows like the population, and which weights make them so? Never looks at a label."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
