"""Kernels on predictions and covariates, and the rules that choose their widths."""

from itrust.kernels.base import (
    Constant,
    Delta,
    Kernel,
    Median,
    Precomputed,
    Product,
    Scale,
    WidthRule,
)
from itrust.kernels.grams import GaussianGram, Gram, MatchGram, Rows, power_of, split_match
from itrust.kernels.local import LocalKernel, default_covariate_kernel
from itrust.kernels.smooth import RBF, Laplace, Linear, Matern, RationalQuadratic

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
__dir__ = __all__.copy  # what tab completion offers
