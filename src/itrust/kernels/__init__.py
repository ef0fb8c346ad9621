"""Kernels on predictions and covariates, and the rules that choose their widths."""

from itrust.kernels.base import Constant, Delta, Kernel, Precomputed, Product
from itrust.kernels.grams import (
    DenseGram,
    GaussianGram,
    Gram,
    MatchGram,
    ProductGram,
    Rows,
    positions,
    power_of,
    split_match,
)
from itrust.kernels.local import LocalKernel, default_covariate_kernel
from itrust.kernels.smooth import (
    MAX_POINTS,
    RBF,
    Laplace,
    Linear,
    Matern,
    Median,
    RationalQuadratic,
    Scale,
    WidthRule,
)

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
