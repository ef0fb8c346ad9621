"""Engines that compute e'Pe for many residual columns at once."""

from itrust.engine.cluster import Dask
from itrust.engine.factor import Certificate, Factor
from itrust.engine.tiles import Tiles

__all__ = ["Certificate", "Dask", "Factor", "Tiles"]
