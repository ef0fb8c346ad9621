"""Results as HTML for notebooks, one module for each question."""

from itrust.render.document import in_notebook as in_notebook
from itrust.render.notebook import (
    auditing,
    balance,
    calibration,
    drift,
    overturn,
    recalibrate,
    scores,
    tasks,
    validation,
    watch,
)
from itrust.render.showing import as_html

__all__ = [
    "as_html",
    "auditing",
    "balance",
    "calibration",
    "drift",
    "overturn",
    "recalibrate",
    "scores",
    "tasks",
    "validation",
    "watch",
]
