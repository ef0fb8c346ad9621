"""Null distributions: how the statistic behaves when the model is calibrated."""

from itrust.nulls.analytic import Hoeffding, Spectral
from itrust.nulls.base import AnalyticNull, Facts, Null, RowwiseNull, SimulatedNull
from itrust.nulls.categorical import Categorical as Categorical
from itrust.nulls.categorical import class_edges as class_edges
from itrust.nulls.copula import Copula
from itrust.nulls.fitting import Carriers as Carriers
from itrust.nulls.fitting import carriers_of as carriers_of
from itrust.nulls.fitting import fitting_null as fitting_null
from itrust.nulls.fitting import is_symmetric as is_symmetric
from itrust.nulls.fitting import places_null as places_null
from itrust.nulls.fitting import worst_moments as worst_moments
from itrust.nulls.replicates import Replicates
from itrust.nulls.simulated import Bernoulli, Permutation, Rademacher, ResidualBootstrap
from itrust.nulls.simulated import redrawn_labels as redrawn_labels

__all__ = [
    "AnalyticNull",
    "Bernoulli",
    "Copula",
    "Facts",
    "Hoeffding",
    "Null",
    "Permutation",
    "Rademacher",
    "Replicates",
    "ResidualBootstrap",
    "RowwiseNull",
    "SimulatedNull",
    "Spectral",
]
__dir__ = __all__.copy  # what tab completion offers
