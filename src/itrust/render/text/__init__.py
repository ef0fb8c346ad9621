"""Results as plain text of any width, one module for each question."""

from itrust.render.showing import WIDTH
from itrust.render.text import auditing, bias, calibration, recalibrate, scores, tasks
from itrust.render.text.auditing import (
    UNKNOWN,
    by_cluster,
    check_lines,
    judged_on,
    sections,
    seen,
    task_line,
    told,
)
from itrust.render.text.layout import NARROW, fitted
from itrust.render.text.verdict import evidence_words, in_words, sentence_of

__all__ = [
    "NARROW",
    "UNKNOWN",
    "WIDTH",
    "auditing",
    "bias",
    "by_cluster",
    "calibration",
    "check_lines",
    "evidence_words",
    "fitted",
    "in_words",
    "judged_on",
    "recalibrate",
    "scores",
    "sections",
    "seen",
    "sentence_of",
    "task_line",
    "tasks",
    "told",
]
