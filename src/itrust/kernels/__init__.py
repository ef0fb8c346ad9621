"""Kernels on predictions and covariates, and the rules that choose their widths."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
