from itrust.nulls.base import AnalyticNull as AnalyticNull
from itrust.nulls.base import Bernoulli as Bernoulli
from itrust.nulls.base import Facts as Facts
from itrust.nulls.base import Hoeffding as Hoeffding
from itrust.nulls.base import Null as Null
from itrust.nulls.base import Permutation as Permutation
from itrust.nulls.base import Rademacher as Rademacher
from itrust.nulls.base import Replicates as Replicates
from itrust.nulls.base import ResidualBootstrap as ResidualBootstrap
from itrust.nulls.base import RowwiseNull as RowwiseNull
from itrust.nulls.base import SimulatedNull as SimulatedNull
from itrust.nulls.base import Spectral as Spectral
from itrust.nulls.base import class_edges as class_edges
from itrust.nulls.base import label_bits as label_bits
from itrust.nulls.base import labels_below as labels_below
from itrust.nulls.base import redrawn_classes as redrawn_classes
from itrust.nulls.base import redrawn_labels as redrawn_labels
from itrust.nulls.base import weighted_chi2_sf as weighted_chi2_sf
from itrust.nulls.copula import GRID as GRID
from itrust.nulls.copula import MAX_LAWS as MAX_LAWS
from itrust.nulls.copula import MAX_SKEWNESS2 as MAX_SKEWNESS2
from itrust.nulls.copula import MIN_CLUSTERS as MIN_CLUSTERS
from itrust.nulls.copula import Carriers as Carriers
from itrust.nulls.copula import Copula as Copula
from itrust.nulls.copula import carriers_of as carriers_of
from itrust.nulls.copula import classes_alike as classes_alike
from itrust.nulls.copula import compatible_class_correlations as compatible_class_correlations
from itrust.nulls.copula import compatible_correlations as compatible_correlations
from itrust.nulls.copula import fitting_null as fitting_null
from itrust.nulls.copula import is_symmetric as is_symmetric
from itrust.nulls.copula import places_null as places_null
from itrust.nulls.copula import worst_moments as worst_moments
from itrust.nulls.within import IntervalNull as IntervalNull
from itrust.nulls.within import LabelError as LabelError
from itrust.nulls.within import Prudent as Prudent
from itrust.nulls.within import ReversibleNull as ReversibleNull
from itrust.nulls.within import Selection as Selection
from itrust.nulls.within import Tolerance as Tolerance
from itrust.nulls.within import Within as Within

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
