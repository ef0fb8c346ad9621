"""Kernels on predictions and covariates, and the rules that choose their widths."""

from itrust.kernels.base import Kernel, Product
from itrust.kernels.discrete import Constant, Delta, Precomputed
from itrust.kernels.grams import GaussianGram, Gram, MatchGram, PowerGram, Rows, split_match
from itrust.kernels.local import LocalKernel, default_covariate_kernel
from itrust.kernels.smooth import RBF, Laplace, Linear, Matern, RationalQuadratic
from itrust.kernels.widths import Median, Scale, WidthRule

__all__ = [
    "RBF",
    "Constant",
    "Delta",
    "GaussianGram",
    "Gram",
    "Kernel",
    "Laplace",
    "Linear",
    "LocalKernel",
    "MatchGram",
    "Matern",
    "Median",
    "PowerGram",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Rows",
    "Scale",
    "WidthRule",
    "default_covariate_kernel",
    "split_match",
]
__dir__ = __all__.copy  # what tab completion offers
