from itrust.kernels.base import Constant as Constant
from itrust.kernels.base import Delta as Delta
from itrust.kernels.base import Kernel as Kernel
from itrust.kernels.base import Median as Median
from itrust.kernels.base import Precomputed as Precomputed
from itrust.kernels.base import Scale as Scale
from itrust.kernels.base import WidthRule as WidthRule
from itrust.kernels.grams import GaussianGram as GaussianGram
from itrust.kernels.grams import Gram as Gram
from itrust.kernels.grams import MatchGram as MatchGram
from itrust.kernels.grams import Rows as Rows
from itrust.kernels.grams import power_of as power_of
from itrust.kernels.grams import split_match as split_match
from itrust.kernels.local import LocalKernel as LocalKernel
from itrust.kernels.local import default_covariate_kernel as default_covariate_kernel
from itrust.kernels.smooth import RBF as RBF
from itrust.kernels.smooth import Laplace as Laplace
from itrust.kernels.smooth import Linear as Linear
from itrust.kernels.smooth import Matern as Matern
from itrust.kernels.smooth import RationalQuadratic as RationalQuadratic

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
