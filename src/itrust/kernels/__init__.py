"""Kernels on predictions and covariates, and the rules that choose their widths."""

from itrust.kernels.base import Kernel
from itrust.kernels.base import Product as Product
from itrust.kernels.discrete import Constant, Delta, Precomputed
from itrust.kernels.grams import GaussianGram as GaussianGram
from itrust.kernels.grams import Gram as Gram
from itrust.kernels.grams import MatchGram as MatchGram
from itrust.kernels.grams import Rows as Rows
from itrust.kernels.grams import power_of as power_of
from itrust.kernels.grams import split_match as split_match
from itrust.kernels.local import LocalKernel
from itrust.kernels.local import default_covariate_kernel as default_covariate_kernel
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
__dir__ = __all__.copy  # what tab completion offers
