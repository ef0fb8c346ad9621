"""Engines that compute e'Pe for many residual columns at once."""

from itrust.engine.tiles import Tiles

__all__ = ["Tiles"]
