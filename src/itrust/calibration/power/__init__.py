"""What the test can see: the smallest bias with a given power, and the rows that a bias needs."""

from itrust.calibration.power.clusters import (
    MIN_CLUSTERS,
    Clustering,
    ClusterNoise,
    IntraClusterCorrelation,
    assumed_clustering,
    design_effect,
    intra_cluster_correlation,
    within_pairs,
)
from itrust.calibration.power.detecting import (
    Coverage,
    Detectable,
    RegionPower,
    SampleSize,
    detectable,
    detectable_by,
    sample_size,
    worst_of,
)
from itrust.calibration.power.sensitivity import (
    Sensitivity,
    cuts_of,
    left_out,
    pairs_of,
    sobol_points,
)
