"""Rows: what users bring becomes a `Sample`, a `Scan` or a `Population`, once."""

from itrust._core import offered

__getattr__, __dir__, __all__ = offered(__name__)
