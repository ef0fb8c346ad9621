"""Results as HTML for notebooks, one module for each question."""

from itrust.render.notebook import auditing, bias, calibration, recalibrate, scores, tasks

__all__ = ["auditing", "bias", "calibration", "recalibrate", "scores", "tasks"]
