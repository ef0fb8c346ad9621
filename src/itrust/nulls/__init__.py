"""Null distributions: how the statistic behaves when the model is calibrated."""

from itrust.nulls.analytic import Hoeffding, Spectral
from itrust.nulls.base import AnalyticNull, Facts, Null, RowwiseNull, SimulatedNull
from itrust.nulls.categorical import Categorical as Categorical
from itrust.nulls.categorical import CategoryDraws as CategoryDraws
from itrust.nulls.categorical import class_edges as class_edges
from itrust.nulls.categorical_copula import CategoricalCopula as CategoricalCopula
from itrust.nulls.copula import Copula
from itrust.nulls.fitting import Carriers as Carriers
from itrust.nulls.fitting import carriers_of as carriers_of
from itrust.nulls.fitting import fitting_null as fitting_null
from itrust.nulls.fitting import is_symmetric as is_symmetric
from itrust.nulls.fitting import places_null as places_null
from itrust.nulls.fitting import worst_moments as worst_moments
from itrust.nulls.replicates import Replicates
from itrust.nulls.simulated import Bernoulli, Permutation, Rademacher, ResidualBootstrap
from itrust.nulls.simulated import label_bits as label_bits
from itrust.nulls.simulated import labels_below as labels_below
from itrust.nulls.simulated import redrawn_labels as redrawn_labels
from itrust.nulls.within import IntervalNull, LabelError, Prudent, Selection, Tolerance, Within
from itrust.nulls.within import ReversibleNull as ReversibleNull

__all__ = [
    "AnalyticNull",
    "Bernoulli",
    "Copula",
    "Facts",
    "Hoeffding",
    "IntervalNull",
    "LabelError",
    "Null",
    "Permutation",
    "Prudent",
    "Rademacher",
    "Replicates",
    "ResidualBootstrap",
    "RowwiseNull",
    "Selection",
    "SimulatedNull",
    "Spectral",
    "Tolerance",
    "Within",
]
__dir__ = __all__.copy  # what tab completion offers
