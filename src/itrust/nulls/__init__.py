"""Null distributions: how the statistic behaves when the model is calibrated."""

from itrust.nulls.base import (
    AnalyticNull,
    Facts,
    Hoeffding,
    Null,
    RowwiseNull,
    SimulatedNull,
    Spectral,
    weighted_chi2_sf,
)
from itrust.nulls.copula import (
    GRID,
    MAX_LAWS,
    MAX_SKEWNESS2,
    MIN_CLUSTERS,
    Carriers,
    CategoricalCopula,
    Copula,
    carriers_of,
    compatible_class_correlations,
    compatible_correlations,
    fitting_null,
    is_symmetric,
    places_null,
    worst_moments,
)
from itrust.nulls.simulated import (
    Bernoulli,
    Categorical,
    CategoryDraws,
    Permutation,
    Rademacher,
    Replicates,
    ResidualBootstrap,
    class_edges,
    label_bits,
    labels_below,
    redrawn_labels,
)
from itrust.nulls.within import (
    IntervalNull,
    LabelError,
    Prudent,
    ReversibleNull,
    Selection,
    Tolerance,
    Within,
)

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
