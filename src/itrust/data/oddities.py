"""What is odd about the covariates of some rows, in sentences for the data-quality notes."""

from __future__ import annotations

from itrust.data.copies import copy_notes
from itrust.data.kinds import few_values_note, is_few
from itrust.data.rows import Points


def covariate_notes(points: Points) -> list[str]:
    """Say what is odd about covariates: one value, few values, copies of the prediction."""
    said = [note for column in points.columns for note in column.notes()]
    few = [c.name for c in points.columns if not c.declared and is_few(c.kind, c.values)]
    said.extend(few_values_note(few))
    said.extend(note for column in points.columns for note in copy_notes(column, points.p))
    return said
