"""Where, for whom and by how much: local bias, groups, slices, curves, maps."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
