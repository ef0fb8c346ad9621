"""What the test can see: the smallest bias with a given power, and the rows that a bias needs."""

from itrust.calibration.power.clusters import (
    MIN_CLUSTERS,
    ClusterLaw,
    assumed_clustering,
    design_effect,
    intra_cluster_correlation,
    within_pairs,
)
from itrust.calibration.power.detecting import (
    PowerSetting,
    cuts_of,
    detectable,
    detectable_by,
    left_out,
    pairs_of,
    sample_size,
)
from itrust.calibration.power.results import (
    Clustering,
    Coverage,
    Detectable,
    IntraClusterCorrelation,
    RegionPower,
    SampleSize,
    worst_of,
)
from itrust.calibration.power.sensitivity import sobol_points
