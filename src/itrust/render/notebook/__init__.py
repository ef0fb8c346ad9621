"""Results as HTML for notebooks, one module for each question."""

from itrust.render.notebook import auditing, recalibrate, scores

__all__ = ["auditing", "recalibrate", "scores"]
