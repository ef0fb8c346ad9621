"""Results as HTML for notebooks, one module for each question."""

from itrust.render.notebook import auditing, recalibrate

__all__ = ["auditing", "recalibrate"]
