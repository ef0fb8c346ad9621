"""Kernels on predictions and covariates, and the rules that choose their widths."""

from itrust.kernels.base import Kernel
from itrust.kernels.discrete import Constant, Delta, Precomputed
from itrust.kernels.local import LocalKernel
from itrust.kernels.smooth import RBF, Laplace, Linear, Matern, RationalQuadratic
from itrust.kernels.widths import Median, Scale, WidthRule

__all__ = [
    "RBF",
    "Constant",
    "Delta",
    "Kernel",
    "Laplace",
    "Linear",
    "LocalKernel",
    "Matern",
    "Median",
    "Precomputed",
    "RationalQuadratic",
    "Scale",
    "WidthRule",
]
