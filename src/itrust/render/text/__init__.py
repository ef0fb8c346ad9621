"""What every result says, a module for each question; importing them makes `document_of` whole."""

from itrust.render.document import as_html, as_text, document_of, in_notebook
from itrust.render.text import (
    auditing,
    balance,
    bias,
    calibration,
    comparisons,
    overturning,
    tasks,
    validation,
    verdict,
    watch,
)

__all__ = [
    "as_html",
    "as_text",
    "auditing",
    "balance",
    "bias",
    "calibration",
    "comparisons",
    "document_of",
    "in_notebook",
    "overturning",
    "tasks",
    "validation",
    "verdict",
    "watch",
]
