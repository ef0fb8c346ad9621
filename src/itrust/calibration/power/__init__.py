"""What the test can see: the smallest bias with a given power, and the rows that a bias needs."""

from itrust.calibration.power.detecting import detectable, detectable_by, sample_size
from itrust.calibration.power.results import (
    Clustering,
    Coverage,
    Detectable,
    RegionPower,
    SampleSize,
    worst_of,
)

__all__ = [
    "Clustering",
    "Coverage",
    "Detectable",
    "RegionPower",
    "SampleSize",
    "detectable",
    "detectable_by",
    "sample_size",
    "worst_of",
]
