"""Engines that compute e'Pe for the data and many redraws at once."""

from itrust.engines.dask import Dask
from itrust.engines.factor import Certificate, Factor, KernelWork, Sums
from itrust.engines.passes import Additive, Drawn, Products, Tally, Totals, Work
from itrust.engines.plan import Plan, low_rank, weight_unit
from itrust.engines.stream import ordered_map
from itrust.engines.threads import available_threads, one_blas_thread
from itrust.engines.tiles import Tiles

__all__ = [
    "Additive",
    "Certificate",
    "Dask",
    "Drawn",
    "Factor",
    "KernelWork",
    "Plan",
    "Products",
    "Sums",
    "Tally",
    "Tiles",
    "Totals",
    "Work",
    "available_threads",
    "low_rank",
    "one_blas_thread",
    "ordered_map",
    "weight_unit",
]
