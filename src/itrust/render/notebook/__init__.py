"""Results as HTML for notebooks, one module for each question."""

from itrust.render.notebook import auditing, bias, calibration, recalibrate, scores, tasks
from itrust.render.notebook.picture import in_notebook as in_notebook

__all__ = ["auditing", "bias", "calibration", "recalibrate", "scores", "tasks"]
