"""Null distributions: how the statistic behaves when the model is calibrated."""

from itrust.nulls.analytic import Hoeffding, Spectral
from itrust.nulls.base import AnalyticNull, Facts, Null, RowwiseNull, SimulatedNull
from itrust.nulls.fitting import fitting_null as fitting_null
from itrust.nulls.simulated import Bernoulli, Permutation, Rademacher, ResidualBootstrap
from itrust.nulls.simulated import redrawn_labels as redrawn_labels

__all__ = [
    "AnalyticNull",
    "Bernoulli",
    "Facts",
    "Hoeffding",
    "Null",
    "Permutation",
    "Rademacher",
    "ResidualBootstrap",
    "RowwiseNull",
    "SimulatedNull",
    "Spectral",
]
__dir__ = __all__.copy  # what tab completion offers
