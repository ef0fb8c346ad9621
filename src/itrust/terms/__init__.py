"""Functions of covariates: trends, levels, waves, ranks and products; their names and limits."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
